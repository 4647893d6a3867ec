"""Functions that are compiled at their first call: 1,300 entry points would cost every import half a second.

The function object stays the same, so whoever holds it never notices: its code is exchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, NamedTuple

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
    made.__doc__ = doc
    return made


def _placeholder(*args: Any, **kwargs: Any) -> Any:
    return call_first(args, kwargs)  # type: ignore[name-defined]  # noqa: F821 - found in the lazy function's globals


_PLACEHOLDER = _placeholder.__code__


def _same_code(code: CodeType) -> CodeType:
    return code


class Rewrite(NamedTuple):
    """How lazy functions are made anew: their source, and the code that it was compiled to."""

    source: Callable[[Source], Source]
    code: Callable[[CodeType], CodeType] = _same_code


class _Compiled:
    """The code of a lazy function: as it was written, and as it was rewritten last."""

    __slots__ = ("_by", "_function", "_plain", "_rewritten", "_source")

    def __init__(self, function: FunctionType, source: Source, code: CodeType) -> None:
        self._function = function
        self._source = source
        self._plain = self._rewritten = code
        self._by: Rewrite | None = None

    def use(self, rewrite: Rewrite | None) -> None:
        """Run as this rewrites the function; None: as it was written."""
        if rewrite is not None and self._by is not rewrite:
            self._rewritten = rewrite.code(_define(self._function, rewrite.source(self._source)).__code__)
            self._by = rewrite
        self._function.__code__ = self._plain if rewrite is None else self._rewritten


_compiled: dict[FunctionType, _Compiled] = {}
_rewrite: Rewrite | None = None


def rewrite_lazy_functions(rewrite: Rewrite | None) -> None:
    """Have every lazy function run as this rewrites it; None: as it was written."""
    global _rewrite
    with compile_lock:
        _rewrite = rewrite
        for function in list(_compiled.values()):
            function.use(rewrite)


def _compile(function: FunctionType, source: Source) -> None:
    """Compile a function. The code comes last: a thread that calls meanwhile, or after an interrupt, runs the placeholder."""
    made = _define(function, source)
    function.__defaults__, function.__kwdefaults__ = made.__defaults__, made.__kwdefaults__
    _compiled[function] = _Compiled(function, source, made.__code__)
    _compiled[function].use(_rewrite)


def _define(function: FunctionType, source: Source) -> FunctionType:
    """Compile a source in a namespace of its own, and let the function know the names that it uses."""
    function.__globals__.update(source.names)
    return compile_function(function.__name__, *source)
