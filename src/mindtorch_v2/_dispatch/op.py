"""What an operator is: its schema, kernels, derivative formulas and rules, declared in one place."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Protocol

import numpy as np

from . import keys
from .schema import Schema, parse

__all__ = ["Entry", "Formula", "Op", "Table"]

# Suffixes of a formula's parameter that keep a fact about a tensor argument instead of the tensor itself.
FACTS = ("_shape", "_dtype", "_device", "_strides", "_byte_steps", "_geometry")

GIVEN = ("grad", "grads", "needs", "result")  # what every formula may ask for


class Formula:
    """A derivative: which arguments it yields gradients for, and what it needs saved to do so."""

    __slots__ = ("function", "parameters", "targets")

    def __init__(self, targets: tuple[str, ...], function: Callable[..., Any], schema: Schema) -> None:
        self.targets = targets
        self.function = function
        self.parameters = parameter_names(function)
        named = {*schema.argument_names, *schema.output_names}
        for name in (*self.parameters, *targets):
            if name not in named and name not in GIVEN and not _is_fact(name, named):
                raise TypeError(f"the derivative of {schema.name} names {name!r}, which is not in its schema: {schema}")


def _is_fact(name: str, named: set[str]) -> bool:
    """Whether a parameter asks for a fact about one of these arguments and results."""
    return any(name.endswith(fact) and name[: -len(fact)] in named for fact in FACTS)


def parameter_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the arguments that a kernel or formula takes; options of its own are keyword-only."""
    inner = inspect.unwrap(function)
    if isinstance(inner, FunctionType) and not hasattr(inner, "__signature__"):
        # a tenth of the cost of `inspect.signature`, over a thousand times at import
        code = inner.__code__
        return code.co_varnames[: code.co_argcount]
    return tuple(name for name, p in inspect.signature(function).parameters.items() if p.kind is not p.KEYWORD_ONLY)


class Table(dict[int, Callable[..., Any]]):
    """Key set of the arguments → the function to call; filled on first use."""

    __slots__ = ("op",)
    resolve: Callable[[Op, int], Callable[..., Any]]  # set by the dispatcher, which imports this module

    def __init__(self, op: Op) -> None:
        self.op = op

    def __missing__(self, argument_keys: int) -> Callable[..., Any]:
        return self.resolve(self.op, argument_keys)


class Entry(Protocol):
    """The function that users call for an operator."""

    __name__: str
    op: Op

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...


class Op:
    """One overload of one operator."""

    __slots__ = (
        "alpha",
        "array_kernels",
        "compiled",
        "composite",
        "entry",
        "fixed",
        "formulas",
        "kernels",
        "node_name",
        "nondifferentiable",
        "numbers",
        "pointwise",
        "refuses",
        "schema",
        "shape",
        "table",
        "tags",
    )  # fmt: skip

    def __init__(
        self,
        schema: str | Schema,
        *,
        cpu: Callable[..., Any] | None = None,
        composite: Callable[..., Any] | None = None,
        over_tensors: Callable[..., Any] | None = None,
        pointwise: str | None = None,
        shape: Callable[..., Any] | None = None,
        grad: Mapping[Any, Callable[..., Any]] | None = None,
        node: str | None = None,
        numbers: tuple[str, ...] = (),
        nondifferentiable: tuple[str, ...] = (),
        fixed: tuple[str, ...] = (),
        refuses: tuple[str, str] | None = None,
        tags: tuple[str, ...] = (),
    ) -> None:
        self.schema = parse(schema) if isinstance(schema, str) else schema
        self.composite = composite
        self.pointwise = pointwise
        self.shape = shape
        self.tags = tags
        self.numbers = numbers  # tensor arguments that also take a Python number
        self.nondifferentiable = nondifferentiable  # results that never require grad
        self.fixed = fixed  # tensor arguments that must not require grad
        self.refuses = refuses  # name and kinds of dtype that a NumPy function used as kernel would take and torch does not
        self.alpha = "alpha" in self.schema.argument_names
        self.array_kernels: dict[int, Callable[..., Any]] = {}  # over arrays; an adapter is generated around them
        self.kernels: dict[int, Any] = {}  # over tensors, by key: functions, or a Body to inline
        if over_tensors is not None:
            self.kernels[keys.CPU] = over_tensors
        if cpu is not None:
            self.array_kernels[keys.CPU] = cpu
            self._check_kernel(cpu)
        self.formulas = tuple(
            Formula((target,) if isinstance(target, str) else tuple(target), function, self.schema)
            for target, function in (grad or {}).items()
        )
        self.node_name = node or _camel(self.schema.name.rstrip("_")) + "Backward0"
        self.table = Table(self)
        self.compiled: dict[int, Callable[..., Any]] = {}
        self.entry: Entry | None = None

    def _check_kernel(self, kernel: Callable[..., Any]) -> None:
        if isinstance(kernel, np.ufunc):
            return
        for name in parameter_names(kernel):
            if name not in self.schema.argument_names:
                raise TypeError(f"the CPU kernel of {self.schema.name} names {name!r}, which is not in its schema: {self.schema}")

    @property
    def name(self) -> str:
        return self.schema.name

    @property
    def qualified_name(self) -> str:
        """The name that profiles show: `aten::add`."""
        return self.schema.qualified_name

    @property
    def overload_name(self) -> str:
        return self.schema.overload or "default"

    def __repr__(self) -> str:
        return f"<op {self.schema.qualified_name}.{self.overload_name}>"


_INITIAL = re.compile(r"(?:^|_+|(?<=\d))([a-z])")


def _camel(name: str) -> str:
    """`max_pool2d_with_indices` → `MaxPool2DWithIndices`, as torch spells its backward nodes."""
    return _INITIAL.sub(lambda found: found[1].upper(), name).replace("_", "")
