"""Distances and similarities of vectors."""

from __future__ import annotations

from .._autograd.grad_mode import no_grad
from .._checks import broadcast_shapes
from .._promotion import promote_types
from .._tensor import Tensor
from .declare import op
from .lookup import aten
from .pointwise import add_number


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
