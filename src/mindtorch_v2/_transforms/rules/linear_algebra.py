"""Operators over matrices that take any number of leading dimensions: the batch is one more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._dispatch.op import Op
from ..._ops.machinery.calling import call_op
from ..._tensor import Tensor
from ..batched import Level
from .loop import quietly_one_by_one
from .values import call, rank, try_sample, use, with_front, wrapped

if TYPE_CHECKING:
    from ..._types import TensorOrTensors

__all__ = ["leading"]


def leading(op: Op, level: Level, args: tuple[Any, ...]) -> TensorOrTensors:
    """The operator on values with the batch in front; samples with fewer leading dimensions get more."""
    if rank(args[0]) < 2:
        try_sample(op, level, args)
    positions = [(p, many) for p, _, many in op.schema.tensor_positions]
    values = list(args)
    for p, many in positions:
        values[p] = [with_front(t, level) for t in args[p]] if many else with_front(args[p], level)
    return wrapped(call_op(op, tuple(values)), level)


def matrices(op: Op, level: Level, args: tuple[Any, ...]) -> TensorOrTensors:
    """As `leading`, of two matrices whose leading dimensions broadcast."""
    tensors = [(p, args[p], a.name == "pivots") for p, a, _ in op.schema.tensor_positions if isinstance(args[p], Tensor)]
    if any(rank(t) < 2 for _, t, is_vector in tensors if not is_vector):
        try_sample(op, level, args)
    most = max(rank(t) + is_vector for _, t, is_vector in tensors)
    values = list(args)
    for p, t, is_vector in tensors:
        value = with_front(t, level)
        for _ in range(most - rank(t) - is_vector):
            value = call("unsqueeze", value, 1)
        values[p] = value
    return wrapped(call_op(op, tuple(values)), level)


use(
    """
    linalg_cholesky_ex cholesky cholesky_inverse linalg_lu_factor_ex linalg_lu lu_unpack linalg_inv_ex _linalg_eigh linalg_eig
    _linalg_eigvals _linalg_svd linalg_qr _linalg_det _linalg_slogdet geqrf linalg_householder_product ormqr linalg_ldl_factor_ex
    linalg_matrix_exp
    """.split(),
    leading,
)
use(
    "linalg_solve_triangular triangular_solve cholesky_solve _cholesky_solve_helper linalg_lu_solve linalg_ldl_solve".split(),
    matrices,
)


def _one_by_one(op: Op, level: Level, args: tuple[Any, ...]) -> TensorOrTensors:
    return quietly_one_by_one(op, level, args)


use(
    "_linalg_solve_ex linalg_lstsq linalg_pinv.atol_rtol_tensor _cdist_forward _cdist_backward _euclidean_dist".split(), _one_by_one
)


def _check_errors(op: Op, level: Level, args: tuple[Any, ...]) -> None:
    """Raise if one of the samples could not be factorised."""
    return call_op(op, (with_front(args[0], level), args[1], False))


use(["_linalg_check_errors"], _check_errors)
