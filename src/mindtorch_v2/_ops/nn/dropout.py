"""Dropout: elements, or whole channels, set to zero (or to a value that keeps mean and variance) at random."""

from __future__ import annotations

import math
from typing import Any

from ..._dispatch import registry
from ..._dispatch.tls import state
from ..._dtype import bool_
from ..._tensor import Tensor
from ..elementwise.arithmetic import mul_number_
from ..machinery.declare import op
from ..machinery.lookup import aten

# The value that an activation of SELU tends to for large negative inputs, with its sign changed.
_ALPHA = 1.7580993408473766


def _check(p: float) -> None:
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")


def _noise(x: Tensor, p: float, *, feature: bool) -> Tensor:
    """The mask: one coin for each of the input's elements, or for each channel."""
    if feature and x.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    if state.level is not None:  # whether samples have a mask in common is for `vmap` to say, which batched room would decide
        room = aten.empty([*x.shape[:2], *[1] * (x.dim() - 2)] if feature else x.shape, dtype=x.dtype, device=x.device)
        return registry.entry("bernoulli", "p")(room, 1 - p)
    room = x.new_empty([*x.shape[:2], *[1] * (x.dim() - 2)]) if feature else aten.empty_like(x)
    return registry.entry("bernoulli_", "float")(room, 1 - p)


def _drop(x: Tensor, p: float, train: bool, *, feature: bool = False, alpha: bool = False, inplace: bool = False) -> Tensor:
    _check(p)
    if p == 0 or not train or not x.numel():
        return x
    multiply = Tensor.mul_ if inplace else Tensor.mul
    if p == 1:
        zeros = aten.zeros([], dtype=x.dtype, device=x.device)
        return multiply(x, zeros)
    noise = _noise(x, p, feature=feature)
    if not alpha:
        noise = registry.entry("div_", "Tensor")(noise, 1 - p)
        return registry.entry("mul_" if inplace else "mul", "Tensor")(x, noise)
    a = 1 / math.sqrt((_ALPHA * _ALPHA * p + 1) * (1 - p))
    b = mul_number_(noise.add(-1), _ALPHA * a).add_(_ALPHA * a * p)
    return multiply(x, mul_number_(noise, a)).add_(b)


def _declare(name: str, **how: Any) -> tuple[Any, Any]:
    functional = op(
        f"{name}(Tensor input, float p, bool train) -> Tensor",
        composite=lambda input, p, train: _drop(input, p, train, **how),
        variants="function",
    )
    in_place = op(
        f"{name}_(Tensor(a!) self, float p, bool train) -> Tensor(a!)",
        composite=lambda self, p, train: _drop(self, p, train, inplace=True, **how),
        variants="function",
    )
    return functional, in_place


dropout, dropout_ = _declare("dropout")
feature_dropout, feature_dropout_ = _declare("feature_dropout", feature=True)
alpha_dropout, alpha_dropout_ = _declare("alpha_dropout", alpha=True)
feature_alpha_dropout, feature_alpha_dropout_ = _declare("feature_alpha_dropout", feature=True, alpha=True)


def _native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    if not input.numel():
        return input, aten.empty_like(input)
    if train is False or p == 0:
        return input.clone(), aten.ones_like(input, dtype=bool_)
    if p == 1:
        return aten.zeros_like(input), aten.zeros_like(input, dtype=bool_)
    if state.level is None:
        mask = aten.empty_like(input, dtype=bool_).bernoulli_(1 - p)
    else:
        mask = registry.entry("bernoulli", "p")(aten.empty(input.shape, dtype=input.dtype), 1 - p).to(bool_)
    return input.mul(mask).mul_(1 / (1 - p)), mask


native_dropout = op(
    "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
    composite=_native_dropout,
    grad={
        "input": lambda grad, result1, p, train: native_dropout_backward(
            grad, result1, 1 if train is False or p == 1 else 1 / (1 - p)
        )
    },
    nondifferentiable=("result1",),
    variants="function",
)
native_dropout_backward = op(
    "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
    composite=lambda grad_output, mask, scale: grad_output * (mask * scale),
    variants="",
    grad={"grad_output": lambda grad, mask, scale: grad * (mask.type_as(grad) * scale).type_as(grad)},
)
