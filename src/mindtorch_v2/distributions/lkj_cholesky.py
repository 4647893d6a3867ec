"""Correlation matrices, by their Cholesky factors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import arange, cat, mvlgamma, randn
from .._dtype_info import finfo
from .._tensor import Size
from .._types import Number
from . import constraints
from .beta import Beta
from .distribution import Distribution

if TYPE_CHECKING:
    from .._tensor import Tensor


__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Factors L of correlation matrices whose density is proportional to det(L Lᵀ)**(concentration - 1).

    Lewandowski, Kurowicka and Joe (2009); samples are drawn by their onion method, all rows at once.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _batched = {"concentration": 0, "_beta": 1}
    _kept = ("dim",)
    concentration: Any

    def __init__(self, dim: int, concentration: Tensor | Number = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        shape = self._take(concentration=concentration)
        marginal = self.concentration + 0.5 * (dim - 2)
        row = arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        row = cat([row.new_zeros((1,)), row])
        self._beta = Beta(row + 0.5, marginal.unsqueeze(-1) - 0.5 * row)
        super().__init__(shape, Size((dim, dim)), validate_args)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        radius = self._beta.sample(sample_shape).unsqueeze(-1)
        normal = randn(self._extended_shape(sample_shape), dtype=radius.dtype, device=radius.device).tril(-1)
        direction = normal / normal.norm(dim=-1, keepdim=True)
        direction[..., 0, :].fill_(0.0)  # the first row has nothing left of the diagonal
        factor = radius.sqrt() * direction
        diagonal = (1 - (factor**2).sum(dim=-1)).clamp(min=finfo(factor.dtype).tiny).sqrt()
        factor += diagonal.diag_embed()
        return factor

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        unnormalized = (order * diagonal.log()).sum(dim=-1)
        free = self.dim - 1
        alpha = self.concentration + 0.5 * free
        denominator = alpha.lgamma() * free
        numerator = mvlgamma(alpha - 0.5, free)  # its powers of π are those of dimension D - 1; the rest follows
        return unnormalized - (0.5 * free * math.log(math.pi) + numerator - denominator)
