"""Softmax kernels: four passes in place over one new array."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .... import _checks
from ...._types import DType
from ..linalg.rank_one import add_outer
from ..machinery.dtypes import FLOAT, HALVES
from ..machinery.floating_errors import silent
from ..reductions.sums import SQUARES, add_along

Array = np.ndarray[Any, Any]
_maximum: Any = np.maximum.reduce
_minimum: Any = np.minimum.reduce
_add: Any = np.add.reduce
_ONE = np.ones((), FLOAT)
_FEW = 1024  # elements that are worth a path of their own
_SMALL = 4096  # elements below which the call costs more than the additions
_BLOCK = 1 << 16  # elements handled at a time: two arrays of them stay in the second-level cache
_ROWS_BLOCK = 1 << 18  # the same for whole rows, where there is more to do for each block


def _wide(x: Array) -> Array:
    return x.astype(FLOAT) if x.dtype in HALVES else x


@silent
def _totals(x: Array, dim: int) -> Array:
    return _add(x, dim, None, None, True) if x.size < _SMALL else add_along(x, dim, True)


@silent
def _softmax_rows(x: Array, out: Array) -> None:
    """Row-major matrices. Most of the time is `exp`, which takes 1.3 to 1.5 times as long as in torch.

    Exponentials need no shift while the maxima are near zero: the sums stay far from the ends of the range.
    """
    step = max(1, _ROWS_BLOCK // x.shape[1])
    for i in range(0, x.shape[0], step):
        rows, block = x[i : i + step], out[i : i + step]
        top = _maximum(rows, 1, None, None, True)
        if _minimum(top, None) > -4 and _maximum(top, None) < 60:  # NaN is neither
            np.exp(rows, block)
        else:
            np.exp(np.subtract(rows, top, block), block)
        totals = _totals(block, 1)
        np.multiply(block, np.divide(_ONE, totals, totals), block)


@silent
def _log_softmax_rows(x: Array, out: Array) -> None:
    """Row-major matrices. The shifted values are kept apart from the normaliser, as in `_log_softmax_into`."""
    step = max(1, _ROWS_BLOCK // x.shape[1])
    scratch = np.empty((min(step, x.shape[0]), x.shape[1]), x.dtype)
    ones = np.ones(x.shape[1], x.dtype)
    for i in range(0, x.shape[0], step):
        rows, block = x[i : i + step], out[i : i + step]
        np.subtract(rows, _maximum(rows, 1, None, None, True), block)
        totals = _totals(np.exp(block, scratch[: len(block)]), 1)
        add_outer(block, np.log(totals, totals)[:, 0], ones, -1.0)


@silent
def _softmax_into(x: Array, out: Array | None, dim: int) -> Array:
    out = np.subtract(x, _maximum(x, dim, None, None, True), out)
    np.exp(out, out)
    return np.divide(out, _totals(out, dim), out)


@silent
def _log_softmax_into(x: Array, out: Array | None, dim: int) -> Array:
    # The shifted values are kept apart from the normaliser: x - (max + log sum) would lose the low bits of x - max.
    shifted = np.subtract(x, _maximum(x, dim, None, None, True))
    out = np.exp(shifted, out)
    total = _totals(out, dim)
    return np.subtract(shifted, np.log(total, total), out)


_LARGE = {_softmax_into: _softmax_rows, _log_softmax_into: _log_softmax_rows}


@silent
def _in_columns(self: Array, kernel: Callable[..., Any]) -> Array:
    """Many short rows, turned so that each pass runs along all of them: 0.06 ms for 2304×9, row by row 0.2."""
    columns = np.ascontiguousarray(self.reshape(-1, self.shape[-1]).T)
    return np.ascontiguousarray(kernel(columns, columns, 0).T).reshape(self.shape)


@silent
def _rowwise(self: Array, dim: int, kernel: Callable[..., Any]) -> Array:
    if dim == self.ndim - 1 and self.size > _FEW and 0 < self.shape[dim] <= 32 and self.dtype is FLOAT and self.flags.c_contiguous:
        return _in_columns(self, kernel)
    if self.dtype is FLOAT and 0 < self.size <= _BLOCK and self.ndim and self.flags.c_contiguous:
        return kernel(self, None, dim)
    d = self.dtype
    x = _wide(self)
    if not x.ndim:
        return np.asarray(kernel(x.reshape(1), np.empty(1, x.dtype), 0)).reshape(()).astype(d, copy=False)
    out = np.empty(x.shape, x.dtype)
    if not x.size:
        return out.astype(d, copy=False)
    if x.size > _BLOCK and dim == x.ndim - 1 and x.shape[-1] >= 64 and x.flags.c_contiguous:
        _LARGE[kernel](x.reshape(-1, x.shape[-1]), out.reshape(-1, x.shape[-1]))
    elif x.size <= _BLOCK or dim == 0 or x.ndim == 1:
        kernel(x, out, dim)
    else:
        step = max(1, _BLOCK // (x.size // x.shape[0]))
        for i in range(0, x.shape[0], step):
            kernel(x[i : i + step], out[i : i + step], dim)
    return out.astype(d, copy=False)


@silent
def _exponentials(self: Array, dim: int) -> tuple[Array, Array] | None:
    """For few elements in short rows: their exponentials and, at each place, the sum of its row; None unless both are accurate.

    Unshifted exponentials are as accurate as shifted ones as long as no sum nears the ends of the range. The product with a matrix
    of ones adds up and spreads the sums at once: 0.7 µs, where a sum and a division that broadcasts it take 1.5 more.
    """
    if (
        self.dtype is not FLOAT
        or not 0 < self.size <= _FEW
        or dim != self.ndim - 1
        or self.shape[-1] > 32
        or not self.flags.c_contiguous
    ):
        return None
    raised = np.exp(self)
    totals = raised.dot(SQUARES[self.shape[-1]])
    if totals.item(totals.argmin()) > 1e-3 and totals.item(totals.argmax()) < 4e3:  # NaN is neither
        return raised, totals
    return None


@silent
def softmax(self: Array, dim: int) -> Array:
    made = _exponentials(self, dim)
    return _rowwise(self, dim, _softmax_into) if made is None else np.divide(made[0], made[1], made[0])


@silent
def log_softmax(self: Array, dim: int) -> Array:
    made = _exponentials(self, dim)
    return _rowwise(self, dim, _log_softmax_into) if made is None else np.subtract(self, np.log(made[1], made[1]), made[0])


def _blocks_of_rows(x: Array, dim: int) -> Iterator[Any]:
    """Indices of the pieces of an array that are handled at a time: leading rows of many long ones, otherwise everything."""
    if x.size <= _ROWS_BLOCK or dim != x.ndim - 1 or not dim:
        yield ...
        return
    step = max(1, _ROWS_BLOCK // (x.size // x.shape[0]))
    for i in range(0, x.shape[0], step):
        yield slice(i, i + step)


def softmax_backward(grad_output: Array, output: Array, dim: int, input_dtype: DType) -> Array:
    grad, y = _wide(grad_output), _wide(output)
    if not y.ndim:
        return np.zeros((), input_dtype.np)
    dim = _checks.wrap_dim(dim, y.ndim)
    out = np.empty(y.shape, y.dtype)
    for at in _blocks_of_rows(out, dim):
        part = np.multiply(grad[at], y[at], out=out[at])
        np.subtract(grad[at], add_along(part, dim, True), out=part)
        np.multiply(part, y[at], out=part)
    return out.astype(input_dtype.np, copy=False)


def log_softmax_backward(grad_output: Array, output: Array, dim: int, input_dtype: DType) -> Array:
    grad, y = _wide(grad_output), _wide(output)
    if not y.ndim:
        return np.zeros((), input_dtype.np)
    dim = _checks.wrap_dim(dim, y.ndim)
    out = np.empty(y.shape, y.dtype)
    for at in _blocks_of_rows(out, dim):
        part = np.exp(y[at], out=out[at])
        np.multiply(part, add_along(grad[at], dim, True), out=part)
        np.subtract(grad[at], part, out=part)
    return out.astype(input_dtype.np, copy=False)
