"""Bodies of generated functions: lines of source, and the objects those lines name.

Every operator and key set gets one flat function, compiled on its first call. Layers (autograd, modes, recording) edit the
body instead of wrapping the callable, because each Python-level call costs 50-60 ns, a tenth of a small operator.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import CodeType, FunctionType, MappingProxyType
from typing import Any, NamedTuple

from .._forking import new_lock
from . import code_cache

__all__ = ["Body", "OwnArray", "Source", "compile_function", "compile_lock", "indent"]

# Held while an operator's function or an entry point is compiled. There is one lock for both: a finaliser may call an operator in the
# middle of either, and with two locks wait for a thread whose finaliser waits for this one.
compile_lock = new_lock()

_kept_codes: dict[bytes, CodeType] = {}  # by digest


class OwnArray(str):
    """The line that gives the storage `s` of a result its array `a`, indented as deep as it stands."""

    __slots__ = ()

    def replaced(self, lines: Iterable[str]) -> list[str]:
        """Other lines at the same depth."""
        margin = self[: len(self) - len(self.lstrip())]
        return [margin + line for line in lines]


@dataclass(slots=True)
class Body:
    """Statements that leave the operator's result in `result`, the objects that they name, and what is known about them.

    A fact is set by who writes the lines that it is about. Whoever adds lines makes the new body with `edited`, which keeps the facts.
    """

    lines: list[str]
    names: dict[str, Any] = field(default_factory=dict)

    # The lines may call operators, as composites and kernels over tensors do.
    calls_operators: bool = False

    # Where the call makes a node of the graph, the lines leave it in `node` and its sequence number in `seq_`, and assign to neither otherwise.
    makes_node: bool = False

    # The lines have an `OwnArray` in them, once for each branch that makes a tensor. A branch that does not come to it makes none.
    owns_array: bool = False

    # The result is always one tensor with a storage that the lines have just made, and that nobody else has seen.
    result_is_new: bool = False

    def edited(self, lines: list[str], names: Mapping[str, Any] = MappingProxyType({})) -> Body:
        """The body with other lines, and more names. In a function, a name stands for one thing."""
        for name in names.keys() & self.names.keys():
            if names[name] is not self.names[name]:
                raise ValueError(f"a body names {self.names[name]!r} {name}, and another layer {names[name]!r}; rename one of them")
        # by hand: `dataclasses.replace` takes 4 µs, and each function of a first step is edited several times
        facts = self.calls_operators, self.makes_node, self.owns_array, self.result_is_new
        return Body(lines, {**self.names, **names}, *facts)

    def owning_by(self, lines: list[str]) -> list[str]:
        """The lines of the body, with others where a storage gets its array."""
        return [new for line in self.lines for new in (line.replaced(lines) if isinstance(line, OwnArray) else (line,))]


class Source(NamedTuple):
    """A function to be: its parameters, the lines of its body, and the objects they name."""

    parameters: str
    lines: list[str]
    names: dict[str, Any]


def indent(lines: Iterable[str]) -> list[str]:
    return [line.__class__("    " + line) for line in lines]


def compile_function(
    name: str,
    parameters: str,
    lines: list[str],
    names: dict[str, Any],
    *,
    module: str | None = __name__,
    title: str = "",
    keep: bool = False,
) -> FunctionType:
    """Compile `def name(parameters)` with these lines as its body, in a namespace of its own with these names.

    Its source shows up in tracebacks, under the title if it has one. The code of a function that is made anew for each recording is to be kept.
    """
    text = f"def {name}({parameters}):\n" + "\n".join(indent(lines)) + "\n"
    namespace = {**names, "__name__": module}
    digest = code_cache.digest_of(title or name, text)
    filename = _filename(title or name, text, digest)
    code = _kept_codes.get(digest) or code_cache.find(digest) or code_cache.remember(digest, compile(text, filename, "exec"))
    if keep:
        _kept_codes[digest] = code
    exec(code, namespace)
    function: FunctionType = namespace.pop(name)  # it must not own itself
    return function


def _filename(title: str, text: str, digest: bytes) -> str:
    """The file name under which `linecache` has a source, the same for the same source in each process: code is kept with it."""
    filename = f"<mindtorch_v2 {title} {int.from_bytes(digest[:5])}>"
    if filename not in linecache.cache:  # new, or cleared by the program
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    return filename
