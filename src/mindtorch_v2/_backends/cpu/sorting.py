"""Sorting and selection kernels. NaN is greater than every number, and equal elements keep their order."""

from __future__ import annotations

from typing import Any

import numpy as np

from .reduction import BFLOAT, FLOAT, LONG

Array = np.ndarray[Any, Any]
_PACKED = 128  # extent from which sorting key and index as one integer pays


def _comparable(x: Array) -> Array:
    if x.dtype == BFLOAT:
        return x.astype(FLOAT)
    return x.view(np.uint8) if x.dtype == np.bool_ else x


def argsort(self: Array, dim: int, *, descending: bool) -> Array:
    """The stable order along a dimension."""
    x = np.moveaxis(_comparable(self), dim, -1)
    n = x.shape[-1]
    if n >= _PACKED and x.dtype.itemsize <= 4 and n < 1 << 31:
        order = _packed_argsort(x, descending)
    elif descending:
        order = n - 1 - np.argsort(x[..., ::-1], -1, kind="stable")[..., ::-1]
    else:
        order = np.argsort(x, -1, kind="stable")
    order = np.moveaxis(order, -1, dim)
    return np.ascontiguousarray(order, dtype=LONG)


def _packed_argsort(x: Array, descending: bool) -> Array:
    """Sorts key and index as one 64-bit integer: NumPy's vectorised integer sort is ten times as fast as its argsort."""
    packed = sortable_keys(x).astype(np.uint64)
    if descending:
        np.subtract(np.uint64(0xFFFFFFFF), packed, out=packed)
    packed <<= np.uint64(32)
    packed |= np.arange(x.shape[-1], dtype=np.uint64)
    packed.sort(-1)
    packed &= np.uint64(0xFFFFFFFF)
    return packed.view(np.int64)


def sortable_keys(x: Array) -> Array:
    """Unsigned integers of at most 32 bits in the order of the elements."""
    if x.dtype.kind == "u":
        return x
    if x.dtype.kind == "i":
        return x.astype(np.int32).view(np.uint32) ^ np.uint32(0x80000000)
    wide = x.astype(np.float32)
    wide += np.float32(0)  # the negative zero sorts with the positive one
    bits = wide.view(np.uint32)
    negative = bits >> np.uint32(31) != 0
    keys = np.where(negative, ~bits, bits | np.uint32(0x80000000))
    keys[np.isnan(wide)] = 0xFFFFFFFF
    return keys


def sort(self: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    if not self.ndim:
        return self.copy(), np.zeros((), LONG)
    order = argsort(self, dim, descending=descending)
    values = np.take_along_axis(self, order, dim)
    if self.flags.c_contiguous or 0 in self.strides:
        return values, order
    return with_layout(values, self), with_layout(order, self)


def with_layout(x: Array, like: Array) -> Array:
    """A copy whose dimensions lie in memory in the order of another array's."""
    out = np.empty_like(like, dtype=x.dtype, subok=False)
    out[...] = x
    return out


def topk(self: Array, k: int, dim: int, largest: bool) -> tuple[Array, Array]:
    """The k extreme elements in order."""
    if not self.ndim:
        return self.copy(), np.zeros((), LONG)
    n = self.shape[dim]
    if n >= 4 * _PACKED and k * 4 <= n:
        order = _select(self, k, dim, largest)
    else:
        order = np.take(argsort(self, dim, descending=largest), np.arange(k), dim)
    order = np.ascontiguousarray(order)
    return np.take_along_axis(self, order, dim), order


def _select(self: Array, k: int, dim: int, largest: bool) -> Array:
    """The first k of the stable order, without sorting the rest."""
    x = np.moveaxis(_comparable(self), dim, -1)
    n = x.shape[-1]
    if x.dtype.itemsize <= 4 and n < 1 << 31:
        packed = sortable_keys(x).astype(np.uint64)
        if largest:
            np.subtract(np.uint64(0xFFFFFFFF), packed, out=packed)
        packed <<= np.uint64(32)
        packed |= np.arange(n, dtype=np.uint64)
        if k and k < n:
            packed = np.partition(packed, k - 1, -1)[..., :k]
        packed.sort(-1)
        found = (packed[..., :k] & np.uint64(0xFFFFFFFF)).view(np.int64)
    else:
        found = np.argsort(x if not largest else x[..., ::-1], -1, kind="stable")
        found = found[..., :k] if not largest else n - 1 - found[..., ::-1][..., :k]
    return np.moveaxis(found, -1, dim)


def select_kth(self: Array, k: Any, dim: int) -> tuple[Array, Array]:
    """The element of this rank (an int, or ranks of the reduced shape with the dimension kept) and its index; dims are kept."""
    order = argsort(self, dim, descending=False)
    if isinstance(k, int):
        index = np.take(order, [k], dim)
    else:
        index = np.take_along_axis(order, k, dim)
    return np.take_along_axis(self, index, dim), index


def median(self: Array, dim: int, *, ignore_nan: bool) -> tuple[Array, Array]:
    """The lower median along a dimension and its index, with the dimension kept."""
    n = self.shape[dim]
    if self.dtype.kind == "f" or self.dtype == BFLOAT:
        nan = np.isnan(self)
        if nan.any():
            numbers = n - np.add.reduce(nan, dim, dtype=LONG, keepdims=True)
            rank = np.maximum(numbers - 1, 0) // 2
            values, index = select_kth(self, rank, dim)
            if not ignore_nan:
                first = np.argmax(nan, axis=dim, keepdims=True)
                index = np.where(numbers < n, first, index)
                values = np.take_along_axis(self, index, dim)
            return values, index
    return select_kth(self, (n - 1) // 2, dim)


def mode(self: Array, dim: int) -> tuple[Array, Array]:
    """The smallest of the most frequent elements and the last index it has; the dimension is kept."""
    values, order = sort(self, dim, False)
    n = self.shape[dim]
    index = (slice(None),) * dim
    starts = np.zeros(self.shape, LONG)
    new = values[(*index, slice(1, None))] != values[(*index, slice(0, n - 1))]
    shape = [1] * self.ndim
    shape[dim] = n - 1
    starts[(*index, slice(1, None))] = np.where(new, np.arange(1, n).reshape(shape), 0)
    starts = np.maximum.accumulate(starts, dim)
    shape[dim] = n
    run = np.arange(n).reshape(shape) - starts
    at = np.argmax(run, axis=dim, keepdims=True)
    return np.take_along_axis(values, at, dim), np.take_along_axis(order, at, dim)
