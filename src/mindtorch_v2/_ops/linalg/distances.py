"""Distances and similarities: of two tensors, of pairs of vectors, of all rows with all rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _checks
from ..._autograd.grad_mode import no_grad
from ..._backends.cpu.linalg import distances as kernels
from ..._checks import broadcast_shapes
from ..._promotion import promote_types
from ..._tensor import Tensor
from ..elementwise.arithmetic import add_number
from ..machinery.declare import not_implemented, op, public
from ..machinery.lookup import aten
from ..reductions.norms import norm_backward, norm_scalar

Array = np.ndarray[Any, Any]
MODES: dict[str, int | None] = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}
_FEW = 25  # rows up to which differences are formed one by one rather than by a matrix product


def _cdist_forward_kernel(x1: Array, x2: Array, p: float) -> Array:
    return kernels.cdist(x1, x2, p)


_cdist_forward = op(
    "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
    cpu=_cdist_forward_kernel,
    node="CdistBackward0",
    variants="function",
    grad={
        "x1": lambda grad, x1, x2, p, result: _cdist_backward(grad.contiguous(), x1, x2, p, result),
        "x2": lambda grad, x1, x2, p, result: _cdist_backward(grad.mT.contiguous(), x2, x1, p, result.mT.contiguous()),
    },
)
_cdist_backward = op(
    "_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor",
    cpu=kernels.cdist_backward,
    variants="function",
    grad=dict.fromkeys(("grad", "x1", "x2", "cdist"), not_implemented("_cdist_backward")),
)


def _euclidean(x1: Tensor, x2: Tensor) -> Tensor:
    norm1, norm2 = x1.pow(2).sum(-1, True), x2.pow(2).sum(-1, True)
    left = aten.cat([x1.mul(-2), norm1, aten.ones_like(norm1)], -1)
    right = aten.cat([x2, aten.ones_like(norm2), norm2], -1)
    return left.matmul(right.mT).clamp_min_(0).sqrt_()


def _euclidean_backward(grad: Tensor, x1: Tensor, x2: Tensor, result: Tensor) -> tuple[Tensor, Tensor]:
    ratio = (grad / result).masked_fill_(result == 0, 0)
    return (
        x1 * ratio.sum(-1, True) - ratio.matmul(x2),
        x2 * ratio.sum(-2, False).unsqueeze(-1) - ratio.mT.matmul(x1),
    )


_euclidean_dist = op(
    "_euclidean_dist(Tensor x1, Tensor x2) -> Tensor",
    composite=_euclidean,
    variants="function",
    grad={("x1", "x2"): _euclidean_backward},
)


def _cdist(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None) -> Tensor:
    _check_cdist(x1, x2, p)
    if compute_mode not in (None, 0, 1, 2):
        raise RuntimeError(f"possible modes: 0, 1, 2, but was: {compute_mode}")
    r1, r2, m = x1._array.shape[-2], x2._array.shape[-2], x1._array.shape[-1]
    batch = _checks.broadcast_shapes(x1._array.shape[:-2], x2._array.shape[:-2])
    by_product = compute_mode == 1 or ((compute_mode in (None, 0)) and (r1 > _FEW or r2 > _FEW))
    if not (p == 2 and by_product and r1 and r2 and m):
        return _cdist_forward(x1, x2, p, compute_mode)
    n = int(np.prod(batch, dtype=np.int64))
    left = x1.expand([*batch, r1, m]).reshape([n, r1, m]) if batch else x1
    right = x2.expand([*batch, r2, m]).reshape([n, r2, m]) if batch else x2
    return _euclidean_dist(left, right).view([*batch, r1, r2])


def _check_cdist(x1: Tensor, x2: Tensor, p: float) -> None:
    for name, x in (("X1", x1), ("X2", x2)):
        if x._array.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x._array.ndim}D")
    if x1._array.shape[-1] != x2._array.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1._array.shape[-1]} X2: {x2._array.shape[-1]}")
    for name, x in (("X1", x1), ("X2", x2)):
        if not x.dtype.is_floating_point:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype.scalar_name}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if x1.dtype is not x2.dtype and x1._array.size and x2._array.size:
        raise RuntimeError(f"expected scalar type {x1.dtype.scalar_name} but found {x2.dtype.scalar_name}")


_cdist_entry = op(
    "cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor", composite=_cdist, variants="function"
)


@public("function")
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """The p-norm distance of each row of x1 to each row of x2."""
    if compute_mode not in MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return _cdist_entry(x1, x2, p, MODES[compute_mode])


_pdist_forward = op(
    "_pdist_forward(Tensor self, float p=2.) -> Tensor",
    cpu=lambda self, p: kernels.pdist(self, p),
    node="PdistBackward0",
    variants="function",
    grad={"self": lambda grad, self, p, result: _pdist_backward(grad, self, p, result)},
)
_pdist_backward = op(
    "_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor",
    cpu=kernels.pdist_backward,
    variants="function",
    grad=dict.fromkeys(("grad", "self", "pdist"), not_implemented("_pdist_backward")),
)


def _pdist(self: Tensor, p: float) -> Tensor:
    if self._array.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {self._array.ndim}D")
    if not self.dtype.is_floating_point:
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    return _pdist_forward(self.contiguous(), p)


pdist = op("pdist(Tensor self, float p=2.) -> Tensor", composite=_pdist, variants="function")


# --- pairs of vectors, and whole tensors ----------------------------------------------------------------------------------


def _cosine_similarity(x1: Tensor, x2: Tensor, dim: int, eps: float) -> Tensor:
    """Products of unit vectors; a vector shorter than `eps` counts as that long."""
    common = promote_types(x1.dtype, x2.dtype)
    if not common.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {common.scalar_name}")
    x1, x2 = (t if t.dtype is common else t.to(common) for t in (x1, x2))
    shape = broadcast_shapes(x1._array.shape, x2._array.shape)
    x1, x2 = (t if t._array.shape == shape else t.expand(shape) for t in (x1, x2))
    lengths = [aten.linalg_vector_norm(x, 2, [dim], True).clone() for x in (x1, x2)]
    with no_grad():
        least = aten.scalar_tensor(eps, dtype=lengths[0].dtype, device=lengths[0].device)
        for length in lengths:
            length.clamp_min_(least)
    return ((x1 / lengths[0]) * (x2 / lengths[1])).sum(dim)


cosine_similarity = op(
    "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
    composite=_cosine_similarity,
    variants="function",
)


def _pairwise_distance(x1: Tensor, x2: Tensor, p: float, eps: float, keepdim: bool) -> Tensor:
    # torch: the innermost dimension of the result of broadcasting
    return aten.norm(add_number(x1 - x2, eps), p, [max(x1.dim(), x2.dim()) - 1], keepdim)


pairwise_distance = op(
    "pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-06, bool keepdim=False) -> Tensor",
    composite=_pairwise_distance,
    variants="function",
)

dist = op(
    "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
    composite=lambda self, other, p: norm_scalar(self - other, p),
    grad={
        "self": lambda grad, self, other, p, result: norm_backward(grad, self - other, result, float(p), None),
        "other": lambda grad, self, other, p, result: norm_backward(-grad, self - other, result, float(p), None),
    },
)
