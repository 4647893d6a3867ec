"""Operator schemas: `add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`, parsed once."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

__all__ = ["Argument", "Return", "Schema", "parse"]


@dataclass(frozen=True, slots=True)
class Argument:
    name: str
    type: str  # without the alias mark: "Tensor", "Tensor?", "Tensor[]", "int[2]", "Scalar", …
    default: Any = None
    has_default: bool = False
    keyword_only: bool = False
    alias: str = ""  # "a" for a view of it, "a!" when it is written to

    @property
    def is_tensor(self) -> bool:
        return self.type in ("Tensor", "Tensor?")

    @property
    def is_tensor_list(self) -> bool:
        return self.type.startswith("Tensor") and "[" in self.type

    @property
    def is_written(self) -> bool:
        return self.alias.endswith("!")


@dataclass(frozen=True, slots=True)
class Return:
    type: str
    name: str = ""
    alias: str = ""


@dataclass(frozen=True)
class Schema:
    namespace: str
    name: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: tuple[Return, ...]
    text: str = field(compare=False, default="")

    @cached_property
    def argument_names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.arguments)

    @cached_property
    def tensor_arguments(self) -> tuple[Argument, ...]:
        return tuple(a for a in self.arguments if a.is_tensor or a.is_tensor_list)

    @cached_property
    def tensor_positions(self) -> tuple[tuple[int, Argument, bool], ...]:
        """Position and argument of each tensor and list of tensors, and whether it is a list."""
        return tuple((i, a, a.is_tensor_list) for i, a in enumerate(self.arguments) if a in self.tensor_arguments)

    @property
    def qualified_name(self) -> str:
        return f"{self.namespace}::{self.name}"

    @property
    def is_inplace(self) -> bool:
        return bool(self.arguments) and self.arguments[0].is_written

    @property
    def is_view(self) -> bool:
        return any(r.alias and not r.alias.endswith("!") for r in self.returns)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the results that formulas may ask for: `result`, or the returns' own names, or `result0`, …"""
        if len(self.returns) == 1:
            return ("result",)
        return tuple(r.name or f"result{i}" for i, r in enumerate(self.returns))

    def argument(self, name: str) -> Argument:
        for a in self.arguments:
            if a.name == name:
                return a
        raise KeyError(name)

    def __str__(self) -> str:
        return self.text


_HEAD = re.compile(r"^(?:(?P<ns>\w+)::)?(?P<name>\w+)(?:\.(?P<overload>\w+))?\((?P<args>.*)\)\s*->\s*(?P<returns>.+)$", re.S)
_ARGUMENT = re.compile(
    r"^(?P<base>[A-Za-z]\w*)(?:\((?P<alias>[^)]*)\))?(?P<suffix>\??(?:\[\d*\])?\??)\s+(?P<name>\w+)(?:\s*=\s*(?P<default>.+))?$"
)
_RETURN = re.compile(r"^(?P<base>[A-Za-z]\w*)(?:\((?P<alias>[^)]*)\))?(?P<suffix>\??(?:\[\d*\])?\??)(?:\s+(?P<name>\w+))?$")
_MARKS = re.compile(r"""[,()\[\]"']""")
_NAMED_DEFAULTS = {"None": None, "True": True, "False": False, "Mean": 1, "Sum": 2, "inf": float("inf")}


def _split(text: str) -> list[str]:
    """Split at commas outside of brackets and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for found in _MARKS.finditer(text):
        c = found[0]
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif depth == 0:
            parts.append(text[start : found.start()])
            start = found.end()
    parts.append(text[start:])
    return [p.strip() for p in parts if p.strip()]


def _default(text: str) -> Any:
    if text in _NAMED_DEFAULTS:
        return _NAMED_DEFAULTS[text]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text  # an enumerator such as contiguous_format: kept by name
    return tuple(value) if isinstance(value, list) else value


def _alias(mark: str | None) -> str:
    """`a!`, `a`, or `a -> *` reduced to the part that matters here: whether it is shared, and whether written."""
    if not mark:
        return ""
    return mark.split("->")[0].strip().replace("|", "")


@cache  # 1,400 schemas have 900 different arguments among 6,000
def _argument(text: str, keyword_only: bool) -> Argument:
    m = _ARGUMENT.match(text)
    if m is None:
        raise ValueError(f"argument {text!r} cannot be read")
    default = m["default"]
    return Argument(
        name=m["name"],
        type=m["base"].replace("SymInt", "int") + m["suffix"],
        default=None if default is None else _default(default),
        has_default=default is not None,
        keyword_only=keyword_only,
        alias=_alias(m["alias"]),
    )


@cache
def _returns(text: str) -> tuple[Return, ...]:
    text = text.strip()
    if text.startswith("("):
        text = text[1:-1]
    returns = []
    for part in _split(text):
        m = _RETURN.match(part)
        if m is None:
            raise ValueError(f"return {part!r} cannot be read")
        returns.append(
            Return(type=m["base"].replace("SymInt", "int") + m["suffix"], name=m["name"] or "", alias=_alias(m["alias"]))
        )
    return tuple(returns)


def parse(text: str) -> Schema:
    """Read one schema in ATen's notation."""
    text = text.strip()
    match = _HEAD.match(text)
    if match is None:
        raise ValueError(f"not an operator schema: {text!r}")
    arguments = _split(match["args"])
    star = arguments.index("*") if "*" in arguments else len(arguments)  # arguments behind it are keywords
    try:
        read = [_argument(part, at > star) for at, part in enumerate(arguments) if at != star]
        returns = _returns(match["returns"])
    except ValueError as error:
        raise ValueError(f"{error}, in the schema {text!r}") from None
    return Schema(
        namespace=match["ns"] or "aten",
        name=match["name"],
        overload=match["overload"] or "",
        arguments=tuple(read),
        returns=returns,
        text=text,
    )
