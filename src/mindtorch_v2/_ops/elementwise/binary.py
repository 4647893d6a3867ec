"""Functions of two operands, element by element, other than arithmetic."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _dtype
from ..._backends.cpu.elementwise import binary as kernels
from ..._backends.cpu.machinery.dtype_rules import refuse
from ..._backends.meta.adapter import meta_result
from ..._dispatch.entry import NUMBERS
from ..._tensor import Tensor
from ..machinery.declare import Gradients, op
from ..machinery.lookup import aten
from .arithmetic import conj, pow_of_scalar, pow_scalar, pow_tensor
from .ternary import where

if TYPE_CHECKING:
    from ..._types import Number

atan2 = op(
    "atan2(Tensor self, Tensor other) -> Tensor",
    pointwise="float",
    numbers=(),
    cpu=np.arctan2,
    inplace=True,
    grad={
        ("self", "other"): lambda grad, self, other, needs: _atan2_backward(grad, self, other, needs),
    },
)


def _atan2_backward(grad: Tensor, self: Tensor, other: Tensor, needs: tuple[bool, ...]) -> tuple[Any, Any]:
    length = self * self + other * other
    inverse = length.reciprocal()
    at_zero = length == 0
    # the reciprocal is its own derivative's input: written in place only when no second derivative is recorded
    inverse = inverse.masked_fill(at_zero, 0) if inverse.requires_grad else inverse.masked_fill_(at_zero, 0)
    return (grad * other * inverse if needs[0] else None, grad * -self * inverse if needs[1] else None)


hypot = op(
    "hypot(Tensor self, Tensor other) -> Tensor",
    pointwise="same",
    numbers=(),
    cpu=kernels.hypot,
    inplace=True,
    grad={
        "self": lambda grad, self, result: grad * (self / result),
        "other": lambda grad, other, result: grad * (other / result),
    },
)
copysign = op(
    "copysign.Tensor(Tensor self, Tensor other) -> Tensor",
    pointwise="float",
    numbers=(),
    cpu=np.copysign,
    inplace=True,
    grad={
        "self": lambda grad, self, result: grad * (result / self).masked_fill_(self == 0, 0),
        "other": lambda other_shape, other_dtype, other_device: aten.zeros(other_shape, dtype=other_dtype, device=other_device),
    },
)
copysign_scalar = op(
    "copysign.Scalar(Tensor self, Scalar other) -> Tensor",
    pointwise="float",
    numbers=("other",),
    cpu=kernels.copysign,
    inplace=True,
    grad={"self": lambda grad, self, result: grad * (result / self).masked_fill_(self == 0, 0)},
    node="CopysignBackward1",
)
heaviside = op(
    "heaviside(Tensor self, Tensor values) -> Tensor",
    cpu=kernels.heaviside,
    shape=lambda self, values: meta_result(self, values),
    inplace=True,
)
nextafter = op(
    "nextafter(Tensor self, Tensor other) -> Tensor",
    pointwise="same",
    numbers=(),
    cpu=kernels.nextafter,
    inplace=True,
    grad={
        "self": lambda grad, self, other: where(self != other, grad, 0),
        "other": lambda other_shape, other_dtype, other_device: aten.zeros(other_shape, dtype=other_dtype, device=other_device),
    },
)
logaddexp = op(
    "logaddexp(Tensor self, Tensor other) -> Tensor",
    pointwise="same",
    numbers=(),
    cpu=kernels.logaddexp,
    grad={
        "self": lambda grad, self, other: grad / conj(1 + (other - self).exp()),
        "other": lambda grad, self, other: grad / conj(1 + (self - other).exp()),
    },
)
logaddexp2 = op(
    "logaddexp2(Tensor self, Tensor other) -> Tensor",
    pointwise="same",
    numbers=(),
    cpu=kernels.logaddexp2,
    grad={
        "self": lambda grad, self, other: grad / (1 + 2 ** (other - self)),
        "other": lambda grad, self, other: grad / (1 + 2 ** (self - other)),
    },
)
fmax = op(
    "fmax(Tensor self, Tensor other) -> Tensor",
    pointwise="same",
    numbers=(),
    cpu=np.fmax,
    refuses=("fmax not implemented for complex tensors.", "c"),
    grad={
        "self": lambda grad, self, other: grad.masked_fill((self >= other).logical_or_(other.isnan()).logical_not_(), 0),
        "other": lambda grad, self, other: grad.masked_fill((self >= other).logical_or_(other.isnan()), 0),
    },
)
fmin = op(
    "fmin(Tensor self, Tensor other) -> Tensor",
    pointwise="same",
    numbers=(),
    cpu=np.fmin,
    refuses=("fmin not implemented for complex tensors.", "c"),
    grad={
        "self": lambda grad, self, other: grad.masked_fill((self <= other).logical_or_(other.isnan()).logical_not_(), 0),
        "other": lambda grad, self, other: grad.masked_fill((self <= other).logical_or_(other.isnan()), 0),
    },
)
xlogy = op(
    "xlogy.Tensor(Tensor self, Tensor other) -> Tensor",
    pointwise="float",
    numbers=(),
    cpu=kernels.xlogy,
    inplace=True,
    grad={
        "self": lambda grad, self, other: xlogy(grad, other).masked_fill(other.le(0).bitwise_and(self.eq(0)), 0.0),
        "other": lambda grad, self, other: grad * self / other,
    },
)
xlogy_other_scalar = op(
    "xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor",
    pointwise="float",
    numbers=("other",),
    cpu=lambda self, other: kernels.xlogy(self, np.asarray(other, self.dtype)),
    inplace=True,
    grad={
        "self": lambda grad, self, other: (
            xlogy_other_scalar(grad, other) if other > 0 else xlogy_other_scalar(grad, other).masked_fill(self == 0, 0.0)
        )
    },
    node="XlogyBackward2",
)
xlogy_self_scalar = op(
    "xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor",
    pointwise="float",
    numbers=("self",),
    cpu=lambda self, other: kernels.xlogy(np.asarray(self, other.dtype), other),
    grad={"other": lambda grad, self, other: grad * self / other},
    node="XlogyBackward1",
)
_LDEXP_GRADIENTS: Gradients = {
    "self": lambda grad, self, other: grad * conj(_two_to(self, other)),
    "other": lambda grad, result: grad * conj(result * math.log(2)),
}
ldexp = op(
    "ldexp.Tensor(Tensor self, Tensor other) -> Tensor",
    composite=lambda self, other: self * _two_to(self, other),
    grad=_LDEXP_GRADIENTS,
)
ldexp_ = op(
    "ldexp_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    composite=lambda self, other: self.mul_(_two_to(self, other)),
    grad=_LDEXP_GRADIENTS,
)


def _two_to(self: Tensor, other: Tensor) -> Tensor:
    """2 to the power of `other`, in the precision of `self` when that is floating and `other` is not."""
    if self.dtype.is_floating_point:
        refuse("ldexp_cpu_exp", other, "b")
    if self.dtype.is_floating_point and not other.dtype.inexact:
        other = other.to(self.dtype)
    return 2.0**other


def _power_dtype(*operands: Any) -> _dtype.dtype:
    for x in operands:
        if isinstance(x, complex) or (isinstance(x, Tensor) and x.dtype.is_complex):
            return _dtype.complex128
    return _dtype.float64


def _double(x: Any, d: _dtype.dtype) -> Any:
    if isinstance(x, Tensor):
        return x.to(d)
    return complex(x) if d.is_complex else float(x)


def _float_power(self: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """A power computed in double precision."""
    d = _power_dtype(self, exponent)
    chosen = pow_of_scalar if self.__class__ in NUMBERS else pow_scalar if exponent.__class__ in NUMBERS else pow_tensor
    return chosen(_double(self, d), _double(exponent, d))


float_power_tensor = op("float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", composite=_float_power)
float_power_scalar = op("float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", composite=_float_power)
float_power_of_scalar = op("float_power.Scalar(Scalar self, Tensor exponent) -> Tensor", composite=_float_power)


def _float_power_(self: Tensor, exponent: Tensor | Number) -> Tensor:
    d = _power_dtype(self, exponent)
    if self.dtype is not d:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {self.dtype.scalar_name} but the operation's result requires dtype {d.scalar_name}"
        )
    return self.pow_(_double(exponent, d))


float_power_tensor_ = op(
    "float_power_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)", composite=_float_power_, variants="method"
)
float_power_scalar_ = op(
    "float_power_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)", composite=_float_power_, variants="method"
)
