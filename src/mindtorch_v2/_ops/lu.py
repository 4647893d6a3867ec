"""LU factorisation: the factors, unpacking them, and solving with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _checks
from .._backends.cpu import linalg as kernels
from .._backends.cpu.matmul import scalar_name
from .._tensor import Tensor
from .declare import op
from .joining import cat
from .linalg_checks import check_errors, check_matrix, check_square, check_system, raise_first_failure
from .matmul import matmul
from .triangular_systems import linalg_solve_triangular

Array = np.ndarray[Any, Any]


def _check_pivot(pivot: bool) -> None:
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")


def _expect_matrix(a: Array | Tensor, function: str) -> None:
    if a.ndim < 2:
        raise RuntimeError(f"{function}: Expected tensor with 2 or more dimensions. Got size: {list(a.shape)} instead")


def _lu_factor_ex(A: Array, pivot: bool, check_errors: bool) -> tuple[Array, Array, Array]:
    _expect_matrix(A, "torch.lu_factor")
    kernels.require_lapack(A, "lu_cpu")
    _check_pivot(pivot)
    factors = kernels.lu_factor(A)
    if check_errors:
        raise_first_failure(factors[2], "torch.linalg.lu_factor_ex")
    return factors


def _lu_grad(grad_l: Tensor | None, grad_u: Tensor | None, p: Tensor, lower: Tensor, upper: Tensor) -> Tensor | None:
    """Gradient of A = P L U from those of L and U, whatever the shape of A."""
    if grad_l is None and grad_u is None:
        return None
    m, n, k = lower.shape[-2], upper.shape[-1], lower.shape[-1]
    l1 = lower if m == k else lower.narrow(-2, 0, k)
    u1 = upper if n == k else upper.narrow(-1, 0, k)
    parts: list[Tensor] = []
    if grad_l is not None:
        below = matmul(l1.mH, grad_l if m == k else grad_l.narrow(-2, 0, k))
        if n > k and grad_u is not None:
            below = below - matmul(grad_u.narrow(-1, k, n - k), upper.narrow(-1, k, n - k).mH)
        parts.append(below.tril(-1))
    elif n > k and grad_u is not None:
        parts.append(-matmul(grad_u.narrow(-1, k, n - k), upper.narrow(-1, k, n - k).mH).tril(-1))
    if grad_u is not None:
        above = matmul(grad_u if n == k else grad_u.narrow(-1, 0, k), u1.mH)
        if m > k and grad_l is not None:
            above = above - matmul(lower.narrow(-2, k, m - k).mH, grad_l.narrow(-2, k, m - k))
        parts.append(above.triu())
    elif m > k and grad_l is not None:
        parts.append(-matmul(lower.narrow(-2, k, m - k).mH, grad_l.narrow(-2, k, m - k)).triu())
    phi = parts[0] if len(parts) == 1 else parts[0] + parts[1]
    square = linalg_solve_triangular(u1.mH, phi, upper=False, left=False)
    out = linalg_solve_triangular(l1.mH, square, upper=True, unitriangular=True)
    if n > k:
        right = out.new_zeros((*out.shape[:-1], n - k))
        if grad_u is not None:
            right = linalg_solve_triangular(l1.mH, grad_u.narrow(-1, k, n - k), upper=True, unitriangular=True)
        out = cat([out, right], -1)
    elif m > k:
        bottom = out.new_zeros((*out.shape[:-2], m - k, n))
        if grad_l is not None:
            bottom = linalg_solve_triangular(u1.mH, grad_l.narrow(-2, k, m - k), upper=False, left=False)
        out = cat([out, bottom], -2)
    return matmul(p, out)  # type: ignore[no-any-return]


def _lu_factor_grad(grad: Tensor, LU: Tensor, pivots: Tensor) -> Tensor | None:
    p, lower, upper = lu_unpack(LU, pivots)
    k = lower.shape[-1]
    return _lu_grad(grad.narrow(-1, 0, k), grad.narrow(-2, 0, k), p, lower, upper)


linalg_lu_factor_ex = op(
    "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)",
    cpu=_lu_factor_ex,
    grad={"A": _lu_factor_grad},
    nondifferentiable=("pivots", "info"),
    variants="function",
)


def _lu_factor(A: Tensor, pivot: bool) -> tuple[Tensor, Tensor]:
    factors, pivots, info = linalg_lu_factor_ex(A, pivot=pivot)
    check_errors(info, "torch.linalg.lu_factor", is_matrix=A.ndim == 2)
    return factors, pivots


linalg_lu_factor = op(
    "linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)", composite=_lu_factor, variants="function"
)
_lu_with_info = op(
    "_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)",
    # torch: `check_errors` is not passed on
    composite=lambda self, pivot, check_errors: tuple(linalg_lu_factor_ex(self, pivot=pivot)),
    variants="function",
)


def _lu_unpack_kernel(LU_data: Array, LU_pivots: Array, unpack_data: bool, unpack_pivots: bool) -> tuple[Array, Array, Array]:
    _expect_matrix(LU_data, "torch.lu_unpack")
    if unpack_pivots and LU_pivots.dtype != np.int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
            "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    empty = np.empty((0,), LU_data.dtype)
    lower, upper = kernels.lu_parts(LU_data) if unpack_data else (empty, empty)
    p = kernels.permutation_matrix(LU_pivots, LU_data.shape[-2], LU_data.dtype) if unpack_pivots else empty
    return p, lower, upper


def _lu_unpack_grad(grads: Any, LU_data_shape: Any) -> Tensor | None:
    """The factors' gradients back in the compact storage."""
    _, grad_l, grad_u = grads
    m, n = LU_data_shape[-2:]
    k = min(m, n)
    total = None
    if grad_l is not None:
        total = grad_l.tril(-1)
        if n > k:
            total = cat([total, total.new_zeros((*total.shape[:-1], n - k))], -1)
    if grad_u is not None:
        above = grad_u.triu()
        if m > k:
            above = cat([above, above.new_zeros((*above.shape[:-2], m - k, n))], -2)
        total = above if total is None else total + above
    return total


lu_unpack = op(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
    cpu=_lu_unpack_kernel,
    grad={"LU_data": _lu_unpack_grad},
    nondifferentiable=("P",),
    variants="function",
)


def _linalg_lu(A: Tensor, pivot: bool) -> tuple[Tensor, Tensor, Tensor]:
    _expect_matrix(A, "linalg.lu")
    factors, pivots, _ = linalg_lu_factor_ex(A, pivot=pivot)
    return tuple(lu_unpack(factors, pivots))  # type: ignore[return-value]


linalg_lu = op(
    "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
    composite=_linalg_lu,
    grad={"A": lambda grads, P, L, U: _lu_grad(grads[1], grads[2], P, L, U)},
    nondifferentiable=("P",),
    variants="function",
)


def _lu_solve_kernel(LU: Array, pivots: Array, B: Array, left: bool, adjoint: bool) -> Array:
    if LU.dtype != B.dtype:
        names = scalar_name(LU), scalar_name(B)
        raise RuntimeError(
            f"linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type {names[0]} and B of type {names[1]} instead"
        )
    if pivots.dtype != np.int32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    check_square(LU, "torch.linalg.lu_solve")
    check_matrix(B, "torch.linalg.lu_solve", "B")
    check_system(LU, B, left, "linalg.lu_solve")
    if pivots.shape[-1] != LU.shape[-1]:
        raise RuntimeError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix")
    if pivots.shape[:-1] != LU.shape[:-2]:
        raise RuntimeError(
            f"linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    kernels.require_lapack(LU, "lu_solve_cpu")
    _checks.broadcast_shapes(B.shape[:-2], LU.shape[:-2])
    return kernels.lu_solve(LU, pivots, B, left=left, adjoint_=adjoint)


def _lu_solve_factor_grad(grad: Tensor, LU: Tensor, pivots: Tensor, result: Tensor, left: bool, adjoint: bool) -> Tensor:
    """Gradient of the compact factors: that of L below the diagonal, that of U above."""
    if not left:
        return _lu_solve_factor_grad(grad.mH, LU, pivots, result.mH, True, not adjoint)
    p, lower, upper = lu_unpack(LU, pivots)
    if adjoint:
        z = linalg_solve_triangular(lower, matmul(p.mT, grad), upper=False, unitriangular=True)
        w = matmul(p.mT, result)
        grad_l = -matmul(w, z.mH)
        grad_u = -matmul(matmul(lower.mH, w), linalg_solve_triangular(upper, z, upper=True).mH)
    else:
        y = linalg_solve_triangular(upper.mH, grad, upper=False)
        grad_u = -matmul(y, result.mH)
        z = linalg_solve_triangular(lower.mH, y, upper=True, unitriangular=True)
        grad_l = -matmul(z, matmul(upper, result).mH)
    return grad_l.tril(-1) + grad_u.triu()  # type: ignore[no-any-return]


linalg_lu_solve = op(
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
    cpu=_lu_solve_kernel,
    grad={
        "LU": _lu_solve_factor_grad,
        "B": lambda grad, LU, pivots, left, adjoint: linalg_lu_solve(LU, pivots, grad, left=left, adjoint=not adjoint),
    },
    variants="function",
)
lu_solve = op(
    "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
    composite=lambda self, LU_data, LU_pivots: linalg_lu_solve(LU_data, LU_pivots, self),
)
