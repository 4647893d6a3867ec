"""`torch.library.infer_schema`: an operator's schema from a function's annotations."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ._tensor import Tensor

__all__ = ["infer_schema"]

Function = Callable[..., Any]

_ANNOTATIONS: dict[Any, str] = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", int | float | bool: "Scalar",
}  # fmt: skip


def _schema_type(annotation: Any) -> str:
    if annotation in _ANNOTATIONS:
        return _ANNOTATIONS[annotation]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if type(None) in arguments:
        rest = [a for a in arguments if a is not type(None)]
        if len(rest) == 1:
            return _schema_type(rest[0]) + "?"
    if origin in (list, Sequence, typing.Sequence) and len(arguments) == 1:
        return _schema_type(arguments[0]) + "[]"
    if getattr(annotation, "__name__", "") in ("dtype", "device"):
        return {"dtype": "ScalarType", "device": "Device"}[annotation.__name__]
    if annotation is int | float | bool or set(arguments) == {int, float, bool}:
        return "Scalar"
    raise ValueError(
        f"type {annotation} is not supported; use Tensor, int, float, bool, str, their Optional and Sequence forms, dtype or device"
    )


def infer_schema(prototype_function: Function, /, *, mutates_args: str | Iterable[str] = (), op_name: str | None = None) -> str:
    """The schema that a function's annotations say: `(Tensor x, float y=1.0) -> Tensor`."""
    signature = inspect.signature(prototype_function)
    hints = typing.get_type_hints(prototype_function)
    everything = mutates_args == "unknown"
    if isinstance(mutates_args, str) and not everything:
        raise ValueError(
            "infer_schema(func): mutates_args must either be a sequence of the names of the arguments or the string 'unknown'."
        )
    mutated = set() if isinstance(mutates_args, str) else set(mutates_args)
    unknown = mutated - set(signature.parameters)
    if unknown:
        raise ValueError(
            f"infer_schema(func): {unknown} in mutates_args were not found in the custom op's signature. mutates_args should contain the "
            f"names of all args that the custom op mutates, or just the string 'unknown' if you don't know. Got func with signature "
            f"{signature}"
        )
    parts: list[str] = []
    for i, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ValueError(f"infer_schema(func): we do not support *args and **kwargs, found {name!r}")
        if name not in hints:
            raise ValueError(
                f"infer_schema(func): Parameter {name} must have a type annotation. Got func with signature {signature}"
            )
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        kind = _schema_type(hints[name])
        if (name in mutated or everything) and kind.startswith("Tensor"):
            kind = kind.replace("Tensor", f"Tensor(a{i}!)", 1)
        default = "" if parameter.default is parameter.empty else f"={_default_text(parameter.default)}"
        parts.append(f"{kind} {name}{default}")
    text = f"({', '.join(parts)}) -> {_return_text(hints.get('return', inspect.Signature.empty), signature)}"
    return text if op_name is None else op_name + text


def _default_text(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _return_text(annotation: Any, signature: Any) -> str:
    if annotation is inspect.Signature.empty:
        raise ValueError(f"infer_schema(func): No return type annotation was provided. Please add one. Got {signature}")
    if annotation is None or annotation is type(None):
        return "()"
    if typing.get_origin(annotation) is tuple:
        return "(" + ", ".join(_schema_type(a) for a in typing.get_args(annotation)) + ")"
    return _schema_type(annotation)
