"""torch.sparse: functions on sparse tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from . import _dtype
from ._dispatch import registry
from ._memory_format import layout, sparse_coo, sparse_csc, sparse_csr
from ._ops.creation.ranges import arange
from ._ops.shapes.joining import stack
from ._ops.sparse import invariants
from ._ops.sparse.construction import sparse_coo_tensor
from ._ops.sparse.products import sparse_addmm, sparse_mm, sparse_mm_reduce
from ._ops.sparse.reductions import (
    sparse_log_softmax,
    sparse_softmax,
    sparse_sum,
    sparse_sum_dim,
    sparse_sum_dim_dtype,
    sparse_sum_dtype,
)
from ._tensor import Tensor
from ._types import Number, OptionalDType
from .autograd.gradcheck_sparse import over_values, with_dense_outputs

__all__ = [
    "DoubleTensor", "FloatTensor", "LongTensor", "addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm",
    "softmax", "spdiags", "sum",
]  # fmt: skip


def mm(sparse: Tensor, dense: Tensor, reduce: str = "sum") -> Tensor:
    """The product of a sparse matrix with a dense or sparse one; `reduce` says what is made of the products of each row."""
    return sparse_mm(sparse, dense) if reduce == "sum" else sparse_mm_reduce(sparse, dense, reduce)


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """`beta * mat + alpha * (mat1 @ mat2)` with a sparse `mat1`."""
    return sparse_addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sampled_addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor | None = None
) -> Tensor:
    """`beta * input + alpha * (mat1 @ mat2)` at the places of the sparse `input` only."""
    made: Tensor = registry.entry("sparse_sampled_addmm")(input, mat1, mat2, beta=beta, alpha=alpha)
    return made if out is None else out.copy_(made)


def sum(input: Tensor, dim: Any = None, dtype: OptionalDType = None) -> Tensor:
    """The sum of a sparse tensor's elements, or over some dimensions: sparse unless all sparse dimensions are summed."""
    if dim is None:
        return sparse_sum(input) if dtype is None else sparse_sum_dtype(input, dtype=dtype)
    dim = [dim] if isinstance(dim, int) else list(dim)
    return sparse_sum_dim(input, dim) if dtype is None else sparse_sum_dim_dtype(input, dim, dtype=dtype)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: layout | None = None) -> Tensor:
    """The matrix with these rows as its diagonals, of which `offsets` says the places.

    Element `j` of a row stands in column `j` of the matrix: above the main diagonal the first elements of a row are left out.
    """
    rows = diagonals.unsqueeze(0) if diagonals.ndim == 1 else diagonals
    places = offsets.unsqueeze(0) if offsets.ndim == 0 else offsets
    if rows.ndim != 2:
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if places.ndim != 1:
        raise RuntimeError("Offsets must be scalar or vector")
    if rows.shape[0] != places.shape[0]:
        raise RuntimeError(f"Number of diagonals ({rows.shape[0]}) does not match the number of offsets ({places.shape[0]})")
    if layout not in (None, sparse_coo, sparse_csr, sparse_csc):
        raise RuntimeError(f"Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {layout}")
    if places.dtype is not _dtype.int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {places.dtype.scalar_name}")
    starts = places.tolist()
    if len(set(starts)) != len(starts):
        raise RuntimeError("Offset tensor contains duplicate values")
    columns = arange(rows.shape[1])
    at = columns.unsqueeze(0) - places.unsqueeze(1)  # the row of the matrix that an element stands in
    inside = (at >= 0) & (at < shape[0]) & (columns < shape[1])
    indices = stack([at[inside], columns.expand_as(at)[inside]])
    made: Tensor = sparse_coo_tensor(indices, rows[inside], tuple(shape))
    return made if layout in (None, sparse_coo) else made.to_sparse(layout=layout)


def softmax(input: Tensor, dim: int, *, dtype: OptionalDType = None) -> Tensor:
    """Softmax over the elements that a sparse tensor has; those it has not count as minus infinity."""
    return sparse_softmax(input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: OptionalDType = None) -> Tensor:
    """The logarithm of `softmax`."""
    return sparse_log_softmax(input, dim, dtype=dtype)


def as_sparse_gradcheck(gradcheck: Callable[..., bool]) -> Callable[..., bool]:
    """`torch.autograd.gradcheck`, or a variant of it, for functions that take or return sparse tensors."""

    def gradcheck_with_sparse_support(func: Callable[..., Any], inputs: Any, **kwargs: Any) -> bool:
        """Check derivatives as `torch.autograd.gradcheck` does, of functions that take or return sparse tensors."""
        masked = bool(kwargs.pop("masked", False))
        given = tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)
        of_values, values = over_values(func, given, masked=masked)
        return gradcheck(with_dense_outputs(of_values, masked=masked), values, **kwargs)

    return gradcheck_with_sparse_support


class check_sparse_tensor_invariants:  # noqa: N801 - torch's spelling
    """Checks the parts of sparse tensors that are made, while it is entered; also a decorator.

    Until a program asks for either, the parts are checked, although `is_enabled` is False, as in torch.
    """

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self._before: tuple[bool | None] | None = None

    @staticmethod
    def is_enabled() -> bool:
        """Whether checks were asked for."""
        return invariants.is_enabled()

    @staticmethod
    def enable() -> None:
        """Check the parts of sparse tensors that are made."""
        invariants.set_enabled(True)

    @staticmethod
    def disable() -> None:
        """Do not check the parts of sparse tensors that are made."""
        invariants.set_enabled(False)

    def __enter__(self) -> None:
        if self._before is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context manager instance for context nesting."
            )
        self._before = (invariants.set_enabled(self.state),)

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        assert self._before is not None
        invariants.set_enabled(self._before[0])
        self._before = None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return checked


def _typed(dtype: _dtype.dtype) -> Any:
    def make(indices: Any = None, values: Tensor | None = None, size: Any = None) -> Tensor:
        if indices is None:
            return sparse_coo_tensor([0], dtype=dtype)
        if values is None:
            return sparse_coo_tensor(indices, dtype=dtype)
        return sparse_coo_tensor(indices, values.to(dtype), size)

    make.__doc__ = f"A sparse tensor of {dtype}, as older programs make it."
    return make


FloatTensor, DoubleTensor, LongTensor = _typed(_dtype.float32), _typed(_dtype.float64), _typed(_dtype.int64)
