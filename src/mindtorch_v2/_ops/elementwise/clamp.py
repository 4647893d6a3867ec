"""Clamping to a range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._backends.cpu.elementwise import clamp as kernels
from ..._backends.meta.adapter import meta_result
from ..._tensor import Tensor
from ..machinery.declare import op
from ..machinery.lookup import aten
from .ternary import zero_unless

if TYPE_CHECKING:
    from ..._types import Number


def clamp_backward(grad: Tensor, self: Tensor, min: Tensor | Number | None, max: Tensor | Number | None) -> Tensor:
    """The gradient passes where the value was in range, its ends included."""
    if max is not None and min is not None:
        inside = (self >= min).logical_and_(self <= max)
    elif min is not None:
        inside = self >= min
    else:
        inside = self <= max
    return zero_unless(inside, grad)


def _clamp_backward_limits(
    grad: Tensor, self: Tensor, min: Tensor | None, max: Tensor | None, needs: tuple[bool, ...]
) -> tuple[Any, Any]:
    grad_min = grad_max = None
    zero = aten.scalar_tensor(0, dtype=grad.dtype, device=grad.device)
    if needs[0] and min is not None:
        below = self < min
        grad_min = aten.where(below.logical_and_(min < max) if max is not None else below, grad, zero)
    if needs[1] and max is not None:
        above = self > max
        grad_max = aten.where(above.logical_or_(max < min) if min is not None else above, grad, zero)
    return grad_min, grad_max


clamp_tensor = op(
    "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    cpu=kernels.clamp,
    shape=lambda self, min, max: meta_result(self, min, max),
    grad={
        "self": lambda grad, self, min, max: clamp_backward(grad, self, min, max),
        ("min", "max"): lambda grad, self, min, max, needs: _clamp_backward_limits(grad, self, min, max, needs),
    },
    node="ClampBackward0",
    inplace=True,
)
clamp = op(
    "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    cpu=kernels.clamp,
    shape=lambda self, min, max: meta_result(self, min, max),
    grad={"self": lambda grad, self, min, max: clamp_backward(grad, self, min, max)},
    node="ClampBackward1",
    inplace=True,
)
clamp_min_tensor = op(
    "clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
    cpu=kernels.clamp_min,
    shape=lambda self, min: meta_result(self, min),
    grad={
        "self": lambda grad, self, min: zero_unless(self >= min, grad),
        "min": lambda grad, self, min: zero_unless(self < min, grad),
    },
    node="ClampMinBackward1",
    inplace=True,
)
clamp_min = op(
    "clamp_min(Tensor self, Scalar min) -> Tensor",
    cpu=kernels.clamp_min,
    shape=lambda self, min: meta_result(self, min),
    grad={"self": lambda grad, self, min: zero_unless(self >= min, grad)},
    inplace=True,
)
clamp_max_tensor = op(
    "clamp_max.Tensor(Tensor self, Tensor max) -> Tensor",
    cpu=kernels.clamp_max,
    shape=lambda self, max: meta_result(self, max),
    grad={
        "self": lambda grad, self, max: zero_unless(self <= max, grad),
        "max": lambda grad, self, max: zero_unless(self > max, grad),
    },
    node="ClampMaxBackward1",
    inplace=True,
)
clamp_max = op(
    "clamp_max(Tensor self, Scalar max) -> Tensor",
    cpu=kernels.clamp_max,
    shape=lambda self, max: meta_result(self, max),
    grad={"self": lambda grad, self, max: zero_unless(self <= max, grad)},
    inplace=True,
)
