"""LDL factorisation of symmetric and Hermitian matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._backends.cpu.linalg import factorizations as kernels
from ..._backends.cpu.machinery.dtypes import scalar_name
from ..._checks import no_dimensions
from ..._tensor import Tensor
from ..machinery.declare import op
from .checks import check_errors, check_floating, check_square, raise_first_failure

Array = np.ndarray[Any, Any]


def _ldl_factor_ex(self: Array, hermitian: bool, check_errors: bool) -> tuple[Array, Array, Array]:
    check_square(self, "torch.linalg.ldl_factor_ex")
    check_floating(self, "torch.linalg.ldl_factor_ex")
    factors = kernels.ldl_factor(self, hermitian)
    if check_errors:
        raise_first_failure(factors[2], "torch.linalg.ldl_factor_ex")
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
    if not B.ndim:
        raise no_dimensions(-2)
    if B.ndim < 2:
        raise RuntimeError(
            f"torch.linalg.ldl_solve: Expected B to have at least 2 dimensions, but it has {B.ndim} dimensions instead"
        )
    if LD.shape[-1] != B.shape[-2]:
        (m, n), (p, q) = LD.shape[-2:], B.shape[-2:]
        raise RuntimeError(
            f"Incompatible matrix sizes for torch.linalg.ldl_solve: each A matrix is {m} by {n} but each b matrix is {p} by {q}"
        )
    if LD.shape[:-1] != pivots.shape:
        raise RuntimeError(
            "torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    if pivots.dtype.kind not in "iu":
        raise RuntimeError(f"torch.linalg.ldl_solve: Expected pivots to be integers. Got {scalar_name(pivots)}")
    if LD.dtype != B.dtype:
        raise RuntimeError(f"torch.linalg.ldl_solve: LD dtype {scalar_name(LD)} does not match b dtype {scalar_name(B)}")
    for bound, fits in ((">= 1", np.abs(pivots) >= 1), ("<= LD.size(-2)", np.abs(pivots) <= LD.shape[-2])):
        if not fits.all():
            raise RuntimeError(
                f"Pivots given to ldl_solve must all satisfy |pivot| {bound}. Did you properly pass the result of ldl_factor?"
            )
    return kernels.ldl_solve(LD, pivots, B, hermitian)


linalg_ldl_solve = op(
    "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
    cpu=_ldl_solve,
    variants="function",
)
