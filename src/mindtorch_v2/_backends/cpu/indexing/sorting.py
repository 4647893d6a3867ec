"""Sorting and selection kernels. NaN is greater than every number, and equal elements keep their order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..machinery.dtypes import BFLOAT, FLOAT, LONG
from ..reductions.sums import row_major

Array = np.ndarray[Any, Any]
_PACKED = 128  # extent from which sorting key and index as one integer pays


def _comparable(x: Array) -> Array:
    if x.dtype == BFLOAT:
        return x.astype(FLOAT)
    return x.view(np.uint8) if x.dtype == np.bool_ else x


def gather(x: Array, index: Array, dim: int) -> Array:
    """`np.take_along_axis`, which spends 15 µs on making index arrays."""
    if x.ndim == 1:
        return x.take(index)
    if dim == x.ndim - 1 and x.flags.c_contiguous:
        n = x.shape[dim]
        rows = x.size // n if n else 0
        starts: Any = np.arange(0, rows * n, n).reshape(*x.shape[:dim], 1) if n else 0
        return x.reshape(-1).take(index + starts)
    return np.take_along_axis(x, index, dim)


def argsort(self: Array, dim: int, *, descending: bool) -> Array:
    """The stable order along a dimension."""
    last = dim == self.ndim - 1
    x = _comparable(self) if last else np.moveaxis(_comparable(self), dim, -1)
    n = x.shape[-1]
    if n >= _PACKED and x.dtype.itemsize <= 4 and n < 1 << 31:
        order = _packed_argsort(x, descending)
    elif descending:
        order = n - 1 - x[..., ::-1].argsort(-1, kind="stable")[..., ::-1]
    else:
        order = x.argsort(-1, kind="stable")
    if not last:
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
    values = gather(self, order, dim)
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
    order = None
    if n >= _PACKED and 0 < k <= n // 4 and (self.dtype.kind == "f" or self.dtype == BFLOAT):
        order = _select(self, k, dim, largest)
    if order is None:
        index = (slice(None),) * dim
        order = argsort(self, dim, descending=largest)[(*index, slice(0, k))]
    order = np.ascontiguousarray(order)
    return row_major(gather(self, order, dim)), order


def _select(self: Array, k: int, dim: int, largest: bool) -> Array | None:
    """The first k of the order without sorting the rest; None where ties or NaN leave the choice to the stable order."""
    x = np.moveaxis(_comparable(self), dim, -1)
    n = x.shape[-1]
    rows = np.ascontiguousarray(x).reshape(-1, n)
    at = n - k if largest else k - 1
    bound = np.partition(rows, at, -1)[:, at : at + 1]
    chosen = rows >= bound if largest else rows <= bound
    found = np.flatnonzero(chosen)
    if found.size != rows.shape[0] * k or np.isnan(rows).any() or (np.add.reduce(chosen, 1, LONG) != k).any():
        return None
    values = rows.reshape(-1)[found].reshape(-1, k)
    order = np.argsort(-values if largest else values, -1, kind="stable")
    index = np.take_along_axis(found.reshape(-1, k) % n, order, 1)
    return np.moveaxis(index.reshape(*x.shape[:-1], k), -1, dim)


def select_kth(self: Array, k: int | Array, dim: int) -> tuple[Array, Array]:
    """The element of this rank (an int, or ranks of the reduced shape with the dimension kept) and its index; dims are kept."""
    order = argsort(self, dim, descending=False)
    if isinstance(k, int):
        index = order[(*(slice(None),) * dim, slice(k, k + 1))]
    else:
        index = gather(order, k, dim)
    return row_major(gather(self, index, dim)), row_major(index)


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
    at = np.expand_dims(run.argmax(dim), dim)
    return row_major(gather(values, at, dim)), row_major(gather(order, at, dim))
