"""The public functions and methods: one for every name in the registry, attached to `torch` and to `Tensor`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import _ops  # noqa: F401 - every operator is declared
from ._dispatch import registry
from ._dispatch.codegen import Source
from ._dispatch.entry import NUMBERS
from ._dispatch.keys import NUMBER
from ._dispatch.lazy import lazy_function
from ._dispatch.op import Op
from ._dispatch.resolver import make_resolver
from ._interop import from_numpy
from ._ops.elementwise.python_operators import reflected
from ._ops.machinery.calling import retry_call
from ._ops.machinery.declare import exported
from ._tensor import Tensor
from ._types import Number

__all__ = ["functions", "namespace"]

PREFIXES = ("linalg_", "fft_", "special_")  # operators that live in a module of that name instead of `torch`
# torch has in-place functions for these only; the others are methods
INPLACE_FUNCTIONS = frozenset(
    """
    abs_ acos_ acosh_ addmv_ alpha_dropout_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_ asin_ asinh_
    atan_ atanh_ ceil_ celu_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ detach_ dropout_
    embedding_renorm_ erf_ erfc_ exp2_ exp_ expm1_ feature_alpha_dropout_ feature_dropout_ fill_ fix_ floor_ frac_ gcd_ i0_
    index_put_ lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ resize_as_ resize_as_sparse_
    round_ rrelu_ rsqrt_ selu_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ threshold_ trunc_ xlogy_ zero_
    """.split()
)

# Operators of the language → operator name and overload; the reflected ones swap their operands.
BINARY = {
    "add": "add.Tensor", "sub": "sub.Tensor", "mul": "mul.Tensor", "truediv": "div.Tensor", "matmul": "matmul",
    "floordiv": "floor_divide", "and": "__and__.Tensor", "or": "__or__.Tensor", "xor": "__xor__.Tensor",
    "lt": "lt.Tensor", "le": "le.Tensor", "gt": "gt.Tensor", "ge": "ge.Tensor", "eq": "eq.Tensor", "ne": "ne.Tensor",
}  # fmt: skip


def _functions() -> dict[str, Callable[..., Any]]:
    """torch's functions by name, before `torch.linalg` and the like are split off."""
    by_name: dict[str, list[Op]] = {}
    for op in registry.all_ops():
        if op.schema.namespace == "aten":
            by_name.setdefault(op.name, []).append(op)
    found: dict[str, Callable[..., Any]] = {}
    for name, ops in by_name.items():
        # overloads that only operators call need no choice by types, which costs `x.mul_(2.0)` 0.6 µs
        offered = [op for op in ops if "function" in op.tags or "method" in op.tags] or ops
        function = offered[0].entry if len(offered) == 1 else make_resolver(name, offered, Tensor)
        assert function is not None
        tags = {t for op in ops for t in op.tags}
        if "function" in tags and (not ops[0].schema.is_inplace or name.startswith("_") or name in INPLACE_FUNCTIONS):
            found[name] = function
        if (
            "method" in tags
            and not name.startswith(PREFIXES)
            and ops[0].schema.arguments
            and ops[0].schema.arguments[0].name == "self"
            and name not in Tensor.__dict__
        ):
            setattr(Tensor, name, function)
    for name, variants in exported.items():
        if "function" in variants:
            found[name] = variants["function"]
        else:
            found.pop(name, None)
        if "method" in variants:
            setattr(Tensor, name, variants["method"])
    return found


def namespace(prefix: str) -> dict[str, Callable[..., Any]]:
    """The functions of `torch.linalg`, `torch.fft`, `torch.special`, by their names there."""
    return {name[len(prefix) :]: f for name, f in functions.items() if name.startswith(prefix)}


def _dunder(name: str, op: Op) -> Callable[..., Any]:
    """A binary operator of the language: without alpha and out, and giving way to the other operand's own method."""
    rest = "".join(f", {a.default!r}" for a in op.schema.arguments[2:])

    def slow(self: Tensor, other: Tensor | Number) -> Any:
        if not isinstance(self, Tensor):
            raise TypeError(f"descriptor '{name}' requires a 'Tensor' object but received a '{type(self).__name__}'")
        if isinstance(other, np.ndarray) and op.name in ("eq", "ne"):  # torch: other operators leave arrays to NumPy
            other = from_numpy(other)
        try:
            return retry_call(op, (self, other, *(a.default for a in op.schema.arguments[2:])))
        except TypeError:
            if isinstance(other, Tensor | int | float | complex):
                raise
            return NotImplemented

    key = f"({NUMBER} if other.__class__ in NUMBERS else other._keys)" if "other" in op.numbers else "other._keys"
    lines = [
        "try:",
        f"    function = table[self._keys | {key}]",
        "except AttributeError:",
        "    return slow(self, other)",
        f"return function(self, other{rest})",
    ]
    source = Source("self, other", lines, {"table": op.table, "NUMBERS": NUMBERS, "slow": slow})
    return lazy_function(name, lambda: source)


def _attach_operators() -> None:
    for name, target in BINARY.items():
        base, _, overload = target.partition(".")
        op = registry.find("aten::" + base, overload or "default")
        if op is None:
            continue
        dunder = f"__{name}__"
        setattr(Tensor, dunder, _dunder(dunder, op))
        inplace = registry.find("aten::" + base + "_", overload or "default")
        if inplace is not None and op.pointwise != "bool":
            setattr(Tensor, f"__i{name}__", _dunder(f"__i{name}__", inplace))
    Tensor.__radd__ = Tensor.__add__  # type: ignore[method-assign]
    Tensor.__rmul__ = Tensor.__mul__  # type: ignore[method-assign]
    for name in ("and", "or", "xor"):
        setattr(Tensor, f"__r{name}__", getattr(Tensor, f"__{name}__"))
    Tensor.__rdiv__, Tensor.__div__, Tensor.__idiv__ = reflected["__rtruediv__"], Tensor.__truediv__, Tensor.__itruediv__
    for name, method in reflected.items():
        setattr(Tensor, name, method)


functions = _functions()
_attach_operators()
