"""How often each category comes up."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

from .. import empty, ones_like
from .._creation import tensor
from .._memory_format import contiguous_format
from .._tensor import Size
from .._types import Number
from . import constraints
from ._probs_or_logits import OverCategories
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution
from .utils import broadcast_all

if TYPE_CHECKING:
    from .._tensor import Tensor


__all__ = ["Multinomial"]


class Multinomial(OverCategories, Distribution):
    """The counts of the categories in `total_count` draws, by `probs` or `logits` as for `Categorical`."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _batched = {"_categorical": 0}
    _kept = ("total_count",)
    total_count: int

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | Number | None = None,
        logits: Tensor | Number | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported: pass one integer")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        sample_shape = Size(sample_shape)
        drawn = self._categorical.sample(Size((self.total_count,)) + sample_shape)
        drawn = drawn.permute(*range(1, drawn.dim()), 0)
        counts = empty(self._extended_shape(sample_shape), dtype=drawn.dtype, device=drawn.device).zero_()
        counts.scatter_add_(-1, drawn, ones_like(drawn))
        return counts.type_as(self.probs)

    def entropy(self) -> Tensor:
        n = tensor(self.total_count)
        together = n * self._categorical.entropy() - (n + 1).lgamma()
        support = self._binomial.enumerate_support(expand=False)[1:]
        weights = self._binomial.log_prob(support).exp()
        return together + (weights * (support + 1).lgamma()).sum([0, -1])

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.clone(memory_format=contiguous_format)
        all_orders = (value.sum(-1) + 1).lgamma()
        same_orders = (value + 1).lgamma().sum(-1)
        logits[(value == 0) & (logits == -inf)] = 0  # what cannot happen did not
        return all_orders - same_orders + (logits * value).sum(-1)
