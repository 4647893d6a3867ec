"""Linear systems and inverses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _checks
from ..._backends.cpu.machinery.dtypes import scalar_name
from ..._dispatch.tls import state
from ..._tensor import Tensor
from ..machinery.declare import op
from ..machinery.lookup import aten
from .checks import check_errors, check_floating, check_matrix, check_square, check_system, raise_first_failure
from .lu import linalg_lu_factor_ex, linalg_lu_solve
from .matmul import matmul

Array = np.ndarray[Any, Any]


def is_vector_rhs(a: Array | Tensor, b: Array | Tensor) -> bool:
    """Whether B is a batch of vectors rather than of matrices: torch takes it so when its shape is A's without a dimension."""
    return b.ndim == 1 or (a.ndim - 1 == b.ndim and tuple(b.shape) == tuple(a.shape[:-1]))


def _factored_solve(A: Tensor, B: Tensor, left: bool, check_errors: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    check_floating(A._array, "linalg.solve")
    if A.dtype is not B.dtype:
        names = scalar_name(A._array), scalar_name(B._array)
        raise RuntimeError(
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type {names[0]} and B of type {names[1]} instead"
        )
    check_square(A._array, "linalg.solve")
    vector = is_vector_rhs(A._array, B._array)
    b = B.unsqueeze(-1) if vector else B
    check_matrix(b._array, "linalg.solve", "B")
    if vector and not left:
        raise RuntimeError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    check_system(A._array, b._array, left, "linalg.solve")
    if A._array.ndim > 2 and b._array.ndim > 2:
        _checks.broadcast_shapes(b._array.shape[:-2], A._array.shape[:-2])
    factors, pivots, info = linalg_lu_factor_ex(A)
    if check_errors:
        raise_first_failure(info._array, "torch.linalg.solve_ex")
    x = linalg_lu_solve(factors, pivots, b, left=left)
    return x.squeeze(-1) if vector else x, factors, pivots, info


def _solve_grad(
    grad: Tensor,
    A: Tensor,
    B_shape: Sequence[int],
    LU: Tensor,
    pivots: Tensor,
    result: Tensor,
    left: bool,
    needs: Sequence[bool],
) -> tuple[Any, Any]:
    vector = len(B_shape) == 1 or (A.ndim - 1 == len(B_shape) and tuple(B_shape) == tuple(A.shape[:-1]))
    g = grad.unsqueeze(-1) if vector else grad
    if state.grad_enabled:
        # the factors hang on A without a graph: further derivatives need a solve of its own
        grad_b = linalg_solve(A.mH, g, left=left)
    else:
        grad_b = linalg_lu_solve(LU, pivots, g, left=left, adjoint=True)
    grad_a = None
    if needs[0]:
        x = (result.unsqueeze(-1) if vector else result).mH
        grad_a = -matmul(grad_b, x) if left else -matmul(x, grad_b)
    return grad_a, grad_b.squeeze(-1) if vector else grad_b


def _solution_shape(A: Tensor, B: Tensor) -> Any:
    if is_vector_rhs(A, B):
        return (*_checks.broadcast_shapes(tuple(B.shape[:-1]), tuple(A.shape[:-2])), B.shape[-1])
    return (*_checks.broadcast_shapes(tuple(B.shape[:-2]), tuple(A.shape[:-2])), *B.shape[-2:])


_linalg_solve_ex = op(
    "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False)"
    " -> (Tensor result, Tensor LU, Tensor pivots, Tensor info)",
    over_tensors=_factored_solve,
    shape=lambda A, B: (_solution_shape(A, B), A.shape, A.shape[:-1], A.shape[:-2]),
    grad={("A", "B"): _solve_grad},
    nondifferentiable=("LU", "pivots", "info"),
    variants="function",
)


def _solve_ex(A: Tensor, B: Tensor, left: bool, check_errors: bool) -> tuple[Tensor, Tensor]:
    result, _, _, info = _linalg_solve_ex(A, B, left=left, check_errors=check_errors)
    return result, info


linalg_solve_ex = op(
    "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
    composite=_solve_ex,
    variants="function",
)


def _solve(A: Tensor, B: Tensor, left: bool) -> Tensor:
    result, info = linalg_solve_ex(A, B, left=left)
    check_errors(info, "torch.linalg.solve", is_matrix=A.ndim == 2)
    return result


linalg_solve = op("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", composite=_solve, variants="function")


def _inv_ex(A: Tensor, check_errors: bool) -> tuple[Tensor, Tensor]:
    check_square(A._array, "linalg.inv")
    check_floating(A._array, "linalg.inv", low_precision=False)
    identity = aten.zeros(A._array.shape, dtype=A.dtype, device=A.device)
    identity.diagonal(0, -2, -1).fill_(1)
    inverted, info = linalg_solve_ex(A, identity)
    if check_errors:
        raise_first_failure(info._array, "linalg.inv_ex")
    return inverted, info


def _inv_grad(grad: Tensor, inverse: Tensor) -> Tensor:
    inner = matmul(grad, inverse.mH)
    return -matmul(inverse.mH, inner)


linalg_inv_ex = op(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    over_tensors=_inv_ex,
    shape=lambda A: (A.shape, A.shape[:-2]),
    grad={"A": lambda grad, inverse: _inv_grad(grad, inverse)},
    nondifferentiable=("info",),
    variants="function",
)


def _inv(A: Tensor) -> Tensor:
    inverted, info = linalg_inv_ex(A)
    check_errors(info, "linalg.inv", is_matrix=A.ndim == 2)
    return inverted


linalg_inv = op("linalg_inv(Tensor A) -> Tensor", composite=_inv, variants="function")
inverse = op("inverse(Tensor self) -> Tensor", composite=lambda self: linalg_inv(self))
