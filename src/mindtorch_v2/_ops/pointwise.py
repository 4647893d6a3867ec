"""Arithmetic of two operands, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._backends.cpu import pointwise as kernels
from .._dispatch.entry import NUMBERS
from .._tensor import Tensor
from .declare import op


def conj(x: Any) -> Any:
    """The conjugate of a complex tensor or number; anything else as it is, without a call that a profile would show."""
    if x.__class__ in NUMBERS:
        return x.conjugate()
    return x.conj() if x.dtype.is_complex else x


def scaled(grad: Tensor, factor: Any) -> Tensor:
    """`grad * factor`, skipping a factor of one as ATen does."""
    return grad if factor == 1 else grad * factor


add = op(
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    pointwise="same",
    cpu=np.add,
    inplace=True,
    grad={"self": lambda grad: grad, "other": lambda grad, alpha: scaled(grad, conj(alpha))},
)
sub = op(
    "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    pointwise="same",
    cpu=np.subtract,
    inplace=True,
    grad={"self": lambda grad: grad, "other": lambda grad, alpha: scaled(-grad, conj(alpha))},
)
mul = op(
    "mul.Tensor(Tensor self, Tensor other) -> Tensor",
    pointwise="same",
    cpu=np.multiply,
    inplace=True,
    grad={"self": lambda grad, other: grad * conj(other), "other": lambda grad, self: grad * conj(self)},
)
div = op(
    "div.Tensor(Tensor self, Tensor other) -> Tensor",
    pointwise="float",
    cpu=np.true_divide,
    inplace=True,
    grad={
        "self": lambda grad, other: grad / conj(other),
        "other": lambda grad, self, other: -grad * conj((self / other) / other),
    },
)
div_mode = op(
    "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
    pointwise="same",
    cpu=kernels.div_mode,
    inplace=True,
    grad={
        "self": lambda grad, other, rounding_mode: grad / conj(other) if rounding_mode is None else _zeros_like(grad),
        "other": lambda grad, self, other, rounding_mode: (
            -grad * conj((self / other) / other) if rounding_mode is None else _zeros_like(grad)
        ),
    },
    node="DivBackward1",
)
rsub = op(
    "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    pointwise="same",
    numbers=(),
    cpu=kernels.rsub,
    grad={"self": lambda grad, alpha: scaled(-grad, conj(alpha)), "other": lambda grad: grad},
    variants="function",
)
rsub_scalar = op(
    "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    pointwise="same",
    numbers=("other",),
    cpu=kernels.rsub,
    grad={"self": lambda grad, alpha: scaled(-grad, conj(alpha))},
    node="RsubBackward1",
    variants="function",
)
floor_divide = op(
    "floor_divide(Tensor self, Tensor other) -> Tensor",
    pointwise="same",
    cpu=lambda self, other: kernels.div_mode(self, other, "floor"),
    inplace=True,
    tags=("nondifferentiable",),
)
remainder = op(
    "remainder.Tensor(Tensor self, Tensor other) -> Tensor",
    pointwise="same",
    cpu=kernels.remainder,
    inplace=True,
    grad={"self": lambda grad: grad, "other": lambda grad, self, other: -grad * self.div(other, rounding_mode="floor")},
)
remainder_scalar_tensor = op(
    "remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
    composite=lambda self, other: remainder(wrapped_number(self, other), other),
)
fmod = op(
    "fmod.Tensor(Tensor self, Tensor other) -> Tensor",
    pointwise="same",
    cpu=kernels.fmod,
    inplace=True,
    grad={"self": lambda grad: grad, "other": lambda grad, self, other: -grad * self.div(other, rounding_mode="trunc")},
)
maximum = op(
    "maximum(Tensor self, Tensor other) -> Tensor",
    pointwise="same",
    numbers=(),
    cpu=np.maximum,
    grad={
        "self": lambda grad, self, other: half_where_equal(grad, self, other).masked_fill_(self < other, 0),
        "other": lambda grad, self, other: half_where_equal(grad, self, other).masked_fill_(self > other, 0),
    },
)
minimum = op(
    "minimum(Tensor self, Tensor other) -> Tensor",
    pointwise="same",
    numbers=(),
    cpu=np.minimum,
    grad={
        "self": lambda grad, self, other: half_where_equal(grad, self, other).masked_fill_(self > other, 0),
        "other": lambda grad, self, other: half_where_equal(grad, self, other).masked_fill_(self < other, 0),
    },
)


def half_where_equal(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
    """Equal operands share the gradient of their maximum."""
    return _where(self == other, grad / 2, grad)


def _where(condition: Tensor, x: Any, y: Any) -> Tensor:
    from .ternary import where

    found: Tensor = where(condition, x, y)
    return found


def _zeros_like(grad: Tensor) -> Tensor:
    return grad.new_zeros(grad.shape)


def wrapped_number(number: Any, like: Tensor) -> Tensor:
    """A zero-dim tensor of a Python number, which gives way to `like` in promotion."""
    from .._creation import tensor

    return tensor(number, device=like.device)


pow_scalar = op(
    "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
    pointwise="same",
    numbers=("exponent",),
    cpu=kernels.pow_scalar,
    grad={"self": lambda grad, self, exponent: pow_backward(grad, self, exponent)},
    inplace=True,
)
pow_tensor = op(
    "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    pointwise="same",
    cpu=kernels.pow_tensor,
    grad={
        "self": lambda grad, self, exponent: pow_backward_self(grad, self, exponent),
        "exponent": lambda grad, self, exponent, result: pow_backward_exponent(grad, self, exponent, result),
    },
    node="PowBackward1",
    inplace=True,
)
pow_of_scalar = op(
    "pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
    pointwise="same",
    numbers=("self",),
    cpu=kernels.pow_tensor,
    grad={"exponent": lambda grad, self, exponent, result: pow_backward_exponent(grad, self, exponent, result)},
    node="PowBackward2",
)


def pow_backward(grad: Tensor, self: Tensor, exponent: Any) -> Tensor:
    """Derivative of a constant power."""
    if exponent == 0:
        return _zeros_like(grad)
    return grad * conj(self.pow(exponent - 1) * exponent)


def pow_backward_self(grad: Tensor, self: Tensor, exponent: Tensor) -> Tensor:
    return _where(exponent == 0, _zeros_like(exponent), grad * conj(exponent * self.pow(exponent - 1)))


def pow_backward_exponent(grad: Tensor, self: Any, exponent: Tensor, result: Tensor) -> Tensor:
    """Derivative by the exponent: `result * log(self)`, taken as zero where 0 ** (exponent >= 0)."""
    if self.__class__ in NUMBERS:
        if self == 0:
            at_zero = exponent.real >= 0 if exponent.dtype.is_complex else exponent >= 0
            return _where(at_zero, _zeros_like(exponent), grad * conj(result * float("-inf")))
        import cmath
        import math

        log = cmath.log(self) if isinstance(self, complex) or self < 0 and exponent.dtype.is_complex else math.log(self) if self > 0 else math.nan
        return grad * conj(result * log)
    at_zero = (self == 0).logical_and(exponent.real >= 0 if exponent.dtype.is_complex else exponent >= 0)
    return grad * _where(at_zero, _zeros_like(exponent), conj(result * self.log()))
