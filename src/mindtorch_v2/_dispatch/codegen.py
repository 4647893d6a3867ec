"""Bodies of generated functions: lines of source, and the objects those lines name.

Every operator and key set gets one flat function, compiled on its first call. Layers (autograd, modes, recording) edit the
body instead of wrapping the callable, because each Python-level call costs 50-60 ns, a tenth of a small operator.
"""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, NamedTuple

from .._forking import new_lock

__all__ = ["Body", "Source", "compile_function", "compiling", "indent"]

# Held while an operator's function or an entry point is compiled. There is one lock for both: a finaliser may call an operator in the
# middle of either, and with two locks wait for a thread whose finaliser waits for this one.
compiling = new_lock()

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
    name: str, parameters: str, lines: list[str], names: dict[str, Any], *, module: str | None = __name__, title: str = ""
) -> FunctionType:
    """Compile `def name(parameters)` with these lines as its body, in a namespace of its own with these names.

    Its source shows up in tracebacks, under the title if it has one.
    """
    text = f"def {name}({parameters}):\n" + "\n".join(indent(lines)) + "\n"
    namespace = {**names, "__name__": module}
    exec(compile(text, _filename(title or name, text), "exec"), namespace)
    function: FunctionType = namespace.pop(name)  # it must not own itself
    return function


def _filename(title: str, text: str) -> str:
    """The file name under which `linecache` has a source. Functions made anew for each recording have the same text and name."""
    filename = _filenames.get((title, text))
    if filename is None:
        filename = _filenames.setdefault((title, text), f"<mindtorch_v2 {title} {next(_serial)}>")  # of two threads, one is first
    if filename not in linecache.cache:  # new, or cleared by the program
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    return filename
