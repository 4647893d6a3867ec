"""Which functions `__torch_function__` can override, and stand-ins with their signatures for classes that override all of them."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from ._dispatch.codegen import compile_function
from ._dispatch.entry import public_name
from ._dispatch.op import Op
from ._tensor import Tensor

__all__ = ["get_ignored_functions", "get_overridable_functions", "get_testing_overrides", "is_tensor_method_or_property", "path_of"]

_MODULES = ("", "functional", "nn.functional", "linalg", "fft", "special")
_UNTOUCHED = frozenset(
    "__new__ __init__ __init_subclass__ __class__ __getattribute__ __torch_function__ __torch_dispatch__".split()
)


def _module(path: str) -> ModuleType:
    package = __name__.partition(".")[0]
    return sys.modules[f"{package}.{path}" if path else package]


def _takes_tensors(function: Any) -> bool:
    """Whether a function of torch's own namespace is an operator with a tensor among its arguments."""
    op = getattr(function, "op", None)
    if isinstance(op, Op):
        return bool(op.schema.tensor_arguments)
    return isinstance(function, FunctionType) and next(iter(inspect.signature(function).parameters), "") in (
        "input",
        "tensors",
        "self",
    )


@functools.cache
def _overridable() -> dict[Any, list[Callable[..., Any]]]:
    found: dict[Any, list[Callable[..., Any]]] = {}
    for path in _MODULES:
        module = _module(path)
        names = [n for n in dir(module) if not n.startswith("_")] if not path else module.__all__
        values = [getattr(module, n) for n in names]
        found[module] = [v for v in values if isinstance(v, FunctionType) and (path == "nn.functional" or _takes_tensors(v))]
    for name in dir(Tensor):
        value = inspect.getattr_static(Tensor, name)
        if isinstance(value, property):
            found[value] = [value.__get__]
        elif isinstance(value, FunctionType) and name not in _UNTOUCHED:
            found.setdefault(Tensor, []).append(value)
    return found


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """Module, `Tensor` or property of it → the functions that `__torch_function__` is asked about."""
    return {owner: list(functions) for owner, functions in _overridable().items()}


@functools.cache
def get_ignored_functions() -> set[Callable[..., Any]]:
    """The public functions of torch that `__torch_function__` is never asked about: factories and settings."""
    known = {f for functions in _overridable().values() for f in functions if isinstance(f, FunctionType)}
    module = _module("")
    values = [getattr(module, n) for n in dir(module) if not n.startswith("_")]
    return {v for v in values if isinstance(v, FunctionType) and v not in known}


@functools.cache
def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Every function that can be overridden → one with the same arguments that returns -1."""
    return {f: _stand_in(f) for functions in _overridable().values() for f in functions}


def _stand_in(function: Any) -> Callable[..., Any]:
    op = getattr(function, "op", None)
    if isinstance(op, Op):
        parts, defaults = [], {}
        for a in op.schema.arguments:
            defaults[f"default_{a.name}"] = a.default
            parts.append(f"{public_name(a)}=default_{a.name}" if a.has_default else public_name(a))
        parts.append("out=None")
        return compile_function("stand_in", ", ".join(parts), ["return -1"], defaults)
    if isinstance(function, FunctionType):

        def stand_in(*args: Any, **kwargs: Any) -> int:
            signature.bind(*args, **kwargs)
            return -1

        signature = stand_in.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        return stand_in
    return lambda self: -1  # of a property


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether this is a method of `Tensor`, or what reads a property of it."""
    return func in _overridable()[Tensor] or getattr(func, "__name__", "") == "__get__"


@functools.cache
def _paths() -> dict[Any, str]:
    paths: dict[Any, str] = {}
    for path in _MODULES:
        module = _module(path)
        for name in dir(module):
            value = getattr(module, name, None) if not name.startswith("_") else None
            if isinstance(value, FunctionType):
                paths.setdefault(value, ".".join(filter(None, ("torch", path, name))))
    for name in dir(Tensor):
        value = inspect.getattr_static(Tensor, name)
        if isinstance(value, property):
            paths.setdefault(value.__get__, f"torch.Tensor.{name}.__get__")
        elif isinstance(value, FunctionType):
            paths.setdefault(value, f"torch.Tensor.{name}")
    return paths


def path_of(function: Any) -> str | None:
    """The public path of a function: `torch.add`, `torch.Tensor.add_`, `torch.Tensor.shape.__get__`."""
    return _paths().get(function)
