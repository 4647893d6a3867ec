"""Whether a gradient's memory may be written or kept without a copy, read from Python's reference counts."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .._dispatch import dispatcher, keys, registry
from .._memory_format import contiguous_format
from .._tensor import Tensor

__all__ = ["clone_for", "is_alone", "take_over"]

_count = sys.getrefcount
Array = np.ndarray[Any, Any]


class _Slot:
    __slots__ = ("held",)
    held: object


def _count_of_local() -> int:
    held = object()
    return _count(held)


def _count_of_slot() -> int:
    slot = _Slot()
    slot.held = object()
    return _count(slot.held)


# What the counts are for an object with one owner; this differs between versions of Python.
LOCAL = _count_of_local()
SLOT = _count_of_slot()


def is_alone(t: Tensor, variables: int, like: Array | None = None) -> bool:
    """Whether a gradient is held by the caller's variables alone, owns its memory, and is laid out as `like` (or row by row).

    `variables` counts the names bound to it in the calling frames; the parameter here is one more.
    """
    if _count(t) != LOCAL + variables:
        return False
    base = t._base
    if _count(t._storage) != (SLOT if base is None else SLOT + 1) or (base is not None and _count(base) > LOCAL + 1):
        return False
    array = t._array
    if like is not None and not like.flags.c_contiguous:
        return array.strides == like.strides and array.flags.writeable and is_dense(like)
    return array.flags.c_contiguous and array.flags.writeable


def is_dense(array: Array) -> bool:
    """Whether each element has its own place in memory, without gaps."""
    order = sorted([(s, n) for s, n in zip(array.strides, array.shape, strict=True) if n != 1])
    expected = array.itemsize
    for stride, extent in order:
        if stride != expected:
            return False
        expected *= extent
    return True


def take_over(grad: Tensor, leaf: Tensor) -> Tensor:
    """The gradient itself as `leaf.grad`."""
    if dispatcher.active_modes() or grad.__class__ is not Tensor:
        return grad.detach()
    # nobody sees the difference but in a row of a profile, and it saves making a tensor
    grad._base = None
    grad._keys &= ~keys.AUTOGRAD
    return grad


def clone_for(leaf: Tensor, grad: Tensor) -> Tensor:
    """A copy of a gradient in the layout of its leaf; a sparse one as it is."""
    if grad._keys & keys.SPARSE_LAYOUTS:
        return grad
    like = leaf._array
    if like.flags.c_contiguous:
        copy: Tensor = registry.aten("clone").table[grad._keys](grad, contiguous_format)
        return copy
    if is_dense(like):
        return grad.new_empty_strided(leaf.shape, leaf.stride()).copy_(grad)
    return grad.clone()
