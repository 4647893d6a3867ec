"""Named scopes of the runtime that profiles show: `Optimizer.step#SGD.step`, a custom Function's name, ….

    token = _record.begin(name) if _record.begin is not None else None
    try: …
    finally: if token is not None: _record.end(token)

or, off the hot path, `with scope(name)`. While no profiler is active `begin` is None, and a scope costs a comparison.
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

    __slots__ = ("name", "token")

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        self.token = None if begin is None else begin(self.name)

    def __exit__(self, *exc: object) -> None:
        if self.token is not None and end is not None:
            end(self.token)
