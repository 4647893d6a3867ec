"""The operators of the language that are not one operator with its operands in order: powers, reflected and unary ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._dispatch.entry import NUMBERS
from ..._tensor import Tensor
from ..._types import Number
from ..creation import copying
from ..linalg import matmul
from . import arithmetic, bitwise, unary
from .complex import imag, real

__all__ = ["reflected"]


def _or_not_implemented(method: Callable[..., Any]) -> Callable[..., Any]:
    """Give way to the other operand's own method when ours takes no such type."""

    def attempt(self: Tensor, other: Tensor | Number) -> Any:
        if isinstance(other, np.generic):
            other = other.item()
        try:
            return method(self, other)
        except TypeError:
            if isinstance(other, Tensor | int | float | complex):
                raise
            return NotImplemented

    attempt.__name__ = method.__name__
    return attempt


def power(self: Tensor, other: Tensor | Number) -> Tensor:
    if other.__class__ in NUMBERS:
        return arithmetic.pow_scalar(self, other)
    return self.pow(other)


def modulo(self: Tensor, other: Tensor | Number) -> Tensor:
    return arithmetic.remainder_scalar(self, other) if other.__class__ in NUMBERS else arithmetic.remainder(self, other)


def inplace_modulo(self: Tensor, other: Tensor | Number) -> Tensor:
    return self.remainder_(other)


def reflected_sub(self: Tensor, other: Tensor | Number) -> Tensor:
    return arithmetic.rsub_scalar(self, other) if other.__class__ in NUMBERS else arithmetic.rsub(self, other)


def reflected_truediv(self: Tensor, other: Tensor | Number) -> Tensor:
    return unary.reciprocal(self) * other


def reflected_pow(self: Tensor, other: Tensor | Number) -> Tensor:
    return other.pow(self) if isinstance(other, Tensor) else arithmetic.pow_of_scalar(other, self)


def reflected_matmul(self: Tensor, other: Tensor | Number) -> Tensor:
    return matmul.matmul(other, self)


def invert(self: Tensor) -> Tensor:
    if self.dtype.inexact:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return bitwise.bitwise_not(self)


def inplace_power(self: Tensor, other: Tensor | Number) -> Tensor:
    return self.pow_(other)


def reflected_floordiv(self: Tensor, other: Tensor | Number) -> Tensor:
    return arithmetic.floor_divide(other if isinstance(other, Tensor) else arithmetic.wrapped_number(other, self), self)


def reflected_mod(self: Tensor, other: Tensor | Number) -> Tensor:
    return arithmetic.remainder(other, self) if isinstance(other, Tensor) else arithmetic.remainder_scalar_tensor(other, self)


def _reflected_shift(entry: Callable[..., Any]) -> Callable[..., Any]:
    def shift(self: Tensor, other: Tensor | Number) -> Tensor:
        return entry(other if isinstance(other, Tensor) else arithmetic.wrapped_number(other, self), self)

    return shift


def _set_part(part: Callable[..., Any]) -> Callable[..., None]:
    def write(self: Tensor, value: Any) -> None:
        copying.copy_(part(self), value if isinstance(value, Tensor) else arithmetic.wrapped_number(value, self))

    return write


reflected: dict[str, Any] = {
    "__pow__": _or_not_implemented(power),
    "__ipow__": _or_not_implemented(inplace_power),
    "__mod__": _or_not_implemented(modulo),
    "__imod__": _or_not_implemented(inplace_modulo),
    "__rsub__": _or_not_implemented(reflected_sub),
    "__rtruediv__": _or_not_implemented(reflected_truediv),
    "__rmatmul__": _or_not_implemented(reflected_matmul),
    "__rpow__": _or_not_implemented(reflected_pow),
    "__neg__": unary.neg,
    "__abs__": unary.abs,
    "__pos__": unary.positive,
    "__invert__": invert,
    "__rfloordiv__": _or_not_implemented(reflected_floordiv),
    "__rmod__": _or_not_implemented(reflected_mod),
    "__rlshift__": _or_not_implemented(_reflected_shift(bitwise.bitwise_left_shift)),
    "__rrshift__": _or_not_implemented(_reflected_shift(bitwise.bitwise_right_shift)),
    "real": property(real, _set_part(real), doc="The real part: a view of a complex tensor, a real tensor itself."),
    "imag": property(imag, _set_part(imag), doc="The imaginary part, as a view."),
}
