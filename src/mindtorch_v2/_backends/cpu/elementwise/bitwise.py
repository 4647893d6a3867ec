"""Integer kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..machinery.dtype_rules import unimplemented

Array = np.ndarray[Any, Any]


def left_shift(self: Array, other: Array) -> Array:
    """Shifts left; all bits leave for a shift by the width or more, or by a negative number."""
    if self.dtype.kind == "f":
        return np.ldexp(self, other.astype(np.int32)).astype(self.dtype)
    if self.dtype.kind not in "iu":
        raise unimplemented("lshift_cpu", self)
    bits = self.dtype.itemsize * 8
    out_of_range = (other < 0) | (other >= bits)
    return np.where(out_of_range, 0, np.left_shift(self, np.where(out_of_range, 0, other))).astype(self.dtype)


def right_shift(self: Array, other: Array) -> Array:
    """Shifts right; only the sign is left after a shift by the width or more, or by a negative number."""
    if self.dtype.kind == "f":
        return np.ldexp(self, -other.astype(np.int32)).astype(self.dtype)
    if self.dtype.kind not in "iu":
        raise unimplemented("rshift_cpu", self)
    last = self.dtype.itemsize * 8 - 1
    if self.dtype.kind == "u":
        out_of_range = other > last
        return np.where(out_of_range, 0, np.right_shift(self, np.where(out_of_range, 0, other))).astype(self.dtype)
    return np.right_shift(self, np.where((other < 0) | (other > last), last, other).astype(self.dtype))


def gcd(self: Array, other: Array) -> Array:
    if self.dtype.kind not in "iu":
        raise unimplemented("gcd_cpu", self)
    return np.gcd(self, other)


def lcm(self: Array, other: Array) -> Array:
    if self.dtype.kind not in "iu":
        raise unimplemented("lcm_cpu", self)
    return np.lcm(self, other)
