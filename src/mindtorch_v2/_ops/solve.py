"""Linear systems and inverses."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _checks
from .._backends.cpu import linalg as kernels
from .._backends.cpu.matmul import scalar_name
from .._dispatch.tls import state
from .._tensor import Tensor
from .declare import op
from .linalg_checks import check_errors, check_floating, check_matrix, check_square, check_system, raise_first_failure
from .lookup import aten
from .lu import linalg_lu_factor_ex, linalg_lu_solve
from .matmul import matmul

Array = np.ndarray[Any, Any]


def is_vector_rhs(a: Array | Tensor, b: Array | Tensor) -> bool:
    """Whether B is a batch of vectors rather than of matrices: torch takes it so when its shape is A's without a dimension."""
    return b.ndim == 1 or (a.ndim - 1 == b.ndim and tuple(b.shape) == tuple(a.shape[:-1]))


def _solve_ex_kernel(A: Array, B: Array, left: bool, check_errors: bool) -> tuple[Array, Array, Array, Array]:
    check_floating(A, "linalg.solve")
    if A.dtype != B.dtype:
        names = scalar_name(A), scalar_name(B)
        raise RuntimeError(
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type {names[0]} and B of type {names[1]} instead"
        )
    check_square(A, "linalg.solve")
    vector = is_vector_rhs(A, B)
    b = B[..., None] if vector else B
    check_matrix(b, "linalg.solve", "B")
    if vector and not left:
        raise RuntimeError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    check_system(A, b, left, "linalg.solve")
    _checks.broadcast_shapes(b.shape[:-2], A.shape[:-2])
    factors, pivots, info = kernels.lu_factor(A)
    if check_errors:
        raise_first_failure(info, "torch.linalg.solve_ex")
    x = kernels.lu_solve(factors, pivots, b, left=left, adjoint_=False)
    return x[..., 0] if vector else x, factors, pivots, info


def _solve_grad(
    grad: Tensor,
    A: Tensor,
    B_shape: Any,
    LU: Tensor,
    pivots: Tensor,
    result: Tensor,
    left: bool,
    needs: Any,
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


_linalg_solve_ex = op(
    "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False)"
    " -> (Tensor result, Tensor LU, Tensor pivots, Tensor info)",
    cpu=_solve_ex_kernel,
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
    return result  # type: ignore[no-any-return]


linalg_solve = op("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", composite=_solve, variants="function")


def _inv_ex_kernel(A: Array, check_errors: bool) -> tuple[Array, Array]:
    check_square(A, "linalg.inv")
    check_floating(A, "linalg.inv", low_precision=False)
    factors, pivots, info = kernels.lu_factor(A)
    if check_errors:
        raise_first_failure(info, "linalg.inv_ex")
    eye = np.eye(A.shape[-1], dtype=A.dtype)
    return kernels.lu_solve(factors, pivots, eye, left=True, adjoint_=False), info


def _inv_grad(grad: Tensor, inverse: Tensor) -> Tensor:
    inner = matmul(grad, inverse.mH)
    return -matmul(inverse.mH, inner)  # type: ignore[no-any-return]


linalg_inv_ex = op(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    cpu=_inv_ex_kernel,
    grad={"A": lambda grad, inverse: _inv_grad(grad, inverse)},
    nondifferentiable=("info",),
    variants="function",
)


def _inv(A: Tensor) -> Tensor:
    inverted, info = linalg_inv_ex(A)
    check_errors(info, "linalg.inv", is_matrix=A.ndim == 2)
    return inverted  # type: ignore[no-any-return]


linalg_inv = op("linalg_inv(Tensor A) -> Tensor", composite=_inv, variants="function")
inverse = op("inverse(Tensor self) -> Tensor", composite=lambda self: linalg_inv(self))
