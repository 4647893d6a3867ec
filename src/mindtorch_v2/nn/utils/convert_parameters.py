"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from ..._ops.machinery.lookup import aten
from ..._tensor import Tensor
from ..parameter import set_tensor_data

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters flattened and joined."""
    return aten.cat([p.view(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give parameters the elements of a vector, in their order."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    at = 0
    for p in parameters:
        n = p.numel()
        set_tensor_data(p, vec[at : at + n].detach().view(p.shape))
        at += n
