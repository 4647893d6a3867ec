"""A value that is made when it is first asked for, whichever thread asks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Generic, TypeVar

from .._forking import new_lock

__all__ = ["Once"]

T = TypeVar("T")


class Once(Generic[T]):
    """A value made by the first thread that asks for it, while others wait. If making it fails, each of them raises such an error, or makes it `again`."""

    def __init__(self, make: Callable[[], T], *, again: bool = False) -> None:
        self._make: Callable[[], T] | None = make
        self._again = again
        self._lock = new_lock()
        self._found: list[T] = []
        self._error: Exception | None = None  # like the one that was raised

    def __call__(self) -> T:
        if not self._found:
            with self._lock:
                if not self._found:
                    self._try()
        return self._found[0]

    @property
    def is_made(self) -> bool:
        return bool(self._found)

    @property
    def has_failed(self) -> bool:
        return self._error is not None

    def _try(self) -> None:
        if self._error is not None:
            raise _like(self._error)
        make, self._make = self._make, None  # what it is made of is needed no longer
        if make is None:
            raise RuntimeError(
                "this process was forked while another thread finished the recording; the process that recorded has it"
            )
        try:
            self._found.append(make())
        except BaseException as error:
            if self._again:
                self._make = make
            else:
                self._error = _like(error)
            raise


def _like(error: BaseException) -> Exception:
    """An error that says the same later: without the traceback, whose frames have all that was recorded, and an ordinary one of an interrupt."""
    text = ": ".join(filter(None, (type(error).__name__, str(error))))
    if not isinstance(error, Exception):
        return RuntimeError(f"the end of the recording was interrupted by {text}, so it has no events; record again")
    try:
        return copy.copy(error)
    except Exception:  # a class that takes other arguments than it keeps
        return RuntimeError(f"the end of the recording failed with {text}, so it has no events; record again")
