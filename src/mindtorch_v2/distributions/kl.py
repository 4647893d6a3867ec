"""Kullback-Leibler divergences, by rules for pairs of families."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .distribution import Distribution
from .exp_family import ExponentialFamily
from .utils import _sum_rightmost

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["kl_divergence", "register_kl"]

Rule = Callable[[Any, Any], Any]

_KL_REGISTRY: dict[tuple[type, type], Rule] = {}
_KL_MEMOIZE: dict[tuple[type, type], Any] = {}  # the rule for each pair of classes that was asked for


def register_kl(type_p: type, type_q: type) -> Callable[[Rule], Rule]:
    """A decorator that registers a rule for KL(p ‖ q), for members of two classes and of their subclasses.

    The most specific rule is taken. If there are two, more specific for p and more specific for q, a warning says which pair to register.
    """
    for name, cls in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(cls, type):  # Pyro registers rules for a class of its own, as torch lets it
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {cls}")

    def register(rule: Rule) -> Rule:
        _KL_REGISTRY[type_p, type_q] = rule
        _KL_MEMOIZE.clear()  # another rule may be the most specific one now
        return rule

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p ‖ q), the mean of log p - log q under p: one number for each distribution of the batch."""
    pair = (type(p), type(q))
    rule = _KL_MEMOIZE.get(pair)
    if rule is None:
        rule = _KL_MEMOIZE[pair] = _most_specific(*pair)
    if rule is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {pair[0].__name__} and q type {pair[1].__name__}; "
            "register one with torch.distributions.register_kl"
        )
    return rule(p, q)


Pair = tuple[type, type]


def _compare(a: Pair, b: Pair) -> int:
    """Lexicographic: by the first class, then by the second; a subclass comes before its base."""
    for x, y in zip(a, b, strict=True):
        if x is not y:
            return -1 if issubclass(x, y) else 1
    return 0


def _most_specific(type_p: type, type_q: type) -> Any:
    matches = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not matches:
        return NotImplemented
    order = functools.cmp_to_key(_compare)
    left = min(matches, key=order)
    right = min(((q, p) for p, q in matches), key=order)[::-1]
    rule = _KL_REGISTRY[left]
    if rule is not _KL_REGISTRY[right]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({left[0].__name__}, {right[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return rule


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """The Bregman divergence of the log normaliser."""
    if type(p) is not type(q):
        raise NotImplementedError(
            f"The divergence of two different exponential families, {type(p).__name__} and {type(q).__name__}, "
            "cannot be computed as a Bregman divergence"
        )
    of_p, normalizer, gradients = p._normalizer_with_gradient()
    of_q = q._natural_params
    result = q._log_normalizer(*of_q) - normalizer
    for a, b, gradient in zip(of_p, of_q, gradients, strict=True):
        result -= _sum_rightmost((b - a) * gradient, len(q.event_shape))
    return result
