"""Variance, standard deviation, covariance, correlation."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import _dtype
from ..._backends.cpu.machinery.dtypes import FLOAT
from ..._backends.cpu.reductions import moments as kernels
from ..._tensor import Tensor
from ..._types import Ints, Number
from ..elementwise.comparison import is_true
from ..machinery.declare import op
from ..machinery.lookup import aten
from .sums import axes, count, reduced_meta, restore_dims

Array = np.ndarray[Any, Any]


def _moments(name: str, self: Array, dim: int | Sequence[int] | None, correction: Any, keepdim: bool) -> tuple[Array, Array]:
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
        return (
            grad * (math.nan if n - correction <= 0 else math.inf) * (self - self.mean())
            if whole
            else (restore_dims(grad, dim, keepdim, ndim) * math.nan * (self - self.mean(dim, True)))
        )
    if whole:
        centred = self - self.mean()
        return 2.0 / (n - correction) * grad * centred
    if ndim > 1:
        grad = restore_dims(grad, dim, keepdim, ndim)
    centred = self - self.mean(dim, True)
    return 2.0 / (n - correction) * grad * centred


def _std_backward(grad: Tensor, self: Tensor, result: Tensor, dim: int, correction: Number | None, keepdim: bool) -> Tensor:
    slope = (grad / (result * 2)).masked_fill_(result == 0, 0)
    return _var_backward(slope, self, dim, correction, keepdim)


def _mean_backward(grad: Tensor, self: Tensor, dim: Any, keepdim: bool) -> Tensor:
    shape = self._array.shape
    whole = dim is None or (dim.__class__ is not int and not len(dim))
    return (grad if whole else restore_dims(grad, dim, keepdim, len(shape))).expand(shape) / count(shape, dim)


def var_mean_backward(
    grads: Sequence[Tensor | None], self: Tensor, dim: Ints | None, correction: Number | None, keepdim: bool
) -> Tensor | None:
    total = None
    if grads[0] is not None:
        total = _var_backward(grads[0], self, dim, correction, keepdim)
    if grads[1] is not None:
        part = _mean_backward(grads[1], self, dim, keepdim)
        total = part if total is None else total + part
    return total


def _std_mean_backward(
    grads: Sequence[Tensor | None], self: Tensor, result0: Tensor, dim: int, correction: Number, keepdim: bool
) -> Tensor | None:
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


def _row_vars(self: Array, dim: int | Sequence[int] | None, correction: Number | None, keepdim: bool) -> Array | None:
    ndim = self.ndim
    if self.dtype is not FLOAT or keepdim or ndim < 2 or dim.__class__ is not int or dim not in (-1, ndim - 1):
        return None
    return kernels.few_row_vars(self, 1 if correction is None else correction)


def _var(self: Array, dim: int | Sequence[int] | None, correction: Number | None, keepdim: bool) -> Array:
    if dim is None and not keepdim:
        found = kernels.few_var(self, 1 if correction is None else correction)
        if found is not None:
            return np.array(found, self.dtype)
    rows = _row_vars(self, dim, correction, keepdim)
    if rows is not None:
        return rows
    return _moments("var", self, dim, correction, keepdim)[0]


def _std(self: Array, dim: int | Sequence[int] | None, correction: Number | None, keepdim: bool) -> Array:
    if dim is None and not keepdim:
        found = kernels.few_var(self, 1 if correction is None else correction)
        if found is not None:
            return np.array(math.sqrt(found), self.dtype)
    rows = _row_vars(self, dim, correction, keepdim)
    if rows is not None:
        return np.sqrt(rows)
    return np.sqrt(_moments("std", self, dim, correction, keepdim)[0])


# The overloads with `correction` come first: torch's functions prefer them, so that `x.var(0)` is one operator.
var = op(
    f"var.correction{CORRECTION} -> Tensor",
    cpu=_var,
    shape=lambda self, dim, keepdim: reduced_meta(self, dim, keepdim, self.dtype.to_real()),
    grad={"self": _var_backward},
)
std = op(
    f"std.correction{CORRECTION} -> Tensor",
    cpu=_std,
    shape=lambda self, dim, keepdim: reduced_meta(self, dim, keepdim, self.dtype.to_real()),
    grad={"self": _std_backward},
)
var_mean = op(
    f"var_mean.correction{CORRECTION} -> (Tensor, Tensor)",
    cpu=lambda self, dim, correction, keepdim: _moments("var_mean", self, dim, correction, keepdim),
    grad={"self": var_mean_backward},
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


def _unbiased(name: str, entry: Callable[..., Any], returns: str, variants: str) -> None:
    op(
        f"{name}.dim{BY_DIM} -> {returns}",
        composite=lambda self, dim, unbiased, keepdim: entry(self, dim, correction=1 if unbiased else 0, keepdim=keepdim),
        variants=variants,
        tags=("transparent",),
    )
    op(
        f"{name}{WHOLE} -> {returns}",
        composite=lambda self, unbiased: entry(self, None, correction=1 if unbiased else 0),
        variants=variants,
        tags=("transparent",),
    )


_unbiased("var", var, "Tensor", "function method")
_unbiased("std", std, "Tensor", "function method")
_unbiased("var_mean", var_mean, "(Tensor, Tensor)", "function")
_unbiased("std_mean", std_mean, "(Tensor, Tensor)", "function")


# --- covariance and correlation -------------------------------------------------------------------------------------


def _check_weights(name: str, w: Tensor, observations: int) -> None:
    if w._array.ndim > 1:
        raise RuntimeError(f"cov(): expected {name} to have one or fewer dimensions but got {name} with {w._array.ndim} dimensions")
    wanted, fits = (
        ("integral", w.dtype.category == _dtype.INTEGER) if name == "fweights" else ("floating point", w.dtype.is_floating_point)
    )
    if not fits:
        raise RuntimeError(f"cov(): expected {name} to have {wanted} dtype but got {name} with {w.dtype.scalar_name} dtype")
    if w._array.size != observations:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got {w._array.size} != {observations}"
        )
    if observations and not is_true(w.min() >= 0):
        raise RuntimeError(f"cov(): {name} cannot be negative")


def _cov(self: Tensor, correction: int, fweights: Tensor | None, aweights: Tensor | None) -> Tensor:
    if self._array.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {self._array.ndim} dimensions"
        )
    if self.dtype.category == _dtype.BOOL:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = self.view([1, -1]) if self._array.ndim < 2 else self
    n = rows._array.shape[1]
    for name, w in (("fweights", fweights), ("aweights", aweights)):
        if w is not None:
            _check_weights(name, w, n)
    w = fweights
    if aweights is not None:
        w = aweights if w is None else w * aweights
    total: Tensor = aten.scalar_tensor(n, dtype=_dtype.int64, device=self.device) if w is None else w.sum()
    if w is not None and not is_true(total != 0):
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    average = (rows if w is None else rows * w).sum(1) / total
    if w is None:
        scale = aten.scalar_tensor(n - correction, dtype=_dtype.int64, device=self.device)
    elif correction == 0:
        scale = total
    elif aweights is None:
        scale = total - correction
    else:
        scale = total - correction * (w * aweights).sum() / total
    if is_true(scale <= 0):
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
            UserWarning,
            stacklevel=3,
        )
        scale = aten.zeros_like(scale)
    centred = rows - average.unsqueeze(1)
    weighted = centred if w is None else centred * w
    right = weighted.t().conj() if self.dtype.is_complex else weighted.t()
    return (centred.mm(right) if centred.dtype is right.dtype else centred.to(right.dtype).mm(right)).true_divide(scale).squeeze()


cov = op("cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor", composite=_cov)


def _corrcoef(self: Tensor) -> Tensor:
    if self._array.ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {self._array.ndim} dimensions"
        )
    c: Tensor = cov(self)
    if c._array.ndim == 0:
        return c / c
    d = c.diagonal()
    deviation = (d.real if d.dtype.is_complex else d).sqrt()
    c = c / deviation.view([-1, 1])
    c = c / deviation.view([1, -1])
    if c.dtype.is_complex:
        return aten.complex(c.real.clip(-1, 1), c.imag.clip(-1, 1))
    return c.clip(-1, 1)


corrcoef = op("corrcoef(Tensor self) -> Tensor", composite=_corrcoef)
