"""Runs of Python's garbage collector as events."""

from __future__ import annotations

import gc
import threading
from typing import Any

from ..model.session import Label
from . import tasks
from .labels import label_number
from .late_exceptions import begin_without_handlers, kept
from .operators import recorder
from .operators.recorder import Log
from .source import Source

__all__ = ["CollectorRuns"]

LABEL = Label("Python GC", "gc")


class CollectorRuns(Source):
    """Records each run of the collector, on the thread that set it off."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._started: dict[int, float] = {}  # by thread
        self._request: Any = None  # to raise what came in the callback: until the end of the run, finalisers would drop it

    def resume(self) -> None:
        gc.callbacks.append(self._on_phase)

    def pause(self, now: float) -> None:
        self.discard()

    def discard(self) -> None:
        if self._on_phase in gc.callbacks:
            gc.callbacks.remove(self._on_phase)
        self._started.clear()
        self._request = None

    def _on_phase(self, phase: str, info: dict[str, Any]) -> None:
        try:
            self._write(phase)
        except BaseException as error:
            self._request = kept(error)
        if phase == "stop":
            self._request = None  # it is made here

    def _write(self, phase: str) -> None:
        thread = threading.get_ident()
        if phase == "start":
            self._started[thread] = recorder.clock()
        elif (start := self._started.pop(thread, None)) is not None:
            self._log.write(label_number(LABEL), start, recorder.clock(), tasks.track_number())


begin_without_handlers(CollectorRuns._on_phase)
