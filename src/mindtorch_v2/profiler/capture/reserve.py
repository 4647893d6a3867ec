"""Address space that is kept free while recording, so that a recording that fills the memory can be ended."""

from __future__ import annotations

import contextlib
import mmap

from .source import Source

__all__ = ["Reserve"]

SIZE = 16 << 20
_OPTIONS = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


class Reserve(Source):
    """Keeps pages that are never touched, and so take no memory, while a recording collects. They are given back first of all.

    Not by `malloc`, which would serve the program's own arrays in another way after a block of this size was freed.
    """

    def __init__(self) -> None:
        self._pages: mmap.mmap | None = None

    def resume(self) -> None:
        if self._pages is None:
            with contextlib.suppress(OSError):  # the memory is short already
                self._pages = mmap.mmap(-1, SIZE, **_OPTIONS)

    def pause(self, now: float) -> None:
        self.discard()

    def discard(self) -> None:
        if self._pages is not None:
            self._pages.close()
            self._pages = None
