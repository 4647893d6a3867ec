"""`torch.profiler.itt`: marks for Intel's VTune. They need a library that is not part of this runtime, and say so."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NoReturn

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def is_available() -> bool:
    """Whether the marks reach VTune: they never do."""
    return False


def _missing() -> NoReturn:
    raise RuntimeError(
        "ITT is not part of this runtime; name blocks with torch.profiler.record_function and export a trace instead"
    )


def range_push(msg: str) -> int:
    """Begin a range; returns how many ranges are around it."""
    _missing()


def range_pop() -> int:
    """End the innermost range; returns how many ranges were around it."""
    _missing()


def mark(msg: str) -> None:
    """Mark this moment."""
    _missing()


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range around a block, named by the message formatted with the arguments."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
