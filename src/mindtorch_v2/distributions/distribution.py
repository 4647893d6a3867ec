"""The base of all distributions: shapes, checks of parameters and samples, and what every distribution answers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from .._autograd.grad_mode import no_grad
from .._ops.machinery.lookup import aten
from .._tensor import Size, Tensor
from . import constraints
from .utils import broadcast_all, lazy_property

__all__ = ["Distribution"]


class Distribution:
    """A batch of probability distributions of one family.

    A family declares how its attributes follow the batch shape, and `expand` needs no more: `_batched` maps the name of an attribute,
    a tensor or another distribution, to the number of its dimensions behind the batch dimensions; attributes in `_kept` are shared.
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args = __debug__
    _batched: ClassVar[dict[str, int] | None] = None
    _kept: ClassVar[tuple[str, ...]] = ()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether parameters and values are checked where `validate_args` is not given. They are, unless Python runs with -O."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args takes True or False, not {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape: Size = Size(), event_shape: Size = Size(), validate_args: bool | None = None) -> None:
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    # --- parameters -------------------------------------------------------------------------------------------------

    def _take(self, **parameters: Any) -> Size:
        """Broadcast parameters, numbers or tensors, keep them as attributes, and return their shape."""
        tensors = broadcast_all(*parameters.values())
        for name, value in zip(parameters, tensors, strict=True):
            setattr(self, name, value)
        return tensors[0].size()

    def _check_parameters(self) -> None:
        try:
            wanted = self.arg_constraints
        except NotImplementedError:
            wanted = {}
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`, so its parameters are not checked. "
                "Set `arg_constraints = {}`, or pass `validate_args=False`.",
                stacklevel=4,
            )
        for name, constraint in wanted.items():
            if constraints.is_dependent(constraint):
                continue  # what it depends on is not known
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # it follows from another parameter, which is checked
            value = getattr(self, name)
            if not aten._is_all_true(constraint.check(value)):
                raise ValueError(
                    f"Expected parameter {name} ({described(value)}) of distribution {self!r} "
                    f"to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        """The same distribution for a larger batch; parameters are expanded, which copies nothing, and not checked again."""
        if self._batched is None:
            raise NotImplementedError(f"{type(self).__name__} does not implement expand")
        declared_by = next(cls for cls in type(self).__mro__ if "_batched" in cls.__dict__)
        new = self._get_checked_instance(declared_by, _instance)
        batch_shape = Size(batch_shape)
        done: dict[int, Any] = {}  # an attribute may be there under two names
        for name, behind in self._batched.items():
            value = self.__dict__.get(name)
            if value is not None:
                if id(value) not in done:
                    done[id(value)] = _expanded(value, batch_shape, behind)
                setattr(new, name, done[id(value)])
        for name in self._kept:
            setattr(new, name, self.__dict__[name])
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Self:
        """The object that `expand` fills; a subclass that is made in another way must say itself how it is expanded."""
        if _instance is not None:
            return _instance
        if type(self).__init__ != cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method "
                "must also define a custom .expand() method."
            )
        return self.__new__(type(self))

    # --- what a distribution answers --------------------------------------------------------------------------------

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample of one distribution."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The sets that the parameters lie in, by name."""
        raise NotImplementedError(f"{type(self).__name__} does not define arg_constraints")

    @property
    def support(self) -> constraints.Constraint:
        """The set that the samples lie in."""
        raise NotImplementedError(f"{type(self).__name__} does not define its support")

    @property
    def mean(self) -> Tensor:
        """The expected value."""
        raise self._lacking("mean")

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        raise self._lacking("mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise self._lacking("variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Samples, in the given shape for each distribution of the batch, without a graph."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Samples through which gradients flow to the parameters, where `has_rsample` says that there are such."""
        raise self._lacking("rsample")

    def sample_n(self, n: int) -> Tensor:
        """n samples; `sample((n,))` is the current spelling."""
        warnings.warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning, stacklevel=2)
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density or mass at a value."""
        raise self._lacking("log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a sample that is not above a value."""
        raise self._lacking("cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The value that a sample does not exceed with this probability."""
        raise self._lacking("icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values that a sample may have, along a first dimension; expanded to the batch shape, or with dimensions of one."""
        raise self._lacking("enumerate_support")

    def entropy(self) -> Tensor:
        """The entropy in nats, one for each distribution of the batch."""
        raise self._lacking("entropy")

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    def _lacking(self, name: str) -> NotImplementedError:
        return NotImplementedError(f"{self.__class__} does not implement {name}")

    # --- shapes and checks of values --------------------------------------------------------------------------------

    def _extended_shape(self, sample_shape: Sequence[int] = Size()) -> Size:
        """The shape of samples: the given one, the batch's, and that of one event."""
        return Size(sample_shape) + self._batch_shape + self._event_shape

    def _over_batch(self, values: Tensor, expand: bool, event: tuple[int, ...] = ()) -> Tensor:
        """Values along a first dimension, with dimensions for the batch behind it: of one, or expanded."""
        values = values.view((-1,) + (1,) * len(self._batch_shape) + event)
        return values.expand((-1, *self._batch_shape, *event)) if expand else values

    def _check_sample(self, value: Tensor) -> None:
        """`_validate_sample`, if this distribution checks."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Tensor) -> None:
        """Raise ValueError if a value cannot be one of this distribution's samples, by its shape or its elements."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        actual, expected = value.size(), self._batch_shape + self._event_shape
        if actual[len(actual) - len(self._event_shape) :] != self._event_shape:
            raise ValueError(f"The right-most size of value must match event_shape: {actual} vs {self._event_shape}.")
        if any(i != j and 1 not in (i, j) for i, j in zip(reversed(actual), reversed(expected), strict=False)):
            raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {actual} vs {expected}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support`, so values are not checked. Pass `validate_args=False` to say so.",
                stacklevel=3,
            )
            return
        assert support is not None
        if not aten._is_all_true(support.check(value)):
            raise ValueError(
                f"Expected value argument ({described(value)}) to be within the support ({support!r}) "
                f"of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        given = {name: self.__dict__[name] for name in self.arg_constraints if name in self.__dict__}
        shown = ", ".join(f"{name}: {value if value.numel() == 1 else value.size()}" for name, value in given.items())
        return f"{type(self).__name__}({shown})"


def described(value: Tensor) -> str:
    return f"{type(value).__name__} of shape {tuple(value.shape)}"


def _expanded(value: Tensor, batch_shape: Size, behind: int) -> Any:
    shape = value.batch_shape if isinstance(value, Distribution) else value.shape
    return value.expand(batch_shape + shape[len(shape) - behind :])
