"""Systems with triangular matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _checks
from ..._backends.cpu.linalg import factorizations as kernels
from ..._tensor import Tensor, wrap
from ..machinery.declare import op
from .checks import check_matrix, check_square, check_system
from .cholesky import check_pair
from .matmul import conj, matmul

Array = np.ndarray[Any, Any]


def _solve_triangular_kernel(self: Array, B: Array, upper: bool, left: bool, unitriangular: bool) -> Array:
    check_square(self, "linalg.solve_triangular")
    check_matrix(B, "linalg.solve_triangular", "B")
    check_system(self, B, left, "linalg.solve_triangular")
    kernels.require_lapack(self, "triangular_solve_cpu")
    _checks.broadcast_shapes(B.shape[:-2], self.shape[:-2])
    return kernels.solve_triangular(self, B.astype(self.dtype, copy=False), upper=upper, left=left, unit=unitriangular)


def _triangle(x: Tensor, upper: bool, unit: bool) -> Tensor:
    return x.triu(int(unit)) if upper else x.tril(-int(unit))


def _solve_triangular_grad(
    grad: Tensor, self: Tensor, result: Tensor, upper: bool, left: bool, unitriangular: bool, needs: Sequence[bool]
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
    grads: Sequence[Tensor | None],
    A: Tensor,
    solution: Tensor,
    upper: bool,
    transpose: bool,
    unitriangular: bool,
    needs: Sequence[bool],
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
