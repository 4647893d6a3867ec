"""Bodies of generated functions: lines of source, and the objects those lines name.

Every operator and key set gets one flat function, compiled on its first call. Layers (autograd, modes, recording) edit the
body instead of wrapping the callable, because each Python-level call costs 50-60 ns, a tenth of a small operator.
"""

from __future__ import annotations

import itertools
import linecache
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from . import compiling

__all__ = ["Body", "Rewrite", "Source", "compile_function", "define", "indent", "lazy_function", "rewrite_lazy_functions"]

_serial = itertools.count()
_filenames: dict[tuple[str, str], str] = {}  # by title and text


@dataclass(slots=True)
class Body:
    """Statements that leave the operator's result in `result`, and the names they use."""

    lines: list[str]
    names: dict[str, Any] = field(default_factory=dict)

    def bind(self, hint: str, value: Any) -> str:
        """Make `value` reachable from the generated code; return the name it got."""
        name = hint
        while name in self.names and self.names[name] is not value:
            name += "_"
        self.names[name] = value
        return name


class Source(NamedTuple):
    """A function to be: its parameters, the lines of its body, and the objects they name."""

    parameters: str
    lines: list[str]
    names: dict[str, Any]


def indent(lines: Iterable[str]) -> list[str]:
    return ["    " + line for line in lines]


def compile_function(
    name: str,
    parameters: str,
    lines: list[str],
    names: dict[str, Any],
    *,
    doc: str | None = None,
    module: str | None = __name__,
    title: str = "",
) -> Callable[..., Any]:
    """Compile `def name(parameters)` with these lines as its body. Its source shows up in tracebacks, under the title if it has one."""
    namespace = dict(names)
    namespace["__name__"] = module
    function = define(name, Source(parameters, lines, {}), namespace, title or name)
    function.__doc__ = doc
    return function


def define(name: str, source: Source, namespace: dict[str, Any], title: str) -> Any:
    """Compile a function, and leave the namespace that it runs in as it was."""
    text = f"def {name}({source.parameters}):\n" + "\n".join(indent(source.lines)) + "\n"
    exec(compile(text, _filename(title, text), "exec"), namespace)
    return namespace.pop(name)


def _filename(title: str, text: str) -> str:
    """Return the file name under which `linecache` has a source. Functions made anew for each recording have the same text and name."""
    filename = _filenames.get((title, text))
    if filename is None:
        filename = _filenames[title, text] = f"<mindtorch_v2 {title} {next(_serial)}>"
    if filename not in linecache.cache:  # new, or cleared by the program
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    return filename


def lazy_function(name: str, build: Callable[[], Source], *, doc: str | None = None, module: str | None = __name__) -> Any:
    """A function that is compiled at its first call: 1,300 entry points would cost every import half a second.

    The function object stays the same, so whoever holds it never notices: only its code is exchanged.
    """

    def materialize(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        compiling.run(f"torch.{name}", make)
        return function(*args, **kwargs)

    def make() -> None:
        source = build()
        namespace.update(source.names)
        made = define(name, source, namespace, name)
        # defaults before code: a thread that calls in between still runs the placeholder, which needs none
        function.__defaults__, function.__kwdefaults__ = made.__defaults__, made.__kwdefaults__
        function.__code__ = made.__code__
        _made.append(_Made(function, source))
        _made[-1].use(_rewrite)

    namespace: dict[str, Any] = {"__name__": module, "__builtins__": __builtins__, "materialize": materialize}
    function = types.FunctionType(_placeholder.__code__, namespace, name)
    function.__doc__ = doc
    return function


def _placeholder(*args: Any, **kwargs: Any) -> Any:
    return materialize(args, kwargs)  # type: ignore[name-defined]  # noqa: F821 - found in the lazy function's globals


# Makes a function's code anew, from what it was made of.
Rewrite = Callable[[types.FunctionType, Source], types.CodeType]


class _Made:
    """A lazy function that has been compiled: as it was written, and as it was rewritten last."""

    __slots__ = ("_by", "_function", "_plain", "_rewritten", "_source")

    def __init__(self, function: types.FunctionType, source: Source) -> None:
        self._function = function
        self._source = source
        self._plain = self._rewritten = function.__code__
        self._by: Rewrite | None = None

    def use(self, rewrite: Rewrite | None) -> None:
        if rewrite is not None and self._by is not rewrite:
            self._by, self._rewritten = rewrite, rewrite(self._function, self._source)
        self._function.__code__ = self._plain if rewrite is None else self._rewritten


_made: list[_Made] = []
_rewrite: Rewrite | None = None


def rewrite_lazy_functions(rewrite: Rewrite | None) -> None:
    """Have every lazy function run as this rewrites it; None: as it was made."""
    global _rewrite
    _rewrite = rewrite
    for made in _made:
        made.use(rewrite)
