"""Functions of one operand, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _dtype
from ..._backends.cpu.elementwise import unary as kernels
from ..._backends.meta.adapter import meta_tensor
from ..._dispatch.tls import state
from ..._tensor import Tensor
from ..machinery.declare import not_implemented, op
from ..machinery.lookup import aten
from .arithmetic import conj, number_minus, zeros_like
from .ternary import where

neg = op("neg(Tensor self) -> Tensor", pointwise="same", cpu=np.negative, inplace=True, grad={"self": lambda grad: -grad})
abs = op(
    "abs(Tensor self) -> Tensor",
    pointwise="real",
    cpu=np.absolute,
    refuses=("abs_cpu", "b"),
    grad={"self": lambda grad, self: grad * self.sgn()},
)
abs_ = op(
    "abs_(Tensor(a!) self) -> Tensor(a!)",
    pointwise="same",
    cpu=kernels.abs_,
    refuses=("abs_cpu", "b"),
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


def _sgn_backward(self: Tensor, grad: Tensor, sgn: Tensor) -> Tensor:
    if not self.dtype.is_complex:
        return aten._efficientzerotensor(grad._array.shape, dtype=grad.dtype, device=grad.device)
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


def _unary(
    name: str, kernel: Callable[..., Any], formula: Callable[..., Any], *, inplace: bool = True, **options: Any
) -> Callable[..., Any]:
    return op(f"{name}(Tensor self) -> Tensor", pointwise="float", cpu=kernel, grad={"self": formula}, inplace=inplace, **options)


def _no_inplace(name: str) -> dict[str, Any]:
    """torch: these functions have a derivative, and their in-place variants have none."""
    return {
        "inplace_grad": {"self": not_implemented(f"inplace version of {name}")},
        "inplace_node": f"{name.capitalize()}Backward1",
    }


sin = _unary("sin", np.sin, lambda grad, self: grad * conj(self.cos()))
cos = _unary("cos", np.cos, lambda grad, self: grad * conj(-self.sin()))
tan = _unary("tan", np.tan, lambda grad, result: grad * conj(1 + result.pow(2)))
sinh = _unary("sinh", np.sinh, lambda grad, self: grad * conj(self.cosh()))
cosh = _unary("cosh", np.cosh, lambda grad, self: grad * conj(self.sinh()))
asin = _unary("asin", np.arcsin, lambda grad, self: grad * conj((-self * self + 1).rsqrt()))
acos = _unary("acos", np.arccos, lambda grad, self: grad * conj(-((-self * self + 1).rsqrt())))
atan = _unary("atan", np.arctan, lambda grad, self: grad / conj(self * self + 1))
asinh = _unary("asinh", np.arcsinh, lambda grad, self: grad * conj((self.pow(2) + 1).rsqrt()), **_no_inplace("asinh"))
acosh = _unary("acosh", np.arccosh, lambda grad, self: _acosh_backward(grad, self), **_no_inplace("acosh"))


def _acosh_backward(grad: Tensor, self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        return grad * conj((self - 1).rsqrt() * (self + 1).rsqrt())
    return grad * (self * self - 1).rsqrt()


atanh = _unary("atanh", np.arctanh, lambda grad, self: grad * 1 / conj(number_minus(1, self.pow(2))), **_no_inplace("atanh"))
exp2 = _unary("exp2", kernels.exp2, lambda grad, result: grad * conj(result) * math.log(2))
expm1 = _unary("expm1", np.expm1, lambda grad, result: grad * (conj(result) + 1))
log2 = _unary("log2", np.log2, lambda grad, self: grad / (conj(self) * math.log(2)))
log10 = _unary("log10", np.log10, lambda grad, self: grad / (conj(self) * math.log(10)))
log1p = _unary("log1p", kernels.log1p, lambda grad, self: grad / conj(self + 1))
sinc = _unary("sinc", kernels.sinc, lambda grad, self: _sinc_backward(grad, self))


def _sinc_backward(grad: Tensor, self: Tensor) -> Tensor:
    x = self * math.pi
    squared = self * self * math.pi
    sine = x.sin()
    slope = grad * conj((x * x.cos() - sine) / squared)
    zero = aten.scalar_tensor(0.0, dtype=grad.dtype, device=grad.device)
    return where(squared == 0.0, zero, slope)


def _rounding(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    return op(
        f"{name}(Tensor self) -> Tensor", pointwise="same", cpu=kernel, grad={"self": lambda grad: zeros_like(grad)}, inplace=True
    )


floor = _rounding("floor", kernels.floor)
ceil = _rounding("ceil", kernels.ceil)
trunc = _rounding("trunc", kernels.trunc)
round = _rounding("round", kernels.round)
round_decimals = op(
    "round.decimals(Tensor self, *, int decimals) -> Tensor",
    pointwise="same",
    cpu=kernels.round_decimals,
    grad={"self": lambda grad: zeros_like(grad)},
    inplace=True,
    node="RoundBackward1",
)
frac = op("frac(Tensor self) -> Tensor", pointwise="same", cpu=kernels.frac, grad={"self": lambda grad: grad}, inplace=True)
positive = op("positive(Tensor(a) self) -> Tensor(a)", composite=lambda self: _positive(self))


def _positive(self: Tensor) -> Tensor:
    if self.dtype.category == _dtype.BOOL:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


def _real_only(self: Tensor, name: str) -> Tensor:
    if self.dtype.is_complex:
        raise RuntimeError(f"{name} is not supported for complex tensors.")
    return self


deg2rad = op(
    "deg2rad(Tensor self) -> Tensor",
    composite=lambda self: _real_only(self, "deg2rad") * (math.pi / 180),
    grad={"self": lambda grad: grad * (math.pi / 180)},
)
rad2deg = op(
    "rad2deg(Tensor self) -> Tensor",
    composite=lambda self: _real_only(self, "rad2deg") * (180 / math.pi),
    grad={"self": lambda grad: grad * (180 / math.pi)},
)
deg2rad_ = op(
    "deg2rad_(Tensor(a!) self) -> Tensor(a!)",
    composite=lambda self: _real_only(self, "deg2rad").mul_(math.pi / 180),
    grad={"self": lambda grad: grad * (math.pi / 180)},
)
rad2deg_ = op(
    "rad2deg_(Tensor(a!) self) -> Tensor(a!)",
    composite=lambda self: _real_only(self, "rad2deg").mul_(180 / math.pi),
    grad={"self": lambda grad: grad * (180 / math.pi)},
)
nan_to_num = op(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    pointwise="same",
    cpu=kernels.nan_to_num,
    grad={"self": lambda grad, self: grad * self.isfinite()},
    inplace=True,
)
logit = op(
    "logit(Tensor self, float? eps=None) -> Tensor",
    pointwise="float",
    cpu=kernels.logit,
    grad={"self": lambda grad, self, eps: _logit_grad(grad, self, eps)},
    inplace=True,
)
logit_backward = op(
    "logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor",
    pointwise="same",
    cpu=kernels.logit_backward,
    variants="",
)


def _logit_grad(grad: Tensor, self: Tensor, eps: float | None) -> Tensor:
    """The kernel, or a formula that can be differentiated again when a graph is being made."""
    if not state.grad_enabled:
        return logit_backward(grad, self, eps)
    low, high = (0.0, 1.0) if eps is None else (eps, 1 - eps)
    outside = math.nan if eps is None else 0.0
    return where(aten.logical_and(self >= low, self <= high), grad / (self * (1 - self)), outside)


frexp = op(
    "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
    cpu=kernels.frexp,
    shape=lambda self: (meta_tensor(self._array.shape, self.dtype), meta_tensor(self._array.shape, _dtype.int32)),
    grad={"self": lambda grad, exponent: grad / exponent.exp2()},
    nondifferentiable=("exponent",),
)
