"""torch._C._profiler: what the profiler's Python side is written with in PyTorch, and stacks of Python frames."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from ..profiler import ProfilerActivity
from ..profiler.experimental_config import RecordScope, _ExperimentalConfig
from ..profiler.output.kineto_results import AllocationFields as _ExtraFields_Allocation
from ..profiler.output.kineto_results import EventType as _EventType
from ..profiler.output.kineto_results import KinetoFields as _ExtraFields_Kineto
from ..profiler.output.kineto_results import ProfilerEvent as _ProfilerEvent
from ..profiler.output.kineto_results import PyCallFields as _ExtraFields_PyCall
from ..profiler.output.kineto_results import PyCCallFields as _ExtraFields_PyCCall
from ..profiler.output.kineto_results import TensorMetadata as _TensorMetadata
from ..profiler.output.kineto_results import TorchOpFields as _ExtraFields_TorchOp

__all__ = [
    "ProfilerActivity",
    "RecordScope",
    "_EventType",
    "_ExperimentalConfig",
    "_ExtraFields_Allocation",
    "_ExtraFields_Kineto",
    "_ExtraFields_PyCCall",
    "_ExtraFields_PyCall",
    "_ExtraFields_TorchOp",
    "_ProfilerEvent",
    "_TensorMetadata",
    "gather_traceback",
    "symbolize_tracebacks",
]

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
