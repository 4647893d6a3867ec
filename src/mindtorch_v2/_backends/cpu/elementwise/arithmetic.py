"""Arithmetic kernels over arrays of one dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import _dtype, _promotion
from ...._types import Number
from ..creation.copying import number_in
from ..machinery.dtype_rules import unimplemented
from ..machinery.floating_errors import DIVISION_RAISES, silent, state_variable

Array = np.ndarray[Any, Any]


def number(value: Number, like: Array) -> Array:
    """A Python number as an array of the operand's dtype; integers wrap around."""
    return _promotion.number_array(value, _dtype.FROM_NUMPY[like.dtype])


def _refuse(self: Array, name: str, kinds: str = "bc") -> None:
    if self.dtype.kind in kinds:
        raise unimplemented(name, self)


def div_mode(self: Array, other: Array, rounding_mode: str | None) -> Array:
    """Division, rounded to minus infinity ("floor"), to zero ("trunc") or not at all."""
    kind = self.dtype.kind
    if rounding_mode is None:
        return np.true_divide(self, other)
    if rounding_mode not in ("floor", "trunc"):
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")
    _refuse(self, f"div_{rounding_mode}_cpu", "b")
    if kind in "iu":
        quotient = np.asarray(_checked(np.floor_divide, self, other))
        if rounding_mode == "trunc" and kind == "i":
            quotient += ((quotient < 0) & (quotient * other != self)).astype(quotient.dtype)
        return quotient
    _refuse(self, f"div_{rounding_mode}_cpu", "c")
    if rounding_mode == "trunc":
        out = np.asarray(np.true_divide(self, other))
        return np.trunc(out, out=out)
    return _floor_float(self, other)


def _checked(ufunc: np.ufunc, self: Array, other: Array) -> Array:
    """An integer division that raises for a divisor of zero. NumPy notices by itself: no pass over the divisors."""
    before = state_variable.get()
    try:
        state_variable.set(DIVISION_RAISES)
        return ufunc(self, other)
    except FloatingPointError:
        raise RuntimeError("ZeroDivisionError") from None
    finally:
        state_variable.set(before)


def _floor_float(self: Array, other: Array) -> Array:
    # NumPy's floor_divide and torch's agree except where the divisor is zero: torch yields self / other
    out = np.asarray(np.floor_divide(self, other))
    zero = np.equal(other, 0)
    if zero.any():
        np.copyto(out, np.true_divide(self, other), where=zero)
    return out


def remainder(self: Array, other: Array | Number) -> Array:
    """The remainder with the divisor's sign."""
    if not isinstance(other, np.ndarray):
        other = number(other, self)
    _refuse(self, "remainder_cpu")
    if self.dtype.kind in "iu":
        return _checked(np.remainder, self, other)
    return np.remainder(self, other)


def fmod(self: Array, other: Array | Number) -> Array:
    """The remainder with the dividend's sign."""
    if not isinstance(other, np.ndarray):
        other = number(other, self)
    _refuse(self, "fmod_cpu")
    if self.dtype.kind in "iu":
        return _checked(np.fmod, self, other)
    return np.fmod(self, other)


def _integer_power(self: Array, exponent: int) -> Array:
    if exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    return np.power(self, number_in(exponent, _dtype.FROM_NUMPY[self.dtype]))


@silent
def pow_scalar(self: Array, exponent: Number | Number) -> Array:
    """A power with a constant exponent; the common ones without `pow`, which is 20 times slower."""
    kind = self.dtype.kind
    if kind == "b":
        _refuse(self, "pow")
    if exponent == 2:
        return np.multiply(self, self)
    if kind in "iu":
        if isinstance(exponent, int):
            return _integer_power(self, exponent)
    elif exponent == 0.5:
        return np.sqrt(self)
    elif exponent == 1:
        return self.copy("K")
    elif exponent == 3:
        out = np.asarray(np.multiply(self, self))
        return np.multiply(out, self, out=out)
    elif exponent == -1:
        return np.reciprocal(self)
    elif exponent == -0.5:
        out = np.asarray(np.sqrt(self))
        return np.reciprocal(out, out=out)
    elif exponent == -2:
        out = np.asarray(np.multiply(self, self))
        return np.reciprocal(out, out=out)
    return np.power(self, np.asarray(exponent, self.dtype))


def pow_tensor(self: Array, exponent: Array) -> Array:
    if not isinstance(self, np.ndarray):
        self = np.asarray(self, exponent.dtype)
    _refuse(self, "pow", "b")
    if self.dtype.kind == "i" and (exponent < 0).any():
        # torch: a negative exponent yields the power's integer part, 0 unless the base is 1 or -1
        powers = np.power(self, np.maximum(exponent, 0))
        sign = np.where(exponent % 2 == 0, self * self, self)
        return np.where(exponent < 0, np.where(np.abs(self) == 1, sign, 0), powers).astype(self.dtype)
    return np.power(self, exponent)
