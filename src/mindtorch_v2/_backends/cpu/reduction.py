"""Reduction kernels: sums with float32 or pairwise accuracy, extrema by torch's rules for NaN and ties."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np

from ... import _checks, _dtype

Array = np.ndarray[Any, Any]
Dims = int | Iterable[int] | None

HALF = np.dtype(np.float16)
BFLOAT = np.dtype(ml_dtypes.bfloat16)
FLOAT = np.dtype(np.float32)
LONG = np.dtype(np.int64)
_LONG_SUM = 1 << 14  # elements from which the whole sum goes by rows
_ROW = 8192  # 32 KiB of float32: the accumulating row stays in the first-level cache
_RUN = 128  # rows added up one after another: bounds the rounding error as pairwise summation does


def axes(dim: Dims, ndim: int) -> tuple[int, ...]:
    """The dimensions that are reduced; none given means all."""
    if dim is None:
        return tuple(range(ndim))
    if dim.__class__ is int:
        return (_checks.wrap_dim(dim, ndim),) if ndim else _no_axes(dim, ndim)  # type: ignore[arg-type]
    dims = tuple(dim)  # type: ignore[arg-type]
    if not dims:
        return tuple(range(ndim))
    wrapped = _checks.wrap_dims(dims, ndim)
    return wrapped if ndim else ()


def _no_axes(dim: int, ndim: int) -> tuple[int, ...]:
    _checks.wrap_dim(dim, ndim)
    return ()


def row_major(x: Array) -> Array:
    """The same elements in row-major order: torch's reductions lay out their results so, NumPy's as the input is."""
    return x if x.flags.c_contiguous else np.ascontiguousarray(x)


def accumulator(d: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that torch adds up in."""
    return FLOAT if d == HALF or d == BFLOAT else d


def reduced_shape(self: Any, dim: Dims, keepdim: bool = False) -> tuple[int, ...]:
    """The shape rule of a reduction."""
    shape = self.shape
    gone = axes(dim, len(shape))
    if keepdim:
        return tuple(1 if i in gone else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in gone)


# --- sums -----------------------------------------------------------------------------------------------------------


def sum_all(self: Array, dtype: _dtype.dtype | None) -> Array:
    d = self.dtype
    if dtype is not None and dtype.np != d:
        self = self.astype(dtype.np)
        d = dtype.np
        if d.kind in "biu":
            return _integer_sum(self, axes(None, self.ndim), False)
    elif d.kind in "biu":
        return np.add.reduce(self, None, d if dtype is not None else LONG)  # type: ignore[no-any-return]
    if d == HALF or d == BFLOAT:
        return whole_sum(self.astype(FLOAT)).astype(d)
    return whole_sum(self)


def whole_sum(x: Array) -> Array:
    """The sum of all elements."""
    if x.size < _LONG_SUM or not x.flags.forc:
        return np.add.reduce(x, None)  # type: ignore[no-any-return]
    # Adding rows runs four times as fast as adding along one contiguous axis.
    flat = x.ravel(order="K")
    block = _ROW * _RUN
    if flat.size < block:
        rows = flat.size // _ROW * _ROW
        row = np.add.reduce(flat[:rows].reshape(-1, _ROW), 0)
    else:
        rows = flat.size // block * block
        row = np.add.reduce(np.add.reduce(flat[:rows].reshape(-1, _RUN, _ROW), 1), 0)
    total = np.add.reduce(row)
    if rows < flat.size:
        total = total + whole_sum(flat[rows:])
    return total  # type: ignore[no-any-return]


def sum_dims(self: Array, dim: Dims, keepdim: bool, dtype: _dtype.dtype | None) -> Array:
    d = self.dtype
    if dtype is not None:
        if dtype.np != d:
            self = self.astype(dtype.np)
        d = dtype.np
    elif d.kind in "biu":
        d = LONG
        if self.dtype != LONG:
            self = self.astype(LONG)
    gone = axes(dim, self.ndim)
    if not self.ndim:
        return self.copy()
    if d == HALF or d == BFLOAT:
        return np.asarray(add_up(self.astype(FLOAT), gone, keepdim)).astype(d)
    if d.kind in "biu":
        return _integer_sum(self, gone, keepdim)
    return add_up(self, gone, keepdim)


def _integer_sum(x: Array, gone: tuple[int, ...], keepdim: bool) -> Array:
    """A sum in the elements' own dtype, which NumPy would widen."""
    if x.dtype.kind == "b":
        return row_major(np.logical_or.reduce(x, gone, keepdims=keepdim))
    return row_major(np.add.reduce(x, gone, x.dtype, keepdims=keepdim))


def add_up(x: Array, gone: tuple[int, ...], keepdim: bool) -> Array:
    """The sum over some dimensions. Long strided ones are cut into runs: NumPy adds those up one after another."""
    if len(gone) == 1 and x.dtype.kind == "f":
        axis = gone[0]
        n = x.shape[axis]
        if n >= 4 * _RUN and x.strides[axis] != x.itemsize and x.dtype.itemsize < 8:
            runs = n // _RUN * _RUN
            index = (slice(None),) * axis
            head = x[(*index, slice(0, runs))]
            head = head.reshape(*x.shape[:axis], n // _RUN, _RUN, *x.shape[axis + 1 :])
            total = np.add.reduce(np.add.reduce(head, axis + 1), axis, keepdims=keepdim)
            if runs < n:
                total += np.add.reduce(x[(*index, slice(runs, n))], axis, keepdims=keepdim)
            return row_major(total)
        return row_major(np.add.reduce(x, axis, keepdims=keepdim))
    if len(gone) == x.ndim and x.size >= _LONG_SUM:
        total = whole_sum(x)
        return np.asarray(total).reshape((1,) * x.ndim) if keepdim else total
    return row_major(np.add.reduce(x, gone, keepdims=keepdim))


def mean_of(x: Array, gone: tuple[int, ...], keepdim: bool) -> Array:
    """The mean over some dimensions, of a floating dtype that sums are exact enough in."""
    n = 1
    for a in gone:
        n *= x.shape[a]
    total = np.asarray(add_up(x, gone, keepdim))
    return np.true_divide(total, total.dtype.type(n))  # type: ignore[no-any-return]


# --- products -------------------------------------------------------------------------------------------------------


def prod(self: Array, gone: tuple[int, ...], keepdim: bool, dtype: _dtype.dtype | None) -> Array:
    d = self.dtype
    if dtype is not None:
        self, d = self.astype(dtype.np, copy=False), dtype.np
    elif d.kind in "biu":
        self, d = self.astype(LONG, copy=False), LONG
    if d == np.bool_:
        return row_major(np.logical_and.reduce(self, gone, keepdims=keepdim))
    if d == HALF or d == BFLOAT:
        return row_major(np.multiply.reduce(self.astype(FLOAT), gone, keepdims=keepdim)).astype(d)
    return row_major(np.multiply.reduce(self, gone, None if d.kind not in "iu" else d, keepdims=keepdim))


# --- truth ----------------------------------------------------------------------------------------------------------


def truth(ufunc: Any, self: Array, gone: tuple[int, ...], keepdim: bool) -> Array:
    """`any` or `all`. torch: uint8 gives uint8, everything else bool."""
    if self.dtype == BFLOAT:
        self = self != 0
    found = row_major(ufunc.reduce(self, gone, dtype=np.bool_, keepdims=keepdim))
    return found.astype(np.uint8) if self.dtype == np.uint8 else found


# --- extrema --------------------------------------------------------------------------------------------------------


def extremum(ufunc: Any, self: Array, gone: tuple[int, ...], keepdim: bool) -> Array:
    """`amax` or `amin`; NaN wins, as NumPy's maximum and minimum have it."""
    if self.dtype == BFLOAT:
        return row_major(ufunc.reduce(self.astype(FLOAT), gone, keepdims=keepdim)).astype(BFLOAT)
    return row_major(ufunc.reduce(self, gone, keepdims=keepdim))


def position(self: Array, dim: int | None, keepdim: bool, *, largest: bool) -> Array:
    """The index of the first extremum along a dimension, or in the flattened array; a NaN is the extremum."""
    if self.dtype == BFLOAT:
        self = self.astype(FLOAT)
    if not self.ndim:
        return np.zeros((), LONG)
    found = (np.argmax if largest else np.argmin)(self, axis=dim, keepdims=keepdim)
    return row_major(np.asarray(found))


def extremum_with_index(self: Array, dim: int, keepdim: bool, *, largest: bool) -> tuple[Array, Array]:
    if not self.ndim:
        return self.copy(), np.zeros((), LONG)
    index = position(self, dim, True, largest=largest)
    values = row_major(np.take_along_axis(self, index, dim))
    if keepdim:
        return values, index
    return values.squeeze(dim), index.squeeze(dim)
