"""Failures before the first success."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import empty, zeros_like
from .._autograd.grad_mode import no_grad
from .._dtype_info import finfo
from .._memory_format import contiguous_format
from .._tensor import Size
from .._types import Number
from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from ._probs_or_logits import ProbsOrLogits
from .distribution import Distribution, described
from .utils import broadcast_all

if TYPE_CHECKING:
    from .._tensor import Tensor


__all__ = ["Geometric"]


class Geometric(ProbsOrLogits, Distribution):
    """How many trials fail before one succeeds, each with probability `probs` or with log-odds `logits`."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _batched = {"probs": 0, "logits": 0, "_param": 0}

    def __init__(
        self, probs: Tensor | Number | None = None, logits: Tensor | Number | None = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(self._take_one(probs, logits), validate_args=validate_args)
        if self._validate_args and probs is not None:
            valid = self.probs > 0
            if not valid.all():
                raise ValueError(
                    f"Expected parameter probs ({described(self.probs)}) of distribution {self!r} "
                    f"to be positive but found invalid values:\n{self.probs.data[~valid]}"
                )

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        tiny = finfo(self.probs.dtype).tiny
        with no_grad():
            uniform = empty(shape, dtype=self.probs.dtype, device=self.probs.device).uniform_(tiny, 1)
            return (uniform.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.clone(memory_format=contiguous_format)
        probs[(probs == 1) & (value == 0)] = 0  # no failure is certain, and 0 * log(0) is to be 0
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
