"""Numbers of events, which no two recordings of a process share."""

from __future__ import annotations

from ..._forking import new_lock

__all__ = ["take"]

_lock = new_lock()
_next = 1


def take(count: int) -> int:
    """Take so many numbers; returns the first."""
    global _next
    with _lock:
        first, _next = _next, _next + count
    return first
