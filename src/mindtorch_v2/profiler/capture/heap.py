"""`tracemalloc`, the second source of figures about memory: it runs while a recording that asks for it collects."""

from __future__ import annotations

import tracemalloc

__all__ = ["begin", "end"]

_started = False


def begin() -> None:
    """Have the heap traced. One that is traced already stays as it is, here and at the end."""
    global _started
    if not tracemalloc.is_tracing():
        tracemalloc.start()
        _started = True


def end() -> None:
    """Stop what `begin` started."""
    global _started
    if _started:
        _started = False
        tracemalloc.stop()
