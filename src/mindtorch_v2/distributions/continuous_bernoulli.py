"""Numbers between 0 and 1, with densities that grow or shrink exponentially."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import max as elementwise_max
from .. import ones_like, rand, where, zeros_like
from .._autograd.grad_mode import no_grad
from .._tensor import Size
from .._types import Number
from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from ._probs_or_logits import ProbsOrLogits
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs

if TYPE_CHECKING:
    from .._tensor import Tensor


__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """Densities proportional to probs**x * (1 - probs)**(1 - x) (Loaiza-Ganem and Cunningham, 2019).

    The formulas divide by what vanishes at probs = 1/2; between the limits `lims` a Taylor expansion takes their place.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _batched = {"probs": 0, "logits": 0, "_param": 0}
    _kept = ("_lims",)

    def __init__(
        self,
        probs: Tensor | Number | None = None,
        logits: Tensor | Number | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        shape = self._take_one(probs, logits)
        if probs is not None:
            # before they are clamped, after which all would be valid
            if validate_args is not None and not self.arg_constraints["probs"].check(self.probs).all():
                raise ValueError("The parameter probs has invalid values: they must lie between 0 and 1")
            self._param = self.probs = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(shape, validate_args=validate_args)

    @lazy_property
    def probs(self) -> Tensor:
        """The parameter between 0 and 1; it is no probability."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside_unstable_region(self) -> Tensor:
        return elementwise_max(self.probs.le(self._lims[0]), self.probs.gt(self._lims[1]))

    def _cut_probs(self) -> Tensor:
        """The parameter, where the formulas hold; the lower limit elsewhere."""
        return where(self._outside_unstable_region(), self.probs, self._lims[0] * ones_like(self.probs))

    def _choose(self, formula: Tensor, taylor: Tensor) -> Tensor:
        return where(self._outside_unstable_region(), formula, taylor)

    def _cont_bern_log_norm(self) -> Tensor:
        """The logarithm of the factor that makes the density integrate to one."""
        p = self._cut_probs()
        low = where(p.le(0.5), p, zeros_like(p))
        high = where(p.ge(0.5), p, ones_like(p))
        log_norm = ((-p).log1p() - p.log()).abs().log() - where(p.le(0.5), (-2.0 * low).log1p(), (2.0 * high - 1.0).log())
        x = (self.probs - 0.5).pow(2)
        return self._choose(log_norm, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Tensor:
        p = self._cut_probs()
        mean = p / (2.0 * p - 1.0) + 1.0 / ((-p).log1p() - p.log())
        x = self.probs - 0.5
        return self._choose(mean, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x)

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    @property
    def variance(self) -> Tensor:
        p = self._cut_probs()
        variance = p * (p - 1.0) / (1.0 - 2.0 * p).pow(2) + 1.0 / ((-p).log1p() - p.log()).pow(2)
        x = (self.probs - 0.5).pow(2)
        return self._choose(variance, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none") + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        p = self._cut_probs()
        inside = (p.pow(value) * (1.0 - p).pow(1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        unbounded = self._choose(inside, value)
        below_one = where(value.ge(1.0), ones_like(value), unbounded)
        return where(value.le(0.0), zeros_like(value), below_one)

    def icdf(self, value: Tensor) -> Tensor:
        p = self._cut_probs()
        inside = ((-p + value * (2.0 * p - 1.0)).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return self._choose(inside, value)

    def entropy(self) -> Tensor:
        log_0, log_1 = (-self.probs).log1p(), self.probs.log()
        return self.mean * (log_0 - log_1) - self._cont_bern_log_norm() - log_0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        low, high = (limit - 0.5 for limit in self._lims)
        stable = elementwise_max(x.le(low), x.gt(high))
        cut = where(stable, x, low * ones_like(x))
        log_norm = cut.expm1().abs().log() - cut.abs().log()
        return where(stable, log_norm, 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0)
