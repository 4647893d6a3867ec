"""Special functions: error, gamma, Bessel functions, orthogonal polynomials."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _dtype
from ..._backends.cpu.elementwise import special as kernels
from ..._tensor import Tensor
from ..creation.ranges import arange
from ..machinery.declare import not_implemented, op, public
from ..machinery.lookup import aten
from .arithmetic import mul_number
from .ternary import where

_SQRT_PI = math.sqrt(math.pi)


def _unary(
    name: str, kernel: Callable[..., Any], formula: Callable[..., Any] | None = None, *, inplace: bool = False, self: str = "self"
) -> Callable[..., Any]:
    return op(
        f"{name}(Tensor {self}) -> Tensor",
        pointwise="float",
        cpu=kernel,
        grad=None if formula is None else {"self": formula},
        inplace=inplace,
    )


erf = _unary("erf", kernels.erf, lambda grad, self: 2.0 / _SQRT_PI * (-(self.pow(2))).exp() * grad, inplace=True)
erfc = _unary("erfc", kernels.erfc, lambda grad, self: -2.0 / _SQRT_PI * (-(self.pow(2))).exp() * grad, inplace=True)
erfinv = _unary("erfinv", kernels.erfinv, lambda grad, self: 0.5 * _SQRT_PI * self.erfinv().pow(2).exp() * grad, inplace=True)
lgamma = _unary("lgamma", kernels.lgamma, lambda grad, self: grad * digamma(self), inplace=True)
digamma = _unary("digamma", kernels.digamma, lambda grad, self: grad * polygamma(1, self), inplace=True)
polygamma = op(
    "polygamma(int n, Tensor self) -> Tensor",
    pointwise="float",
    cpu=kernels.polygamma,
    refuses=("trigamma", "c"),
    grad={"self": lambda grad, n, self: grad * polygamma(n + 1, self)},
    variants="function",
)


def _floating(self: Tensor) -> Tensor:
    """The tensor, if floating results can be written to it."""
    if not self.dtype.inexact:
        found = _dtype.get_default_dtype().scalar_name
        raise RuntimeError(f"result type {found} can't be cast to the desired output type {self.dtype.scalar_name}")
    return self


polygamma_ = op(
    "polygamma_(Tensor(a!) self, int n) -> Tensor(a!)",
    composite=lambda self, n: _floating(self).copy_(polygamma(n, self)),
    grad={"self": lambda grad, n, self: grad * polygamma(n + 1, self)},
    node="PolygammaBackward1",
    variants="method",
)


public("function", name="polygamma")(polygamma)


@public("method", name="polygamma")
def _polygamma_method(self: Tensor, n: int) -> Tensor:
    """The n-th derivative of the digamma function."""
    return polygamma(n, self)


i0 = _unary("i0", kernels.i0, lambda grad, self: grad * i1(self), inplace=True)
i0e = _unary("special_i0e", kernels.i0e, lambda grad, self, result: grad * (i1e(self) - self.sgn() * result))
i1 = _unary("special_i1", kernels.i1, lambda grad, self, result: _i1_backward(grad, self, result))
i1e = _unary("special_i1e", kernels.i1e, lambda grad, self, result: _i1e_backward(grad, self, result))


def _i1_backward(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    # I1'(x) = I0(x) - I1(x) / x, with the limit 1/2 at zero
    large, safe = _away_from_zero(self)
    return grad * where(large, safe.i0() - result * safe.reciprocal(), _tensor_of(0.5, self))


def _i1e_backward(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    large, safe = _away_from_zero(self)
    return grad * where(large, i0e(safe) - result * (safe.sgn() + safe.reciprocal()), _tensor_of(0.5, self))


def _away_from_zero(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return a mask of elements no smaller than rounding, and x with smaller ones raised to it."""
    eps = 2.220446049250313e-16 if x.dtype.itemsize == 8 else 1.1920929e-07
    large = x.abs() > eps
    return large, where(large, x, _tensor_of(eps, x))


def _tensor_of(value: float, like: Tensor) -> Tensor:
    return aten.scalar_tensor(value, dtype=like.dtype, device=like.device)


entr = _unary("special_entr", kernels.entr, lambda grad, self: grad * (-(1 + self.log())))
erfcx = _unary("special_erfcx", kernels.erfcx, lambda grad, self, result: (2.0 * self * result - 2.0 / _SQRT_PI) * grad)
ndtri = _unary("special_ndtri", kernels.ndtri, lambda grad, result: grad * math.sqrt(2 * math.pi) * (result.square() / 2.0).exp())
log_ndtr = _unary(
    "special_log_ndtr",
    kernels.log_ndtr,
    lambda grad, self, result: grad / math.sqrt(2 * math.pi) * (result + self.pow(2) / 2).neg().exp(),
)
ndtr = op("special_ndtr(Tensor self) -> Tensor", composite=lambda self: mul_number(mul_number(self, math.sqrt(0.5)).erf() + 1, 0.5))
xlog1py = op(
    "special_xlog1py(Tensor self, Tensor other) -> Tensor",
    pointwise="float",
    numbers=(),
    cpu=kernels.xlog1py,
    grad={
        "self": lambda grad, self, other: xlog1py(grad, other).masked_fill((self == 0).bitwise_and(other <= -1), 0),
        "other": lambda grad, self, other: grad * self / (other + 1),
    },
)
xlog1py_other_scalar = op(
    "special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor",
    pointwise="float",
    numbers=("other",),
    cpu=lambda self, other: kernels.xlog1py(self, np.asarray(other, self.dtype)),
    grad={
        "self": lambda grad, self, other: (
            xlog1py_other_scalar(grad, other) if other > -1 else xlog1py_other_scalar(grad, other).masked_fill(self == 0, 0)
        )
    },
    node="SpecialXlog1PyBackward2",
)
xlog1py_scalar = op(
    "special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor",
    pointwise="float",
    numbers=("self",),
    cpu=lambda self, other: kernels.xlog1py(other.dtype.type(self), other),
    grad={"other": lambda grad, self, other: grad * self / (other + 1)},
    node="SpecialXlog1PyBackward1",
)
zeta = op(
    "special_zeta(Tensor self, Tensor other) -> Tensor",
    pointwise="float",
    cpu=kernels.zeta,
    grad={"self": not_implemented("zeta"), "other": lambda grad, self, other: grad * -self * zeta(self + 1.0, other)},
)
zeta_scalar = op(
    "special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor",
    pointwise="float",
    numbers=("self",),
    cpu=lambda self, other: kernels.zeta(other.dtype.type(self), other),
    grad={"other": lambda grad, self, other: grad * -self * zeta_scalar(self + 1.0, other)},
    node="SpecialZetaBackward1",
)
igamma = op(
    "igamma(Tensor self, Tensor other) -> Tensor",
    pointwise="same",
    numbers=(),
    cpu=kernels.igamma,
    grad={
        "self": not_implemented("igamma: input"),
        "other": lambda grad, self, other: grad * ((self - 1) * other.log() - other - self.lgamma()).exp(),
    },
    inplace=True,
)
igammac = op(
    "igammac(Tensor self, Tensor other) -> Tensor",
    pointwise="same",
    numbers=(),
    cpu=kernels.igammac,
    grad={
        "self": not_implemented("igammac: input"),
        "other": lambda grad, self, other: -grad * ((self - 1) * other.log() - other - self.lgamma()).exp(),
    },
    inplace=True,
)


def _mvlgamma_terms(self: Tensor, p: int) -> Tensor:
    """`self` minus 0, 1/2, …, (p - 1)/2 along a new last dimension."""
    d = self.dtype if self.dtype.inexact else _dtype.get_default_dtype()
    steps: Tensor = arange(-p / 2 + 0.5, 0.5, 0.5, dtype=d, device=self.device)
    return steps + self.unsqueeze(-1)


def _mvlgamma(self: Tensor, p: int) -> Tensor:
    if self.dtype is _dtype.bool_:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    constant = p * (p - 1) * math.log(math.pi) / 4
    return _mvlgamma_terms(self, p).lgamma_().sum(-1).add_(constant)


mvlgamma = op(
    "mvlgamma(Tensor self, int p) -> Tensor",
    composite=_mvlgamma,
    grad={"self": lambda grad, self, p: grad * _mvlgamma_terms(self, p).digamma_().sum(-1)},
)
mvlgamma_ = op(
    "mvlgamma_(Tensor(a!) self, int p) -> Tensor(a!)",
    composite=lambda self, p: _floating(self).copy_(_mvlgamma(self, p)),
    grad={"self": lambda grad, self, p: grad * _mvlgamma_terms(self, p).digamma_().sum(-1)},
)

for _name in (
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_i0", "modified_bessel_i1",
    "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0",
):  # fmt: skip
    _argument = (
        "x" if _name in ("airy_ai", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0") else "self"
    )
    op(
        f"special_{_name}(Tensor {_argument}) -> Tensor",
        pointwise="float",
        cpu=kernels.named(_name, _argument),
        refuses=(f"{_name}_cpu", "c"),
        tags=("nondifferentiable",),
    )

for _name in (
    "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
    "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
    "legendre_polynomial_p",
):  # fmt: skip
    for _arguments, _number in (("(Tensor x, Tensor n)", "n"), (".x_scalar(Scalar x, Tensor n)", "x")):
        op(
            f"special_{_name}{_arguments} -> Tensor",
            pointwise="float",
            numbers=(_number,),
            cpu=kernels.polynomial(_name),
            refuses=(f"{_name}_cpu", "c"),
            tags=("nondifferentiable",),
        )
special_round = op(
    "special_round(Tensor self, *, int decimals=0) -> Tensor",
    composite=lambda self, decimals: self.round(decimals=decimals),
)
