"""A value that is made when it is first asked for, whichever thread asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from .._forking import new_lock

__all__ = ["Once"]

T = TypeVar("T")


class Once(Generic[T]):
    """A value made by the first thread that asks for it, while others wait. If making it fails, each of them raises that error, or makes it `again`."""

    def __init__(self, make: Callable[[], T], *, again: bool = False) -> None:
        self._make: Callable[[], T] | None = make
        self._again = again
        self._lock = new_lock()
        self._found: list[T] = []
        self._error: BaseException | None = None

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
            raise self._error
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
                self._error = error
            raise
