"""Norms of matrices and condition numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _checks
from ..._tensor import Tensor
from ..._types import Number, OptionalDType
from ..machinery.declare import op
from ..machinery.lookup import aten
from .checks import check_floating, check_matrix, check_square
from .decomposition import linalg_svdvals
from .solve import linalg_inv_ex

Array = np.ndarray[Any, Any]


def _vector_norm(x: Tensor, order: Number, dim: int | Sequence[int] | None, keepdim: bool, dtype: OptionalDType = None) -> Tensor:
    return aten.linalg_vector_norm(x, order, dim, keepdim, dtype=dtype)


def _norm_dims(x: Tensor, dim: Sequence[int]) -> tuple[int, int]:
    check_matrix(x, "linalg.matrix_norm")
    check_floating(x._array, "linalg.matrix_norm")
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {', '.join(map(str, dim))}")
    first, second = (_checks.wrap_dim(d, x.ndim) for d in dim)
    if first == second:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    return first, second


def _converted(x: Tensor, dtype: OptionalDType) -> Tensor:
    return x if dtype is None or dtype is x.dtype else x.to(dtype)


def _singular_values(x: Tensor, first: int, second: int) -> Tensor:
    return linalg_svdvals(x.permute(_matrices_last(x.ndim, first, second)))


def _matrices_last(ndim: int, first: int, second: int) -> list[int]:
    return [*(d for d in range(ndim) if d not in (first, second)), first, second]


def _put_back(x: Tensor, keepdim: bool, first: int, second: int) -> Tensor:
    """Put the dimensions of the matrices, of which one is left, back to where they were, with extent one."""
    if not keepdim:
        return x
    x = x.unsqueeze(-1)
    order = _matrices_last(x.ndim, first, second)
    return x.permute([order.index(d) for d in range(x.ndim)])


def _matrix_norm_number(self: Tensor, ord: float, dim: Sequence[int], keepdim: bool, dtype: OptionalDType) -> Tensor:
    first, second = _norm_dims(self, dim)
    magnitude = abs(ord)
    if magnitude not in (1, 2, float("inf")):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    x = _converted(self, dtype)
    if magnitude == 2:
        check_floating(x._array, "linalg.matrix_norm", low_precision=False)
        values = _singular_values(x, first, second)
        return _put_back(_largest(values, -1, keepdim) if ord > 0 else values.amin(-1, keepdim), keepdim, first, second)
    if magnitude == float("inf"):
        first, second = second, first
    sums = _vector_norm(x, 1, [first], keepdim)
    if not keepdim and first < second:
        second -= 1
    return _largest(sums, second, keepdim) if ord > 0 else sums.amin(second, keepdim)


def _largest(x: Tensor, dim: int, keepdim: bool) -> Tensor:
    """The maximum; zero of nothing, which is the norm of an empty matrix."""
    return x.amax(dim, keepdim) if x.shape[dim] else x.sum(dim, keepdim)


def _matrix_norm_name(self: Tensor, ord: str, dim: Sequence[int], keepdim: bool, dtype: OptionalDType) -> Tensor:
    first, second = _norm_dims(self, dim)
    if ord not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if ord == "fro":
        return _vector_norm(self, 2, [first, second], keepdim, dtype)
    x = _converted(self, dtype)
    check_floating(x._array, "linalg.matrix_norm", low_precision=False)
    values = _singular_values(x, first, second)
    return _put_back(values.sum(-1, keepdim), keepdim, first, second)


_matrix_norm_by_number = op(
    "linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    composite=_matrix_norm_number,
    variants="function",
)
_matrix_norm_by_name = op(
    "linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None)"
    " -> Tensor",
    composite=_matrix_norm_name,
    variants="function",
)


def matrix_norm(
    x: Tensor, order: Number | str, dim: int | Sequence[int] | None = (-2, -1), keepdim: bool = False, dtype: OptionalDType = None
) -> Tensor:
    by = _matrix_norm_by_name if isinstance(order, str) else _matrix_norm_by_number
    return by(x, order, dim, keepdim, dtype=dtype)


def _linalg_norm(self: Tensor, ord: Number | None, dim: int | Sequence[int] | None, keepdim: bool, dtype: OptionalDType) -> Tensor:
    if dim is not None and not isinstance(dim, int) and len(dim) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    dims = None if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if ord is None:
        return _vector_norm(self, 2, dims, keepdim, dtype)
    if dims is None and self.ndim not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {self.ndim}D.")
    if (len(dims) if dims is not None else self.ndim) == 2:
        return matrix_norm(self, ord, (0, 1) if dims is None else dims, keepdim, dtype)
    return _vector_norm(self, ord, dims, keepdim, dtype)


def _linalg_norm_name(self: Tensor, ord: str, dim: int | Sequence[int] | None, keepdim: bool, dtype: OptionalDType) -> Tensor:
    dims = (0, 1) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if dim is not None and len(dims) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    if dim is None and self.ndim not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {self.ndim}D.")
    return matrix_norm(self, ord, dims, keepdim, dtype)


linalg_norm = op(
    "linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    composite=_linalg_norm,
    variants="function",
)
op(
    "linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    composite=_linalg_norm_name,
    variants="function",
)
nuclear_norm = op(
    "nuclear_norm(Tensor self, bool keepdim=False) -> Tensor",
    composite=lambda self, keepdim: matrix_norm(self, "nuc", (-2, -1), keepdim),
    variants="function",
)
op(
    "nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor",
    composite=lambda self, dim, keepdim: matrix_norm(self, "nuc", dim, keepdim),
    variants="function",
)


def _cond(self: Tensor, p: Number | None) -> Tensor:
    if self.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p is not None and not isinstance(p, str) and abs(p) not in (1, 2, float("inf")):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if p is None or p in (2, -2):
        values = linalg_svdvals(self)
        if not values.numel():
            return values.new_zeros(values.shape[:-1])
        largest, smallest = values.narrow(-1, 0, 1), values.narrow(-1, -1, 1)
        return (smallest / largest if p == -2 else largest / smallest).squeeze(-1)
    check_square(self, f"linalg.cond(ord={_order_text(p)})")
    return _cond_by_inverse(self, p)


def _order_text(p: Number | str | None) -> str:
    return p if isinstance(p, str) else f"{p:g}"


def _cond_by_inverse(self: Tensor, p: Number | str) -> Tensor:
    inverted, info = linalg_inv_ex(self)
    singular = info.unsqueeze(-1).unsqueeze(-1) > 0
    inverted = inverted.masked_fill(singular, float("inf"))
    result = matrix_norm(self, p) * matrix_norm(inverted, p)
    # torch: a matrix of zeros gives 0 · inf, which is called infinite
    return result.nan_to_num(float("inf"), float("inf"), float("-inf"))


def _cond_name(self: Tensor, p: str) -> Tensor:
    if self.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    check_square(self, f"linalg.cond(ord={p})")
    if p == "nuc":
        values = linalg_svdvals(self)
        return values.sum(-1) * values.reciprocal().sum(-1)
    return _cond_by_inverse(self, p)


linalg_cond = op("linalg_cond(Tensor self, Scalar? p=None) -> Tensor", composite=_cond, variants="function")
op("linalg_cond.p_str(Tensor self, str p) -> Tensor", composite=_cond_name, variants="function")
