"""Normal vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import broadcast_shapes, cholesky_inverse, eye, linalg, matmul
from .._tensor import Size, Tensor
from . import constraints
from .distribution import Distribution
from .utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


def _batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """Matrices times vectors; both may be batches."""
    return matmul(bmat, bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL: Tensor, bx: Tensor) -> Tensor:
    """|L⁻¹ x|² for factors L, whose batch dimensions are those of x on the right or of size one.

    All x that share a factor are columns of one system: each batch dimension of x is split into (x of a factor, factors).
    """
    n = bx.size(-1)
    batch = bx.shape[:-1]
    factors = bL.dim() - 2
    outer = len(batch) - factors
    split = [size for of_x, of_L in zip(batch[outer:], bL.shape[:-2], strict=True) for size in (of_x // of_L, of_L)]
    shared = [outer + 2 * i for i in range(factors)]
    own = [outer + 2 * i + 1 for i in range(factors)]
    x = bx.reshape([*batch[:outer], *split, n]).permute([*range(outer), *shared, *own, outer + 2 * factors])
    flat_L = bL.reshape(-1, n, n)
    columns = x.reshape(-1, flat_L.size(0), n).permute(1, 2, 0)
    distances = linalg.solve_triangular(flat_L, columns, upper=False).pow(2).sum(-2).t()
    back = [position for i in range(factors) for position in (outer + i, outer + factors + i)]
    return distances.reshape(x.shape[:-1]).permute([*range(outer), *back]).reshape(batch)


def _precision_to_scale_tril(P: Tensor) -> Tensor:
    """The lower Cholesky factor of the inverse: by the factor of the matrix with rows and columns reversed, which inverts stably."""
    reversed_factor = linalg.cholesky(P.flip((-2, -1)))
    inverse = reversed_factor.flip((-2, -1)).transpose(-2, -1)
    identity = eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return linalg.solve_triangular(inverse, identity, upper=False)


def half_log_determinant(factor: Tensor) -> Tensor:
    """Half of the log determinant of L Lᵀ."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


MATRICES = ("covariance_matrix", "precision_matrix", "scale_tril")


def factor_of(name: str, matrix: Tensor) -> Tensor:
    """The Cholesky factor of a covariance that is given as one of `MATRICES`."""
    if name == "scale_tril":
        return matrix
    return linalg.cholesky(matrix) if name == "covariance_matrix" else _precision_to_scale_tril(matrix)


class MultivariateNormal(Distribution):
    """Normal vectors around `loc`, with a covariance matrix that is given by itself, by its inverse or by its Cholesky factor."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _batched = {"loc": 1, "covariance_matrix": 2, "scale_tril": 2, "precision_matrix": 2}
    _kept = ("_unbroadcasted_scale_tril",)

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        matrices = dict(zip(MATRICES, (covariance_matrix, precision_matrix, scale_tril), strict=True))
        given = {name: matrix for name, matrix in matrices.items() if matrix is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = Size(broadcast_shapes(matrix.shape[:-2], loc.shape[:-1]))
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        self.loc = loc.expand((*batch_shape, -1))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, matrix)

    def _spread(self, value: Tensor, dims: int) -> Tensor:
        return value.expand(self._batch_shape + self._event_shape * dims)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance matrix."""
        return self._spread(self._unbroadcasted_scale_tril, 2)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix."""
        return self._spread(matmul(self._unbroadcasted_scale_tril, self._unbroadcasted_scale_tril.mT), 2)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        return self._spread(cholesky_inverse(self._unbroadcasted_scale_tril), 2)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self._spread(self._unbroadcasted_scale_tril.pow(2).sum(-1), 1)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        standard = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, standard)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        half_log_det = half_log_determinant(self._unbroadcasted_scale_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - half_log_det

    def entropy(self) -> Tensor:
        half_log_det = half_log_determinant(self._unbroadcasted_scale_tril)
        entropy = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + half_log_det
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
