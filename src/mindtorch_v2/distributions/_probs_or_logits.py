"""Parameters that are given as probabilities or as logits: the other ones are computed when they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._tensor import Size, Tensor
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits

if TYPE_CHECKING:
    from .._types import Number


def one_of(probs: Tensor | Number | None, logits: Tensor | Number | None) -> str:
    """The name of the one that is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return "logits" if probs is None else "probs"


class ProbsOrLogits:
    """Probabilities or log-odds of something that happens or does not; whichever was given is kept as `_param` too."""

    _param: Any

    def _take_one(self, probs: Tensor | Number | None, logits: Tensor | Number | None) -> Size:
        """Keep the given one as an attribute; returns its shape."""
        name = one_of(probs, logits)
        (value,) = broadcast_all(probs if name == "probs" else logits)
        setattr(self, name, value)
        self._param = value
        return value.size()

    def _take_with_count(self, total_count: Tensor | Number, probs: Tensor | Number | None, logits: Tensor | Number | None) -> Size:
        """The same, with counts that are broadcast with it and get its dtype."""
        name = one_of(probs, logits)
        count, value = broadcast_all(total_count, probs if name == "probs" else logits)
        setattr(self, name, value)
        self.total_count: Any = count.type_as(value)
        self._param = value
        return value.size()

    @lazy_property
    def logits(self) -> Tensor:
        """The log-odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter that was given."""
        return self._param.size()

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)


class OverCategories:
    """Parameters of a distribution that is made of a categorical one."""

    _categorical: Any

    @property
    def probs(self) -> Tensor:
        """The probabilities of the categories; they add up to one."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter that was given."""
        return self._categorical.param_shape

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)
