"""The rules for divergences of normal vectors, with full covariance matrices or such of low rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import broadcast_shapes, diag_embed, linalg
from .._tensor import Tensor
from .kl import register_kl
from .lowrank_multivariate_normal import LowRankMultivariateNormal, _batch_lowrank_logdet
from .multivariate_normal import MultivariateNormal, _batch_mahalanobis, half_log_determinant

if TYPE_CHECKING:
    from .distribution import Distribution


def _check_events(p: Distribution, q: Distribution) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event shapes cannot be computed: "
            f"{tuple(p.event_shape)} and {tuple(q.event_shape)}"
        )


def _trace_of_square(matrix: Tensor) -> Tensor:
    """The trace of X Xᵀ: the sum of the squares of all elements."""
    rows, columns = matrix.shape[-2:]
    return matrix.reshape(-1, rows * columns).pow(2).sum(-1).reshape(matrix.shape[:-2])


def _log_determinant(d: MultivariateNormal | LowRankMultivariateNormal) -> Tensor:
    if isinstance(d, LowRankMultivariateNormal):
        return _batch_lowrank_logdet(*d._covariance)
    return 2 * half_log_determinant(d._unbroadcasted_scale_tril)


def _whitened(q: MultivariateNormal, matrix: Tensor) -> Tensor:
    """L⁻¹ X, where L is the factor of q's covariance."""
    factor = q._unbroadcasted_scale_tril
    batch = tuple(broadcast_shapes(factor.shape[:-2], matrix.shape[:-2]))
    factors, matrices = (m.expand(batch + m.shape[-2:]) for m in (factor, matrix))
    return linalg.solve_triangular(factors, matrices, upper=False)


def _projection(q: LowRankMultivariateNormal) -> Tensor:
    """A with inverse covariance D⁻¹ - Aᵀ A (Woodbury)."""
    factor, diagonal, capacitance = q._covariance
    return linalg.solve_triangular(capacitance, factor.mT / diagonal.unsqueeze(-2), upper=False)


def _normal_normal(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    _check_events(p, q)
    half_log_dets = half_log_determinant(q._unbroadcasted_scale_tril) - half_log_determinant(p._unbroadcasted_scale_tril)
    trace = _trace_of_square(_whitened(q, p._unbroadcasted_scale_tril))
    distance = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    return half_log_dets + 0.5 * (trace + distance - p.event_shape[0])


def _low_rank_low_rank(p: LowRankMultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    _check_events(p, q)
    log_dets = _log_determinant(q) - _log_determinant(p)
    distance = q._mahalanobis(q.loc - p.loc)
    A = _projection(q)
    factor, diagonal = p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag
    of_q = q._unbroadcasted_cov_diag
    trace = (
        (diagonal / of_q).sum(-1)
        + _trace_of_square(factor * of_q.rsqrt().unsqueeze(-1))
        - _trace_of_square(A * diagonal.sqrt().unsqueeze(-2))
        - _trace_of_square(A.matmul(factor))
    )
    return 0.5 * (log_dets + trace + distance - p.event_shape[0])


def _normal_low_rank(p: MultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    _check_events(p, q)
    log_dets = _log_determinant(q) - _log_determinant(p)
    distance = q._mahalanobis(q.loc - p.loc)
    factor = p._unbroadcasted_scale_tril
    by_diagonal = _trace_of_square(factor * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1))
    trace = by_diagonal - _trace_of_square(_projection(q).matmul(factor))
    return 0.5 * (log_dets + trace + distance - p.event_shape[0])


def _low_rank_normal(p: LowRankMultivariateNormal, q: MultivariateNormal) -> Tensor:
    _check_events(p, q)
    log_dets = _log_determinant(q) - _log_determinant(p)
    distance = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    diagonal = diag_embed(p._unbroadcasted_cov_diag.sqrt())
    trace = _trace_of_square(_whitened(q, p._unbroadcasted_cov_factor)) + _trace_of_square(_whitened(q, diagonal))
    return 0.5 * (log_dets + trace + distance - p.event_shape[0])


for _p, _q, _rule in (
    (MultivariateNormal, MultivariateNormal, _normal_normal),
    (LowRankMultivariateNormal, LowRankMultivariateNormal, _low_rank_low_rank),
    (MultivariateNormal, LowRankMultivariateNormal, _normal_low_rank),
    (LowRankMultivariateNormal, MultivariateNormal, _low_rank_normal),
):
    register_kl(_p, _q)(_rule)
