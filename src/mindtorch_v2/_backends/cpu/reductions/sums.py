"""Reduction kernels: sums with float32 or pairwise accuracy, extrema by torch's rules for NaN and ties."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from .... import _checks, _dtype
from ..machinery.dtypes import BFLOAT, BOOL, FLOAT, HALVES, LONG, UINT8
from ..machinery.floating_errors import quiet, silent

Array = np.ndarray[Any, Any]
Dims = int | Iterable[int] | None

_LONG_SUM = 1 << 14  # elements from which sums are cut into runs
_RUN = 512  # elements added up one after another, in several lanes: bounds the rounding error as pairwise summation does
_ROWS = 64  # rows added up one after another
_FEW = 256  # elements that are added up as a product with ones
ONES = [np.ones(n, FLOAT) for n in range(_FEW + 1)]
SQUARES = [np.ones((n, n), FLOAT) for n in range(33)]  # rows times one of these are their sums, at each place
_add: Any = np.add.reduce
_multiply: Any = np.multiply.reduce
_any: Any = np.logical_or.reduce
_all: Any = np.logical_and.reduce


def axes(dim: Dims, ndim: int) -> tuple[int, ...]:
    """The dimensions that are reduced; none given means all."""
    if dim is None:
        return tuple(range(ndim))
    if dim.__class__ is int:
        return (_checks.wrap_dim(dim, ndim),) if ndim else _no_axes(dim, ndim)
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


def kept(x: Array, reduced: Array, gone: tuple[int, ...]) -> Array:
    """A result with the reduced dimensions back, of extent one."""
    return np.asarray(x).reshape([1 if i in gone else n for i, n in enumerate(reduced.shape)])


def reduced_shape(self: Any, dim: Dims, keepdim: bool = False) -> tuple[int, ...]:
    """The shape rule of a reduction."""
    shape = self.shape
    gone = axes(dim, len(shape))
    if keepdim:
        return tuple(1 if i in gone else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in gone)


# --- sums -----------------------------------------------------------------------------------------------------------


def _integer_sum(x: Array, gone: tuple[int, ...], keepdim: bool) -> Array:
    """A sum in the elements' own dtype, which NumPy would widen."""
    if x.dtype.kind == "b":
        return row_major(_any(x, gone, keepdims=keepdim))
    return row_major(_add(x, gone, x.dtype, keepdims=keepdim))


@silent
def whole_sum(x: Array) -> Array:
    """The sum of all elements."""
    if x.size < _LONG_SUM or not x.flags.forc:
        return _add(x, None)
    flat = x.ravel(order="K")
    if x.dtype.kind != "f":
        return _add(flat)
    rows = flat.size & -1024
    # by BLAS: 66 µs a million, `np.add.reduce` 190
    total = _add(flat[:rows].reshape(-1, 1024).dot(np.ones(1024, x.dtype)))
    if rows < flat.size:
        total = total + _add(flat[rows:])
    return total


def _divisor(n: int) -> int:
    """An extent of runs that n divides into evenly; n itself when there is none nearby."""
    for run in (_RUN, 256, 384, 320, 64):
        if n % run == 0:
            return run
    return n


@silent
def _add_in_runs(x: Array, axis: int) -> Array:
    n = x.shape[axis]
    runs = n // _ROWS * _ROWS
    index = (slice(None),) * axis
    head = x[(*index, slice(0, runs))].reshape(*x.shape[:axis], n // _ROWS, _ROWS, *x.shape[axis + 1 :])
    total = _add(_add(head, axis + 1), axis)
    if runs < n:
        total += _add(x[(*index, slice(runs, n))], axis)
    return total


@silent
def _add_rows(x: Array) -> Array:
    """The sum of a matrix's rows, as products with ones: 3 µs for 576×64, a reduction takes 14."""
    n = x.shape[0]
    if n < 2 * _RUN:
        return np.ones(n, x.dtype).dot(x)
    runs = n // _RUN * _RUN
    total = _add(np.matmul(np.ones(_RUN, x.dtype), x[:runs].reshape(-1, _RUN, x.shape[1])), 0)
    if runs < n:
        total += np.ones(n - runs, x.dtype).dot(x[runs:])
    return total


@silent
def add_along(x: Array, axis: int, keepdim: bool) -> Array:
    """The sum along one dimension of floating-point elements.

    Few: as a product with ones, 0.5 µs where a reduction takes 1.2. Contiguous: likewise, which runs twice as fast as NumPy's
    reduction, in runs that bound the rounding error. Strided and long: in runs too, because NumPy adds those up one after another.
    """
    ndim, shape = x.ndim, x.shape
    if axis < 0:
        axis += ndim
    n = shape[axis]
    if x.size < _LONG_SUM:
        if n <= _FEW and x.dtype is FLOAT and (axis == ndim - 1 or ndim == 2):
            total = x.dot(ONES[n]) if axis == ndim - 1 else ONES[n].dot(x)
            return total.reshape((*shape[:axis], 1, *shape[axis + 1 :])) if keepdim else total
        total = _add(x, axis)
    elif n < 2 * _ROWS:
        if axis == ndim - 1 and n and x.flags.c_contiguous:
            total = x.reshape(-1, n).dot(np.ones(n, x.dtype)).reshape(shape[:axis])
        else:
            total = _add(x, axis)
    elif axis == 0 and ndim == 2 and x.flags.c_contiguous:
        total = _add_rows(x)
    elif axis == ndim - 1 and x.flags.c_contiguous and (n < 16 * _RUN or _divisor(n) < n):
        run = n if n < 2 * _RUN + 1 else _divisor(n)
        total = x.reshape(-1, run).dot(np.ones(run, x.dtype))
        total = total.reshape(*shape[:axis], -1)
        total = total.reshape(shape[:axis]) if total.size * n == x.size else _add(total, axis)
    elif x.strides[axis] != x.itemsize and x.itemsize < 8:
        total = _add_in_runs(x, axis)
    else:
        total = _add(x, axis)
    total = row_major(total)
    return kept(total, x, (axis,)) if keepdim else total


@silent
def add_up(x: Array, gone: tuple[int, ...], keepdim: bool) -> Array:
    """The sum over some dimensions."""
    if len(gone) == 1 and x.dtype.kind == "f":
        return add_along(x, gone[0], keepdim)
    if len(gone) == x.ndim and x.size >= _LONG_SUM:
        total = whole_sum(x)
        return np.asarray(total).reshape((1,) * x.ndim) if keepdim else total
    total = row_major(_add(x, gone))
    return kept(total, x, gone) if keepdim else total


@silent
def sum_all(self: Array, dtype: _dtype.dtype | None) -> Array:
    if self.dtype is FLOAT and dtype is None:  # the common case first: the tests below cost 0.4 µs
        n = self.size
        # a product with ones: 0.5 µs where a reduction takes 1.1
        return ONES[n].dot(self.ravel()) if n <= _FEW else whole_sum(self)
    d = self.dtype
    if dtype is not None and dtype.np != d:
        self = self.astype(dtype.np)
        d = dtype.np
        if d.kind in "biu":
            return _integer_sum(self, axes(None, self.ndim), False)
    elif d.kind in "biu":
        return _add(self, None, d if dtype is not None else LONG)
    if d in HALVES:
        return whole_sum(self.astype(FLOAT)).astype(d)
    return whole_sum(self)


@silent
def sum_dims(self: Array, dim: Dims, keepdim: bool, dtype: _dtype.dtype | None) -> Array:
    d = self.dtype
    if d is FLOAT and dtype is None and dim.__class__ is int and -self.ndim <= dim < self.ndim:
        return add_along(self, dim, keepdim)
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
    if d in HALVES:
        return np.asarray(add_up(self.astype(FLOAT), gone, keepdim)).astype(d)
    if d.kind in "biu":
        return _integer_sum(self, gone, keepdim)
    return add_up(self, gone, keepdim)


# --- means ----------------------------------------------------------------------------------------------------------


def _to_average(self: Array, dtype: _dtype.dtype | None) -> tuple[Array, _dtype.dtype | None]:
    """Return what is added up for a mean, and in which dtype."""
    check_mean_dtype(_dtype.FROM_NUMPY[self.dtype], dtype)
    if (self.dtype if dtype is None else dtype.np).itemsize == 2:
        return self.astype(FLOAT), None  # torch: divided in float32 too, where neither sum nor count overflows
    return self, dtype


def _quotient(total: Array, n: int, d: Any) -> Array:
    if not n:
        return np.full(np.shape(total), complex(math.nan, math.nan) if d.kind == "c" else math.nan, d)
    quotient = np.divide(total, np.asarray(n, total.dtype))
    if quotient.dtype == d:
        return quotient
    with quiet():
        return quotient.astype(d)


def check_mean_dtype(own: _dtype.dtype, dtype: _dtype.dtype | None) -> None:
    """Refuse a mean in a dtype of whole numbers."""
    if not (own if dtype is None else dtype).inexact:
        what, where = ("Input", own) if dtype is None else ("Optional", dtype)
        raise RuntimeError(
            f"mean(): could not infer output dtype. {what} dtype must be either a floating point or complex dtype. Got: {where.scalar_name}"
        )


@silent
def mean_all(self: Array, dtype: _dtype.dtype | None) -> Array:
    n = self.size
    if dtype is None and self.dtype is FLOAT and 0 < n <= _FEW:
        # a quotient of Python floats rounds to the same float32 as theirs does
        return np.array(ONES[n].dot(self.ravel()).item() / n, FLOAT)
    x, wide = _to_average(self, dtype)
    return _quotient(sum_all(x, wide), n, self.dtype if dtype is None else dtype.np)


@silent
def mean_dims(self: Array, dim: Dims, keepdim: bool, dtype: _dtype.dtype | None) -> Array:
    x, wide = _to_average(self, dtype)
    total = sum_dims(x, dim, keepdim, wide)
    shape = self.shape
    n = shape[dim] if dim.__class__ is int and shape else math.prod([shape[i] for i in axes(dim, self.ndim)])
    return _quotient(total, n, self.dtype if dtype is None else dtype.np)


# --- products -------------------------------------------------------------------------------------------------------


def prod_all(self: Array, dtype: _dtype.dtype | None) -> Array:
    if self.dtype is FLOAT and dtype is None and self.size < _LONG_SUM:
        return _multiply(self, None)
    return prod(self, axes(None, self.ndim), False, dtype)


def prod(self: Array, gone: tuple[int, ...], keepdim: bool, dtype: _dtype.dtype | None) -> Array:
    d = self.dtype
    if dtype is not None:
        self, d = self.astype(dtype.np, copy=False), dtype.np
    elif d.kind in "biu":
        self, d = self.astype(LONG, copy=False), LONG
    if d == np.bool_:
        return row_major(_all(self, gone, keepdims=keepdim))
    if d in HALVES:
        return row_major(_multiply(self.astype(FLOAT), gone, keepdims=keepdim)).astype(d)
    if len(gone) == self.ndim > 1 and not keepdim and self.size >= _LONG_SUM and d.kind == "f" and self.flags.c_contiguous:
        return _multiply(_multiply(self, 0), None)  # rows multiply ten times as fast as one long axis
    return row_major(_multiply(self, gone, None if d.kind not in "iu" else d, keepdims=keepdim))


# --- truth ----------------------------------------------------------------------------------------------------------


@silent
def truth(ufunc: np.ufunc, self: Array, gone: tuple[int, ...] | None, keepdim: bool) -> Array:
    """`any` or `all`; without dimensions of all elements. torch: uint8 gives uint8, everything else bool."""
    d = self.dtype
    if gone is None and 0 < self.size <= _FEW and d is not UINT8:
        # the first extremum tells as much: 0.4 µs where a reduction takes 1.1
        flat = self.ravel() if d is BOOL else self.astype(BOOL).ravel()
        return flat[flat.argmax() if ufunc is np.logical_or else flat.argmin()]
    if d == BFLOAT:
        self = self != 0
    found = row_major(ufunc.reduce(self, gone, BOOL))
    if keepdim and gone is not None:
        found = kept(found, self, gone)
    return found.astype(UINT8) if d is UINT8 else found


# --- extrema --------------------------------------------------------------------------------------------------------


@silent
def extremum(ufunc: np.ufunc, self: Array, gone: tuple[int, ...], keepdim: bool) -> Array:
    """`amax` or `amin`; NaN wins, as NumPy's maximum and minimum have it."""
    if self.dtype == BFLOAT:
        return row_major(ufunc.reduce(self.astype(FLOAT), gone, keepdims=keepdim)).astype(BFLOAT)
    found = row_major(ufunc.reduce(self, gone))
    return kept(found, self, gone) if keepdim else found


def first_rows(x: Array, values: Array, keepdim: bool) -> Array:
    """The first row that holds each column's value: ten times as fast as argmax over columns."""
    met = x == values
    nan = np.isnan(values)
    if nan.any():
        met |= np.isnan(x) & nan
    rows, columns = np.divmod(np.flatnonzero(met)[::-1], x.shape[1])
    out = np.zeros(x.shape[1], LONG)
    out[columns] = rows
    return out[None] if keepdim else out


@silent
def position(self: Array, dim: int | None, keepdim: bool, *, largest: bool) -> Array:
    """The index of the first extremum along a dimension, or in the flattened array; a NaN is the extremum."""
    if self.dtype is FLOAT and dim is not None and not keepdim and self.ndim and self.size < _LONG_SUM and self.flags.c_contiguous:
        return np.asarray(self.argmax(dim) if largest else self.argmin(dim))
    if self.dtype == BFLOAT:
        self = self.astype(FLOAT)
    if not self.ndim:
        return np.zeros((), LONG)
    if dim == 0 and self.ndim == 2 and self.size >= _LONG_SUM and self.dtype.kind == "f":
        return first_rows(self, (np.maximum if largest else np.minimum).reduce(self, 0), keepdim)
    found = row_major(np.asarray(self.argmax(dim) if largest else self.argmin(dim)))
    if keepdim:
        return kept(found, self, axes(dim, self.ndim))
    return found


@silent
def extremum_with_index(self: Array, dim: int, keepdim: bool, *, largest: bool) -> tuple[Array, Array]:
    if not self.ndim:
        return self.copy(), np.zeros((), LONG)
    index = position(self, dim, keepdim, largest=largest)
    return extremum(np.maximum if largest else np.minimum, self, (dim,), keepdim), index
