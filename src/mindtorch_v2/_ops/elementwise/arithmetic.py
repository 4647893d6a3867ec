"""Arithmetic of two operands, element by element."""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np

from ... import _promotion
from ..._backends.cpu.elementwise import arithmetic as kernels
from ..._dispatch import keys
from ..._dispatch.entry import NUMBERS
from ..._tensor import Tensor, wrap
from ..._types import Number
from ..creation.constants import zeros_like as entry
from ..machinery.declare import copy_into, op
from ..machinery.lookup import aten


def conj(x: Tensor) -> Any:
    """The conjugate of a complex tensor or number; anything else as it is, without a call that a profile would show."""
    if x.__class__ in NUMBERS:
        return x.conjugate() if isinstance(x, complex) else x
    return x.conj() if x.dtype.is_complex else x


def scaled(grad: Tensor, factor: Number) -> Tensor:
    """`grad * factor`, skipping a factor of one as ATen does."""
    return grad if factor == 1 else grad * factor


def number_minus(number: Number, x: Tensor) -> Tensor:
    """`number - x` in memory of its own, as ATen's formulas compute it."""
    return aten.empty_like(x).fill_(number).sub_(x)


def number_over(number: Number, x: Tensor) -> Tensor:
    """`number / x` in memory of its own, as ATen's formulas compute it."""
    return aten.empty_like(x).fill_(number).div_(x)


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


def _multiply_by_number(self: np.ndarray[Any, Any], other: Number) -> None:
    """In place, by a number of the tensor's category or a lower one."""
    copy_into(self, np.asarray(np.multiply(self, other)))


mul_number_ = op(
    "mul_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    cpu=_multiply_by_number,
    grad={"self": lambda grad, other: grad * conj(other)},
    node="MulBackward1",
    variants="",
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
# What ATen's own functions call when an operand is a number; users' numbers go to the overloads for tensors.
add_number = op(
    "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    pointwise="same",
    numbers=("other",),
    cpu=lambda self, other, alpha: self + other if alpha == 1 else self + other * alpha,
    grad={"self": lambda grad: grad},
    node="AddBackward1",
    variants="",
)
sub_number = op(
    "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    pointwise="same",
    numbers=("other",),
    cpu=lambda self, other, alpha: self - other if alpha == 1 else self - other * alpha,
    grad={"self": lambda grad: grad},
    node="SubBackward1",
    variants="",
)
mul_number = op(
    "mul.Scalar(Tensor self, Scalar other) -> Tensor",
    pointwise="same",
    numbers=("other",),
    cpu=lambda self, other: self * other,
    grad={"self": lambda grad, other: grad * conj(other)},
    node="MulBackward1",
    variants="",
)
div_number = op(
    "div.Scalar(Tensor self, Scalar other) -> Tensor",
    pointwise="float",
    numbers=("other",),
    cpu=lambda self, other: self / other,
    grad={"self": lambda grad, other: grad / conj(other)},
    node="DivBackward1",
    variants="",
)
div_mode = op(
    "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
    pointwise="same",
    cpu=kernels.div_mode,
    inplace=True,
    grad={
        "self": lambda grad, other, rounding_mode: grad / conj(other) if rounding_mode is None else zeros_like(grad),
        "other": lambda grad, self, other, rounding_mode: (
            -grad * conj((self / other) / other) if rounding_mode is None else zeros_like(grad)
        ),
    },
    node="DivBackward2",
)
rsub = op(
    "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    composite=lambda self, other, alpha: sub(other, self, alpha=alpha),
    grad={"self": lambda grad, alpha: scaled(-grad, conj(alpha)), "other": lambda grad: grad},
    variants="function",
)
rsub_scalar = op(
    "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    composite=lambda self, other, alpha: sub(wrapped_number(other, self), self, alpha=alpha),
    grad={"self": lambda grad, alpha: scaled(-grad, conj(alpha))},
    node="RsubBackward1",
    variants="function",
)
floor_divide = op(
    "floor_divide(Tensor self, Tensor other) -> Tensor",
    pointwise="same",
    cpu=lambda self, other: kernels.div_mode(self, other, "floor"),
    inplace=True,
)
remainder = op(
    "remainder.Tensor(Tensor self, Tensor other) -> Tensor",
    pointwise="same",
    numbers=(),
    cpu=kernels.remainder,
    inplace=True,
    grad={"self": lambda grad: grad, "other": lambda grad, self, other: -grad * self.div(other, rounding_mode="floor")},
    node="RemainderBackward1",
)
remainder_scalar = op(
    "remainder.Scalar(Tensor self, Scalar other) -> Tensor",
    pointwise="same",
    numbers=("other",),
    cpu=kernels.remainder,
    inplace=True,
    grad={"self": lambda grad: grad},
)
remainder_scalar_tensor = op(
    "remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
    pointwise="same",
    numbers=("self",),
    cpu=lambda self, other: kernels.remainder(kernels.number(self, other), other),
)
fmod = op(
    "fmod.Tensor(Tensor self, Tensor other) -> Tensor",
    pointwise="same",
    numbers=(),
    cpu=kernels.fmod,
    inplace=True,
    grad={"self": lambda grad: grad, "other": lambda grad, self, other: -grad * self.div(other, rounding_mode="trunc")},
    node="FmodBackward1",
)
fmod_scalar = op(
    "fmod.Scalar(Tensor self, Scalar other) -> Tensor",
    pointwise="same",
    numbers=("other",),
    cpu=kernels.fmod,
    inplace=True,
    grad={"self": lambda grad: grad},
)
maximum = op(
    "maximum(Tensor self, Tensor other) -> Tensor",
    pointwise="same",
    numbers=(),
    cpu=np.maximum,
    refuses=("maximum not implemented for complex tensors.", "c"),
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
    refuses=("minimum not implemented for complex tensors.", "c"),
    grad={
        "self": lambda grad, self, other: half_where_equal(grad, self, other).masked_fill_(self > other, 0),
        "other": lambda grad, self, other: half_where_equal(grad, self, other).masked_fill_(self < other, 0),
    },
)


def half_where_equal(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
    """Equal operands share the gradient of their maximum."""
    from .ternary import where  # cycle with _ops.elementwise.ternary

    return where(self == other, grad / 2, grad)


def zeros_like(x: Tensor) -> Tensor:
    return entry(x)


def wrapped_number(number: Number, like: Tensor) -> Tensor:
    """A Python number as a zero-dim tensor that gives way to `like` in promotion; no operator of its own."""
    made = wrap(_promotion.operand_arrays(_promotion.result_type_of((number, like)), number)[0])
    return made if like._keys & keys.CPU else made.to(like.device)


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
pow_scalar = op(
    "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
    pointwise="same",
    numbers=("exponent",),
    cpu=kernels.pow_scalar,
    grad={"self": lambda grad, self, exponent: pow_backward(grad, self, exponent)},
    inplace=True,
)


def _in_rows(x: Tensor) -> Tensor:
    """torch: the result follows the number, which has no layout."""
    return x if x._array.flags.c_contiguous else wrap(np.ascontiguousarray(x._array))


pow_of_scalar = op(
    "pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
    composite=lambda self, exponent: _in_rows(pow_tensor(wrapped_number(self, exponent), exponent)),
    grad={"exponent": lambda grad, self, exponent, result: _backward_of_exponent(grad, self, exponent, result)},
    node="PowBackward2",
)


def pow_backward(grad: Tensor, self: Tensor, exponent: Number) -> Tensor:
    """Derivative of a constant power."""
    if exponent == 0:
        return zeros_like(grad)
    return grad * conj(self.pow(exponent - 1) * exponent)


def pow_backward_self(grad: Tensor, self: Tensor, exponent: Tensor) -> Tensor:
    from .ternary import zero_where  # cycle with _ops.elementwise.ternary

    return zero_where(exponent == 0, grad * conj(exponent * self.pow(exponent - 1)))


def _not_negative(exponent: Tensor) -> Tensor:
    return exponent.real >= 0 if exponent.dtype.is_complex else exponent >= 0


def pow_backward_exponent(grad: Tensor, self: Tensor, exponent: Tensor, result: Tensor) -> Tensor:
    """Derivative by the exponent: `result * log(self)`, taken as zero where 0 ** (exponent >= 0)."""
    from .ternary import zero_where  # cycle with _ops.elementwise.ternary

    at_zero = (self == 0).logical_and(_not_negative(exponent))
    return grad * zero_where(at_zero, conj(result * self.log()))


def _backward_of_exponent(grad: Tensor, self: Tensor, exponent: Tensor, result: Tensor) -> Tensor:
    """The same for a constant base."""
    from .ternary import zero_where  # cycle with _ops.elementwise.ternary

    if self == 0:
        return zero_where(_not_negative(exponent), grad * conj(result * -math.inf))
    if isinstance(self, complex) or (self < 0 and exponent.dtype.is_complex):
        return grad * conj(result * cmath.log(self))
    return grad * conj(result * (math.log(self) if self > 0 else math.nan))
