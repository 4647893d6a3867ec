"""Variance, standard deviation, covariance, correlation."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from .._backends.cpu import moments as kernels
from .._tensor import Tensor
from .declare import op
from .reduction import axes, count, restore_dims

Array = np.ndarray[Any, Any]


def _moments(name: str, self: Array, dim: Any, correction: Any, keepdim: bool) -> tuple[Array, Array]:
    if self.dtype.kind in "biu":
        raise RuntimeError("std and var only support floating point and complex dtypes")
    gone = axes(dim, self.ndim)
    correction = 1 if correction is None else correction
    n = math.prod(self.shape[a] for a in gone)
    if n - correction <= 0 and math.prod(self.shape[i] for i in range(self.ndim) if i not in gone):
        warnings.warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
            "(input numel divided by output numel).",
            UserWarning,
            stacklevel=4,
        )
    return kernels.var_mean(self, gone, correction, keepdim)


def _var_backward(grad: Tensor, self: Tensor, dim: Any, correction: Any, keepdim: bool) -> Tensor:
    ndim = self._array.ndim
    correction = 1 if correction is None else correction
    n = count(self._array.shape, dim)
    whole = ndim == 0 or dim is None or (dim.__class__ is not int and not len(dim))
    if n == correction:
        # torch: the variance is infinite or NaN, and so is its slope
        return grad * (math.nan if n - correction <= 0 else math.inf) * (self - self.mean()) if whole else (
            restore_dims(grad, dim, keepdim, ndim) * math.nan * (self - self.mean(dim, True))
        )
    if whole:
        return 2.0 / (n - correction) * grad * (self - self.mean())
    grad = restore_dims(grad, dim, keepdim, ndim)
    centred = self - self.mean(dim, True)
    return 2.0 / (n - correction) * grad * centred


def _std_backward(grad: Tensor, self: Tensor, result: Tensor, dim: Any, correction: Any, keepdim: bool) -> Tensor:
    slope = (grad / (result * 2)).masked_fill_(result == 0, 0)
    return _var_backward(slope, self, dim, correction, keepdim)


def _mean_backward(grad: Tensor, self: Tensor, dim: Any, keepdim: bool) -> Tensor:
    shape = self._array.shape
    return restore_dims(grad, None if dim is None else dim, keepdim, len(shape)).expand(shape) / count(shape, dim)


def _var_mean_backward(grads: Any, self: Tensor, dim: Any, correction: Any, keepdim: bool) -> Tensor | None:
    total = None
    if grads[0] is not None:
        total = _var_backward(grads[0], self, dim, correction, keepdim)
    if grads[1] is not None:
        part = _mean_backward(grads[1], self, dim, keepdim)
        total = part if total is None else total + part
    return total


def _std_mean_backward(grads: Any, self: Tensor, result0: Tensor, dim: Any, correction: Any, keepdim: bool) -> Tensor | None:
    total = None
    if grads[0] is not None:
        total = _std_backward(grads[0], self, result0, dim, correction, keepdim)
    if grads[1] is not None:
        part = _mean_backward(grads[1], self, dim, keepdim)
        total = part if total is None else total + part
    return total


CORRECTION = "(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False)"
BY_DIM = "(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False)"
WHOLE = "(Tensor self, bool unbiased=True)"

# The overloads with `correction` come first: torch's functions prefer them, so that `x.var(0)` is one operator.
var = op(
    f"var.correction{CORRECTION} -> Tensor",
    cpu=lambda self, dim, correction, keepdim: _moments("var", self, dim, correction, keepdim)[0],
    grad={"self": _var_backward},
)
std = op(
    f"std.correction{CORRECTION} -> Tensor",
    cpu=lambda self, dim, correction, keepdim: np.sqrt(_moments("std", self, dim, correction, keepdim)[0]),
    grad={"self": _std_backward},
)
var_mean = op(
    f"var_mean.correction{CORRECTION} -> (Tensor, Tensor)",
    cpu=lambda self, dim, correction, keepdim: _moments("var_mean", self, dim, correction, keepdim),
    grad={"self": _var_mean_backward},
    variants="function",
)
std_mean = op(
    f"std_mean.correction{CORRECTION} -> (Tensor, Tensor)",
    cpu=lambda self, dim, correction, keepdim: _std_mean(*_moments("std_mean", self, dim, correction, keepdim)),
    grad={"self": _std_mean_backward},
    variants="function",
)


def _std_mean(var: Array, mean: Array) -> tuple[Array, Array]:
    return np.sqrt(var), mean


def _unbiased(name: str, entry: Any, returns: str, variants: str) -> None:
    op(
        f"{name}.dim{BY_DIM} -> {returns}",
        composite=lambda self, dim, unbiased, keepdim: entry(self, dim, correction=1 if unbiased else 0, keepdim=keepdim),
        variants=variants,
    )
    op(
        f"{name}{WHOLE} -> {returns}",
        composite=lambda self, unbiased: entry(self, None, correction=1 if unbiased else 0),
        variants=variants,
    )


_unbiased("var", var, "Tensor", "function method")
_unbiased("std", std, "Tensor", "function method")
_unbiased("var_mean", var_mean, "(Tensor, Tensor)", "function")
_unbiased("std_mean", std_mean, "(Tensor, Tensor)", "function")
