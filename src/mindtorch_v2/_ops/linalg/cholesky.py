"""Cholesky factors: the factorisation, solving and inverting with one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _checks
from ..._backends.cpu.linalg import factorizations as kernels
from ..._backends.cpu.machinery.dtypes import scalar_name
from ..._tensor import Tensor
from ..machinery.declare import op
from .checks import check_errors, check_floating, check_square, factorisation_error, raise_first_failure
from .matmul import matmul

Array = np.ndarray[Any, Any]


def _cholesky_ex(self: Array, upper: bool, check_errors: bool) -> tuple[Array, Array]:
    check_square(self, "linalg.cholesky")
    check_floating(self, "linalg.cholesky")
    kernels.require_lapack(self, "cholesky_cpu")
    factor, info = kernels.cholesky_ex(self, upper)
    if check_errors:
        raise_first_failure(info, "linalg.cholesky_ex")
    return factor, info


def cholesky_grad(grad: Tensor, factor: Tensor, upper: bool) -> Tensor:
    """Gradient of the matrix from that of its factor: L⁻ᴴ S L⁻¹ with S the Hermitian part of tril(Lᴴ gL), its
    diagonal halved.
    """
    lower = factor.mH if upper else factor
    gradient = grad.mH if upper else grad
    phi = matmul(lower.mH, gradient).tril()
    phi = 0.5 * (phi + phi.tril(-1).mH)
    half = _solve_triangular(lower.mH, phi, upper=True, left=True)
    return _solve_triangular(lower, half, upper=False, left=False)


def _solve_triangular(a: Tensor, b: Tensor, *, upper: bool, left: bool) -> Tensor:
    from .triangular_systems import linalg_solve_triangular  # cycle with _ops.linalg.triangular_systems

    return linalg_solve_triangular(a, b, upper=upper, left=left)


linalg_cholesky_ex = op(
    "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
    cpu=_cholesky_ex,
    grad={"self": lambda grad, L, upper: cholesky_grad(grad, L, upper)},
    nondifferentiable=("info",),
    variants="function",
)


def _linalg_cholesky(self: Tensor, upper: bool) -> Tensor:
    factor, info = linalg_cholesky_ex(self, upper=upper)
    check_errors(info, "linalg.cholesky", is_matrix=self.ndim == 2)
    return factor


linalg_cholesky = op("linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", composite=_linalg_cholesky, variants="function")


def _cholesky(self: Array, upper: bool) -> Array:
    if not self.size:
        return np.empty(self.shape, self.dtype)  # torch: of whatever shape and dtype
    check_square(self, "cholesky")
    kernels.require_lapack(self, "cholesky_cpu")
    factor, info = kernels.cholesky_ex(self, upper)
    raise_first_failure(info, "cholesky")
    return factor


cholesky = op(
    "cholesky(Tensor self, bool upper=False) -> Tensor",
    cpu=_cholesky,
    grad={"self": lambda grad, result, upper: cholesky_grad(grad, result, upper)},
)


def _cholesky_inverse(self: Array, upper: bool) -> Array:
    check_square(self, "cholesky_inverse")
    kernels.require_lapack(self, "cholesky_inverse_out_cpu")
    inverse, code, element = kernels.cholesky_inverse(self, upper)
    if code:
        raise factorisation_error("cholesky_inverse", code, element if self.ndim > 2 else None)
    return inverse


def _cholesky_inverse_grad(grad: Tensor, self: Tensor, result: Tensor, upper: bool) -> Tensor:
    common = matmul(result, matmul(grad + grad.mH, result))
    return -matmul(self, common) if upper else -matmul(common, self)


cholesky_inverse = op(
    "cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
    cpu=_cholesky_inverse,
    grad={"self": _cholesky_inverse_grad},
)


def _solve_helper(self: Array, A: Array, upper: bool) -> Array:
    kernels.require_lapack(self, "cholesky_solve_cpu")
    return kernels.cholesky_solve(self, A, upper)


_cholesky_solve_helper = op(
    "_cholesky_solve_helper(Tensor self, Tensor A, bool upper) -> Tensor", cpu=_solve_helper, variants="function"
)


def _cholesky_solve(self: Tensor, input2: Tensor, upper: bool) -> Tensor:
    for name, x in (("b", self), ("u", input2)):
        if x.ndim < 2:
            raise RuntimeError(f"{name} should have at least 2 dimensions, but has {x.ndim} dimensions instead")
    check_pair(self, input2, "cholesky_solve")
    if self.shape[:-2] != input2.shape[:-2]:
        batch = _checks.broadcast_shapes(self.shape[:-2], input2.shape[:-2])
        self = self.expand((*batch, *self.shape[-2:]))
        input2 = input2.expand((*batch, *input2.shape[-2:]))
    return _cholesky_solve_helper(self, input2, upper)


def check_pair(b: Tensor, a: Tensor, function: str) -> None:
    """Refuse a right-hand side that does not belong to the matrix, in the words of torch's older solvers."""
    if b.dtype is not a.dtype:
        names = scalar_name(b._array), scalar_name(a._array)
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {names[0]} and A of type {names[1]} instead."
        )
    m, n = a.shape[-2:]
    if m != n:
        raise RuntimeError(f"A must be batches of square matrices, but they are {m} by {n} matrices")
    if n != b.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for {function}: each A matrix is {m} by {n} but each b matrix is "
            f"{b.shape[-2]} by {b.shape[-1]}"
        )


def _cholesky_solve_grad(grad: Tensor, input2: Tensor, result: Tensor, upper: bool, needs: Sequence[bool]) -> tuple[Any, Any]:
    grad_self = cholesky_solve(grad, input2, upper)
    if not needs[1]:
        return grad_self, None
    common = matmul(grad_self, result.mH)
    common = common + common.mH
    return grad_self, -matmul(input2, common) if upper else -matmul(common, input2)


cholesky_solve = op(
    "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
    composite=_cholesky_solve,
    grad={("self", "input2"): _cholesky_solve_grad},
)
