"""Clamping kernels. Limits are numbers or arrays, and take part in promotion."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy._core.umath import clip  # type: ignore[attr-defined] # np.clip's ufunc: without its wrapper in Python, which takes 3 µs

from .... import _checks, _dtype, _promotion
from ...._types import Number
from ..machinery.dtype_rules import refusal
from ..machinery.dtypes import FLOAT
from ..machinery.floating_errors import silent
from ..machinery.promotion import result_type

Array = np.ndarray[Any, Any]


def _limit(x: Array | Number, d: _dtype.dtype) -> Array:
    if isinstance(x, np.ndarray):
        return x if x.dtype == d.np else x.astype(d.np)
    return _promotion.number_array(x, d)


@silent
def _clamp(self: Array, min: Array | Number | None, max: Array | Number | None) -> Array:
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    limits = [x for x in (min, max) if x is not None]
    d = result_type(self, *limits)
    if d.is_complex:
        raise NotImplementedError("clamp is not supported for complex types")
    if d is _dtype.bool_ and not any(isinstance(x, np.ndarray) for x in limits):
        side = "clamp" if min is not None and max is not None else "clamp_min" if max is None else "clamp_max"
        raise refusal(f"{side}_scalar_cpu", d)
    if d is _dtype.bool_ and len(limits) == 2:
        raise refusal("clamp_cpu", d)
    if self.dtype != d.np:
        self = self.astype(d.np)
    try:
        out = self
        if min is not None:
            out = np.maximum(self, _limit(min, d))
        if max is None:
            return out
        if out is self:
            return np.minimum(self, _limit(max, d))
        high = _limit(max, d)
        if isinstance(out, np.ndarray) and high.ndim == 0:
            return np.minimum(out, high, out=out)
        return np.minimum(out, high)
    except ValueError:
        _checks.broadcast_shapes(self.shape, *(np.shape(x) for x in limits))
        raise


_LIMITS = frozenset({int, float, type(None)})


@silent
def clamp(self: Array, min: Array | Number | None, max: Array | Number | None) -> Array:
    """`minimum(maximum(self, min), max)`. With numbers for limits `clip` does it in one pass, six times faster than
    `maximum`, which is not vectorised for them; a limit left out is then infinite.
    """
    if self.dtype.char in "fd" and min.__class__ in _LIMITS and max.__class__ in _LIMITS and (min is not None or max is not None):
        d = self.dtype
        low = np.asarray(-math.inf if min is None else min, d)
        high = np.asarray(math.inf if max is None else max, d)
        return clip(self, low, high)
    return _clamp(self, min, max)


_ZERO = np.zeros((), FLOAT)


@silent
def clamp_min(self: Array, min: Array | Number) -> Array:
    """`maximum(self, min)`: of few elements and zero, which is relu, without making an array of the limit."""
    if self.dtype is FLOAT and self.size <= 2048 and min.__class__ in _LIMITS and min == 0:
        return np.maximum(self, _ZERO)
    return clamp(self, min, None)


@silent
def relu(self: Array) -> Array:
    if self.dtype is FLOAT and self.size <= 2048:
        return np.maximum(self, _ZERO)
    if self.dtype.kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    return clamp(self, 0, None)


@silent
def clamp_max(self: Array, max: Array | Number) -> Array:
    return clamp(self, None, max)
