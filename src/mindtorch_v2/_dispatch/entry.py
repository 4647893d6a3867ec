"""Entry points: the Python functions users call, generated from schemas so that binding costs what Python's own does.

An entry point ORs the key sets of its tensor arguments, looks the sum up in the operator's table, and calls what it finds
with every argument in the schema's order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _dtype
from .codegen import Source
from .deprecated_calls import call_deprecated
from .keys import NUMBER
from .lazy import lazy_function
from .op import Entry, Op
from .schema import Argument

__all__ = ["UNREDUCED", "keys_of", "make_entry", "public_name"]

NUMBERS = frozenset({bool, int, float, complex})
ALIASES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}


# Functions that also take the factors of their operands in front of them, and how many arguments more these calls have at most.
_LEGACY = {"add": 1, "sub": 1, "addcmul": 1, "addcdiv": 1, "addmm": 2, "addmv": 2, "addr": 2, "addbmm": 2, "baddbmm": 2}


class _Missing:
    def __repr__(self) -> str:
        return "<required>"


MISSING: Any = _Missing()


def public_name(argument: Argument) -> str:
    """torch's functions call the first tensor `input` where the schema says `self`."""
    return "input" if argument.name == "self" else argument.name


def keys_of(tensors: Any) -> int:
    """The keys of a list of tensors, some of which may be None."""
    keys = 0
    for t in tensors:
        if t is not None:
            keys |= t._keys
    return keys


def keys_of_all(tensors: Any) -> int:
    """The keys of a list of tensors."""
    if tensors.__class__ is not list and hasattr(tensors, "_keys"):
        raise TypeError("a tensor, and not a list of them")
    keys = 0
    for t in tensors:
        keys |= t._keys
    return keys


# Functions of losses that reduce nothing where they are called without `reduction`: PyTorch's parser of Python arguments takes the default of their
# schemas, `Mean`, for the number 0. `torch.ops` has the schema's, and `nn.functional` defaults of its own.
UNREDUCED = frozenset(
    "binary_cross_entropy_with_logits cosine_embedding_loss ctc_loss hinge_embedding_loss kl_div margin_ranking_loss triplet_margin_loss".split()
)


def make_entry(op: Op, *, retry: Callable[..., Any], with_out: Callable[..., Any], device_key: Callable[..., int]) -> Entry:
    """The function that calls this operator.

    `retry(op, arguments)` sorts out arguments that are not tensors, `with_out(op, arguments, out)` writes to `out=`.
    """

    def build() -> Source:
        return _entry_source(op, {"retry": retry, "with_out": with_out, "device_key": device_key, "entry": entry})

    entry: Entry = lazy_function(op.schema.name, build, doc=str(op.schema), module="torch")
    entry.op = op
    return entry


def _entry_source(op: Op, helpers: dict[str, Any]) -> Source:
    schema = op.schema
    names: dict[str, Any] = {
        **helpers,
        "table": op.table,
        "NUMBERS": NUMBERS,
        "keys_of": keys_of,
        "keys_of_all": keys_of_all,
        "op": op,
        "MISSING": MISSING,
    }
    takes_dim = "dim" in schema.argument_names
    takes_out = all(r.type == "Tensor" and not r.alias for r in schema.returns) and bool(schema.returns)
    takes_out = takes_out and not any(a.name == "out" for a in schema.arguments)
    legacy = _LEGACY.get(schema.name.rstrip("_"), 0) if any(a.keyword_only for a in schema.arguments) else 0
    parameters = _parameters(op, names, takes_dim=takes_dim, takes_out=takes_out, legacy=legacy)
    arguments = ", ".join(public_name(a) for a in schema.arguments)
    packed = f"({arguments},)" if arguments else "()"
    lines = []
    if legacy:
        listed = [public_name(a) for a in schema.arguments if not a.keyword_only] + [f"legacy{i}" for i in range(legacy)]
        lines += [
            "if legacy0 is not None:",
            f"    return call_deprecated(entry, ({', '.join(listed)}){', out=out' if takes_out else ''})",
        ]
        names["call_deprecated"] = call_deprecated
    variadic = _variadic(op)
    if variadic:
        lines += [
            f"if {variadic} is MISSING:",
            "    if not args:",
            f"        raise TypeError('{schema.name}() missing 1 required positional arguments: \"{variadic}\"')",
            f"    {variadic} = args[0] if len(args) == 1 and args[0].__class__ is not int else args",
        ]
        lines += ["elif args:", f"    raise TypeError(\"{schema.name}() got multiple values for argument '{variadic}'\")"]
    if takes_dim:
        given = ", ".join(f"{public_name(a)!r}: {public_name(a)}" for a in schema.arguments) + (", 'out': out" if takes_out else "")
        lines += ["if aliases:", f"    return renamed(entry, {{{given}}}, aliases)"]
        required = [public_name(a) for a in schema.arguments if not a.has_default and a.name in ("self", "dim", "other")]
        for name in required[1:]:
            lines += [
                f"if {name} is MISSING:",
                f"    raise TypeError(\"{schema.name}() missing 1 required positional argument: '{name}'\")",
            ]
        names["renamed"] = _renamed
    for a in schema.arguments:
        if a.type.startswith("ScalarType"):
            n = public_name(a)
            lines += [
                f"if {n} is not None and {n}.__class__ is not DTYPE:",
                f"    {n} = as_dtype({n}, {schema.name!r}, {n!r})",
            ]
            names |= {"DTYPE": _dtype.dtype, "as_dtype": _dtype.as_dtype}
    if takes_out:
        lines += ["if out is not None:", f"    return with_out(op, {packed}, out)"]
    lines += [
        "try:",
        f"    function = table[{_key_expression(op)}]",
        "except (AttributeError, TypeError):",
        f"    return retry(op, {packed})",
        f"return function({arguments})",
    ]
    return Source(parameters, lines, names)


def _parameters(op: Op, names: dict[str, Any], *, takes_dim: bool, takes_out: bool, legacy: int) -> str:
    parts = []
    starred = False
    variadic = _variadic(op)
    for i, a in enumerate(op.schema.arguments):
        name = public_name(a)
        if name == variadic:
            parts += ["*args", f"{name}=MISSING"]
            starred = True
            continue
        if a.keyword_only and not starred:
            parts += [*(f"legacy{i}=None" for i in range(legacy)), "*"]
            starred = True
        if a.has_default:
            names[f"default{i}"] = 0 if a.name == "reduction" and op.schema.name in UNREDUCED else a.default
            parts.append(f"{name}=default{i}")
        elif takes_dim and i > 0:
            parts.append(f"{name}=MISSING")
        else:
            parts.append(name)
    if takes_out:
        parts += ["out=None"] if starred else ["*", "out=None"]
    if takes_dim:
        parts.append("**aliases")
    return ", ".join(parts)


def _variadic(op: Op) -> str:
    """The list of ints that may also be written out, as in `x.permute(0, 2, 1)`: the only positional argument after self."""
    positional = [a for a in op.schema.arguments if not a.keyword_only]
    if positional and positional[0].name == "self":
        positional = positional[1:]
    if len(positional) == 1 and positional[0].type == "int[]" and not positional[0].has_default:
        return positional[0].name
    return ""


def _key_expression(op: Op) -> str:
    parts = []
    for a in op.schema.tensor_arguments:
        n = public_name(a)
        if a.is_tensor_list:
            parts.append(f"keys_of({n})" if "?" in a.type else f"keys_of_all({n})")
        elif a.name in op.numbers:
            parts.append(f"({NUMBER} if {n}.__class__ in NUMBERS else {n}._keys)")
        elif a.type == "Tensor?":
            parts.append(f"(0 if {n} is None else {n}._keys)")
        else:
            parts.append(f"{n}._keys")
    if not parts:
        return "device_key(device)" if "device" in op.schema.argument_names else "1"
    return " | ".join(parts)


def _renamed(entry: Entry, given: dict[str, Any], aliases: dict[str, Any]) -> Any:
    """Call again with NumPy's argument names (`axis`, `keepdims`, …) replaced by torch's."""
    arguments = {k: v for k, v in given.items() if v is not MISSING}
    for name, value in aliases.items():
        target = ALIASES.get(name)
        if target is None or target not in given:
            raise TypeError(f"{entry.__name__}() got an unexpected keyword argument '{name}'")
        arguments[target] = value
    return entry(**arguments)
