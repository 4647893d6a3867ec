"""Named scopes of the runtime that profiles show: `Optimizer.step#SGD.step`, a custom Function's name, ….

    with _record.scope(name): …

While no profiler is active `begin` is None, and a scope costs a comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["install", "scope"]

begin: Callable[[str], Any] | None = None
end: Callable[[Any], None] | None = None


def install(on_begin: Callable[[str], Any] | None, on_end: Callable[[Any], None] | None) -> None:
    """Have scopes recorded by these two functions, or by none."""
    global begin, end
    begin, end = on_begin, on_end


class scope:  # noqa: N801 - used like a function
    """A named block of time in profiles."""

    __slots__ = ("end", "name", "token")

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        # a profiler may start or stop at any time, on any thread: who began the scope ends it
        on_begin, self.end = begin, end
        self.token = None if on_begin is None else on_begin(self.name)

    def __exit__(self, *exc: object) -> None:
        if self.token is not None and self.end is not None:
            self.end(self.token)
