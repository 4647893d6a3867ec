"""Operations of matrix decompositions, solvers and Fourier transforms: the leading terms that textbooks give.

Direct methods as LAPACK counts them (Blackford and Dongarra, "Installation Guide for LAPACK"), iterative ones as Golub and Van Loan do
("Matrix Computations", 8.3, 7.5 and 8.6). A Fourier transform of n numbers is 5 n log2 n, half of it when one side is real.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .session import TensorInput

__all__ = ["DECOMPOSITIONS"]

Formula = Callable[..., int]


def _square(thirds: int) -> Formula:
    """So many thirds of n³ for each matrix of the first argument."""
    return lambda self, *_: prod(self.shape[:-2]) * thirds * self.shape[-1] ** 3 // 3


def _lu(self: TensorInput, *_: Any) -> int:
    rows, columns = max(self.shape[-2:]), min(self.shape[-2:])
    return prod(self.shape[:-2]) * (3 * rows * columns**2 - columns**3) // 3


def _householder(self: TensorInput, *_: Any) -> int:
    """Making the reflections of a QR decomposition, or multiplying them out."""
    rows, columns = max(self.shape[-2:]), min(self.shape[-2:])
    return prod(self.shape[:-2]) * 2 * (3 * rows * columns**2 - columns**3) // 3


def _qr(self: TensorInput, mode: str = "reduced") -> int:
    return _householder(self) * (1 if mode == "r" else 2)


def _columns(right: TensorInput, n: int) -> int:
    """Count the right-hand sides, in all batches."""
    return prod(right.shape) // n


def _solved(times: int, *, matrix: int, right: int) -> Formula:
    """So many n² for each right-hand side: 1 by substitution, 2 with both factors."""

    def count(*inputs: Any) -> int:
        n = inputs[matrix].shape[-1]
        return times * n * n * _columns(inputs[right], n)

    return count


def _solve(matrix: TensorInput, right: TensorInput, *_: Any) -> int:
    n = matrix.shape[-1]
    return _lu(matrix) + 2 * n * n * _columns(right, n)


def _svd(self: TensorInput, full_matrices: bool = False, compute_uv: bool = True, *_: Any) -> int:
    rows, columns = max(self.shape[-2:]), min(self.shape[-2:])
    if not compute_uv:
        each = (12 * rows * columns**2 - 4 * columns**3) // 3
    elif full_matrices:
        each = 4 * rows**2 * columns + 8 * rows * columns**2 + 9 * columns**3
    else:
        each = 14 * rows * columns**2 + 8 * columns**3
    return prod(self.shape[:-2]) * each


def _eigh(self: TensorInput, uplo: str = "L", compute_v: bool = True, *_: Any) -> int:
    return prod(self.shape[:-2]) * (27 if compute_v else 4) * self.shape[-1] ** 3 // 3


def _fourier(half: bool, *, length: int | None = None) -> Formula:
    """`length`: which argument says how long the last dimension of the result is."""

    def count(self: TensorInput, dim: Sequence[int], *rest: Any) -> int:
        sizes = [self.shape[d] for d in dim]
        elements = prod(self.shape)
        if length is not None:
            elements, sizes[-1] = elements // sizes[-1] * rest[length], rest[length]
        return round(5 * elements * math.log2(prod(sizes)) / (2 if half else 1))

    return count


def _ctc(log_probs: TensorInput, targets: TensorInput, *_: Any) -> int:
    """Three terms in logarithms for each step, and each letter or gap: 2 `logaddexp` of 4, and a sum."""
    steps, batch = log_probs.shape[:2]
    return 9 * steps * (2 * prod(targets.shape) + batch)


DECOMPOSITIONS: dict[str, Formula] = {
    **dict.fromkeys(("cholesky", "linalg_cholesky_ex", "linalg_ldl_factor_ex"), _square(1)),
    "cholesky_inverse": _square(2),
    "linalg_inv_ex": _square(6),
    **dict.fromkeys(("linalg_lu_factor_ex", "_linalg_det", "_linalg_slogdet"), _lu),
    "_cholesky_solve_helper": _solved(2, matrix=1, right=0),
    "linalg_lu_solve": _solved(2, matrix=0, right=2),
    "linalg_ldl_solve": _solved(2, matrix=0, right=2),
    "linalg_solve_triangular": _solved(1, matrix=0, right=1),
    "triangular_solve": _solved(1, matrix=1, right=0),
    "_linalg_solve_ex": _solve,
    **dict.fromkeys(("geqrf", "linalg_householder_product"), _householder),
    "linalg_qr": _qr,
    "ormqr": lambda self, tau, other, *_: 4 * prod(other.shape) * tau.shape[-1],
    "_linalg_svd": _svd,
    "_linalg_eigh": _eigh,
    "linalg_eig": _square(75),
    "_linalg_eigvals": _square(30),
    "_fft_c2c": _fourier(False),
    "_fft_r2c": _fourier(True),
    "_fft_c2r": _fourier(True, length=1),
    "_ctc_loss": _ctc,
    "_ctc_loss_backward": lambda grad, log_probs, targets, *_: _ctc(log_probs, targets) + 4 * prod(log_probs.shape),
}
