"""Successes among a number of trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import arange, binomial
from .._autograd.grad_mode import no_grad
from .._tensor import Size
from .._types import Number
from . import constraints
from ._probs_or_logits import ProbsOrLogits
from .distribution import Distribution

if TYPE_CHECKING:
    from .._tensor import Tensor


__all__ = ["Binomial"]


def _clamp_by_zero(x: Tensor) -> Tensor:
    """max(x, 0) with the derivative one half at zero."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(ProbsOrLogits, Distribution):
    """How many of `total_count` trials succeed, each with probability `probs` or with log-odds `logits`."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _batched = {"total_count": 0, "probs": 0, "logits": 0, "_param": 0}

    def __init__(
        self,
        total_count: Tensor | Number = 1,
        probs: Tensor | Number | None = None,
        logits: Tensor | Number | None = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(self._take_with_count(total_count, probs, logits), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        ways = (self.total_count + 1).lgamma()
        chosen = (value + 1).lgamma()
        others = (self.total_count - value + 1).lgamma()
        # log(1 - p) is -max(logit, 0) - log1p(exp(-|logit|)), which loses nothing on either side
        normalizer = self.total_count * _clamp_by_zero(self.logits) + self.total_count * (-self.logits.abs()).exp().log1p() - ways
        return value * self.logits - chosen - others - normalizer

    def _one_count(self, asked: str) -> int:
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{asked}`.")
        return count

    def entropy(self) -> Tensor:
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._one_count("enumerate_support")
        return self._over_batch(arange(1 + count, dtype=self._param.dtype, device=self._param.device), expand)
