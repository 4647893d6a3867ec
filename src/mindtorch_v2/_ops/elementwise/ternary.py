"""Operators of three operands, element by element: where, masked_fill, lerp, addcmul, addcdiv."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _checks, _promotion
from ..._backends.cpu.elementwise import ternary as kernels
from ..._backends.meta.adapter import meta_result, meta_tensor
from ..._dispatch import keys
from ..._dispatch.entry import NUMBERS
from ..._tensor import Tensor
from ..._types import Number, OptionalDevice
from ..machinery.declare import Gradients, op, public
from ..machinery.lookup import aten
from .arithmetic import conj, number_minus, number_over

_where_self = op(
    "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
    cpu=kernels.where,
    shape=lambda condition, self, other: meta_tensor(
        _checks.broadcast_shapes(condition.shape, self.shape, other.shape), _promotion.result_type_of((self, other))
    ),
    grad={
        "self": lambda grad, condition: where(condition, grad, 0),
        "other": lambda grad, condition: where(condition, 0, grad),
    },
    variants="",
)
_where_other = op(
    "where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor",
    composite=lambda condition, self, other: _where_self(condition, self, _scalar_operand(other, self)),
    variants="",
)
_where_input = op(
    "where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor",
    composite=lambda condition, self, other: _where_self(condition, _scalar_operand(self, other), other),
    variants="",
)
_where_numbers = op(
    "where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor",
    composite=lambda condition, self, other: _where_self(
        condition, _scalar_operand(self, other, condition.device), _scalar_operand(other, self, condition.device)
    ),
    variants="",
)
_where_nonzero = op(
    "where(Tensor condition) -> Tensor[]", composite=lambda condition: _indices(condition), variants="", tags=("data_dependent",)
)


def _indices(condition: Tensor) -> tuple[Tensor, ...]:
    found = condition.nonzero(as_tuple=True)
    return tuple(found)


@public("function")
# `Any`, not tensors: its operators ask for overrides, and asking here as well costs 100 ns of 2 µs
def where(condition: Any, input: Any = None, other: Any = None, *, out: Tensor | None = None) -> Any:
    """Elements of `input` where the condition holds, of `other` elsewhere; with a condition only, the indices where it does."""
    if input is None and other is None:
        return _where_nonzero(condition)
    if isinstance(input, np.generic):
        input = input.item()
    if isinstance(other, np.generic):
        other = other.item()
    if other.__class__ in NUMBERS:
        return _where_numbers(condition, input, other) if input.__class__ in NUMBERS else _where_other(condition, input, other)
    if input.__class__ in NUMBERS:
        return _where_input(condition, input, other)
    if condition.__class__ is Tensor and condition._keys & keys.BACKENDS & ~keys.CPU:
        input, other = _following(input, condition), _following(other, condition)
    return _where_self(condition, input, other) if out is None else _where_self(condition, input, other, out=out)


def _scalar_operand(x: Number, partner: Any, device: OptionalDevice = None) -> Tensor:
    """A number as the zero-dim tensor that ATen makes of it: of the partner's dtype unless that is of a lower kind."""
    if device is None and partner.dtype.inexact and x.__class__ is not complex:
        d, device = partner.dtype, partner.device
    else:
        d = _promotion.result_type_of((x, partner))
    return aten.scalar_tensor(x, dtype=d, device=partner.device if device is None else device)


def _following(x: Tensor | Number | None, condition: Tensor) -> Tensor | Number | None:
    """torch: zero-dim CPU operands follow the condition to its device."""
    if isinstance(x, Tensor) and not x._array.ndim and x._keys & keys.CPU:
        return x.to(condition.device)
    return x


def zero_unless(condition: Tensor, grad: Tensor) -> Tensor:
    """The gradient where the condition holds, zero elsewhere."""
    return _where_self(condition, grad, _scalar_operand(0, grad))


def _sum_where(grad: Tensor, mask: Tensor) -> Tensor:
    """The sum of a gradient where a mask holds."""
    if (grad._keys | mask._keys) & keys.BATCHED:  # samples have different numbers of such elements
        return zero_unless(mask, grad).sum()
    return grad.masked_select(mask).sum()


def zero_where(condition: Tensor, grad: Tensor) -> Tensor:
    """The gradient where the condition does not hold, zero elsewhere."""
    return _where_self(condition, _scalar_operand(0, grad), grad)


@public("method", name="where")
def _where_method(self: Tensor, condition: Tensor, other: Tensor | Number) -> Tensor:
    return where(condition, self, other)


def _masked_fill_shape(self: Tensor, mask: Tensor) -> tuple[int, ...]:
    return _checks.broadcast_shapes(self._array.shape, mask._array.shape)


masked_fill_tensor = op(
    "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
    cpu=kernels.masked_fill,
    shape=_masked_fill_shape,
    grad={
        "self": lambda grad, mask: grad.masked_fill(mask, 0),
        "value": lambda grad, mask: _sum_where(grad, mask),
    },
    node="MaskedFillBackward1",
)
masked_fill_scalar = op(
    "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
    cpu=kernels.masked_fill,
    shape=_masked_fill_shape,
    grad={"self": lambda grad, mask: grad.masked_fill(mask, 0)},
)
masked_fill_tensor_ = op(
    "masked_fill_.Tensor(Tensor(a!) self, Tensor mask, Tensor value) -> Tensor(a!)",
    cpu=kernels.masked_fill_,
    grad={
        "self": lambda grad, mask: grad.masked_fill(mask, 0),
        "value": lambda grad, mask: _sum_where(grad, mask),
    },
    node="MaskedFillBackward1",
)
masked_fill_scalar_ = op(
    "masked_fill_.Scalar(Tensor(a!) self, Tensor mask, Scalar value) -> Tensor(a!)",
    cpu=kernels.masked_fill_,
    grad={"self": lambda grad, mask: grad.masked_fill(mask, 0)},
)
_LERP_SCALAR_GRADIENTS: Gradients = {
    "self": lambda grad, weight: grad * (1 - conj(weight)),
    "end": lambda grad, weight: grad * conj(weight),
}
lerp_scalar = op(
    "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
    cpu=kernels.lerp,
    shape=lambda self, end: meta_result(self, end),
    grad=_LERP_SCALAR_GRADIENTS,
)
lerp_scalar_ = op(
    "lerp_.Scalar(Tensor(a!) self, Tensor end, Scalar weight) -> Tensor(a!)",
    cpu=kernels.lerp_,
    grad=_LERP_SCALAR_GRADIENTS,
)
_LERP_TENSOR_GRADIENTS: Gradients = {
    "self": lambda grad, weight: grad * conj(number_minus(1, weight)),
    "end": lambda grad, weight: grad * conj(weight),
    "weight": lambda grad, self, end: grad * conj(end - self),
}
lerp_tensor = op(
    "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
    cpu=kernels.lerp,
    shape=lambda self, end, weight: meta_result(self, end, weight),
    grad=_LERP_TENSOR_GRADIENTS,
    node="LerpBackward1",
)
lerp_tensor_ = op(
    "lerp_.Tensor(Tensor(a!) self, Tensor end, Tensor weight) -> Tensor(a!)",
    cpu=kernels.lerp_,
    grad=_LERP_TENSOR_GRADIENTS,
    node="LerpBackward1",
)
_ADDCMUL_GRADIENTS: Gradients = {
    "self": lambda grad: grad,
    "tensor1": lambda grad, tensor2, value: grad * conj(tensor2 * value),
    "tensor2": lambda grad, tensor1, value: grad * conj(tensor1 * value),
}
addcmul = op(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    pointwise="same",
    cpu=kernels.addcmul,
    grad=_ADDCMUL_GRADIENTS,
)
addcmul_ = op(
    "addcmul_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)",
    cpu=kernels.addcmul_,
    grad=_ADDCMUL_GRADIENTS,
)
_ADDCDIV_GRADIENTS: Gradients = {
    "self": lambda grad: grad,
    "tensor1": lambda grad, tensor2, value: grad * conj(number_over(value, tensor2)),
    "tensor2": lambda grad, tensor1, tensor2, value: -grad * conj(value * tensor1 / (tensor2 * tensor2)),
}
addcdiv = op(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    pointwise="same",
    cpu=kernels.addcdiv,
    grad=_ADDCDIV_GRADIENTS,
)
addcdiv_ = op(
    "addcdiv_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)",
    cpu=kernels.addcdiv_,
    grad=_ADDCDIV_GRADIENTS,
)
