"""The operators of the language that are not one operator with its operands in order: powers, reflected and unary ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._dispatch.entry import NUMBERS
from .._tensor import Tensor
from . import pointwise, unary

__all__ = ["reflected"]


def _or_not_implemented(method: Callable[..., Any]) -> Callable[..., Any]:
    """Give way to the other operand's own method when ours takes no such type."""

    def attempt(self: Any, other: Any) -> Any:
        try:
            return method(self, other)
        except TypeError:
            if isinstance(other, Tensor | int | float | complex):
                raise
            return NotImplemented

    attempt.__name__ = method.__name__
    return attempt


def power(self: Any, other: Any) -> Any:
    if other.__class__ in NUMBERS:
        return pointwise.pow_scalar(self, other)
    return self.pow(other)


def reflected_sub(self: Any, other: Any) -> Any:
    return pointwise.rsub_scalar(self, other) if other.__class__ in NUMBERS else pointwise.rsub(self, other)


def reflected_truediv(self: Any, other: Any) -> Any:
    return unary.reciprocal(self) * other


def reflected_pow(self: Any, other: Any) -> Any:
    return pointwise.pow_of_scalar(other, self)


def inplace_power(self: Any, other: Any) -> Any:
    return self.pow_(other)


reflected: dict[str, Callable[..., Any]] = {
    "__pow__": _or_not_implemented(power),
    "__ipow__": _or_not_implemented(inplace_power),
    "__rsub__": _or_not_implemented(reflected_sub),
    "__rtruediv__": _or_not_implemented(reflected_truediv),
    "__rpow__": _or_not_implemented(reflected_pow),
    "__neg__": unary.neg,
    "__abs__": unary.abs,
    "__pos__": lambda self: self,
}
