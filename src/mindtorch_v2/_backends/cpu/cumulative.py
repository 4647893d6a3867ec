"""Running sums, products, extrema and log-sum-exps along a dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _checks, _dtype
from .reduction import BFLOAT, FLOAT, HALF, LONG, row_major

Array = np.ndarray[Any, Any]
_ACCUMULATORS = {HALF: FLOAT, BFLOAT: FLOAT, FLOAT: np.dtype(np.float64), np.dtype(np.complex64): np.dtype(np.complex128)}


def accumulate(ufunc: Any, self: Array, dim: int, dtype: _dtype.dtype | None) -> Array:
    """`cumsum` or `cumprod`: float32 is accumulated in float64, as torch does."""
    dim = _checks.wrap_dim(dim, self.ndim)
    if dtype is not None:
        self = self.astype(dtype.np, copy=False)
    elif self.dtype.kind in "biu":
        self = self.astype(LONG, copy=False)
    if not self.ndim:
        return self.copy()
    d = self.dtype
    wide = _ACCUMULATORS.get(d, d)
    if d == BFLOAT:
        self = self.astype(wide)
    return row_major(ufunc.accumulate(self, dim, wide).astype(d, copy=False))


def running_extremum(ufunc: Any, self: Array, dim: int) -> tuple[Array, Array]:
    """The extremum so far and where it was last met; NaN is kept once met."""
    dim = _checks.wrap_dim(dim, self.ndim)
    if self.dtype.kind == "c":
        name = "cummax" if ufunc is np.maximum else "cummin"
        raise NotImplementedError(f'"{name}_cpu" not implemented for \'{_dtype.FROM_NUMPY[self.dtype].scalar_name}\'')
    if not self.ndim:
        return self.copy(), np.zeros((), LONG)
    wide = self.astype(FLOAT) if self.dtype == BFLOAT else self
    values = ufunc.accumulate(wide, dim) if self.size else wide.copy()
    met = wide == values
    if wide.dtype.kind == "f":
        met |= np.isnan(wide)
    shape = [1] * self.ndim
    shape[dim] = self.shape[dim]
    places = np.where(met, np.arange(self.shape[dim]).reshape(shape), 0)
    indices = np.maximum.accumulate(places, dim) if self.size else places
    return row_major(values.astype(self.dtype, copy=False)), row_major(indices.astype(LONG, copy=False))


def logcumsumexp(self: Array, dim: int) -> Array:
    dim = _checks.wrap_dim(dim, self.ndim)
    d = self.dtype
    if d.kind in "biu":
        raise NotImplementedError(f'"logcumsumexp_out_cpu" not implemented for \'{_dtype.FROM_NUMPY[d].scalar_name}\'')
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
    out[0] = x[0]
    for i in range(1, x.shape[0]):
        a, b = out[i - 1], x[i]
        top = np.maximum(a.real, b.real)
        top = np.where(np.isfinite(top), top, 0)
        out[i] = np.log(np.exp(a - top) + np.exp(b - top)) + top
    return np.ascontiguousarray(np.moveaxis(out, 0, dim))
