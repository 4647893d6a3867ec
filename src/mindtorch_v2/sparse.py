"""torch.sparse: functions on sparse tensors in coordinate form."""

from __future__ import annotations

from typing import Any

from . import _dtype
from ._ops.sparse import sparse_addmm, sparse_coo_tensor, sparse_mm
from ._tensor import Tensor
from ._types import OptionalDType

__all__ = ["DoubleTensor", "FloatTensor", "LongTensor", "addmm", "mm", "sum"]


def mm(sparse: Tensor, dense: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix."""
    return sparse_mm(sparse, dense)


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * mat + alpha * (mat1 @ mat2)` with a sparse `mat1`."""
    return sparse_addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input: Tensor, dim: Any = None, dtype: OptionalDType = None) -> Tensor:
    """The sum of a sparse tensor's elements."""
    if dim is not None:
        raise NotImplementedError("torch.sparse.sum over some dimensions is not supported; use to_dense().sum(dim)")
    return input.sum(dtype=dtype)


def _typed(dtype: _dtype.dtype) -> Any:
    def make(indices: Tensor | None = None, values: Tensor | None = None, size: Any = None) -> Tensor:
        if indices is None or values is None:
            raise TypeError("a sparse tensor is made from indices and values")
        return sparse_coo_tensor(indices, values.to(dtype), size)

    make.__doc__ = f"A sparse tensor of {dtype}, as older programs make it."
    return make


FloatTensor, DoubleTensor, LongTensor = _typed(_dtype.float32), _typed(_dtype.float64), _typed(_dtype.int64)
