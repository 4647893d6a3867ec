"""Functions of one operand, element by element."""

from __future__ import annotations

import math

import numpy as np

from .._backends.cpu import unary as kernels
from .._tensor import Tensor
from .declare import op
from .pointwise import conj

neg = op("neg(Tensor self) -> Tensor", pointwise="same", cpu=np.negative, inplace=True, grad={"self": lambda grad: -grad})
abs = op(  # noqa: A001 - ATen's name
    "abs(Tensor self) -> Tensor",
    pointwise="real",
    cpu=np.absolute,
    inplace=True,
    grad={"self": lambda grad, self: grad * self.sgn()},
)
sign = op(
    "sign(Tensor self) -> Tensor", pointwise="same", cpu=kernels.sign, inplace=True, grad={"self": lambda grad: zeros_like(grad)}
)
sgn = op(
    "sgn(Tensor self) -> Tensor",
    pointwise="same",
    cpu=kernels.sgn,
    inplace=True,
    grad={"self": lambda grad, self, result: _sgn_backward(self, grad, result)},
)


def zeros_like(grad: Tensor) -> Tensor:
    return grad.new_zeros(grad.shape)


def _sgn_backward(self: Tensor, grad: Tensor, sgn: Tensor) -> Tensor:
    if not self.dtype.is_complex:
        return zeros_like(grad)
    length = self.abs()
    return ((grad - (sgn * sgn) * grad.conj()) / (2 * length)).masked_fill_(length == 0, 0.0)


sqrt = op(
    "sqrt(Tensor self) -> Tensor",
    pointwise="float",
    cpu=np.sqrt,
    inplace=True,
    grad={"self": lambda grad, result: grad / (2 * conj(result))},
)
rsqrt = op(
    "rsqrt(Tensor self) -> Tensor",
    pointwise="float",
    cpu=kernels.rsqrt,
    inplace=True,
    grad={"self": lambda grad, result: -0.5 * grad * conj(result.pow(3))},
)
reciprocal = op(
    "reciprocal(Tensor self) -> Tensor",
    pointwise="float",
    cpu=np.reciprocal,
    inplace=True,
    grad={"self": lambda grad, result: -grad * conj(result * result)},
)
exp = op(
    "exp(Tensor self) -> Tensor",
    pointwise="float",
    cpu=np.exp,
    inplace=True,
    grad={"self": lambda grad, result: grad * conj(result)},
)
log = op(
    "log(Tensor self) -> Tensor",
    pointwise="float",
    cpu=np.log,
    inplace=True,
    grad={"self": lambda grad, self: grad.div(conj(self))},
)
tanh = op(
    "tanh(Tensor self) -> Tensor",
    pointwise="float",
    cpu=np.tanh,
    inplace=True,
    grad={"self": lambda grad, result: tanh_backward(grad, result)},
)
tanh_backward = op(
    "tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
    pointwise="same",
    cpu=kernels.tanh_backward,
    grad={
        "grad_output": lambda grad, output: tanh_backward(grad, output),
        "output": lambda grad, grad_output, output: grad * conj(-2 * output * grad_output),
    },
    variants="",
)
sigmoid = op(
    "sigmoid(Tensor self) -> Tensor",
    pointwise="float",
    cpu=kernels.sigmoid,
    inplace=True,
    grad={"self": lambda grad, result: sigmoid_backward(grad, result)},
)
sigmoid_backward = op(
    "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
    pointwise="same",
    cpu=kernels.sigmoid_backward,
    grad={
        "grad_output": lambda grad, output: sigmoid_backward(grad, conj(output)),
        "output": lambda grad, grad_output, output: grad * conj(grad_output * (-2 * output + 1)),
    },
    variants="",
)
square = op("square(Tensor self) -> Tensor", composite=lambda self: self.pow(2))
square_ = op("square_(Tensor(a!) self) -> Tensor(a!)", composite=lambda self: self.pow_(2))
_ = math
