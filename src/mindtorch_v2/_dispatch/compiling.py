"""Compilation of generated functions, which a recording shows as events of their own.

A function is compiled when it is first called. While a recording runs, it has an observer here, which puts an event around that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Observer", "observe", "run"]

# Called with what a function is compiled for and the function that compiles it, whose result it returns.
Observer = Callable[[str, Callable[[], Any]], Any]

_observer: Observer | None = None


def observe(observer: Observer | None) -> None:
    """Have compilations seen by this observer, or by none."""
    global _observer
    _observer = observer


def run(name: str, compiled: Callable[[], Any]) -> Any:
    """Call `compiled`, which compiles a function for the operator or entry point of this name, and return its result."""
    observer = _observer
    return compiled() if observer is None else observer(name, compiled)
