"""Comparisons, and logic on truth values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _dtype
from ..._backends.cpu.elementwise import comparison as kernels
from ..._tensor import Tensor
from ..creation import constants
from ..machinery.declare import op
from ..machinery.lookup import aten


def _comparison(name: str, ufunc: np.ufunc, *, ordered: bool = False) -> Callable[..., Any]:
    return op(
        f"{name}.Tensor(Tensor self, Tensor other) -> Tensor",
        pointwise="bool",
        cpu=ufunc,
        refuses=(f"{name}_cpu", "c") if ordered else None,
        inplace=True,
        inplace_grad={
            "self": lambda grad: aten.zeros_like(grad),
            "other": lambda grad, other_shape: aten.zeros(list(other_shape), dtype=grad.dtype, device=grad.device),
        },
        inplace_node=f"{name.capitalize()}Backward1",
        tags=("nondifferentiable",),
    )


eq = _comparison("eq", np.equal)
ne = _comparison("ne", np.not_equal)
lt = _comparison("lt", np.less, ordered=True)
le = _comparison("le", np.less_equal, ordered=True)
gt = _comparison("gt", np.greater, ordered=True)
ge = _comparison("ge", np.greater_equal, ordered=True)


def _logical(name: str, ufunc: np.ufunc) -> None:
    op(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        pointwise="bool",
        cpu=ufunc,
        inplace=True,
        tags=("nondifferentiable",),
        numbers=(),
    )


_logical("logical_and", np.logical_and)
_logical("logical_or", np.logical_or)
_logical("logical_xor", np.logical_xor)


def _test(name: str, kernel: Callable[..., Any], *, inplace: bool = False) -> Callable[..., Any]:
    return op(f"{name}(Tensor self) -> Tensor", pointwise="bool", cpu=kernel, inplace=inplace, tags=("nondifferentiable",))


_test("logical_not", np.logical_not, inplace=True)
_test("signbit", kernels.signbit)
_test("isposinf", kernels.isposinf)
_test("isneginf", kernels.isneginf)


def _all(self: Tensor, value: bool) -> Tensor:
    entry = constants.ones_like if value else constants.zeros_like
    return entry(self, dtype=_dtype.bool_)


def _isinf(self: Tensor) -> Tensor:
    if not self.dtype.inexact:
        return _all(self, False)
    if self.dtype.is_complex:
        return isinf(self.real).__or__(isinf(self.imag))
    return self.abs() == math.inf


def _isfinite(self: Tensor) -> Tensor:
    if not self.dtype.inexact:
        return _all(self, True)
    if self.dtype.is_complex:
        return isfinite(self.real).__iand__(isfinite(self.imag))
    finite = self.abs() != math.inf
    return (self == self) * finite


isnan = op("isnan(Tensor self) -> Tensor", composite=lambda self: self != self)
isinf = op("isinf(Tensor self) -> Tensor", composite=_isinf)
isfinite = op("isfinite(Tensor self) -> Tensor", composite=_isfinite)
isreal = op("isreal(Tensor self) -> Tensor", composite=lambda self: self.imag == 0 if self.dtype.is_complex else _all(self, True))


def _isclose(self: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool) -> Tensor:
    if self.dtype is not other.dtype:
        raise RuntimeError(f"{self.dtype.scalar_name} did not match {other.dtype.scalar_name}")
    if rtol < 0:
        raise RuntimeError(f"rtol must be greater than or equal to zero, but got {rtol}")
    if atol < 0:
        raise RuntimeError(f"atol must be greater than or equal to zero, but got {atol}")
    close = self == other
    if equal_nan and self.dtype.inexact:
        close.__ior__(self.isnan().__iand__(other.isnan()))
    if rtol == 0 and atol == 0:
        return close
    if not self.dtype.inexact:
        self, other = self.to(torch_default()), other.to(torch_default())
    allowed = atol + (rtol * other).abs()
    actual = (self - other).abs()
    return close.__ior__(actual.isfinite().__iand__(actual <= allowed))


def torch_default() -> Any:
    return _dtype.get_default_dtype()


isclose = op(
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor", composite=_isclose
)
allclose = op(
    "allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool",
    composite=lambda self, other, rtol, atol, equal_nan: bool(isclose(self, other, rtol, atol, equal_nan).all().item()),
)
equal = op("equal(Tensor self, Tensor other) -> bool", cpu=kernels.equal)


def is_true(x: Tensor) -> bool:
    """The truth of a tensor with one element, as ATen's composites ask for it."""
    return equal(x, x.new_ones(()))
