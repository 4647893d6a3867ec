"""Compilation inside a recording: an event `mindtorch_v2::compile` around it, so that its time is in no operator's self time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ...._dispatch import compiling
from ...model.session import COMPILE, Label
from .. import tasks
from ..labels import label_number
from ..source import Source
from ..stacks import stack_walk
from . import recorder
from .recorder import Log

__all__ = ["Compilations"]


class Compilations(Source):
    """Writes an event for each function that is compiled."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def resume(self) -> None:
        compiling.observe(self._observe)

    def pause(self, now: float) -> None:
        self.discard()

    def discard(self) -> None:
        compiling.observe(None)

    def _observe(self, name: str, compiled: Callable[[], Any]) -> Callable[..., Any] | None:
        stack = stack_walk.stack_number(sys._getframe(1)) if self._log.stacks else -1
        began = recorder.clock()
        try:
            return compiled()
        finally:
            label = label_number(Label(COMPILE, "compile", operator=name))
            self._log.write(label, began, recorder.clock(), tasks.track_number(), stack=stack)
