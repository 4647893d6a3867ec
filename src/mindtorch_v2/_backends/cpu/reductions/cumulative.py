"""Running sums, products, extrema and log-sum-exps along a dimension."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .... import _checks, _dtype
from ..elementwise.complex_logarithms import log_add_exp
from ..machinery.dtype_rules import refusal, refuse, unimplemented
from ..machinery.dtypes import BFLOAT, FLOAT, HALF, LONG, cpp_name
from .sums import row_major

Array = np.ndarray[Any, Any]
_WIDE = 64  # elements of a row from which accumulating rows pays
_GROUP = 8
_MANY = 1 << 14  # elements from which grouping pays
_ACCUMULATORS: dict[np.dtype[Any], np.dtype[Any]] = {
    HALF: FLOAT,
    BFLOAT: FLOAT,
    FLOAT: np.dtype(np.float64),
    np.dtype(np.complex64): np.dtype(np.complex128),
}


def accumulate(ufunc: np.ufunc, self: Array, dim: int, dtype: _dtype.dtype | None) -> Array:
    """`cumsum` or `cumprod`: float32 is accumulated in float64, as torch does."""
    dim = _checks.wrap_dim(dim, self.ndim)
    if dtype is not None:
        if dtype.category == _dtype.BOOL and self.ndim and self.size:
            raise refusal(f"{'cumsum' if ufunc is np.add else 'cumprod'}_out_cpu", dtype)
        self = self.astype(dtype.np, copy=False)
    elif self.dtype.kind in "biu":
        self = self.astype(LONG, copy=False)
    if not self.ndim:
        return self.copy()
    d: np.dtype[Any] = self.dtype
    wide: np.dtype[Any] = _ACCUMULATORS.get(d, d)
    if d == BFLOAT:
        self = self.astype(wide)
    if dim < self.ndim - 1 and math.prod(self.shape[dim + 1 :]) >= _WIDE and self.shape[dim]:
        return _row_by_row(ufunc, self, dim, wide).astype(d, copy=False)
    if ufunc is np.add and d == FLOAT and self.size >= _MANY and self.shape[-1] % _GROUP == 0 and self.flags.c_contiguous:
        return _add_by_groups(self)
    return row_major(ufunc.accumulate(self, dim, wide).astype(d, copy=False))


def accumulate_in_place(ufunc: np.ufunc, self: Array, dim: int, dtype: _dtype.dtype | None, kernel: str) -> None:
    """`cumsum_` or `cumprod_`: in the tensor's own dtype, so that integers wrap around."""
    _checks.wrap_dim(dim, self.ndim)
    if dtype is not None and dtype.np != self.dtype:
        raise RuntimeError(
            f"Bad in-place call: input tensor dtype {cpp_name(self)} and output tensor dtype {dtype.cpp_name} should match"
        )
    if self.ndim and self.size:
        refuse(kernel, self, "b")
        self[...] = accumulate(ufunc, self, dim, None)


def _add_by_groups(x: Array) -> Array:
    """Running sums of float32 rows: those within groups of 8, all groups at once, and float64 ones of the groups' totals.

    2.1 ms a million, where accumulating in float64 takes 5.7 and torch 1.2; one rounding more than that.
    """
    groups = np.ascontiguousarray(x.reshape(-1, _GROUP).T)
    for i in range(1, _GROUP):
        np.add(groups[i], groups[i - 1], out=groups[i])
    totals = groups[-1].reshape(-1, x.shape[-1] // _GROUP)
    before = np.zeros(totals.shape)
    np.add.accumulate(totals[:, :-1], 1, np.float64, out=before[:, 1:])
    groups += before.astype(FLOAT).ravel()
    return np.ascontiguousarray(groups.T).reshape(x.shape)


def _row_by_row(ufunc: np.ufunc, x: Array, dim: int, wide: np.dtype[Any]) -> Array:
    """Accumulates whole rows: ten times as fast as `ufunc.accumulate` along a strided dimension."""
    x = np.ascontiguousarray(x)
    out = np.empty(x.shape, x.dtype)
    rows, running = np.moveaxis(x, dim, 0), np.moveaxis(out, dim, 0)
    total = rows[0].astype(wide)
    running[0] = total
    for i in range(1, x.shape[dim]):
        ufunc(total, rows[i], out=total)
        running[i] = total
    return out


def running_extremum(ufunc: np.ufunc, self: Array, dim: int) -> tuple[Array, Array]:
    """The extremum so far and where it was last met; NaN is kept once met."""
    dim = _checks.wrap_dim(dim, self.ndim)
    if not self.ndim or not self.size:
        return self.copy(), np.zeros(self.shape, LONG)
    refuse("cummax_cpu" if ufunc is np.maximum else "cummin_cpu", self, "c")
    wide = self.astype(FLOAT) if self.dtype == BFLOAT else self
    values = ufunc.accumulate(wide, dim)
    met = wide == values
    if wide.dtype.kind == "f":
        met |= np.isnan(wide)
    shape = [1] * self.ndim
    shape[dim] = self.shape[dim]
    places = np.where(met, np.arange(self.shape[dim]).reshape(shape), 0)
    indices = np.maximum.accumulate(places, dim)
    return row_major(values.astype(self.dtype, copy=False)), row_major(indices.astype(LONG, copy=False))


def logcumsumexp(self: Array, dim: int) -> Array:
    dim = _checks.wrap_dim(dim, self.ndim)
    d = self.dtype
    if d.kind in "biu":
        raise unimplemented("logcumsumexp_out_cpu", self)
    if not self.ndim or not self.size:
        return self.copy()
    if d.kind == "c":
        return _complex_logcumsumexp(self, dim)
    wide = self.astype(_ACCUMULATORS.get(d, d))
    return row_major(np.logaddexp.accumulate(wide, dim).astype(d, copy=False))


def _complex_logcumsumexp(self: Array, dim: int) -> Array:
    """Step by step along the dimension: each step is rescaled by the larger real part."""
    x = np.moveaxis(self, dim, 0)
    out = np.empty_like(x)
    total = np.full(x.shape[1:], -np.inf, x.dtype)
    for i in range(x.shape[0]):
        # torch: the imaginary part is not wrapped, because that of the larger term is added at the end
        total = out[i] = log_add_exp(x[i], total)
    return np.ascontiguousarray(np.moveaxis(out, 0, dim))
