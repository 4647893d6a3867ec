"""The parts of `gradcheck` beyond backward: derivatives carried forward, and several at once under `vmap`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._autograd.differentiate import grad
from .._functions import functions
from .._tensor import Tensor, wrap
from .._vmap_internals import vmap
from .forward_ad import dual_level, make_dual, unpack_dual

__all__ = ["batched_backward", "batched_forward", "forward_products"]

Array = np.ndarray[Any, Any]
Products = list[Any]


def _outputs(found: Any) -> tuple[Any, ...]:
    return tuple(found) if isinstance(found, tuple | list) else (found,)


def _zeros(t: Tensor) -> Tensor:
    found: Tensor = functions["zeros"]([], dtype=t.dtype, device=t.device).expand(t.shape)
    return found


def forward_products(func: Callable[..., Any], inputs: Sequence[Any], position: int, tangent: Tensor) -> Products:
    """The derivative of each result in the direction of one input's tangent; None for a result that has no derivative."""
    with dual_level():
        given = [x.detach() if isinstance(x, Tensor) else x for x in inputs]
        for i, x in enumerate(inputs):  # as torch: what is differentiable has a tangent, of zeros but for one
            if isinstance(x, Tensor) and x.requires_grad:
                given[i] = make_dual(given[i], tangent if i == position else _zeros(given[i]).contiguous())
        found: Products = []
        for out in _outputs(func(*given)):
            if not isinstance(out, Tensor) or not out.dtype.inexact:
                found.append(None)
                continue
            primal, product = unpack_dual(out)
            found.append(_zeros(primal) if product is None else product)
    return found


def random_tangents(x: Tensor, count: int = 2) -> list[Tensor]:
    """Directions to compare in, always the same."""
    generator = np.random.default_rng(x.numel())
    made = []
    for _ in range(count):
        array = generator.standard_normal(tuple(x.shape))
        if x.dtype.is_complex:
            array = array + 1j * generator.standard_normal(tuple(x.shape))
        made.append(wrap(np.asarray(array).astype(x.dtype.np), x.dtype))
    return made


def batched_forward(func: Callable[..., Any], inputs: Sequence[Any], position: int) -> str | None:
    """What is wrong with derivatives carried forward for several tangents at once, compared with one at a time."""

    def product(tangent: Tensor) -> tuple[Tensor, ...]:
        return tuple(p for p in forward_products(func, inputs, position, tangent) if p is not None)

    return _compare(product, random_tangents(inputs[position]), "forward")


def batched_backward(output: Tensor, inputs: Sequence[Tensor]) -> str | None:
    """What is wrong with gradients for several grad_outputs at once, compared with one at a time."""

    def product(vector: Tensor) -> tuple[Tensor, ...]:
        found = grad(output, inputs, vector, retain_graph=True, allow_unused=True)
        return tuple(_zeros(x) if g is None else g for g, x in zip(found, inputs, strict=True))

    return _compare(product, random_tangents(output), "backward")


def _compare(product: Callable[[Tensor], tuple[Tensor, ...]], vectors: list[Tensor], direction: str) -> str | None:
    expected = [functions["stack"](list(column)) for column in zip(*[product(v) for v in vectors], strict=True)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="There is a performance drop")
        try:
            found = vmap(product)(functions["stack"](vectors))
        except RuntimeError as error:
            return f"While computing batched gradients, got: {error}\n\ngradcheck failed while testing {direction} mode under vmap"
    for i, (got, wanted) in enumerate(zip(found, expected, strict=True)):
        if not np.allclose(got.detach()._array, wanted.detach()._array, rtol=1e-5, atol=1e-8, equal_nan=False):
            return (
                f"For output {i} and input 0:\n\ngradcheck failed while testing {direction} mode under vmap: several derivatives computed "
                f"at once differ from those computed one at a time.\n\nGot:\n{got}\n\nExpected:\n{wanted}\n"
            )
    return None
