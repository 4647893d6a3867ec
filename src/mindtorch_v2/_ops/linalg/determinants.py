"""Determinants and their logarithms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._dispatch.tls import state
from ..._tensor import Tensor, wrap
from ..machinery.declare import op
from ..machinery.lookup import aten
from ..shapes.joining import stack
from .checks import check_floating, check_square
from .decomposition import linalg_svd
from .lu import linalg_lu_factor_ex, linalg_lu_solve
from .matmul import conj, matmul
from .solve import linalg_solve

Array = np.ndarray[Any, Any]


def _det(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    check_square(A, "linalg.det")
    check_floating(A._array, "linalg.det")
    factors, pivots, _ = linalg_lu_factor_ex(A)
    return factors.diagonal(0, -2, -1).prod(-1).mul(_sign_of_swaps(pivots)), factors, pivots


def _sign_of_swaps(pivots: Tensor) -> Tensor:
    """1 for an even number of rows swapped, -1 for an odd one."""
    swapped = aten.arange(1, pivots.shape[-1] + 1, device=pivots.device, dtype=pivots.dtype) != pivots
    return swapped.sum(-1).fmod_(2).mul_(-2).add_(1)


def _det_grad(grad: Tensor, A: Tensor, LU: Tensor, pivots: Tensor, result: Tensor) -> Tensor:
    """grad · det(A)* · A⁻ᴴ; det is smooth, so that a singular A may be moved by a little."""
    n = A.shape[-1]
    if not A.numel():
        return aten.zeros_like(A)
    if n == 1:
        return grad.unsqueeze(-1).unsqueeze(-1)
    if state.grad_enabled:
        return _det_grad_differentiable(grad, A, result)
    scaled = (grad * conj(result)).unsqueeze(-1).expand((*result.shape, n)).diag_embed().mT  # columns lie in a row, as LAPACK wants
    tiny = float(np.finfo(A.dtype.np).eps)
    diagonal = LU.diagonal(0, -2, -1)
    shift = aten.where(diagonal == 0, tiny, 0.0).to(diagonal.dtype)
    return linalg_lu_solve(LU + shift.diag_embed(), pivots, scaled, left=True, adjoint=True)


def _det_grad_differentiable(grad: Tensor, A: Tensor, det: Tensor) -> Tensor:
    """The same for further derivatives: through a solve for regular matrices, through the SVD for singular ones."""
    n = A.shape[-1]
    singular = det._array == 0
    if not singular.any():
        scaled = (grad * conj(det)).unsqueeze(-1).expand((*det.shape, n)).diag_embed()
        return linalg_solve(A.mH, scaled)
    u, s, vh = linalg_svd(A)
    alpha = conj(linalg_det(u) * linalg_det(vh)) * grad
    others = [s.index_select(-1, _all_but(i, n)).prod(-1) for i in range(n)]
    gamma = stack(others, -1) * alpha.unsqueeze(-1)
    return matmul(u * gamma.unsqueeze(-2).to(u.dtype), vh)


def _all_but(i: int, n: int) -> Tensor:
    return wrap(np.delete(np.arange(n), i))


_linalg_det = op(
    "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
    over_tensors=_det,
    shape=lambda A: (A.shape[:-2], A.shape, A.shape[:-1]),
    grad={"A": _det_grad},
    nondifferentiable=("LU", "pivots"),
    variants="function",
)
linalg_det = op("linalg_det(Tensor A) -> Tensor", composite=lambda A: _linalg_det(A)[0], variants="function")
det = op("det(Tensor self) -> Tensor", composite=lambda self: linalg_det(self))


def _slogdet(A: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    check_square(A, "linalg.slogdet")
    check_floating(A._array, "linalg.slogdet", low_precision=False)
    factors, pivots, _ = linalg_lu_factor_ex(A)
    diagonal = factors.diagonal(0, -2, -1)
    sign = _sign_of_swaps(pivots)
    return diagonal.sgn().prod(-1).mul(sign), diagonal.abs().log_().sum(-1), factors, pivots


def _slogdet_grad(grads: Sequence[Any], A: Tensor, sign: Tensor, LU: Tensor, pivots: Tensor) -> Tensor | None:
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
        return linalg_solve(A.mH, scaled)
    return linalg_lu_solve(LU, pivots, scaled.mT, left=True, adjoint=True)


_linalg_slogdet = op(
    "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
    over_tensors=_slogdet,
    shape=lambda A: (A.shape[:-2], A.shape[:-2], A.shape, A.shape[:-1]),
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
        return sign.log() + logabsdet
    return aten.where(sign == -1, float("nan"), logabsdet)


logdet = op("logdet(Tensor self) -> Tensor", composite=_logdet)
