"""Transforms from unconstrained values to those of a set: bijections (`biject_to`), or any that are good to optimise with (`transform_to`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import constraints, transforms
from .utils import Number

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Functions from constraints to transforms, by the class of the constraint."""

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}
        super().__init__()

    def register(
        self, constraint: constraints.Constraint | type[constraints.Constraint], factory: Callable[[Any], Any] | None = None
    ) -> Any:
        """Register a function for a class of constraints, or for the class of an instance; without one, return a decorator."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        cls = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not (isinstance(cls, type) and issubclass(cls, constraints.Constraint)):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[cls] = factory
        return factory

    def __call__(self, constraint: constraints.Constraint) -> transforms.Transform:
        """The transform from unconstrained values to those of a constraint."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(
                f"Cannot transform {type(constraint).__name__} constraints: no transform is registered for them"
            )
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _beyond(bound: Tensor | Number, direction: int) -> transforms.Transform:
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(bound, direction)])


def _to_interval(c: Any) -> transforms.Transform:
    lower, upper = c.lower_bound, c.upper_bound
    if isinstance(lower, Number) and isinstance(upper, Number) and (lower, upper) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(lower, upper - lower)])


def _parts_rules(registry: ConstraintRegistry) -> dict[Any, Callable[[Any], Any]]:
    """Constraints made of others: their transforms are made of those of the parts, from the same registry."""
    return {
        constraints.independent: lambda c: transforms.IndependentTransform(
            registry(c.base_constraint), c.reinterpreted_batch_ndims
        ),
        constraints.cat: lambda c: transforms.CatTransform([registry(part) for part in c.cseq], c.dim, c.lengths),
        constraints.stack: lambda c: transforms.StackTransform([registry(part) for part in c.cseq], c.dim),
    }


_BOTH: dict[Any, Callable[[Any], Any]] = {
    constraints.real: lambda c: transforms.identity_transform,
    constraints.greater_than: lambda c: _beyond(c.lower_bound, 1),
    constraints.greater_than_eq: lambda c: _beyond(c.lower_bound, 1),
    constraints.less_than: lambda c: _beyond(c.upper_bound, -1),
    constraints.interval: _to_interval,
    constraints.half_open_interval: _to_interval,
    constraints.corr_cholesky: lambda c: transforms.CorrCholeskyTransform(),
}
_BIJECTIVE: dict[Any, Callable[[Any], Any]] = {
    constraints.simplex: lambda c: transforms.StickBreakingTransform(),
}
_ANY: dict[Any, Callable[[Any], Any]] = {
    constraints.simplex: lambda c: transforms.SoftmaxTransform(),
    constraints.lower_cholesky: lambda c: transforms.LowerCholeskyTransform(),
    constraints.positive_definite: lambda c: transforms.PositiveDefiniteTransform(),
    constraints.positive_semidefinite: lambda c: transforms.PositiveDefiniteTransform(),
}
for _registry, _rules in ((biject_to, _BIJECTIVE), (transform_to, _ANY)):
    for _constraint, _factory in (_BOTH | _rules | _parts_rules(_registry)).items():
        _registry.register(_constraint, _factory)
