"""LU factorisation and what follows from it: solving, inverses and determinants; triangular systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _checks, _dtype
from .._backends.cpu import linalg as kernels
from .._backends.cpu.matmul import scalar_name
from .._dispatch.tls import state
from .._tensor import Tensor, wrap
from .cholesky import check_pair
from .declare import op
from .linalg_checks import check_errors, check_floating, check_matrix, check_square, check_system, factorisation_error
from .matmul import conj, matmul

Array = np.ndarray[Any, Any]


def _first_failure(info: Array, api_name: str) -> None:
    if info.any():
        codes = info.reshape(-1)
        element = int(np.flatnonzero(codes)[0])
        raise factorisation_error(api_name, int(codes[element]), element if info.ndim else None)


# --- triangular systems -----------------------------------------------------------------------------------------------


def _solve_triangular_kernel(self: Array, B: Array, upper: bool, left: bool, unitriangular: bool) -> Array:
    check_square(self, "linalg.solve_triangular")
    check_matrix(B, "linalg.solve_triangular", "B")
    check_system(self, B, left, "linalg.solve_triangular")
    kernels.require_lapack(self, "triangular_solve_cpu")
    _checks.broadcast_shapes(B.shape[:-2], self.shape[:-2])
    return kernels.solve_triangular(self, B.astype(self.dtype, copy=False), upper=upper, left=left, unit=unitriangular)


def _triangle(x: Tensor, upper: bool, unit: bool) -> Tensor:
    return x.triu(int(unit)) if upper else x.tril(-int(unit))  # type: ignore[no-any-return]


def _solve_triangular_grad(
    grad: Tensor, self: Tensor, result: Tensor, upper: bool, left: bool, unitriangular: bool, needs: Any
) -> tuple[Any, Any]:
    grad_b = linalg_solve_triangular(self.mH, grad, upper=not upper, left=left, unitriangular=unitriangular)
    if not needs[0]:
        return None, grad_b
    grad_a = -matmul(grad_b, result.mH) if left else -matmul(result.mH, grad_b)
    return _triangle(grad_a, upper, unitriangular), grad_b


linalg_solve_triangular = op(
    "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
    cpu=_solve_triangular_kernel,
    grad={("self", "B"): _solve_triangular_grad},
    variants="function",
)


def _triangular_solve_kernel(self: Array, A: Array, upper: bool, transpose: bool, unitriangular: bool) -> tuple[Array, Array]:
    for name, x in (("b", self), ("A", A)):
        if x.ndim < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has {x.ndim} dimensions instead"
            )
    check_pair(wrap(self), wrap(A), "triangular_solve")
    kernels.require_lapack(self, "triangular_solve_cpu")
    batch = _checks.broadcast_shapes(self.shape[:-2], A.shape[:-2])
    cloned = kernels.column_major(np.broadcast_to(A, batch + A.shape[-2:]))
    matrix = A.swapaxes(-1, -2) if transpose else A
    return kernels.solve_triangular(matrix, self, upper=upper != transpose, unit=unitriangular), cloned


def _triangular_solve_grad(
    grads: Any,
    A: Tensor,
    solution: Tensor,
    upper: bool,
    transpose: bool,
    unitriangular: bool,
    needs: Any,
) -> tuple[Any, Any]:
    grad_x, grad_m = grads
    grad_b = grad_a = None
    if grad_x is not None:
        grad_b = triangular_solve(grad_x, conj(A), upper, not transpose, unitriangular)[0]
        if needs[1]:
            grad_a = -matmul(conj(solution), grad_b.mT) if transpose else -matmul(grad_b, solution.mH)
            grad_a = _triangle(grad_a, upper, unitriangular)
    if needs[1] and grad_m is not None:
        grad_a = grad_m if grad_a is None else grad_a + grad_m
    return grad_b, grad_a


triangular_solve = op(
    "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False)"
    " -> (Tensor solution, Tensor cloned_coefficient)",
    cpu=_triangular_solve_kernel,
    grad={("self", "A"): _triangular_solve_grad},
)


# --- LU ---------------------------------------------------------------------------------------------------------------


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
        _first_failure(factors[2], "torch.linalg.lu_factor_ex")
    return factors


def _lu_grad(grad_l: Tensor | None, grad_u: Tensor | None, p: Tensor, lower: Tensor, upper: Tensor) -> Tensor | None:
    """Gradient of A = P L U from those of L and U, whatever the shape of A."""
    if grad_l is None and grad_u is None:
        return None
    m, n, k = lower.shape[-2], upper.shape[-1], lower.shape[-1]
    l1, u1 = lower.narrow(-2, 0, k), upper.narrow(-1, 0, k)
    parts: list[Tensor] = []
    if grad_l is not None:
        below = matmul(l1.mH, grad_l.narrow(-2, 0, k))
        if n > k and grad_u is not None:
            below = below - matmul(grad_u.narrow(-1, k, n - k), upper.narrow(-1, k, n - k).mH)
        parts.append(below.tril(-1))
    elif n > k and grad_u is not None:
        parts.append(-matmul(grad_u.narrow(-1, k, n - k), upper.narrow(-1, k, n - k).mH).tril(-1))
    if grad_u is not None:
        above = matmul(grad_u.narrow(-1, 0, k), u1.mH)
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
        out = _joined(out, right, -1)
    elif m > k:
        bottom = out.new_zeros((*out.shape[:-2], m - k, n))
        if grad_l is not None:
            bottom = linalg_solve_triangular(u1.mH, grad_l.narrow(-2, k, m - k), upper=False, left=False)
        out = _joined(out, bottom, -2)
    return matmul(p, out)  # type: ignore[no-any-return]


def _joined(a: Tensor, b: Tensor, dim: int) -> Tensor:
    from .joining import cat

    return cat([a, b], dim)  # type: ignore[no-any-return]


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
            total = _joined(total, total.new_zeros((*total.shape[:-1], n - k)), -1)
    if grad_u is not None:
        above = grad_u.triu()
        if m > k:
            above = _joined(above, above.new_zeros((*above.shape[:-2], m - k, n)), -2)
        total = above if total is None else total + above
    return total


lu_unpack = op(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
    cpu=_lu_unpack_kernel,
    grad={"LU_data": _lu_unpack_grad},
    nondifferentiable=("P",),
    variants="function",
)


def _linalg_lu_kernel(A: Array, pivot: bool) -> tuple[Array, Array, Array]:
    _expect_matrix(A, "linalg.lu")
    kernels.require_lapack(A, "lu_cpu")
    _check_pivot(pivot)
    factors, pivots, _ = kernels.lu_factor(A)
    return kernels.permutation_matrix(pivots, A.shape[-2], A.dtype), *kernels.lu_parts(factors)


linalg_lu = op(
    "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
    cpu=_linalg_lu_kernel,
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


# --- solve and inverse ------------------------------------------------------------------------------------------------


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
        _first_failure(info, "torch.linalg.solve_ex")
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
        _first_failure(info, "linalg.inv_ex")
    eye = np.eye(A.shape[-1], dtype=A.dtype)
    return kernels.lu_solve(factors, pivots, eye, left=True, adjoint_=False), info


linalg_inv_ex = op(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    cpu=_inv_ex_kernel,
    grad={"A": lambda grad, inverse: -matmul(inverse.mH, matmul(grad, inverse.mH))},
    nondifferentiable=("info",),
    variants="function",
)


def _inv(A: Tensor) -> Tensor:
    inverted, info = linalg_inv_ex(A)
    check_errors(info, "linalg.inv", is_matrix=A.ndim == 2)
    return inverted  # type: ignore[no-any-return]


linalg_inv = op("linalg_inv(Tensor A) -> Tensor", composite=_inv, variants="function")
inverse = op("inverse(Tensor self) -> Tensor", composite=lambda self: linalg_inv(self))


# --- determinants -----------------------------------------------------------------------------------------------------


def _det_kernel(A: Array) -> tuple[Array, Array, Array]:
    check_square(A, "linalg.det")
    check_floating(A, "linalg.det")
    factors, pivots, _ = kernels.lu_factor(A)
    diagonal = np.diagonal(factors, axis1=-2, axis2=-1)
    return (diagonal.prod(-1) * kernels.swap_sign(pivots)).astype(A.dtype), factors, pivots


def _det_grad(grad: Tensor, A: Tensor, LU: Tensor, pivots: Tensor, result: Tensor) -> Tensor:
    """grad · det(A)* · A⁻ᴴ; det is smooth, so that a singular A may be moved by a little."""
    n = A.shape[-1]
    if not A.numel():
        return A.new_zeros(A.shape)  # type: ignore[no-any-return]
    if n == 1:
        return grad.unsqueeze(-1).unsqueeze(-1)  # type: ignore[no-any-return]
    if state.grad_enabled:
        return _det_grad_differentiable(grad, A, result)
    scaled = (grad * conj(result)).unsqueeze(-1).expand((*result.shape, n)).diag_embed()
    tiny = float(np.finfo(A.dtype.np).eps)
    diagonal = LU.diagonal(0, -2, -1)
    shift = (diagonal == 0).to(diagonal.dtype) * tiny
    return linalg_lu_solve(LU + shift.diag_embed(), pivots, scaled, left=True, adjoint=True)  # type: ignore[no-any-return]


def _det_grad_differentiable(grad: Tensor, A: Tensor, det: Tensor) -> Tensor:
    """The same for further derivatives: through a solve for regular matrices, through the SVD for singular ones."""
    n = A.shape[-1]
    singular = det._array == 0
    if not singular.any():
        scaled = (grad * conj(det)).unsqueeze(-1).expand((*det.shape, n)).diag_embed()
        return linalg_solve(A.mH, scaled)  # type: ignore[no-any-return]
    from .decomposition import linalg_svd

    u, s, vh = linalg_svd(A)
    alpha = conj(linalg_det(u) * linalg_det(vh)) * grad
    others = [s.index_select(-1, _all_but(i, n)).prod(-1) for i in range(n)]
    gamma = _stack(others) * alpha.unsqueeze(-1)
    return matmul(u * gamma.unsqueeze(-2).to(u.dtype), vh)  # type: ignore[no-any-return]


def _all_but(i: int, n: int) -> Tensor:
    return wrap(np.delete(np.arange(n), i))


def _stack(tensors: list[Tensor]) -> Tensor:
    from .joining import stack

    return stack(tensors, -1)  # type: ignore[no-any-return]


_linalg_det = op(
    "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
    cpu=_det_kernel,
    grad={"A": _det_grad},
    nondifferentiable=("LU", "pivots"),
    variants="function",
)
linalg_det = op("linalg_det(Tensor A) -> Tensor", composite=lambda A: _linalg_det(A)[0], variants="function")
det = op("det(Tensor self) -> Tensor", composite=lambda self: linalg_det(self))


def _slogdet_kernel(A: Array) -> tuple[Array, Array, Array, Array]:
    check_square(A, "linalg.slogdet")
    check_floating(A, "linalg.slogdet", low_precision=False)
    factors, pivots, _ = kernels.lu_factor(A)
    diagonal = np.diagonal(factors, axis1=-2, axis2=-1)
    sign = np.sign(diagonal).prod(-1) * kernels.swap_sign(pivots)
    return sign.astype(A.dtype), np.log(np.abs(diagonal)).sum(-1), factors, pivots


def _slogdet_grad(grads: Any, A: Tensor, sign: Tensor, LU: Tensor, pivots: Tensor) -> Tensor | None:
    """g A⁻ᴴ with g the gradient of log|det|, less for complex matrices the part that turns the sign."""
    grad_sign, grad_log = grads[:2]
    complex_ = A.dtype.is_complex
    if grad_log is None and (grad_sign is None or not complex_):
        return None
    if complex_:
        g = None if grad_log is None else grad_log.to(sign.dtype)
        if grad_sign is not None:
            turn = conj(grad_sign) * sign
            turn = 1j * turn.imag if turn.dtype.is_complex else turn
            g = -turn if g is None else g - turn
        assert g is not None
    else:
        g = grad_log
    n = A.shape[-1]
    scaled = g.unsqueeze(-1).expand((*g.shape, n)).diag_embed()
    if state.grad_enabled:
        return linalg_solve(A.mH, scaled)  # type: ignore[no-any-return]
    return linalg_lu_solve(LU, pivots, scaled, left=True, adjoint=True)  # type: ignore[no-any-return]


_linalg_slogdet = op(
    "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
    cpu=_slogdet_kernel,
    grad={"A": _slogdet_grad},
    nondifferentiable=("LU", "pivots"),
    variants="function",
)
linalg_slogdet = op(
    "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
    composite=lambda A: tuple(_linalg_slogdet(A)[:2]),
    variants="function",
)
slogdet = op("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", composite=lambda self: linalg_slogdet(self))


def _logdet(self: Tensor) -> Tensor:
    check_square(self, "logdet")
    check_floating(self._array, "logdet", low_precision=False)
    sign, logabsdet = linalg_slogdet(self)
    if self.dtype.is_complex:
        return sign.log() + logabsdet  # type: ignore[no-any-return]
    nan = wrap(np.asarray(np.nan, _dtype.float32.np if self.dtype is _dtype.float32 else self.dtype.np))
    return logabsdet.where(sign != -1, nan)  # type: ignore[no-any-return]


logdet = op("logdet(Tensor self) -> Tensor", composite=_logdet)


# --- LDL --------------------------------------------------------------------------------------------------------------


def _ldl_factor_ex(self: Array, hermitian: bool, check_errors: bool) -> tuple[Array, Array, Array]:
    check_square(self, "torch.linalg.ldl_factor_ex")
    check_floating(self, "torch.linalg.ldl_factor_ex")
    factors = kernels.ldl_factor(self, hermitian)
    if check_errors:
        _first_failure(factors[2], "torch.linalg.ldl_factor_ex")
    return factors


linalg_ldl_factor_ex = op(
    "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False)"
    " -> (Tensor LD, Tensor pivots, Tensor info)",
    cpu=_ldl_factor_ex,
    variants="function",
)


def _ldl_factor(self: Tensor, hermitian: bool) -> tuple[Tensor, Tensor]:
    factors, pivots, info = linalg_ldl_factor_ex(self, hermitian=hermitian)
    check_errors(info, "torch.linalg.ldl_factor", is_matrix=self.ndim == 2)
    return factors, pivots


linalg_ldl_factor = op(
    "linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
    composite=_ldl_factor,
    variants="function",
)


def _ldl_solve(LD: Array, pivots: Array, B: Array, hermitian: bool) -> Array:
    check_square(LD, "torch.linalg.ldl_solve")
    check_floating(LD, "torch.linalg.ldl_solve")
    if B.ndim < 2:
        raise RuntimeError(
            f"torch.linalg.ldl_solve: Expected B to have at least 2 dimensions, but it has {B.ndim} dimensions instead"
        )
    if LD.shape[-1] != B.shape[-2]:
        (m, n), (p, q) = LD.shape[-2:], B.shape[-2:]
        raise RuntimeError(
            f"Incompatible matrix sizes for torch.linalg.ldl_solve: each A matrix is {m} by {n} but each b matrix is {p} by {q}"
        )
    if pivots.dtype.kind not in "iu":
        raise RuntimeError(f"torch.linalg.ldl_solve: Expected pivots to be integers. Got {scalar_name(pivots)}")
    if LD.dtype != B.dtype:
        raise RuntimeError(f"torch.linalg.ldl_solve: LD dtype {scalar_name(LD)} does not match b dtype {scalar_name(B)}")
    return kernels.ldl_solve(LD, pivots, B, hermitian)


linalg_ldl_solve = op(
    "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
    cpu=_ldl_solve,
    variants="function",
)
