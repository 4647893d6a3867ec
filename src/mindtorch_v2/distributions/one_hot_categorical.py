"""One of several categories, as a vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import eye
from .._tensor import Size
from .._types import Number
from ..nn.functional import one_hot
from . import constraints
from ._probs_or_logits import OverCategories
from .categorical import Categorical
from .distribution import Distribution

if TYPE_CHECKING:
    from .._tensor import Tensor


__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(OverCategories, Distribution):
    """Vectors with a single 1, at the place of a category drawn as by `Categorical`."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True
    _batched = {"_categorical": 0}

    def __init__(
        self, probs: Tensor | Number | None = None, logits: Tensor | Number | None = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        best = self.probs.argmax(dim=-1)
        return one_hot(best, num_classes=self.probs.shape[-1]).to(self.probs)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        probs = self.probs
        drawn = self._categorical.sample(Size(sample_shape))
        return one_hot(drawn, self._categorical._num_events).to(probs)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.event_shape[0]
        return self._over_batch(eye(n, dtype=self._param.dtype, device=self._param.device), expand, (n,))


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The same, with gradients that take a sample for its probabilities (Bengio et al., 2013)."""

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        samples = self.sample(sample_shape)
        probs = self.probs
        return samples + (probs - probs.detach())
