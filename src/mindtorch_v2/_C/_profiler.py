"""torch._C._profiler: what the profiler's Python side is written with in PyTorch, and stacks of Python frames."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from ..profiler import ProfilerActivity
from ..profiler.experimental_config import RecordScope, _ExperimentalConfig

__all__ = ["ProfilerActivity", "RecordScope", "_ExperimentalConfig", "gather_traceback", "symbolize_tracebacks"]

Place = tuple[str, int, str]


class CapturedTraceback:
    """The places that led to a call, innermost first."""

    def __init__(self, frame: FrameType | None) -> None:
        self.places: list[Place] = []
        while frame is not None:
            self.places.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
            frame = frame.f_back


def gather_traceback(python: bool, script: bool, cpp: bool) -> CapturedTraceback:
    """The stack of the caller; there are no frames of TorchScript or C++ here."""
    return CapturedTraceback(sys._getframe(1) if python else None)


def symbolize_tracebacks(tracebacks: list[CapturedTraceback]) -> list[list[dict[str, Any]]]:
    """For each stack its frames as dicts of file name, line and function."""
    return [[{"filename": file, "line": line, "name": name} for file, line, name in t.places] for t in tracebacks]
