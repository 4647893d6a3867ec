"""LU factorisation: the factors, unpacking them, and solving with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _checks, _dtype
from ..._backends.cpu.linalg import factorizations as kernels
from ..._backends.cpu.machinery.dtypes import scalar_name
from ..._tensor import Tensor
from ..machinery.computing import computed
from ..machinery.declare import op
from ..machinery.lookup import aten
from ..shapes.joining import cat
from ..shapes.reshaping import zeros
from .checks import check_errors, check_floating, check_matrix, check_square, check_system, raise_first_failure
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
    if not A.size:
        *batch, m, n = A.shape
        return np.empty(A.shape, A.dtype), np.zeros((*batch, min(m, n)), np.int32), np.zeros(batch, np.int32)
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
    if m == n:
        phi = _sum(
            None if grad_l is None else matmul(lower.mH, grad_l).tril(-1),
            None if grad_u is None else matmul(grad_u, upper.mH).triu(),
        )
        phi = linalg_solve_triangular(upper.mH, phi, upper=False, left=False)
        out = linalg_solve_triangular(lower.mH, phi, upper=True, unitriangular=True)
    elif m < n:
        out = linalg_solve_triangular(lower.mH, _wide(grad_l, grad_u, lower, upper, k, n), upper=True, unitriangular=True)
    else:
        out = linalg_solve_triangular(upper.mH, _tall(grad_l, grad_u, lower, upper, k, m), upper=False, left=False)
    return matmul(p, out)


def _sum(a: Tensor | None, b: Tensor | None) -> Tensor:
    found = b if a is None else a if b is None else a + b
    assert found is not None
    return found


def _difference(a: Tensor | None, b: Tensor | None) -> Tensor:
    found = a if b is None else -b if a is None else a - b
    assert found is not None
    return found


def _wide(grad_l: Tensor | None, grad_u: Tensor | None, lower: Tensor, upper: Tensor, k: int, n: int) -> Tensor:
    """L^H times the gradient of P^T A: [tril(L^H gL - gU U^H) U1^-H + triu(gU1), gU2], U1 the square part of U."""
    phi = _difference(
        None if grad_l is None else matmul(lower.mH, grad_l), None if grad_u is None else matmul(grad_u.triu(), upper.mH)
    ).tril(-1)
    left = linalg_solve_triangular(upper.narrow(-1, 0, k).mH, phi, upper=False, left=False)
    if grad_u is None:
        return cat([left, left.new_zeros((*left.shape[:-1], n - k))], -1)
    return cat([left + grad_u.narrow(-1, 0, k).triu(), grad_u.narrow(-1, k, n - k)], -1)


def _tall(grad_l: Tensor | None, grad_u: Tensor | None, lower: Tensor, upper: Tensor, k: int, m: int) -> Tensor:
    """The gradient of P^T A times U^H: [L1^-H triu(gU U^H - L^H gL) + tril(gL1); gL2], L1 the square part of L."""
    phi = _difference(
        None if grad_u is None else matmul(grad_u, upper.mH), None if grad_l is None else matmul(lower.mH, grad_l.tril(-1))
    ).triu()
    top = linalg_solve_triangular(lower.narrow(-2, 0, k).mH, phi, upper=True, unitriangular=True)
    if grad_l is None:
        return cat([top, top.new_zeros((*top.shape[:-2], m - k, k))], -2)
    return cat([top + grad_l.narrow(-2, 0, k).tril(-1), grad_l.narrow(-2, k, m - k)], -2)


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


def _lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool, unpack_pivots: bool) -> tuple[Tensor, Tensor, Tensor]:
    _expect_matrix(LU_data, "torch.lu_unpack")
    if unpack_pivots and LU_pivots.dtype is not _dtype.int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
            "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    if unpack_pivots:
        _check_pivots(LU_data, LU_pivots)
    lower, upper = _unpacked_factors(LU_data) if unpack_data else (LU_data.new_empty((0,)), LU_data.new_empty((0,)))
    p = _permutation(LU_data, LU_pivots) if unpack_pivots else LU_data.new_empty((0,))
    return p, lower, upper


def _check_pivots(compact: Tensor, pivots: Tensor) -> None:
    *batch, m, n = compact.shape
    if tuple(pivots.shape) != (*batch, min(m, n)):
        raise RuntimeError(
            f"torch.lu_unpack: Expected LU_pivots of size {[*batch, min(m, n)]} for LU_data of size {list(compact.shape)}, but got "
            f"{list(pivots.shape)}"
        )
    found = pivots._array
    if found.size and not (found.min() >= 1 and found.max() <= m):
        raise RuntimeError(
            "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass the result of lu_factor?"
        )


def _unpacked_factors(compact: Tensor) -> tuple[Tensor, Tensor]:
    m, n = compact.shape[-2:]
    k = min(m, n)
    lower = (compact if n == k else compact.narrow(-1, 0, k)).tril()
    lower.diagonal(0, -2, -1).fill_(1)
    return lower, (compact if m == k else compact.narrow(-2, 0, k)).triu()


def _permutation(compact: Tensor, pivots: Tensor) -> Tensor:
    m = compact.shape[-2]
    order = aten.arange(m, device=pivots.device).expand((*pivots.shape[:-1], m))
    order = computed(kernels.swapped, order, pivots)
    p = aten.zeros((*pivots.shape[:-1], m, m), dtype=compact.dtype, device=compact.device)
    return p.scatter_(-2, order.unsqueeze(-2), 1.0)


def _lu_unpack_grad(grads: Sequence[Any], LU_data_shape: Sequence[int]) -> Tensor | None:
    """The factors' gradients back in the compact storage."""
    _, grad_l, grad_u = grads
    if grad_l is None and grad_u is None:
        return None
    *batch, m, n = LU_data_shape
    k = min(m, n)
    if grad_l is None:
        above = grad_u.triu()
        return above if m == k else cat([above, zeros((*batch, m - k, n), above)], -2)
    if grad_u is None:
        below = grad_l.tril(-1)
        return below if n == k else cat([below, zeros((*batch, m, n - k), below)], -1)
    above = (grad_u if n == k else grad_u.narrow(-1, 0, k)).triu()
    total = (grad_l if m == k else grad_l.narrow(-2, 0, k)).tril(-1) + above
    if n > k:
        total = cat([total, grad_u.narrow(-1, k, n - k)], -1)
    elif m > k:
        total = cat([total, grad_l.narrow(-2, k, m - k)], -2)
    return total


def _unpacked_shapes(shape: Any, unpack_data: bool, unpack_pivots: bool) -> tuple[Any, Any, Any]:
    *batch, m, n = shape
    k = min(m, n)
    factors = ((*batch, m, k), (*batch, k, n)) if unpack_data else ((0,), (0,))
    return ((*batch, m, m) if unpack_pivots else (0,), *factors)


lu_unpack = op(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
    over_tensors=_lu_unpack,
    shape=lambda LU_data, LU_pivots, unpack_data, unpack_pivots: _unpacked_shapes(LU_data.shape, unpack_data, unpack_pivots),
    grad={"LU_data": _lu_unpack_grad},
    nondifferentiable=("P",),
    variants="function",
)


def _linalg_lu(A: Tensor, pivot: bool) -> tuple[Tensor, Tensor, Tensor]:
    _expect_matrix(A, "linalg.lu")
    factors, pivots, _ = linalg_lu_factor_ex(A, pivot=pivot)
    return tuple(lu_unpack(factors, pivots))


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
    if not pivots.ndim:
        raise _checks.no_dimensions(-1)
    if pivots.shape[-1] != LU.shape[-1]:
        raise RuntimeError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix")
    if pivots.shape[:-1] != LU.shape[:-2]:
        raise RuntimeError(
            f"linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    if LU.dtype.kind not in "fc" and LU.dtype == B.dtype:
        check_floating(LU, "torch.linalg.lu_solve")
    kernels.require_lapack(LU, "lu_solve_cpu")
    if B.ndim > 2 and LU.ndim > 2:
        _checks.broadcast_shapes(B.shape[:-2], LU.shape[:-2])
    return kernels.lu_solve(LU, pivots, B, left=left, adjoint_=adjoint)


def _lu_solve_factor_grad(grad: Tensor, LU: Tensor, pivots: Tensor, result: Tensor, left: bool, adjoint: bool) -> Tensor:
    """Gradient of the compact factors: that of L below the diagonal, that of U above."""
    p, lower, upper = lu_unpack(LU, pivots, True, left == adjoint)
    if left != adjoint:
        product = -(matmul(grad, result.mH) if left else matmul(grad.mH, result))
        g = linalg_solve_triangular(upper.mH, product, upper=False)
        grad_l = linalg_solve_triangular(lower.mH, matmul(g, upper.mH), upper=True, unitriangular=True)
        return grad_l.tril(-1) + g.triu()
    product = matmul(matmul(p.mT, result), grad.mH) if left else matmul(matmul(p.mT, result.mH), grad)
    g = linalg_solve_triangular(lower.mH, -matmul(product, p), upper=True, left=False, unitriangular=True)
    grad_u = linalg_solve_triangular(upper.mH, matmul(lower.mH, g), upper=False, left=False)
    return g.tril(-1) + grad_u.triu()


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
