"""Exponential families: distributions whose densities are given by natural parameters and a log normaliser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..autograd import grad
from .distribution import Distribution

if TYPE_CHECKING:
    from .._tensor import Tensor


__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A family with densities exp(⟨t(x), θ⟩ - F(θ) + k(x)): `_natural_params` are θ, `_log_normalizer` is F.

    F and its gradient, which is the mean of t(x), give the entropy and the divergence of two members.
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise self._lacking("_natural_params")

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        raise self._lacking("_log_normalizer")

    @property
    def _mean_carrier_measure(self) -> Tensor | float:
        """The mean of k(x)."""
        raise self._lacking("_mean_carrier_measure")

    def _normalizer_with_gradient(self) -> tuple[list[Any], Any, tuple[Any, ...]]:
        """Natural parameters as leaves of a graph, the log normaliser of them, and its gradients, which can be differentiated again."""
        parameters = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*parameters)
        return parameters, normalizer, grad(normalizer.sum(), parameters, create_graph=True)

    def entropy(self) -> Tensor:
        """F(θ) - ⟨∇F(θ), θ⟩ minus the mean of k(x)."""
        result = -self._mean_carrier_measure
        parameters, normalizer, gradients = self._normalizer_with_gradient()
        result += normalizer
        for parameter, gradient in zip(parameters, gradients, strict=True):
            result -= (parameter * gradient).reshape((*self._batch_shape, -1)).sum(-1)
        return result
