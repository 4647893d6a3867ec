"""Named scopes of the runtime that profiles show: `Optimizer.step#SGD.step`, a custom Function's name, ….

    with _record.scope(name): …

While no profiler is active `begin` is None, and a scope costs a comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Arguments", "install", "scope"]


class Arguments(tuple[Any, ...]):
    """All arguments of an operator with a schema: each has its place among the inputs of the event, lists of tensors included."""

    __slots__ = ()


begin: Callable[..., Any] | None = None
end: Callable[[Any], None] | None = None
processes: Callable[[], dict[str, Any] | None] | None = None  # describes the processes that compute together, for trace files


def install(on_begin: Callable[..., Any] | None, on_end: Callable[[Any], None] | None) -> None:
    """Have scopes recorded by these two functions, or by none."""
    global begin, end
    begin, end = on_begin, on_end


class scope:  # noqa: N801 - used like a function
    """A named block of time in profiles."""

    __slots__ = ("call", "end", "name", "token")

    def __init__(self, name: str, call: tuple[tuple[Any, ...], int | None] | None = None) -> None:
        self.name = name
        # of an operator: its arguments, and the number of the node that it makes (-1: none); with None, a block that has inputs
        self.call = call

    def __enter__(self) -> None:
        # a profiler may start or stop at any time, on any thread: who began the scope ends it
        on_begin, self.end = begin, end
        self.token = None if on_begin is None else on_begin(self.name, call=self.call)

    def __exit__(self, *exc: object) -> None:
        if self.token is not None and self.end is not None:
            self.end(self.token)
