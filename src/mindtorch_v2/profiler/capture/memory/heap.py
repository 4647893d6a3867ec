"""`tracemalloc`, the second source of figures about memory: it runs while a recording that asks for it collects."""

from __future__ import annotations

import tracemalloc

from ..source import Source

__all__ = ["Heap"]


class Heap(Source):
    """Traces Python's heap. If it is traced already, it stays so at the end."""

    def __init__(self) -> None:
        self._is_ours = False

    def resume(self) -> None:
        if not tracemalloc.is_tracing():
            self._is_ours = True
            tracemalloc.start()

    def pause(self, now: float) -> None:
        self.discard()

    def discard(self) -> None:
        if self._is_ours:
            tracemalloc.stop()
            self._is_ours = False
