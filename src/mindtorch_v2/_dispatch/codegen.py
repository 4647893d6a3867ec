"""Bodies of generated functions: lines of source, and the objects those lines name.

Every operator and key set gets one flat function, compiled on its first call. Layers (autograd, modes, recording) edit the
body instead of wrapping the callable, because each Python-level call costs 50-60 ns, a tenth of a small operator.
"""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Body", "compile_function", "indent"]

_serial = itertools.count()


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


def indent(lines: Iterable[str]) -> list[str]:
    return ["    " + line for line in lines]


def compile_function(
    name: str, parameters: str, lines: list[str], names: dict[str, Any], *, doc: str | None = None, module: str | None = __name__
) -> Callable[..., Any]:
    """Compile `def name(parameters)` with these lines as its body. Its source shows up in tracebacks."""
    source = f"def {name}({parameters}):\n" + "\n".join(indent(lines)) + "\n"
    filename = f"<mindtorch_v2 {name} {next(_serial)}>"
    namespace = dict(names)
    namespace["__name__"] = module
    exec(compile(source, filename, "exec"), namespace)
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    function: Callable[..., Any] = namespace[name]
    function.__doc__ = doc
    return function
