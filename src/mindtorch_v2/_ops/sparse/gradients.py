"""Sparse gradients of dense tensors."""

from __future__ import annotations

import numpy as np

from ..._tensor import Tensor, wrap
from ..machinery.declare import op
from .storage import sparse_tensor

__all__: list[str] = []


def _gather_grad(self: Tensor, dim: int, index: Tensor, grad: Tensor) -> Tensor:
    """The gradient of `gather` at the places that were read, one for each reading."""
    places = index._array
    if self._array.ndim == 0:
        return sparse_tensor(wrap(np.empty((0, grad._array.size), np.int64)), grad.reshape(-1), ())
    if places.ndim == 0:
        return sparse_tensor(index.reshape(1, 1), grad.reshape(1), self._array.shape)
    rows = np.indices(places.shape).reshape(places.ndim, -1)
    rows[dim % self._array.ndim] = places.reshape(-1)
    return sparse_tensor(wrap(rows.astype(np.int64)), grad.reshape(-1), self._array.shape)


op(
    "_gather_sparse_backward(Tensor self, int dim, Tensor index, Tensor grad) -> Tensor",
    composite=_gather_grad,
    variants="",
    tags=("no_derivative",),
)
