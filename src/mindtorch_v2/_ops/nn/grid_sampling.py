"""Sampling images at the places of a grid, and the grids of affine maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._backends.cpu.nn.grid_sampling import sample, sample_backward, sample_double_backward
from ..._checks import no_dimensions
from ..._tensor import Tensor, wrap
from ..machinery.declare import op
from ..machinery.lookup import aten

Array = np.ndarray[Any, Any]

_ARGUMENTS = "Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners"


def _check(input: Tensor, grid: Tensor, interpolation_mode: int) -> None:
    x, g = input._array.shape, grid._array.shape
    _check_common(x, g)
    if len(x) not in (4, 5) or len(x) != len(g):
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes "
            f"{list(x)} and grid with sizes {list(g)}"
        )
    if len(x) == 5 and interpolation_mode == 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")


def _check_modes(interpolation_mode: int, padding_mode: int) -> None:
    for name, value in (("interpolation_mode", interpolation_mode), ("padding_mode", padding_mode)):
        if value not in (0, 1, 2):
            raise RuntimeError(f"grid_sampler(): expected {name} to be 0, 1 or 2, but got {value}")


def _check_common(x: Sequence[int], g: Sequence[int]) -> None:
    if not x or not g:
        raise no_dimensions(0)
    if x[0] != g[0]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
            f"{list(x)} and grid with sizes {list(g)}"
        )
    if g[-1] != len(x) - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {len(x) - 2} in last dimension, but got grid with sizes {list(g)}"
        )
    for i in range(2, len(x)):
        if x[i] == 0:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                f"{list(x)} with dimension {i} being empty"
            )


def _sampled(n: int, input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Array:
    _check_common(input.shape, grid.shape)
    if not input.ndim == grid.ndim == n + 2:
        raise RuntimeError(
            f"grid_sampler(): expected {n + 2}D input and grid with same number of dimensions, but got input with sizes "
            f"{list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    _check_modes(interpolation_mode, padding_mode)
    return sample(input, grid, interpolation_mode, padding_mode, align_corners)


def _choose(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    _check(input, grid, interpolation_mode)
    chosen = grid_sampler_2d if input.dim() == 4 else grid_sampler_3d
    return chosen(input, grid, interpolation_mode, padding_mode, align_corners)


def _second_gradients(
    grads: Sequence[Tensor | None],
    grad_output: Tensor,
    input: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> tuple[Tensor, ...]:
    # no operator of ATen's does this, and nothing differentiates it again
    given = [None if g is None else g._array for g in grads]
    found = sample_double_backward(
        given[0], given[1], grad_output._array, input._array, grid._array, interpolation_mode, padding_mode, align_corners
    )
    return tuple(wrap(a) for a in found)


def _declare(n: int) -> Callable[..., Any]:
    spread = op(
        f"grid_sampler_{n}d_backward(Tensor grad_output, {_ARGUMENTS}, bool[2] output_mask) -> (Tensor, Tensor)",
        cpu=lambda grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask: sample_backward(
            grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask
        ),
        grad={("grad_output", "input", "grid"): _second_gradients},
        variants="",
    )
    return op(
        f"grid_sampler_{n}d({_ARGUMENTS}) -> Tensor",
        cpu=lambda input, grid, interpolation_mode, padding_mode, align_corners: _sampled(
            n, input, grid, interpolation_mode, padding_mode, align_corners
        ),
        refuses=("grid_sampler_2d_cpu_kernel_impl" if n == 2 else "grid_sampler3d_cpu", "bic"),
        same_dtype=("input", "grid"),
        shape=lambda input, grid: (*input._array.shape[:2], *grid._array.shape[1:-1]),
        grad={
            ("input", "grid"): lambda grad, input, grid, interpolation_mode, padding_mode, align_corners, needs: spread(
                grad, input, grid, interpolation_mode, padding_mode, align_corners, needs
            )
        },
        variants="function",
    )


grid_sampler_2d = _declare(2)
grid_sampler_3d = _declare(3)
grid_sampler = op(f"grid_sampler({_ARGUMENTS}) -> Tensor", composite=_choose, variants="function")


# --- affine grids ---------------------------------------------------------------------------------------------------


def _base_grid(theta: Tensor, size: Sequence[int], align: bool) -> Tensor:
    """Homogeneous coordinates of every pixel: (N, *spatial, n + 1)."""
    n = len(size) - 2
    base = theta.new_empty((size[0], *size[2:], n + 1))
    for i in range(n):
        extent = size[len(size) - 1 - i]
        steps = aten.linspace(-1, 1, extent, dtype=theta.dtype, device=theta.device) if extent > 1 else theta.new_zeros((1,))
        if not align and extent > 1:
            steps = steps * (extent - 1) / extent
        base.select(-1, i).copy_(steps.view((-1, *(1,) * i)))
    base.select(-1, n).fill_(1)
    return base


def _flatten_grid(base: Tensor) -> Tensor:
    shape = base._array.shape
    return base.view((shape[0], int(np.prod(shape[1:-1])), shape[-1]))


def _affine(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    if len(size) not in (4, 5):
        raise RuntimeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    base = _base_grid(theta, tuple(size), align_corners)
    grid = _flatten_grid(base).bmm(theta.transpose(1, 2))
    return grid.view((size[0], *size[2:], len(size) - 2))


def _affine_backward(grad: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    base = _base_grid(grad, tuple(size), align_corners)
    n = len(size) - 2
    flat = grad.reshape((size[0], -1, n))
    return _flatten_grid(base).transpose(1, 2).bmm(flat).transpose(1, 2)


affine_grid_generator_backward = op(
    "affine_grid_generator_backward(Tensor grad, SymInt[] size, bool align_corners) -> Tensor",
    composite=_affine_backward,
    variants="",
)
affine_grid_generator = op(
    "affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor",
    composite=_affine,
    grad={"theta": lambda grad, size, align_corners: affine_grid_generator_backward(grad, size, align_corners)},
    variants="function",
)
