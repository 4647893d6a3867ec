"""Address space that is kept free while recording, so that a recording that fills the memory can be ended."""

from __future__ import annotations

import contextlib
import mmap

from ..._allocation_failure import give_back, reserve
from .source import Source

__all__ = ["Reserve"]

SIZE = 16 << 20
_OPTIONS = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


class Reserve(Source):
    """Keeps pages that are never touched, and so take no memory, while a recording collects. They are given back when an allocation fails,
    or else first of all when it ends.

    Not by `malloc`, which would serve the program's own arrays in another way after a block of this size was freed.
    """

    def resume(self) -> None:
        with contextlib.suppress(OSError):  # the memory is short already
            reserve[:] = [mmap.mmap(-1, SIZE, **_OPTIONS)]

    def pause(self, now: float) -> None:
        give_back()

    def discard(self) -> None:
        give_back()
