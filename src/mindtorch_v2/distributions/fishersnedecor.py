"""Ratios of mean squares."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING, Any

from .._dtype_info import finfo
from .._memory_format import contiguous_format
from .._tensor import Size
from .._types import Number
from . import constraints
from .distribution import Distribution
from .gamma import Gamma

if TYPE_CHECKING:
    from .._tensor import Tensor


__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The F distribution: the ratio of two χ² variates, each divided by its degrees of freedom, `df1` and `df2`."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _batched = {"df1": 0, "df2": 0, "_gamma1": 0, "_gamma2": 0}
    df1: Any
    df2: Any

    def __init__(self, df1: Tensor | Number, df2: Tensor | Number, validate_args: bool | None = None) -> None:
        shape = self._take(df1=df1, df2=df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(shape, validate_args=validate_args)

    def _df2_above(self, least: int) -> Tensor:
        """`df2` where it is larger; NaN elsewhere, where the moment does not exist."""
        df2 = self.df2.clone(memory_format=contiguous_format)
        df2[df2 <= least] = nan
        return df2

    @property
    def mean(self) -> Tensor:
        df2 = self._df2_above(2)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        mode[self.df1 <= 2] = nan
        return mode

    @property
    def variance(self) -> Tensor:
        df2 = self._df2_above(4)
        return 2 * df2.pow(2) * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        upper = self._gamma1.rsample(sample_shape).view(shape)
        lower = self._gamma2.rsample(sample_shape).view(shape)
        tiny = finfo(lower.dtype).tiny
        lower.clamp_(min=tiny)
        ratio = upper / lower
        ratio.clamp_(min=tiny)
        return ratio

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        half1, half2, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        normalizer = (half1 + half2).lgamma() - half1.lgamma() - half2.lgamma()
        power = half1 * ratio.log() + (half1 - 1) * value.log()
        tail = (half1 + half2) * (ratio * value).log1p()
        return normalizer + power - tail
