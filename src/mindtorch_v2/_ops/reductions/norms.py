"""Norms of vectors, and renormalisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _checks, _dtype
from ..._backends.cpu.machinery.dtypes import scalar_name
from ..._backends.cpu.reductions import moments as kernels
from ..._promotion import promote_types
from ..._tensor import Tensor
from ..._types import Number, OptionalDType
from ..machinery.computing import computed
from ..machinery.declare import op, public
from ..machinery.lookup import aten
from .sums import axes, reduced_meta, restore_dims

Array = np.ndarray[Any, Any]


def _vector_norm(self: Array, ord: float, dim: Any, keepdim: bool, dtype: _dtype.dtype | None) -> Array:
    if self.dtype.kind in "biu":
        found = scalar_name(self)
        raise RuntimeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {found}")
    gone = axes(dim, self.ndim)
    _check_empty(self, ord, dim, gone)
    if dtype is not None:
        _check_dtype(_dtype.FROM_NUMPY[self.dtype], dtype)
        if self.dtype != dtype.np:
            self = self.astype(dtype.np)
    return kernels.vector_norm(self, ord, gone, keepdim)


def _check_dtype(found: _dtype.dtype, asked: _dtype.dtype) -> None:
    if not asked.inexact:
        raise RuntimeError(f"linalg.vector_norm: dtype should be floating point or complex, but got {asked.scalar_name}")
    if asked.is_complex != found.is_complex:
        kind = "complex" if found.is_complex else "real"
        raise RuntimeError(f"linalg.vector_norm: dtype should be {kind} for {kind} inputs, but got {asked.scalar_name}")
    if promote_types(found, asked) is not asked:
        raise RuntimeError(
            "linalg.vector_norm: the dtype of the input "
            f"({found.scalar_name}) should be convertible without narrowing to the specified dtype ({asked.scalar_name})"
        )


def _check_empty(self: Array, ord: float, dim: Any, gone: tuple[int, ...]) -> None:
    if self.size or not (ord < 0 or ord == math.inf):
        return
    if dim is None or not self.ndim or (dim.__class__ is not int and not len(dim)):
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {_plain(ord)} norm on an empty tensor because the operation does not have an identity"
        )
    for d in gone:
        if not self.shape[d]:
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {_plain(ord)} norm on the dimension {d}because this dimension is empty and "
                "the operation does not have an identity"
            )


def _plain(ord: float) -> str:
    return f"{float(ord):g}"


def _vector_norm_backward(grad: Tensor, self: Tensor, result: Tensor, ord: float, dim: Any, keepdim: bool) -> Tensor | None:
    ndim = self._array.ndim
    if ord == 0:
        return None  # a count, of no slope
    if dim is not None and not (dim.__class__ is not int and not len(dim)):
        grad = restore_dims(grad, dim, keepdim, ndim)
        result = restore_dims(result, dim, keepdim, ndim)
    return norm_backward(grad, self, result, float(ord), dim)


def norm_backward(grad: Tensor, self: Tensor, norm: Tensor, p: float, dim: int | Sequence[int] | None) -> Tensor | None:
    """The gradient of a p-norm; zero where the norm is zero."""
    if p == 0:
        return None
    if p == 1:
        return self.sgn() * grad
    if p == 2:
        return grad * (self / norm).masked_fill_(norm == 0, 0)
    if math.isinf(p):
        mask = (self.abs() == norm).logical_or(self.isnan())
        reached = mask.sum() if dim is None else mask.sum(dim, True)
        return self.sgn() * (grad / reached * mask)
    if p < 1:
        scaled = self.sgn() * self.abs().pow_(p - 1).masked_fill_(self == 0, 0)
        return scaled * grad * norm.pow(1 - p)
    if p < 2:
        scaled = self.sgn() * self.abs().pow_(p - 1)
    else:
        scaled = self * self.abs().pow_(p - 2)
    scale = grad / norm.pow(p - 1)
    return scaled * scale.masked_fill_(norm == 0, 0)


linalg_vector_norm = op(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    cpu=_vector_norm,
    shape=lambda self, dim, keepdim, dtype: reduced_meta(self, dim, keepdim, (dtype or self.dtype).to_real()),
    tags=("exact_out",),
    variants="function",
    grad={"self": _vector_norm_backward},
)


def _norm(self: Tensor, p: float | None, dim: Any, keepdim: bool, dtype: OptionalDType = None) -> Tensor:
    if not self.dtype.inexact:
        raise RuntimeError(f"norm(): input dtype should be either floating point or complex. Got {self.dtype.scalar_name} instead.")
    return linalg_vector_norm(self, 2 if p is None else p, dim, keepdim, dtype=dtype)


_NORM_GRAD = {
    "self": lambda grad, self, p, result: norm_backward(grad, self, result, 2.0 if p is None else float(p), None),
}
norm_scalar = op(
    "norm.Scalar(Tensor self, Scalar p=2) -> Tensor",
    composite=lambda self, p: _norm(self, p, None, False),
    grad=_NORM_GRAD,
    variants="",
)
norm_dim = op(
    "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
    composite=_norm,
    grad={
        "self": lambda grad, self, p, dim, keepdim, result: _vector_norm_backward(
            grad, self, result, 2.0 if p is None else p, dim, keepdim
        )
    },
    node="NormBackward1",
    variants="",
)


@public()
def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: OptionalDType = None,
) -> Tensor:
    """The norm of a matrix or vector over some dimensions: p a number, "fro" or "nuc"."""
    if p == "fro" and (dim is None or isinstance(dim, int) or len(dim) <= 2):
        p = 2
    if isinstance(p, str):
        dims = list(range(input._array.ndim)) if dim is None else dim
        return aten.linalg_matrix_norm(input, p, dims, keepdim, dtype=dtype, out=out)
    return linalg_vector_norm(input, 2 if p is None else p, dim, keepdim, dtype=dtype, out=out)


frobenius_norm = op(
    "frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    composite=lambda self, dim, keepdim: norm_dim(self, 2, dim, keepdim),
    variants="function",
)


def _norm_except_dim(v: Tensor, pow: int, dim: int) -> Tensor:
    if dim == -1:
        return norm_scalar(v, pow)
    ndim = v._array.ndim
    if dim == 0:
        if not ndim:
            raise _checks.no_dimensions(0)
        return norm_dim(v.contiguous().view(v._array.shape[0], -1), pow, 1).view(v._array.shape[0], *(1,) * (ndim - 1))
    if dim == ndim - 1:
        last = v._array.shape[-1]
        return norm_dim(v.contiguous().view(-1, last), pow, 0).view(*(1,) * (ndim - 1), last)
    return _norm_except_dim(v.transpose(0, dim), pow, 0).transpose(0, dim)


norm_except_dim = op(
    "norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor",
    composite=_norm_except_dim,
    variants="function",
)

# --- renorm ---------------------------------------------------------------------------------------------------------


def _renorm(self: Tensor, p: Number, dim: int, maxnorm: Number) -> Tensor:
    dim = _check_renorm(self._array, p, dim, maxnorm)
    others = [i for i in range(self.ndim) if i != dim]
    norm = linalg_vector_norm(self, p, others, True, dtype=_dtype.float32 if self.dtype.itemsize == 2 else None)
    factor = computed(_renorm_factor, norm, maxnorm)
    scaled = self.mul(factor.to(self.dtype) if self.dtype.itemsize == 2 else factor)
    return computed(np.ascontiguousarray, scaled)


def _renorm_factor(norm: Array, maxnorm: float) -> Array:
    return np.where(norm > maxnorm, maxnorm / (norm + 1e-7), 1).astype(norm.dtype, copy=False)


def _check_renorm(self: Array, p: Number, dim: int, maxnorm: Number) -> int:
    if isinstance(p, complex) or p <= 0:
        raise RuntimeError(
            "renorm: non-positive-norm not supported" if not isinstance(p, complex) else "renorm: p must be real-valued"
        )
    if isinstance(maxnorm, complex):
        raise RuntimeError("renorm: maxnorm must be real-valued")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if self.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self.ndim} dimensions")
    return _checks.wrap_dim(dim, self.ndim)


def _renorm_backward(grad: Tensor, self: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    ndim = self._array.ndim
    dim = _checks.wrap_dim(dim, ndim)
    others = [i for i in range(ndim) if i != dim]
    norm: Tensor = linalg_vector_norm(self, p, others, True)
    real_grad = self.conj() * grad if self.dtype.is_complex else self * grad
    total = real_grad.sum(others, True)
    if total.dtype.is_complex:
        total = total.real
    through_norm = norm_backward(total, self, norm, float(p), others)
    assert through_norm is not None
    inverse = (norm + 1e-7).reciprocal()
    inner = inverse * maxnorm * (grad - inverse * through_norm)
    return aten.where(norm > maxnorm, inner.to(grad.dtype), grad)


renorm = op(
    "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
    over_tensors=_renorm,
    shape=lambda self: self.shape,
    tags=("exact_out",),
    grad={"self": _renorm_backward},
)
renorm_ = op(
    "renorm_(Tensor(a!) self, Scalar p, int dim, Scalar maxnorm) -> Tensor(a!)",
    over_tensors=lambda self, p, dim, maxnorm: self.copy_(_renorm(self, p, dim, maxnorm)),
    grad={"self": _renorm_backward},
)
