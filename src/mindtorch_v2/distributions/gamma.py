"""Positive numbers: sums of waiting times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import special, xlogy
from .._creation import as_tensor
from .._dtype_info import finfo
from .._ops.machinery.lookup import aten
from .._tensor import Size
from .._types import Number
from . import constraints
from .exp_family import ExponentialFamily

if TYPE_CHECKING:
    from .._tensor import Tensor


__all__ = ["Gamma"]


def _standard_gamma(concentration: Tensor) -> Tensor:
    return aten._standard_gamma(concentration)


class Gamma(ExponentialFamily):
    """Densities proportional to x**(concentration - 1) * exp(-rate * x)."""

    arg_constraints: Any = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _batched = {"concentration": 0, "rate": 0}
    concentration: Any
    rate: Any

    def __init__(self, concentration: Tensor | Number, rate: Tensor | Number, validate_args: bool | None = None) -> None:
        super().__init__(self._take(concentration=concentration, rate=rate), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = _standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=finfo(value.dtype).tiny)  # out of the graph's sight
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        value = as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._check_sample(value)
        return (
            xlogy(self.concentration, self.rate)
            + xlogy(self.concentration - 1, value)
            - self.rate * value
            - self.concentration.lgamma()
        )

    def entropy(self) -> Tensor:
        shape = self.concentration
        return shape - self.rate.log() + shape.lgamma() + (1.0 - shape) * shape.digamma()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return special.gammainc(self.concentration, self.rate * value)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration - 1, -self.rate)

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return (x + 1).lgamma() + (x + 1) * (-y.reciprocal()).log()
