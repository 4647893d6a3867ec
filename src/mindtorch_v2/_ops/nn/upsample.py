"""Interpolation: `upsample_*` by nearest elements, linear, cubic and antialiasing filters, in one to three dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._backends.cpu.nn.upsample import resample, resample_backward
from ..._dispatch.codegen import compile_function
from ..._tensor import Tensor
from ..machinery.declare import op

Array = np.ndarray[Any, Any]
Sizes = tuple[int, ...]
_KERNELS = {"nearest": "compute_indices_weights_nearest", "nearest_exact": "compute_indices_weights_nearest",
            "linear": "compute_indices_weights_linear", "cubic": "compute_indices_weights_cubic"}  # fmt: skip
# torch: of the derivatives, these answer in the format of the image
_BACKWARD_IN_FORMAT = {"upsample_nearest2d", "_upsample_nearest_exact2d", "upsample_bilinear2d", "upsample_trilinear3d",
                       "_upsample_bilinear2d_aa"}  # fmt: skip
_AXES = {1: "W", 2: "HW", 3: "DHW"}


def _check(shape: Sizes, out: Sizes, n: int) -> None:
    if len(out) != n:
        raise RuntimeError(f"It is expected output_size equals to {n}, but got size {len(out)}")
    if len(shape) != n + 2:
        raise RuntimeError(f"It is expected input_size equals to {n + 2}, but got size {len(shape)}")
    if min(*shape[2:], *out) <= 0:
        told = [", ".join(f"{a}: {v}" for a, v in zip(_AXES[n], sizes, strict=True)) for sizes in (shape[2:], out)]
        raise RuntimeError(f"Input and output sizes should be greater than 0, but got input ({told[0]}) output ({told[1]})")
    if 0 in shape[1:]:
        raise RuntimeError(f"Non-empty {n + 2}D data tensor expected but got a tensor with sizes {list(shape)}")


def _sizes(value: int | Sequence[int], n: int) -> Sizes:
    return (int(value),) * n if isinstance(value, int) else tuple(int(v) for v in value)


def _output_size(shape: Sizes, output_size: Sequence[int] | None, scale_factors: Sequence[float] | None) -> Sizes:
    """The extents that a call means which gives either extents or factors."""
    if output_size is not None:
        if scale_factors is not None:
            raise RuntimeError("Must specify exactly one of output_size and scale_factors")
        return tuple(int(v) for v in output_size)
    if scale_factors is None:
        raise RuntimeError("Must specify exactly one of output_size and scale_factors")
    if len(scale_factors) != len(shape) - 2:
        raise RuntimeError(
            f"Must specify one scale factor for each of the {len(shape) - 2} spatial dimensions, got {len(scale_factors)}"
        )
    return tuple(int(n * f) for n, f in zip(shape[2:], scale_factors, strict=True))


def _declare(name: str, n: int, mode: str, *, aligned: bool) -> Callable[..., Any]:
    """One kind of upsampling: the overload that takes factors, the operator, and its derivative."""
    scales = ("scales",) if n == 1 else tuple(f"scales_{a.lower()}" for a in _AXES[n])
    align = "bool align_corners, " if aligned else ""
    flags = ["align_corners"] if aligned else []
    tail = ", ".join(f"float? {s}=None" for s in scales)

    def by_factor(
        input: Tensor, output_size: Sequence[int] | None, align_corners: bool, scale_factors: Sequence[float] | None
    ) -> Tensor:
        out = _output_size(input._array.shape, output_size, scale_factors)
        given = tuple(scale_factors) if scale_factors is not None else (None,) * n
        return forward(input, out, *([align_corners] if aligned else []), *given)

    def kernel(self: Array, output_size: int | Sequence[int], align_corners: bool, factors: tuple[float | None, ...]) -> Array:
        out = _sizes(output_size, n)
        _check(self.shape, out, n)
        return resample(self, mode, out, align_corners, factors)

    def backward(
        grad_output: Array,
        output_size: int | Sequence[int],
        input_size: Sequence[int],
        align_corners: bool,
        factors: tuple[float | None, ...],
    ) -> Array:
        shape = tuple(input_size)
        out = _sizes(output_size, n)
        _check(shape, out, n)
        if grad_output.shape != (*shape[:2], *out):
            axis = next(i for i, (a, b) in enumerate(zip(grad_output.shape, (*shape[:2], *out), strict=False)) if a != b)
            raise RuntimeError(
                f"Expected grad_output to have the same shape as output; output.size({axis}) = {(*shape[:2], *out)[axis]} "
                f"but got grad_output.size({axis}) = {grad_output.shape[axis]}"
            )
        return resample_backward(grad_output, mode, shape, align_corners, factors)

    # functions whose parameters say what they take: the names differ with n, and only some kinds have `align_corners`
    def named(parameters: str, result: str, **names: Any) -> Callable[..., Any]:
        return compile_function("run", parameters, [f"return {result}"], names, title=name)

    names = ", ".join([*flags, *scales])
    corners = "align_corners" if aligned else "False"
    given = f"{corners}, ({', '.join(scales)},)"
    op(
        f"{name}.vec(Tensor input, SymInt[]? output_size, {align}float[]? scale_factors) -> Tensor",
        composite=named(
            ", ".join(["input", "output_size", *flags, "scale_factors"]),
            f"by_factor(input, output_size, {corners}, scale_factors)",
            by_factor=by_factor,
        ),
        variants="",
        tags=("transparent",),
    )
    spread = op(
        f"{name}_backward(Tensor grad_output, SymInt[{n}] output_size, SymInt[{n + 2}] input_size, {align}{tail}) -> Tensor",
        cpu=named(
            f"grad_output, output_size, input_size, {names}",
            f"backward(grad_output, output_size, input_size, {given})",
            backward=backward,
        ),
        format_of=("grad_output",) if name in _BACKWARD_IN_FORMAT else (),
        shape=lambda input_size: tuple(input_size),
        grad={
            "grad_output": named(
                f"grad, output_size, {names}", f"forward(grad, output_size, {names})", forward=lambda *given: forward(*given)
            )
        },
        variants="",
    )
    forward = op(
        f"{name}(Tensor self, SymInt[{n}] output_size, {align}{tail}) -> Tensor",
        cpu=named(f"self, output_size, {names}", f"kernel(self, output_size, {given})", kernel=kernel),
        refuses=(_KERNELS.get(mode, name.lstrip("_")), "bic"),
        format_of=("self",),
        shape=lambda self, output_size: (*self._array.shape[:2], *_sizes(output_size, n)),
        grad={
            "self": named(
                f"grad, output_size, self_shape, {names}", f"spread(grad, output_size, self_shape, {names})", spread=spread
            )
        },
        variants="",
    )
    return forward


upsample_nearest1d = _declare("upsample_nearest1d", 1, "nearest", aligned=False)
upsample_nearest2d = _declare("upsample_nearest2d", 2, "nearest", aligned=False)
upsample_nearest3d = _declare("upsample_nearest3d", 3, "nearest", aligned=False)
_upsample_nearest_exact1d = _declare("_upsample_nearest_exact1d", 1, "nearest_exact", aligned=False)
_upsample_nearest_exact2d = _declare("_upsample_nearest_exact2d", 2, "nearest_exact", aligned=False)
_upsample_nearest_exact3d = _declare("_upsample_nearest_exact3d", 3, "nearest_exact", aligned=False)
upsample_linear1d = _declare("upsample_linear1d", 1, "linear", aligned=True)
upsample_bilinear2d = _declare("upsample_bilinear2d", 2, "linear", aligned=True)
upsample_trilinear3d = _declare("upsample_trilinear3d", 3, "linear", aligned=True)
upsample_bicubic2d = _declare("upsample_bicubic2d", 2, "cubic", aligned=True)
_upsample_bilinear2d_aa = _declare("_upsample_bilinear2d_aa", 2, "bilinear_aa", aligned=True)
_upsample_bicubic2d_aa = _declare("_upsample_bicubic2d_aa", 2, "bicubic_aa", aligned=True)
_upsample_lanczos2d_aa = _declare("_upsample_lanczos2d_aa", 2, "lanczos_aa", aligned=True)
