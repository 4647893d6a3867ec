"""Excesses over a threshold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, nan
from typing import TYPE_CHECKING, Any

from .. import broadcast_to, isclose, ones_like, rand, where, zeros_like
from .._tensor import Size
from .._types import Number
from . import constraints
from .distribution import Distribution

if TYPE_CHECKING:
    from .._tensor import Tensor


__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Tails above `loc`: exponential for a `concentration` of 0, heavier for larger ones, bounded for smaller ones."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True
    _batched = {"loc": 0, "scale": 0, "concentration": 0}
    loc: Any
    scale: Any
    concentration: Any

    def __init__(
        self, loc: Tensor | Number, scale: Tensor | Number, concentration: Tensor | Number, validate_args: bool | None = None
    ) -> None:
        super().__init__(self._take(loc=loc, scale=scale, concentration=concentration), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        upper = where(self.concentration < 0, self.loc - self.scale / self.concentration, inf)
        return constraints.interval(self.loc, upper)

    def _exponential_or(self) -> tuple[Any, Any]:
        """Where the concentration is zero, and the concentration with 1 there, by which one can divide."""
        is_zero = isclose(self.concentration, zeros_like(self.concentration))
        return is_zero, where(is_zero, ones_like(self.concentration), self.concentration)

    def _z(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        z = self._z(value)
        is_zero, concentration = self._exponential_or()
        power = 1 / concentration + ones_like(z)
        otherwise = where(power == 0, power, power * (concentration * z).log1p())
        return -self.scale.log() - where(is_zero, z, otherwise)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of a sample above a value."""
        self._check_sample(value)
        z = self._z(value)
        is_zero, concentration = self._exponential_or()
        return where(is_zero, -z, -(concentration * z).log1p() / concentration)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of a sample that is not above a value."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        is_zero, concentration = self._exponential_or()
        log_above = (-value).log1p()
        otherwise = self.loc + self.scale / concentration * (-concentration * log_above).expm1()
        return where(is_zero, self.loc - self.scale * log_above, otherwise)

    def _moment(self, least: float, instead: float, formula: Callable[[Tensor], Tensor]) -> Tensor:
        """A moment where the concentration is small enough for it to exist; NaN elsewhere."""
        exists = self.concentration < least
        return where(exists, formula(where(exists, self.concentration, instead)), nan)

    @property
    def mean(self) -> Tensor:
        return self._moment(1, 0.5, lambda c: self.loc + self.scale / (1 - c))

    @property
    def variance(self) -> Tensor:
        return self._moment(0.5, 0.25, lambda c: self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)))

    @property
    def mode(self) -> Tensor:
        return self.loc

    def entropy(self) -> Tensor:
        return broadcast_to(self.scale.log() + self.concentration + 1, self._batch_shape)
