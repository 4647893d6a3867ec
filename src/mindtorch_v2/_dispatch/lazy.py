"""Functions that are compiled at their first call: 1,300 entry points would cost every import half a second.

The function object stays the same, so whoever holds it never notices: its code is exchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from . import compiling
from .codegen import Source, compile_function, compile_lock

__all__ = ["Rewrite", "lazy_function", "rewrite_lazy_functions"]


def lazy_function(name: str, build: Callable[[], Source], *, doc: str | None = None, module: str = __name__) -> Any:
    """A function that `build` gives the source of, at the first call."""

    def call_first(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with compile_lock:
            if made.__code__ is _PLACEHOLDER:  # else another thread was faster
                compiling.run(f"torch.{name}", lambda: _compile(made, build()))
        return made(*args, **kwargs)

    made = FunctionType(_PLACEHOLDER, {"__name__": module, "__builtins__": __builtins__, "call_first": call_first}, name)
    made.__qualname__ = name  # of errors about arguments; it would be the placeholder's
    made.__doc__ = doc
    return made


def _placeholder(*args: Any, **kwargs: Any) -> Any:
    return call_first(args, kwargs)  # type: ignore[name-defined]  # noqa: F821 - found in the lazy function's globals


_PLACEHOLDER = _placeholder.__code__


Rewrite = Callable[[CodeType], CodeType]
_compiled: dict[FunctionType, CodeType] = {}  # as it was written
_rewrite: Rewrite | None = None


def rewrite_lazy_functions(rewrite: Rewrite | None) -> None:
    """Have every lazy function run as this rewrites its code; None: as it was written."""
    global _rewrite
    with compile_lock:
        _rewrite = rewrite
        for function in list(_compiled):
            _use_code(function)


def _compile(function: FunctionType, source: Source) -> None:
    """Compile a function. The code comes last: a thread that calls meanwhile, or after an interrupt, runs the placeholder."""
    function.__globals__.update(source.names)
    made = compile_function(function.__name__, *source)
    function.__defaults__, function.__kwdefaults__ = made.__defaults__, made.__kwdefaults__
    _compiled[function] = made.__code__
    _use_code(function)


def _use_code(function: FunctionType) -> None:
    code = _compiled[function]
    function.__code__ = code if _rewrite is None else _rewrite(code)
