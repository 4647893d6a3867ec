"""Normal vectors whose covariance is a matrix of low rank plus a diagonal one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import broadcast_tensors, diag_embed, linalg, matmul
from .._tensor import Size, Tensor
from . import constraints
from .distribution import Distribution
from .multivariate_normal import _batch_mahalanobis, _batch_mv
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _plus_identity(K: Tensor) -> Tensor:
    """K + I, in place."""
    n = K.size(-1)
    K.view(-1, n * n)[:, :: n + 1] += 1
    return K


def _batch_capacitance_tril(W: Tensor, D: Tensor) -> Tensor:
    """The Cholesky factor of I + Wᵀ D⁻¹ W, which is as small as the rank of W."""
    weighted = W.mT / D.unsqueeze(-2)
    return linalg.cholesky(_plus_identity(matmul(weighted, W).contiguous()))


def _batch_lowrank_logdet(W: Tensor, D: Tensor, capacitance_tril: Tensor) -> Tensor:
    """The log determinant of W Wᵀ + D, by the matrix determinant lemma."""
    return 2 * capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1) + D.log().sum(-1)


def _batch_lowrank_mahalanobis(W: Tensor, D: Tensor, x: Tensor, capacitance_tril: Tensor) -> Tensor:
    """xᵀ (W Wᵀ + D)⁻¹ x, by Woodbury's identity."""
    weighted = W.mT / D.unsqueeze(-2)
    projected = _batch_mv(weighted, x)
    by_diagonal = (x.pow(2) / D).sum(-1)
    return by_diagonal - _batch_mahalanobis(capacitance_tril, projected)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors around `loc` with the covariance cov_factor @ cov_factorᵀ + diag(cov_diag)."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _batched = {"loc": 1, "cov_diag": 1, "cov_factor": 2}
    _kept = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            wide_loc, self.cov_factor, wide_diag = broadcast_tensors(loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1))
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc, self.cov_diag = wide_loc[..., 0], wide_diag[..., 0]
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)
        super().__init__(self.loc.shape[:-1], event_shape, validate_args=validate_args)

    @property
    def _covariance(self) -> tuple[Any, Any, Any]:
        """What the functions of this module take: factor, diagonal, and the Cholesky factor of the capacitance matrix."""
        return self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, self._capacitance_tril

    def _mahalanobis(self, x: Tensor) -> Tensor:
        factor, diagonal, capacitance = self._covariance
        return _batch_lowrank_mahalanobis(factor, diagonal, x, capacitance)

    def _spread(self, value: Tensor, dims: int) -> Tensor:
        return value.expand(self._batch_shape + self._event_shape * dims)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        return self._spread(self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag, 1)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance matrix.

        W Wᵀ + D is D½ (I + D-½ W Wᵀ D-½) D½, and the matrix in the middle has no eigenvalue below one.
        """
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        middle = _plus_identity(matmul(scaled, scaled.mT).contiguous())
        return self._spread(root * linalg.cholesky(middle), 2)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix."""
        low_rank = matmul(self._unbroadcasted_cov_factor, self._unbroadcasted_cov_factor.mT)
        return self._spread(low_rank + diag_embed(self._unbroadcasted_cov_diag), 2)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix, by Woodbury's identity."""
        weighted = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        solved = linalg.solve_triangular(self._capacitance_tril, weighted, upper=False)
        return self._spread(diag_embed(self._unbroadcasted_cov_diag.reciprocal()) - solved.mT @ solved, 2)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        options = {"dtype": self.loc.dtype, "device": self.loc.device}
        of_factor = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], **options)
        of_diagonal = _standard_normal(shape, **options)
        common = _batch_mv(self._unbroadcasted_cov_factor, of_factor)
        return self.loc + common + self._unbroadcasted_cov_diag.sqrt() * of_diagonal

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        distance = self._mahalanobis(value - self.loc)
        log_det = _batch_lowrank_logdet(*self._covariance)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + log_det + distance)

    def entropy(self) -> Tensor:
        log_det = _batch_lowrank_logdet(*self._covariance)
        entropy = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + log_det)
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
