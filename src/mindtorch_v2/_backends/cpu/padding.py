"""Padding by reflection and replication: each dimension is gathered by position, and its gradient added up again."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["pad_by_position", "pad_by_position_backward", "reflected", "replicated"]

Array = np.ndarray[Any, Any]


def reflected(size: int, left: int, right: int) -> Array:
    """Positions of a dimension that is mirrored at its border elements."""
    at = np.abs(np.arange(-left, size + right))
    return np.where(at >= size, 2 * (size - 1) - at, at)


def replicated(size: int, left: int, right: int) -> Array:
    """Positions of a dimension whose border elements are repeated."""
    return np.clip(np.arange(-left, size + right), 0, size - 1)


def pad_by_position(x: Array, positions: list[Array]) -> Array:
    """Gather the last dimensions at these positions."""
    for axis, at in zip(range(-len(positions), 0), positions, strict=True):
        if len(at) != x.shape[axis] or (at != np.arange(len(at))).any():
            x = np.take(x, at, axis)
    return x.copy() if x.base is not None else x


def pad_by_position_backward(grad: Array, positions: list[Array], shape: tuple[int, ...], lefts: list[int]) -> Array:
    """Add up gradients at the positions they came from."""
    dtype = grad.dtype
    total = grad.astype(np.float32) if dtype.itemsize == 2 else grad
    for axis, at, left in zip(range(-len(positions), 0), positions, lefts, strict=True):
        total = _fold_axis(total, axis, at, left, shape[axis])
    return np.ascontiguousarray(total.astype(dtype, copy=total is grad))


def _fold_axis(grad: Array, axis: int, at: Array, left: int, size: int) -> Array:
    rest = (slice(None),) * (-axis - 1)
    out_shape = list(grad.shape)
    out_shape[axis] = size
    total = np.zeros(out_shape, grad.dtype)
    # the middle moves as a block, only the borders are added one by one
    start, stop = max(left, 0), min(left + size, len(at))
    if stop > start:
        total[(..., slice(start - left, stop - left), *rest)] = grad[(..., slice(start, stop), *rest)]
    for i in (*range(min(start, len(at))), *range(max(stop, start), len(at))):
        target = total[(..., at[i], *rest)]
        total[(..., at[i], *rest)] = target + grad[(..., i, *rest)]
    return total
