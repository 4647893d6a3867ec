"""Schemas of operators as programs read them: `torch.ops.aten.add.Tensor._schema`, `torch.parse_schema(text)`."""

from __future__ import annotations

import re
from functools import cache
from keyword import iskeyword
from typing import Any

from ._dispatch.schema import _default, _split
from ._schema_types import CLASSES, ListType, OptionalType, TupleType, Type, named, plain

__all__ = ["Argument", "FunctionSchema", "parse_schema", "schema_of"]

_BASES = {
    "Tensor": "TensorType", "int": "IntType", "float": "FloatType", "bool": "BoolType", "str": "StringType", "Scalar": "NumberType",
    "number": "NumberType", "complex": "ComplexType", "Device": "DeviceObjType", "SymInt": "SymIntType", "SymBool": "SymBoolType",
    "Stream": "StreamObjType", "Any": "AnyType", "NoneType": "NoneType", "PyObject": "PyObjectType",
}  # fmt: skip
_WITHOUT_CLASS = {"Generator": "GeneratorType", "Storage": "StorageType", "QScheme": "QSchemeType", "AnyEnumType": "AnyEnumType"}
_AS_INT = {"ScalarType": "ScalarTypeType", "Layout": "LayoutType", "MemoryFormat": "MemoryFormatType"}
_ENUMERATORS = {"contiguous_format": 0, "long": 4, "Mean": 1, "Sum": 2}
_HEAD = re.compile(r"\s*(?P<name>(?:\w+::)?\w+)(?:\.(?P<overload>\w+))?\s*\((?P<rest>.*)$", re.S)
_TYPE = re.compile(r"\s*(?P<base>[A-Za-z_]\w*)")
_ALIAS = re.compile(r"\((?P<before>[\w|*]+)(?P<write>!)?(?:\s*->\s*(?P<after>[\w|*]+))?\)")
_SUFFIX = re.compile(r"\?|\[(\d*)\]")


class AliasInfo:
    """The memory that an argument shares, by letters, before and after the call, and whether it is written to."""

    def __init__(self, before: set[str], after: set[str], *, is_write: bool) -> None:
        self.before_set, self.after_set, self.is_write = before, after, is_write


class Argument:
    """An argument or a result of an operator."""

    def __init__(self, name: str, real_type: Type, as_seen: Type, size: int | None, alias: AliasInfo | None) -> None:
        self.name = name
        self.real_type = real_type
        self.type = as_seen  # enumerations and sizes are integers for those who call
        self.N = size
        self.alias_info = alias
        self.kwarg_only = False
        self.is_out = False
        self.default_value: Any = None
        self._has_default = False

    @property
    def is_write(self) -> bool:
        """Whether the operator writes to it."""
        return self.alias_info is not None and self.alias_info.is_write

    def has_default_value(self) -> bool:
        """Whether a call may leave it out."""
        return self._has_default


class FunctionSchema:
    """The name, arguments and results of an operator."""

    def __init__(self, text: str, name: str, overload_name: str, arguments: list[Argument], returns: list[Argument]) -> None:
        self._text = text
        self.name, self.overload_name = name, overload_name
        self.arguments, self.returns = arguments, returns

    @property
    def is_mutable(self) -> bool:
        """Whether it writes to an argument."""
        return any(a.is_write for a in self.arguments)

    def _is_view_op(self) -> bool:
        """Whether a result shares the memory of an argument that is not written to."""
        return any(r.alias_info is not None and not r.is_write for r in self.returns)

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionSchema) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


def parse_schema(schema: str) -> FunctionSchema:
    """Read a schema in ATen's notation."""
    match = _HEAD.match(schema)
    if match is None:
        raise RuntimeError(f"expected a name and its arguments in parentheses:\n{schema}")
    end = _closing(schema, match["rest"])
    arguments = _arguments(match["rest"][:end], schema)
    arrow = re.match(r"\s*->\s*(.+?)\s*$", match["rest"][end + 1 :], re.S)
    if arrow is None:
        raise RuntimeError(f"expected -> and the types of the results behind the arguments:\n{schema}")
    returns = _results(arrow[1], schema)
    return FunctionSchema(_as_torch_writes(schema), match["name"], match["overload"] or "", arguments, returns)


schema_of = cache(parse_schema)


def _as_torch_writes(schema: str) -> str:
    """The text with double quotes, numbers for the members of enumerations, and all 17 digits of numbers."""
    text = re.sub(r"=\s*'([^']*)'", r'="\1"', " ".join(schema.split()))
    text = re.sub(r",(?=[^\s\]]*\])", ", ", text)
    text = re.sub(r"=(-?\d+(?:\.\d*(?:e-?\d+)?|e-?\d+))(?=[,)])", lambda found: f"={_float_text(float(found[1]))}", text)
    return re.sub(rf"=({'|'.join(_ENUMERATORS)})\b", lambda found: f"={_ENUMERATORS[found[1]]}", text).replace(" from_", " from")


def _float_text(value: float) -> str:
    text = f"{value:.17g}"
    return text if "." in text or "e" in text else text + "."


def _closing(schema: str, rest: str) -> int:
    """Where the parenthesis closes that was opened before this text."""
    depth = 1
    for i, c in enumerate(rest):
        depth += (c == "(") - (c == ")")
        if not depth:
            return i
    raise RuntimeError(f"expected ) at the end of the arguments:\n{schema}")


def _arguments(text: str, schema: str) -> list[Argument]:
    found: list[Argument] = []
    kwarg_only = False
    for part in _split(text):
        if part == "*":
            kwarg_only = True
        elif part != "...":
            made, rest = _typed(part, schema)
            matched = re.match(r"\s*(\w+)\s*(?:=\s*(.+))?$", rest, re.S)
            if matched is None:
                raise RuntimeError(f"expected the name of an argument in {part!r}:\n{schema}")
            name = matched[1].rstrip("_")
            made.name, made.kwarg_only = name if iskeyword(name) else matched[1], kwarg_only  # Python keeps `from` for itself
            made.is_out = kwarg_only and made.is_write
            if matched[2] is not None:
                made._has_default, made.default_value = True, _value(made, matched[2].strip())
            found.append(made)
    return found


def _results(text: str, schema: str) -> list[Argument]:
    if text == "...":
        return []
    parts = _split(text[1:-1]) if text.startswith("(") and text.endswith(")") else [text]
    found = []
    for part in parts:
        made, rest = _typed(part, schema)
        if rest.strip() and not re.fullmatch(r"\s*\w+", rest):
            raise RuntimeError(f"unexpected text {rest.strip()!r} behind a result:\n{schema}")
        made.name = rest.strip()
        found.append(made)
    return found


def _typed(text: str, schema: str) -> tuple[Argument, str]:
    """An argument without its name, and the text behind its type."""
    real, seen, rest = _base(text, schema)
    alias, inside = None, False
    matched = _ALIAS.match(rest)
    if matched is not None:
        before = set(matched["before"].split("|"))
        after = set(matched["after"].split("|")) if matched["after"] else before
        alias, rest = AliasInfo(before, after, is_write=matched["write"] is not None), rest[matched.end() :]
    size = None
    while (suffix := _SUFFIX.match(rest)) is not None:
        wrap: Any = OptionalType if suffix[0] == "?" else ListType
        inside = inside or wrap is ListType
        real, seen, rest = wrap(real), wrap(seen), rest[suffix.end() :]
        size = int(suffix[1]) if suffix[1] else size
    if alias is not None and inside:
        alias = AliasInfo(set(), set(), is_write=alias.is_write)  # the letters are those of the elements
    return Argument("", real, seen, size, alias), rest


def _base(text: str, schema: str) -> tuple[Type, Type, str]:
    """The innermost type as it is and as callers see it, and the text behind it."""
    text = text.lstrip()
    if text.startswith("("):
        end = _closing(schema, text[1:]) + 1
        parts = [_typed(part, schema)[0] for part in _split(text[1:end])]
        return TupleType([p.real_type for p in parts]), TupleType([p.type for p in parts]), text[end + 1 :]
    matched = _TYPE.match(text)
    if matched is None:
        raise RuntimeError(f"expected a type in {text!r}:\n{schema}")
    base, rest = matched["base"], text[matched.end() :]
    if base in ("Dict", "Future", "RRef", "Await", "Union") and rest.startswith("("):
        end = _closing(schema, rest[1:]) + 1
        parts = [_typed(part, schema)[0] for part in _split(rest[1:end])]
        made: Any = CLASSES[base + "Type"]
        real, seen = ([p.real_type for p in parts], [p.type for p in parts])
        if base == "Union":
            return made(real), made(seen), rest[end + 1 :]
        return made(*real), made(*seen), rest[end + 1 :]
    if base in _BASES:
        real_type = plain(_BASES[base])
        return real_type, plain(_BASES[base.replace("SymInt", "int")]), rest
    if base in _AS_INT:
        return named(base, _AS_INT[base]), plain("IntType"), rest
    if base in _WITHOUT_CLASS:
        made_type = named(base, _WITHOUT_CLASS[base])
        return made_type, made_type, rest
    if base.islower():
        variable = named(base, "VarType")
        return variable, variable, rest
    raise RuntimeError(
        f"unknown type specifier {base!r}; valid types include Tensor, SymInt, int, float, bool and Scalar:\n{schema}"
    )


def _value(argument: Argument, text: str) -> Any:
    value: Any = _ENUMERATORS.get(text, _default(text))
    kind = argument.type._members[0] if argument.type._kind == "OptionalType" else argument.type
    if value is None:
        return None
    if kind._kind == "ListType":
        value = list(value) if isinstance(value, tuple) else [value] * (argument.N or 1)
        return [float(v) for v in value] if kind._members[0]._kind == "FloatType" else value
    if kind._kind == "FloatType":
        return float(value)
    return value
