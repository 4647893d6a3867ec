"""Operators of three operands, element by element: where, masked_fill, lerp, addcmul, addcdiv."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dtype, _promotion
from .._backends.cpu import ternary as kernels
from .._dispatch import keys
from .._dispatch.entry import NUMBERS
from .._tensor import Tensor, wrap
from .declare import op, public
from .pointwise import conj, scaled

_where_self = op(
    "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
    cpu=kernels.where,
    shape=lambda condition, self, other: np.broadcast_shapes(condition.shape, self.shape, other.shape),
    grad={
        "self": lambda grad, condition: where(condition, grad, 0),
        "other": lambda grad, condition: where(condition, 0, grad),
    },
    variants="",
)
_where_nonzero = op("where(Tensor condition) -> Tensor[]", composite=lambda condition: condition.nonzero_numpy(), variants="")


@public("function")
def where(condition: Any, input: Any = None, other: Any = None, *, out: Tensor | None = None) -> Any:  # noqa: A002
    """Elements of `input` where the condition holds, of `other` elsewhere; with a condition only, the indices where it does."""
    if input is None and other is None:
        return tuple(_where_nonzero(condition))
    if input.__class__ in NUMBERS or other.__class__ in NUMBERS:
        input, other = _scalar_operand(input, other, condition), _scalar_operand(other, input, condition)  # noqa: A001
    if isinstance(input, Tensor) and isinstance(other, Tensor) and isinstance(condition, Tensor):
        input, other, condition = _same_device(input, other, condition)  # noqa: A001
    if out is not None:
        return _where_self(condition, input, other, out=out)
    return _where_self(condition, input, other)


def _scalar_operand(x: Any, partner: Any, condition: Tensor) -> Any:
    """A number as the zero-dim tensor that torch makes of it: of the partner's dtype unless that is of a lower kind."""
    if x.__class__ not in NUMBERS:
        return x
    operands = (x, partner)
    d = _promotion.result_type_of(operands)
    made = wrap(_promotion.operand_arrays(d, x)[0])
    return made.to(condition.device) if condition.device.type != "cpu" else made


def _same_device(input: Tensor, other: Tensor, condition: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # noqa: A002
    """torch: zero-dim CPU operands follow the condition to its device."""
    if condition._keys & keys.BACKENDS & ~keys.CPU:
        if not input._array.ndim and input._keys & keys.CPU:
            input = input.to(condition.device)  # noqa: A001
        if not other._array.ndim and other._keys & keys.CPU:
            other = other.to(condition.device)
    return input, other, condition


@public("method", name="where")
def _where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    found: Tensor = where(condition, self, other)
    return found


masked_fill_scalar = op(
    "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
    cpu=kernels.masked_fill,
    shape=lambda self, mask: np.broadcast_shapes(self.shape, mask.shape),
    grad={"self": lambda grad, mask: grad.masked_fill(mask, 0)},
)
masked_fill_tensor = op(
    "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
    cpu=kernels.masked_fill,
    shape=lambda self, mask: np.broadcast_shapes(self.shape, mask.shape),
    grad={
        "self": lambda grad, mask: grad.masked_fill(mask, 0),
        "value": lambda grad, mask: where(mask, grad, 0).sum(),
    },
    node="MaskedFillBackward1",
)
masked_fill_scalar_ = op(
    "masked_fill_.Scalar(Tensor(a!) self, Tensor mask, Scalar value) -> Tensor(a!)",
    cpu=kernels.masked_fill_,
    grad={"self": lambda grad, mask: grad.masked_fill(mask, 0)},
)
masked_fill_tensor_ = op(
    "masked_fill_.Tensor(Tensor(a!) self, Tensor mask, Tensor value) -> Tensor(a!)",
    cpu=kernels.masked_fill_,
    grad={
        "self": lambda grad, mask: grad.masked_fill(mask, 0),
        "value": lambda grad, mask: where(mask, grad, 0).sum(),
    },
    node="MaskedFillBackward1",
)
lerp_scalar = op(
    "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
    pointwise="same",
    cpu=kernels.lerp,
    inplace=True,
    grad={
        "self": lambda grad, weight: grad * (1 - conj(weight)),
        "end": lambda grad, weight: grad * conj(weight),
    },
)
lerp_tensor = op(
    "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
    pointwise="same",
    cpu=kernels.lerp,
    inplace=True,
    grad={
        "self": lambda grad, weight: grad * conj(1 - weight),
        "end": lambda grad, weight: grad * conj(weight),
        "weight": lambda grad, self, end: grad * conj(end - self),
    },
    node="LerpBackward1",
)
addcmul = op(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    pointwise="same",
    cpu=kernels.addcmul,
    inplace=True,
    grad={
        "self": lambda grad: grad,
        "tensor1": lambda grad, tensor2, value: grad * conj(scaled(tensor2, value)),
        "tensor2": lambda grad, tensor1, value: grad * conj(scaled(tensor1, value)),
    },
)
addcdiv = op(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    pointwise="same",
    cpu=kernels.addcdiv,
    inplace=True,
    grad={
        "self": lambda grad: grad,
        "tensor1": lambda grad, tensor2, value: grad * conj(value / tensor2),
        "tensor2": lambda grad, tensor1, tensor2, value: -grad * conj(value * tensor1 / (tensor2 * tensor2)),
    },
)
_ = _dtype
