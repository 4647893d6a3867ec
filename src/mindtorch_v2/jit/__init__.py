"""torch.jit: models stay Python. What compiles gives back what it was given, what marks functions leaves them, and files are refused."""

from __future__ import annotations

import builtins
import contextlib
import types
import typing
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from .._refusals import given_back, refused
from ..nn.modules.module import Module

__all__ = [
    "Attribute",
    "Error",
    "Final",
    "Future",
    "ScriptModule",
    "annotate",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "optimize_for_inference",
    "script",
    "script_if_tracing",
    "script_method",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

_WHY = "TorchScript is not part of the package, it stays Python"

Attribute = namedtuple("Attribute", ["value", "type"])


class Error(RuntimeError):
    """An error in TorchScript; never raised here."""


class ScriptModule(Module):
    """A module, to derive from. What `script` returns is none of these."""


def script(obj: Any, optimize: object = None, _frames_up: int = 0, _rcb: object = None, example_inputs: object = None) -> Any:
    """`obj`, as it is."""
    return given_back(obj, "torch.jit.script", _WHY)


def trace(func: Any, example_inputs: Any = None, *args: Any, **options: Any) -> Any:
    """`func`, as it is; it is not called."""
    return given_back(func, "torch.jit.trace", _WHY)


def trace_module(mod: Any, inputs: Any, *args: Any, **options: Any) -> Any:
    """`mod`, as it is; it is not called."""
    return given_back(mod, "torch.jit.trace_module", _WHY)


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """`mod`, as it is."""
    return given_back(mod, "torch.jit.freeze", _WHY)


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """`mod`, as it is."""
    return given_back(mod, "torch.jit.optimize_for_inference", _WHY)


def ignore(drop: Any = False, **options: Any) -> Any:
    """A decorator that leaves a function as it is, with or without arguments."""
    return drop if callable(drop) else lambda function: function


def export(fn: Any) -> Any:
    """The function as it is."""
    return fn


unused = interface = script_method = script_if_tracing = _script_if_tracing = _overload = _overload_method = export


def is_scripting() -> bool:
    """False."""
    return False


def is_tracing() -> bool:
    """False."""
    return False


def annotate(the_type: object, the_value: Any) -> Any:
    """The value."""
    return the_value


def isinstance(obj: object, target_type: Any) -> bool:
    """Whether an object is of a type, or of one of several; `list[int]` looks at the elements, too."""
    kinds = target_type if builtins.isinstance(target_type, tuple) else (target_type,)
    return any(_is_of(obj, kind) for kind in kinds)


def _is_of(obj: object, kind: Any) -> bool:
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin is None:
        if kind in (list, dict, tuple):
            name = kind.__name__
            raise RuntimeError(f"Attempted to use {name} without a contained type. Please add a contained type, e.g. {name}[int]")
        return builtins.isinstance(obj, kind)
    if origin in (typing.Union, types.UnionType):
        return any(_is_of(obj, one) for one in inside)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is dict:
        return all(_is_of(key, inside[0]) and _is_of(value, inside[1]) for key, value in obj.items())
    if origin is tuple:
        return len(obj) == len(inside) and all(map(_is_of, obj, inside))
    return all(_is_of(item, inside[0]) for item in obj)


class Future:
    """The result of `fork`, which is there at once."""

    def __init__(self, value: Any = None) -> None:
        self._value = value

    def wait(self) -> Any:
        """The result."""
        return self._value

    value = wait

    def done(self) -> bool:
        """True."""
        return True


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    """Call a function, at once as torch does outside of TorchScript, and keep what it returns."""
    return Future(func(*args, **kwargs))


def wait(future: Future) -> Any:
    """What the function returned."""
    return future.wait()


@contextlib.contextmanager
def _unchanged(*args: Any, **kwargs: Any) -> Iterator[None]:
    """A context in which nothing changes."""
    yield


optimized_execution = fuser = strict_fusion = _unchanged


def set_fusion_strategy(strategy: Any) -> list[Any]:
    """Nothing is fused; returns the strategy there was, an empty one."""
    return []


def enable_onednn_fusion(enabled: bool) -> None:
    """Nothing is fused."""


def onednn_fusion_enabled() -> bool:
    """False."""
    return False


globals().update(
    refused(
        __name__,
        "TorchScript files need PyTorch; save a state_dict with torch.save",
        functions="load save export_opnames jit_module_from_flatbuffer save_jit_module_to_flatbuffer",
        classes="CompilationUnit ScriptFunction RecursiveScriptModule TracedModule TopLevelTracedModule",
    )
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
