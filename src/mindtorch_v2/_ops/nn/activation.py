"""Piecewise linear activation functions and their derivatives, which are operators of their own as in ATen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _dtype
from ..._backends.cpu.creation.random import uniform_
from ..._backends.cpu.elementwise import clamp as clamp_kernels
from ..._backends.cpu.machinery.dtype_rules import refuse
from ..._backends.cpu.nn import activation as kernels
from ..._tensor import Tensor
from ..._types import Number, OptionalGenerator
from ..elementwise.clamp import clamp_min
from ..machinery.computing import computed
from ..machinery.declare import op
from ..machinery.lookup import aten

_clamp_min_table = clamp_min.op.table


def _zeros_like(grad: Tensor) -> Tensor:
    return aten.zeros_like(grad)


# --- rectifiers -----------------------------------------------------------------------------------------------------


def _relu(self: Tensor) -> Tensor:
    if self.dtype.category == _dtype.BOOL:
        raise RuntimeError("Boolean inputs not supported for relu")
    return _clamp_min_table[self._keys](self, 0)


def _relu_(self: Tensor) -> Tensor:
    if self.dtype.category == _dtype.BOOL:
        raise RuntimeError("Boolean inputs not supported for relu")
    return aten.clamp_min_(self, 0)


relu = op(
    "relu(Tensor self) -> Tensor",
    cpu=clamp_kernels.relu,
    composite=_relu,  # on other devices
    grad={"self": lambda grad, result: threshold_backward(grad, result, 0)},
)
relu_ = op(
    "relu_(Tensor(a!) self) -> Tensor(a!)",
    composite=_relu_,
    grad={"self": lambda grad, result: threshold_backward(grad, result, 0)},
)
threshold = op(
    "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
    pointwise="same",
    cpu=kernels.threshold,
    grad={"self": lambda grad, self, threshold: threshold_backward(grad, self, threshold)},
    variants="function",
    refuses=("threshold_cpu", "bc"),
)
threshold_ = op(
    "threshold_(Tensor(a!) self, Scalar threshold, Scalar value) -> Tensor(a!)",
    pointwise="same",
    cpu=kernels.threshold,
    grad={"self": lambda grad, self, threshold: threshold_backward(grad, self, threshold)},
    node="ThresholdBackward1",
    variants="function",
    refuses=("threshold_cpu", "bc"),
)
threshold_backward = op(
    "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
    pointwise="same",
    cpu=kernels.threshold_backward,
    grad={
        "grad_output": lambda grad, self, threshold: threshold_backward(grad, self, threshold),
        "self": lambda grad: _zeros_like(grad),
    },
    variants="",
)
leaky_relu = op(
    "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    pointwise="same",
    cpu=kernels.leaky_relu,
    grad={"self": lambda grad, self, negative_slope: leaky_relu_backward(grad, self, negative_slope, False)},
    variants="",
)
leaky_relu_ = op(
    "leaky_relu_(Tensor(a!) self, Scalar negative_slope=0.01) -> Tensor(a!)",
    pointwise="same",
    cpu=kernels.leaky_relu,
    grad={"self": lambda grad, result, negative_slope: leaky_relu_backward(grad, result, negative_slope, True)},
    node="LeakyReluBackward1",
    variants="",
)
leaky_relu_backward = op(
    "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor",
    pointwise="same",
    cpu=kernels.leaky_relu_backward,
    grad={
        "grad_output": lambda grad, self, negative_slope, self_is_result: leaky_relu_backward(
            grad, self, negative_slope, self_is_result
        ),
        "self": lambda grad: _zeros_like(grad),
    },
    variants="",
)


def _prelu(self: Tensor, weight: Tensor) -> Tensor:
    if self.dtype is not weight.dtype:
        raise RuntimeError(f"prelu: Type promoting not supported. Got {self.dtype.scalar_name} and {weight.dtype.scalar_name}")
    if weight.numel() != 1:
        if not self.dim():
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = self.shape[1] if self.dim() >= 2 else 1
        if channels != weight.numel():
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{weight.numel()} and channel size = {channels}."
            )
    if weight.dim() > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.dim()}")
    if self.dim() == 0:
        weight = weight if weight.dim() == 0 else weight.reshape([])
    elif weight.dim() == 0 or self.dim() < 2:
        weight = weight.reshape([1] * self.dim())
    else:
        weight = weight.reshape([1, -1, *[1] * (self.dim() - 2)])
    return _prelu_kernel(self, weight)


prelu = op("prelu(Tensor self, Tensor weight) -> Tensor", composite=_prelu)
_prelu_kernel = op(
    "_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
    pointwise="same",
    cpu=kernels.prelu,
    grad={("self", "weight"): lambda grad, self, weight: _prelu_kernel_backward(grad, self, weight)},
    node="PreluKernelBackward0",
    variants="function",
)


def _prelu_backward_grads(
    grads: Sequence[Tensor | None], grad_output: Tensor, self: Tensor, weight: Tensor
) -> tuple[Any, Any, Any]:
    for_input, for_weight = grads
    positive = self.ge(0)
    zero = aten.zeros([], dtype=self.dtype, device=self.device)
    to_output = to_self = to_weight = None
    if for_input is not None:
        to_output = aten.where(positive, for_input, for_input * weight)
        to_weight = aten.where(positive, zero, for_input * grad_output)
    if for_weight is not None:
        part = aten.where(positive, zero, for_weight * self)
        to_output = part if to_output is None else to_output + part
        to_self = aten.where(positive, zero, for_weight * grad_output)
    return to_output, to_self, to_weight


_prelu_kernel_backward = op(
    "_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)",
    cpu=kernels.prelu_backward,
    grad={
        ("grad_output", "self", "weight"): lambda grads, grad_output, self, weight: _prelu_backward_grads(
            grads, grad_output, self, weight
        )
    },
    node="PreluKernelBackwardBackward0",
    variants="function",
)


def _rrelu(self: Tensor, lower: float, upper: float, training: bool, generator: OptionalGenerator) -> Tensor:
    if not lower <= upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    return rrelu_with_noise(self, aten.empty_like(self), lower, upper, training, generator)


def _rrelu_(self: Tensor, lower: float, upper: float, training: bool, generator: OptionalGenerator) -> Tensor:
    if not lower <= upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    return rrelu_with_noise_(self, aten.empty_like(self), lower, upper, training, generator)


def _rrelu_with_noise(
    self: Tensor, noise: Tensor, lower: Number, upper: Number, training: bool, generator: OptionalGenerator
) -> Tensor:
    """Slopes for negative inputs, drawn while training; `noise` receives the slope of every element."""
    _check_noise(self, noise, training)
    if not training:
        return leaky_relu(self, (lower + upper) / 2)
    return computed(np.multiply, self, _draw_slopes(self, noise, lower, upper, generator))


def _check_noise(self: Tensor, noise: Tensor, training: bool) -> None:
    if self.shape != noise.shape:
        raise RuntimeError(
            f"noise tensor shape must match self tensor shape. Got self.shape = {list(self.shape)} noise.shape = {list(noise.shape)}"
        )
    if training:
        refuse("rrelu_with_noise_out_cpu", self, "bic")
        if noise.dtype is not self.dtype:
            raise RuntimeError(f"expected scalar type {self.dtype.scalar_name} but found {noise.dtype.scalar_name}")


def _draw_slopes(self: Tensor, noise: Tensor, lower: Any, upper: Any, generator: OptionalGenerator) -> Tensor:
    negative = self._array.ravel() <= 0
    drawn = np.empty(int(negative.sum()))
    uniform_(drawn, lower, upper, generator)
    slopes = negative.astype(noise._array.dtype)
    slopes[:] = 1
    slopes[negative] = drawn
    noise._array[...] = slopes.reshape(self._array.shape)
    noise._storage.version += 1
    return noise


def _rrelu_with_noise_(
    self: Tensor, noise: Tensor, lower: Number, upper: Number, training: bool, generator: OptionalGenerator
) -> Tensor:
    _check_noise(self, noise, training)
    if not training:
        return leaky_relu_(self, (lower + upper) / 2)
    return self.mul_(_draw_slopes(self, noise, lower, upper, generator))


rrelu = op(
    "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor",
    composite=_rrelu,
    variants="function",
)
rrelu_ = op(
    "rrelu_(Tensor(a!) self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
    "Generator? generator=None) -> Tensor(a!)",
    composite=_rrelu_,
    variants="function",
)
rrelu_with_noise = op(
    "rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
    "Generator? generator=None) -> Tensor",
    composite=_rrelu_with_noise,
    grad={
        "self": lambda grad, self, noise, lower, upper, training: rrelu_with_noise_backward(
            grad, self, noise, lower, upper, training, False
        )
    },
    variants="",
    fixed=("noise",),
)
rrelu_with_noise_ = op(
    "rrelu_with_noise_(Tensor(a!) self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, "
    "bool training=False, Generator? generator=None) -> Tensor(a!)",
    composite=_rrelu_with_noise_,
    grad={
        "self": lambda grad, result, noise, lower, upper, training: rrelu_with_noise_backward(
            grad, result, noise, lower, upper, training, True
        )
    },
    node="RreluWithNoiseBackward1",
    variants="",
    fixed=("noise",),
)


def _rrelu_with_noise_backward(
    grad_output: Tensor, self: Tensor, noise: Tensor, lower: float, upper: float, training: bool, self_is_result: bool
) -> Tensor:
    if training and upper - lower > 1e-6:
        return grad_output.mul(noise)
    return leaky_relu_backward(grad_output, self, (lower + upper) / 2, self_is_result)


rrelu_with_noise_backward = op(
    "rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, bool training, "
    "bool self_is_result) -> Tensor",
    composite=_rrelu_with_noise_backward,
    grad={
        "grad_output": lambda grad, self, noise, lower, upper, training, self_is_result: rrelu_with_noise_backward(
            grad, self, noise, lower, upper, training, self_is_result
        ),
        "self": lambda grad: _zeros_like(grad),
    },
    variants="",
    fixed=("noise",),
)

# --- piecewise linear units -----------------------------------------------------------------------------------------


def _check_hardtanh(self: Tensor, min_val: float, max_val: float) -> None:
    if self.dtype.category == _dtype.BOOL:
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if self.dtype.category == _dtype.INTEGER and not self.dtype.is_signed and (min_val < 0 or max_val < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")


def _hardtanh(self: Tensor, min_val: float, max_val: float) -> Tensor:
    _check_hardtanh(self, min_val, max_val)
    if self.dtype.category == _dtype.INTEGER:
        min_val, max_val = int(min_val), int(max_val)
    return self.clamp(min_val, max_val)


def _hardtanh_(self: Tensor, min_val: float, max_val: float) -> Tensor:
    _check_hardtanh(self, min_val, max_val)
    if not self.dtype.inexact:
        min_val, max_val = int(min_val), int(max_val)
    return self.clamp_(min_val, max_val)


hardtanh = op(
    "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
    composite=_hardtanh,
    grad={"self": lambda grad, self, min_val, max_val: hardtanh_backward(grad, self, min_val, max_val)},
    variants="",
)
hardtanh_ = op(
    "hardtanh_(Tensor(a!) self, Scalar min_val=-1, Scalar max_val=1) -> Tensor(a!)",
    composite=_hardtanh_,
    grad={"self": lambda grad, self, min_val, max_val: hardtanh_backward(grad, self, min_val, max_val)},
    variants="",
)
hardtanh_backward = op(
    "hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
    pointwise="same",
    cpu=kernels.hardtanh_backward,
    grad={
        "grad_output": lambda grad, self, min_val, max_val: hardtanh_backward(grad, self, min_val, max_val),
        "self": lambda grad: _zeros_like(grad),
    },
    variants="",
)
relu6 = op("relu6(Tensor self) -> Tensor", composite=lambda self: hardtanh(self, 0, 6), variants="")
relu6_ = op("relu6_(Tensor(a!) self) -> Tensor(a!)", composite=lambda self: hardtanh_(self, 0, 6), variants="")
softshrink = op(
    "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    pointwise="same",
    cpu=kernels.softshrink,
    grad={"self": lambda grad, self, lambd: softshrink_backward(grad, self, lambd)},
    variants="",
)
softshrink_backward = op(
    "softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor",
    pointwise="same",
    cpu=lambda grad_output, self, lambd: kernels.shrink_backward(grad_output, self, lambd),
    grad={
        "grad_output": lambda grad, self, lambd: softshrink_backward(grad, self, lambd),
        "self": lambda grad: _zeros_like(grad),
    },
    variants="",
)
hardshrink = op(
    "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    pointwise="same",
    cpu=kernels.hardshrink,
    grad={"self": lambda grad, self, lambd: hardshrink_backward(grad, self, lambd)},
)
hardshrink_backward = op(
    "hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor",
    pointwise="same",
    cpu=lambda grad_out, self, lambd: kernels.shrink_backward(grad_out, self, lambd),
    grad={
        "grad_out": lambda grad, self, lambd: hardshrink_backward(grad, self, lambd),
        "self": lambda grad: _zeros_like(grad),
    },
    variants="",
)
hardsigmoid = op(
    "hardsigmoid(Tensor self) -> Tensor",
    pointwise="same",
    cpu=kernels.hardsigmoid,
    grad={"self": lambda grad, self: hardsigmoid_backward(grad, self)},
    inplace=True,
    variants="",
)
hardsigmoid_backward = op(
    "hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor",
    pointwise="same",
    cpu=kernels.hardsigmoid_backward,
    variants="",
)
hardswish = op(
    "hardswish(Tensor self) -> Tensor",
    pointwise="same",
    cpu=kernels.hardswish,
    grad={"self": lambda grad, self: hardswish_backward(grad, self)},
    inplace=True,
    variants="",
)


def _hardswish_double_backward(grad: Tensor, grad_output: Tensor, self: Tensor) -> Tensor:
    inside = (self > -3).logical_and(self < 3)
    zero = aten.zeros([], dtype=grad.dtype, device=grad.device)
    return aten.where(inside, grad * grad_output / 3, zero)


hardswish_backward = op(
    "hardswish_backward(Tensor grad_output, Tensor self) -> Tensor",
    pointwise="same",
    cpu=kernels.hardswish_backward,
    grad={
        "grad_output": lambda grad, self: hardswish_backward(grad, self),
        "self": lambda grad, grad_output, self: _hardswish_double_backward(grad, grad_output, self),
    },
    variants="",
)
