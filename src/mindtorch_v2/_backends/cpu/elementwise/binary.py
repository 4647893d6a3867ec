"""Kernels of two operands that are not NumPy's own ufuncs, or need their dtypes looked at first."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import _checks
from ...._scipy import ufuncs
from ...._types import Number
from ..machinery.dtype_rules import unimplemented
from ..machinery.dtypes import HALVES
from .complex_logarithms import log_add_exp
from .unary import log1p

Array = np.ndarray[Any, Any]


def hypot(self: Array, other: Array) -> Array:
    if self.dtype.kind in "iubc":
        raise unimplemented("hypot_cpu", self)
    return np.hypot(self, other)


def heaviside(self: Array, values: Array) -> Array:
    """0 below zero, 1 above, `values` at zero."""
    if self.dtype.kind == "c" or values.dtype.kind == "c":
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if self.dtype != values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    _checks.broadcast_shapes(self.shape, values.shape)
    return np.where(self == 0, values, (self > 0).astype(self.dtype))


def nextafter(self: Array, other: Array) -> Array:
    if self.dtype.kind in "iubc":
        raise unimplemented("nextafter_cpu", self)
    return np.nextafter(self, other)


def logaddexp(self: Array, other: Array) -> Array:
    if self.dtype.kind in "iub":
        raise unimplemented("logaddexp_cpu", self)
    if self.dtype.kind == "c":
        return log_add_exp(self, other)
    if self.dtype != np.float32:
        return np.logaddexp(self, other)
    high = np.asarray(np.maximum(self, other))
    below = np.asarray(np.subtract(self, other))
    np.abs(below, out=below)
    np.negative(below, out=below)
    np.copyto(below, 0, where=np.equal(self, other))  # two equal infinities
    np.exp(below, out=below)
    return np.add(high, log1p(below), out=high)


def logaddexp2(self: Array, other: Array) -> Array:
    if self.dtype.kind in "iubc":
        raise unimplemented("logaddexp2_cpu", self)
    return np.logaddexp2(self, other)


def xlogy(self: Array, other: Array) -> Array:
    """`x log y`, zero where x is zero unless y is nan."""
    if self.dtype.kind == "c":
        raise unimplemented("xlogy_cpu", self)
    if self.dtype in HALVES:
        return xlogy(self.astype(np.float32), other.astype(np.float32)).astype(self.dtype)
    return ufuncs.xlogy(self, other)


def copysign(self: Array, other: Number | Number) -> Array:
    """With a number for the sign."""
    if self.dtype.kind == "c":
        raise unimplemented("copysign_cpu", self)
    return np.copysign(self, np.asarray(other, self.dtype))
