"""Casts of weights, kept while autocast is on: a weight that is used often is cast once, and has one gradient."""

from __future__ import annotations

import weakref

from .._dispatch.tls import state
from .._dtype import dtype, float32
from .._tensor import Tensor

__all__ = ["cast", "clear"]

# by the identity of a weight: it, so that no other is taken for it, and its casts
_casts: dict[int, tuple[weakref.ref[Tensor], dict[dtype, Tensor]]] = {}


def cast(tensor: Tensor, to: dtype, *, is_lower: bool, enabled: bool) -> Tensor:
    """The tensor in another dtype; of a weight, to the lower precision, the one made before."""
    if not (enabled and is_lower and not state.inference and _is_weight(tensor)):
        return tensor.to(to)
    reference, by_dtype = _casts.get(id(tensor), (None, {}))
    if reference is None or reference() is not tensor:
        by_dtype = {}
        _casts[id(tensor)] = weakref.ref(tensor), by_dtype
    found = by_dtype.get(to)
    if found is None:
        found = by_dtype[to] = _differentiable_cast(tensor, to)
    return found


def clear() -> None:
    """Forget all casts."""
    _casts.clear()


def _is_weight(tensor: Tensor) -> bool:
    return tensor.dtype is float32 and tensor.requires_grad and tensor.is_leaf and not tensor._is_view()


def _differentiable_cast(tensor: Tensor, to: dtype) -> Tensor:
    """The cast with a node, also in `no_grad`: what runs after it may need the gradient."""
    previous, state.grad_enabled = state.grad_enabled, True
    try:
        return tensor.to(to)
    finally:
        state.grad_enabled = previous
