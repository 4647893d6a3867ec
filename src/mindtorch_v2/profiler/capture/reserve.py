"""Address space that is kept free while recording, so that a recording that fills the memory can be ended."""

from __future__ import annotations

import contextlib
import mmap

from ..._allocation_failure import give_back, reserve
from ..._forking import new_lock
from .source import Source

__all__ = ["Reserve"]

SIZE = 16 << 20
ENOUGH = 8 * SIZE  # memory that is free again
_OPTIONS = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


class Reserve(Source):
    """Keeps pages that are never touched, and so take no memory, while a recording collects. They are given back when an allocation fails,
    or else first of all when it ends. Where there is enough again, they are taken again: an allocation may have failed that was far too large.

    Not by `malloc`, which would serve the program's own arrays in another way after a block of this size was freed.
    """

    def __init__(self) -> None:
        self._lock = new_lock()
        self._is_collecting = False

    def resume(self) -> None:
        self._is_collecting = True
        self._take()  # without the lock: functions are recorded already, and those that wait are noted

    def pause(self, now: float) -> None:
        self.discard()

    def meanwhile(self, free_bytes: int) -> None:
        with self._lock:  # it may be paused meanwhile
            if self._is_collecting and not reserve and free_bytes > ENOUGH:
                self._take()

    def _take(self) -> None:
        with contextlib.suppress(OSError):  # the memory is short already
            reserve[:] = [mmap.mmap(-1, SIZE, **_OPTIONS)]

    def discard(self) -> None:
        with self._lock:
            self._is_collecting = False
            give_back()
