"""Mixtures of distributions of one family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import gather, log_softmax, logsumexp
from .._autograd.grad_mode import no_grad
from .._tensor import Size
from . import constraints
from .categorical import Categorical
from .constraints import MixtureSameFamilyConstraint
from .distribution import Distribution

if TYPE_CHECKING:
    from .._tensor import Tensor


__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """One of K distributions, the last batch dimension of `component_distribution`, chosen by `mixture_distribution` for each sample."""

    arg_constraints: Any = {}
    has_rsample = False
    _batched = {"_component_distribution": 1, "_mixture_distribution": 0}
    _kept = ("_num_component", "_event_ndims")

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ) -> None:
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("The Mixture distribution needs to be an instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        chosen, batch = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        if any(a != b and 1 not in (a, b) for a, b in zip(reversed(chosen), reversed(batch), strict=False)):
            raise ValueError(
                f"`mixture_distribution.batch_shape` ({chosen}) is not compatible with `component_distribution.batch_shape`({batch})"
            )
        weights, components = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if weights != components:
            raise ValueError(
                f"`mixture_distribution component` ({weights}) does not equal `component_distribution.batch_shape[-1]` ({components})"
            )
        self._num_component = weights
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(batch, event_shape, validate_args=validate_args)

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution that chooses a component."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components, along the last batch dimension."""
        return self._component_distribution

    def _mixed(self, values: Tensor) -> Tensor:
        """The mean of values of the components, by their probabilities."""
        return (self._pad_mixture_dimensions(self.mixture_distribution.probs) * values).sum(dim=-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return self._mixed(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        within = self._mixed(self.component_distribution.variance)
        between = self._mixed((self.component_distribution.mean - self._pad(self.mean)).pow(2.0))
        return within + between

    def cdf(self, x: Tensor) -> Tensor:
        of_components = self.component_distribution.cdf(self._pad(x))
        return (of_components * self.mixture_distribution.probs).sum(dim=-1)

    def log_prob(self, x: Tensor) -> Tensor:
        self._check_sample(x)
        of_components = self.component_distribution.log_prob(self._pad(x))
        weights = log_softmax(self.mixture_distribution.logits, dim=-1)
        return logsumexp(of_components + weights, dim=-1)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        with no_grad():
            dim = len(sample_shape) + len(self.batch_shape)
            event = self.event_shape
            chosen = self.mixture_distribution.sample(sample_shape)
            samples = self.component_distribution.sample(sample_shape)
            index = chosen.reshape(chosen.shape + (1,) * (len(event) + 1))
            index = index.repeat((1,) * (chosen.dim() + 1) + tuple(event))
            return gather(samples, dim, index).squeeze(dim)

    def _pad(self, x: Tensor) -> Tensor:
        """Values with a dimension for the components."""
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x: Tensor) -> Tensor:
        """Probabilities with dimensions of one for the batch dimensions that only the components have, and for those of events."""
        batch, chosen = len(self.batch_shape), len(self.mixture_distribution.batch_shape)
        missing = 0 if chosen == 1 else batch - chosen
        return x.reshape(x.shape[:-1] + (1,) * missing + x.shape[-1:] + (1,) * self._event_ndims)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
