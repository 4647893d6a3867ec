"""When a recording collected: from which moment to which, and how long its thread was on the processor meanwhile."""

from __future__ import annotations

import threading
import time

from .operators import recorder
from .source import Findings, Source

__all__ = ["CollectedTime"]


class CollectedTime(Source):
    """Reads the clocks at the very end of starting and at the very beginning of stopping, and so is the last of the sources.

    `started` and `intervals` are readings of the recorder's clock. `cpu_ns` is the time of the thread on the processor, -1 if that is not known
    because collecting began on one thread and ended on another.
    """

    def __init__(self) -> None:
        self.intervals: list[tuple[float, float]] = []
        self._began: float | None = None
        self._thread = 0
        self._cpu_began_ns = 0
        self._cpu_ns = 0

    @property
    def started(self) -> float:
        """When the first interval began; the interval may be running."""
        return self.intervals[0][0] if self.intervals else self._began or 0.0

    def begin(self) -> None:
        self.intervals.clear()
        self._began, self._cpu_ns = None, 0

    def resume(self) -> None:
        self._thread, self._cpu_began_ns = threading.get_ident(), time.thread_time_ns()
        self._began = recorder.clock()

    def pause(self, now: float) -> None:
        if self._began is None:
            return
        is_known = self._cpu_ns >= 0 and self._thread == threading.get_ident()
        self._cpu_ns = self._cpu_ns + time.thread_time_ns() - self._cpu_began_ns if is_known else -1
        self.intervals.append((self._began, now))
        self._began = None

    def take(self, findings: Findings) -> None:
        findings.collected, findings.cpu_ns = tuple(self.intervals), self._cpu_ns
