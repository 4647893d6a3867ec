"""Covariance matrices of normal samples."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from .. import arange, broadcast_shapes, cholesky_solve, einsum, eye, linalg, mvlgamma, randn, tril_indices
from .._creation import tensor
from .._dtype_info import finfo
from .._tensor import Size, Tensor
from . import constraints
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .multivariate_normal import MATRICES, factor_of, half_log_determinant
from .utils import Number, lazy_property

__all__ = ["Wishart"]

_LOG_2 = math.log(2)


def _mvdigamma(x: Tensor, p: int) -> Tensor:
    """The logarithmic derivative of the multivariate gamma function."""
    if not x.gt((p - 1) / 2).all():
        raise AssertionError("Wrong domain for multivariate digamma function.")
    steps = arange(p, dtype=x.dtype, device=x.device).div(2).expand((*x.shape, -1))
    return (x.unsqueeze(-1) - steps).digamma().sum(-1)


class Wishart(ExponentialFamily):
    """Sums of outer products of `df` normal vectors, which need not be a whole number, of mean zero and a covariance matrix that is given
    by itself, by its inverse or by its Cholesky factor. Samples are drawn by Bartlett's decomposition."""

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _batched = {
        "df": 0, "covariance_matrix": 2, "scale_tril": 2, "precision_matrix": 2, "_unbroadcasted_scale_tril": 2, "_dist_chi2": 1,
    }  # fmt: skip

    def __init__(
        self,
        df: Tensor | Number,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        matrices = dict(zip(MATRICES, (covariance_matrix, precision_matrix, scale_tril), strict=True))
        given = {name: matrix for name, matrix in matrices.items() if matrix is not None}
        if len(given) != 1:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        event_shape = matrix.shape[-2:]
        batch_shape = self._take_df(df, matrix)
        if self.df.le(event_shape[-1] - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}.")
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        if self.df.lt(event_shape[-1]).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.", stacklevel=2
            )
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, matrix)
        options = {"dtype": matrix.dtype, "device": matrix.device}
        fewer = arange(event_shape[-1], **options).expand((*batch_shape, -1))
        self._dist_chi2 = Chi2(df=self.df.unsqueeze(-1) - fewer)

    def _take_df(self, df: Tensor | Number, matrix: Tensor) -> Size:
        batch_shape: Size = matrix.shape[:-2]
        if isinstance(df, Number):
            self.df = tensor(df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch_shape = Size(broadcast_shapes(batch_shape, df.shape))
            self.df = df.expand(batch_shape)
        return batch_shape

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def _spread(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance matrix."""
        return self._spread(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix of the normal vectors."""
        return self._spread(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.transpose(-2, -1))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        factor = self._unbroadcasted_scale_tril
        identity = eye(self._event_shape[-1], device=factor.device, dtype=factor.dtype)
        return self._spread(cholesky_solve(identity, factor))

    def _times(self, factor: Tensor, matrix: Tensor) -> Tensor:
        return factor.view((*self._batch_shape, 1, 1)) * matrix

    @property
    def mean(self) -> Tensor:
        return self._times(self.df, self.covariance_matrix)

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor[factor <= 0] = math.nan
        return self._times(factor, self.covariance_matrix)

    @property
    def variance(self) -> Tensor:
        V = self.covariance_matrix
        diagonal = V.diagonal(dim1=-2, dim2=-1)
        return self._times(self.df, V.pow(2) + einsum("...i,...j->...ij", diagonal, diagonal))

    def _bartlett_sampling(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        p = self._event_shape[-1]
        roots = self._dist_chi2.rsample(sample_shape).sqrt()
        noise = roots.clamp(min=finfo(roots.dtype).eps).diag_embed(dim1=-2, dim2=-1)
        i, j = tril_indices(p, p, offset=-1)
        below = Size(sample_shape) + self._batch_shape + (p * (p - 1) // 2,)
        noise[..., i, j] = randn(below, dtype=noise.dtype, device=noise.device)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.transpose(-2, -1)

    def _over_batch_any(self, flags: Tensor) -> Tensor:
        """Whether any of the batch is, for each sample."""
        return flags.amax([-1 - i for i in range(len(self._batch_shape))]) if self._batch_shape else flags

    def rsample(self, sample_shape: Sequence[int] = Size(), max_try_correction: int | None = None) -> Tensor:
        """Samples; those that are singular by rounding are drawn again, `max_try_correction` times (10) at most."""
        sample = self._bartlett_sampling(Size(sample_shape))
        # torch: the first check is not negated, so that samples that are in order are drawn once more
        again = self._over_batch_any(self.support.check(sample))
        if again.any():
            warnings.warn("Singular sample detected.", stacklevel=2)
            for _ in range(10 if max_try_correction is None else max_try_correction):
                fresh = self._bartlett_sampling(again[again].shape)
                sample[again] = fresh
                still = self._over_batch_any(~self.support.check(fresh))
                again[again.clone()] = still
                if not again.any():
                    break
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        nu, p = self.df, self._event_shape[-1]
        return (
            -nu * (p * _LOG_2 / 2 + half_log_determinant(self._unbroadcasted_scale_tril))
            - mvlgamma(nu / 2, p=p)
            + (nu - p - 1) / 2 * linalg.slogdet(value).logabsdet
            - cholesky_solve(value, self._unbroadcasted_scale_tril).diagonal(dim1=-2, dim2=-1).sum(dim=-1) / 2
        )

    def entropy(self) -> Tensor:
        nu, p = self.df, self._event_shape[-1]
        return (
            (p + 1) * (p * _LOG_2 / 2 + half_log_determinant(self._unbroadcasted_scale_tril))
            + mvlgamma(nu / 2, p=p)
            - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p=p)
            + nu * p / 2
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        p = self._event_shape[-1]
        return -self.precision_matrix / 2, (self.df - p - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        p = self._event_shape[-1]
        shape = y + (p + 1) / 2
        return shape * (-linalg.slogdet(-2 * x).logabsdet + _LOG_2 * p) + mvlgamma(shape, p=p)
