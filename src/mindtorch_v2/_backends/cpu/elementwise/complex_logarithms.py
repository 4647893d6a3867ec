"""Logarithms of sums of complex exponentials, with torch's answers at infinities and NaNs."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def _log1p(z: Array) -> Array:
    """log(1 + z), accurate for small z."""
    x, y = z.real, z.imag
    square = x * (2 + x) + y * y
    size = np.where(np.abs(z) < 0.5, np.where(square == 0, x, 0.5 * np.log1p(square)), np.log(np.hypot(x + 1, y)))
    out = np.empty(z.shape, z.dtype)
    out.real, out.imag = size, np.arctan2(y, x + 1)
    return out


def log_add_exp(x: Array, y: Array) -> Array:
    """log(exp(x) + exp(y)), rescaled by the one whose real part is larger. A NaN in either part makes both of the result NaN."""
    less = x.real < y.real
    low, high = np.where(less, x, y), np.where(less, y, x)
    out: Array = np.asarray(_log1p(np.exp(low - high)) + high)
    same = np.isinf(low.real) & (low.real == high.real)
    if same.any():
        out = np.where(same, np.where(low.real < 0, low, np.log(np.exp(low) + np.exp(high))), out)
    nan = np.isnan(x) | np.isnan(y)
    return np.where(nan, x.dtype.type(complex(np.nan, np.nan)), out) if nan.any() else out
