"""torch.utils.benchmark.utils.fuzzer: tensors of random shapes and layouts, to measure statements with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from .... import _dtype
from ...._ops.machinery.lookup import aten
from ...._random import manual_seed
from ...._tensor import Tensor

__all__ = ["FuzzedParameter", "FuzzedTensor", "Fuzzer", "ParameterAlias"]

_ATTEMPTS = 1000


class FuzzedParameter:
    """A number that is drawn: "uniform" or "loguniform" between two bounds, both included, or by a dict from values to probabilities.

    A strict one is drawn once for a set of parameters, however often the others are drawn again until they meet the constraints.
    """

    def __init__(
        self,
        name: str,
        minval: float | None = None,
        maxval: float | None = None,
        distribution: str | dict[Any, float] | None = None,
        strict: bool = False,
    ) -> None:
        self.name, self._minval, self._maxval, self._distribution, self.strict = name, minval, maxval, distribution, strict
        if isinstance(distribution, dict):
            if any(p < 0 for p in distribution.values()):
                raise AssertionError("Probabilities cannot be negative")
            if abs(sum(distribution.values()) - 1) > 1e-5:
                raise AssertionError("Distribution is not normalized")
            if minval is not None or maxval is not None:
                raise AssertionError("When passing a custom distribution, 'minval' and 'maxval' must be None")
        elif distribution not in ("loguniform", "uniform"):
            raise AssertionError(f"Unknown distribution: {distribution}")
        elif minval is None or maxval is None:
            raise AssertionError(f"The distribution {distribution!r} needs 'minval' and 'maxval'")

    def sample(self, state: np.random.RandomState) -> Any:
        """A value."""
        if isinstance(self._distribution, dict):
            index = state.choice(np.arange(len(self._distribution)), p=tuple(self._distribution.values()))
            return list(self._distribution)[index]
        low, high = self._minval, self._maxval
        assert low is not None
        assert high is not None
        if self._distribution == "loguniform":
            return min(max(int(2 ** state.uniform(low=np.log2(low), high=np.log2(high))), low), high)
        if isinstance(low, int) and isinstance(high, int):
            return int(state.randint(low=low, high=high + 1))
        return state.uniform(low=low, high=high)


class ParameterAlias:
    """The value of another parameter, as one of the values of a distribution."""

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedTensor:
    """A tensor whose sizes, and steps through a larger one, are numbers or names of parameters; its dimensions may be in another order in memory."""

    def __init__(
        self,
        name: str,
        size: tuple[str | int, ...],
        steps: tuple[str | int, ...] | None = None,
        probability_contiguous: float = 0.5,
        min_elements: int | None = None,
        max_elements: int | None = None,
        max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None,
        roll_parameter: str | None = None,
        dtype: _dtype.dtype = _dtype.float32,
        cuda: bool = False,
        tensor_constructor: Callable[..., Tensor] | None = None,
    ) -> None:
        if cuda:
            raise AssertionError("Torch not compiled with CUDA enabled")
        self.name, self._size, self._steps = name, size, steps or ()
        self._probability_contiguous = probability_contiguous
        self._min_elements, self._max_elements, self._max_bytes = min_elements, max_elements, max_allocation_bytes
        self._dim_parameter, self._dtype = dim_parameter, dtype
        self._constructor = tensor_constructor or self.default_tensor_constructor

    @staticmethod
    def default_tensor_constructor(size: tuple[int, ...], dtype: _dtype.dtype, **kwargs: Any) -> Tensor:
        """Random numbers: from 0 to 1, or integers from 1 to 126."""
        made: Tensor = aten.rand(size, dtype=dtype) if dtype.inexact else aten.randint(1, 127, size, dtype=dtype)
        return made

    def _make_tensor(self, params: dict[str, Any], state: np.random.RandomState) -> tuple[Tensor, dict[str, Any]]:
        size, steps = self._resolved(self._size, params), self._resolved(self._steps, params)
        tensor = self._constructor(size=_products(size, steps), dtype=self._dtype, **params)
        order = np.arange(len(size))
        if state.rand() > self._probability_contiguous:
            while len(size) > 1 and np.all(order == np.arange(len(size))):
                order = state.permutation(tensor.dim())
            tensor = tensor.permute(tuple(order.tolist())).contiguous().permute(tuple(np.argsort(order).tolist()))
        tensor = tensor[tuple(slice(0, n * step, step) for n, step in zip(size, steps, strict=True))]
        facts = {"numel": int(tensor.numel()), "order": order, "steps": steps}
        return tensor, {**facts, "is_contiguous": tensor.is_contiguous(), "dtype": str(self._dtype)}

    def _resolved(self, values: Iterable[str | int], params: dict[str, Any]) -> tuple[int, ...]:
        """Numbers in the place of names, as many as there are dimensions; 1 where none is given."""
        dim = len(self._size) if self._dim_parameter is None else params[self._dim_parameter]
        found = [params.get(v, v) if isinstance(v, str) else v for v in values][:dim]
        return tuple(found) + (1,) * (dim - len(found))

    def satisfies_constraints(self, params: dict[str, Any]) -> bool:
        """Whether the numbers of elements and bytes are allowed."""
        size, steps = self._resolved(self._size, params), self._resolved(self._steps, params)
        elements, size_bytes = math.prod(size), math.prod(_products(size, steps)) * self._dtype.itemsize
        return (
            (self._max_elements is None or elements <= self._max_elements)
            and (self._min_elements is None or elements >= self._min_elements)
            and (self._max_bytes is None or size_bytes <= self._max_bytes)
        )


def _products(size: tuple[int, ...], steps: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n * step for n, step in zip(size, steps, strict=True))


class Fuzzer:
    """Draws sets of parameters that meet constraints, and makes the tensors for each, the same from the same seed."""

    def __init__(
        self,
        parameters: Iterable[Any],
        tensors: Iterable[Any],
        constraints: Iterable[Callable[..., bool]] | None = None,
        seed: int | None = None,
    ) -> None:
        self._seed = int(np.random.RandomState().randint(0, 2**32 - 1, dtype=np.int64)) if seed is None else seed
        self._parameters: list[FuzzedParameter] = _flat(parameters, FuzzedParameter)
        self._tensors: list[FuzzedTensor] = _flat(tensors, FuzzedTensor)
        self._constraints = list(constraints or ())
        both = {p.name for p in self._parameters} & {t.name for t in self._tensors}
        if both:
            raise ValueError(f"Duplicate names in parameters and tensors: {both}")
        self._drawn = self._rejected = 0

    def take(self, n: int) -> Iterator[tuple[dict[str, Tensor], dict[str, Any], dict[str, Any]]]:
        """So many times: tensors by name, facts about them, and the parameters."""
        state = np.random.RandomState(self._seed)
        manual_seed(int(state.randint(low=0, high=2**63, dtype=np.int64)))
        for _ in range(n):
            params = self._generate(state)
            made = {t.name: t._make_tensor(params, state) for t in self._tensors}
            yield {k: t for k, (t, _) in made.items()}, {k: facts for k, (_, facts) in made.items()}, params

    @property
    def rejection_rate(self) -> float:
        """The part of the sets that were drawn and did not meet the constraints."""
        return self._rejected / self._drawn if self._drawn else 0.0

    def _generate(self, state: np.random.RandomState) -> dict[str, Any]:
        fixed: dict[str, Any] = {}
        for _ in range(_ATTEMPTS):
            drawn: dict[str, Any] = {}
            for p in self._parameters:
                drawn[p.name] = fixed[p.name] if p.name in fixed else p.sample(state)
                if p.strict:
                    fixed[p.name] = drawn[p.name]
            params = {name: _without_alias(drawn, name) for name in drawn}
            self._drawn += 1
            if all(f(params) for f in self._constraints) and all(t.satisfies_constraints(params) for t in self._tensors):
                return params
            self._rejected += 1
        raise ValueError("Failed to generate a set of valid parameters.")


def _without_alias(params: dict[str, Any], name: str) -> Any:
    value = params[name]
    for _ in params:
        if not isinstance(value, ParameterAlias):
            return value
        value = params[value.alias_to]
    if isinstance(value, ParameterAlias):
        raise ValueError(f"ParameterAlias cycle detected\n{params}")
    return value


def _flat(values: Iterable[Any], kind: type) -> list[Any]:
    return [v for value in values for v in ([value] if isinstance(value, kind) else value)]
