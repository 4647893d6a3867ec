"""Absolute values of Cauchy variates."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .. import full
from .._creation import as_tensor
from .._types import Number
from . import constraints
from ._half import Half
from .cauchy import Cauchy

if TYPE_CHECKING:
    from .._tensor import Tensor


__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """|x| for x of a Cauchy distribution around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    _batched = {}

    def __init__(self, scale: Tensor | Number, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        return full(self._extended_shape(), math.inf, dtype=self.scale.dtype, device=self.scale.device)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return self._folded(as_tensor(value, dtype=self.scale.dtype, device=self.scale.device))
