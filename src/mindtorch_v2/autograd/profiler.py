"""`torch.autograd.profiler`: the profiler below `torch.profiler`, and older ways to reach it. Names alone."""

from __future__ import annotations

from ..profiler.activity import kineto_available as kineto_available
from ..profiler.annotations import emit_itt, emit_nvtx
from ..profiler.autograd_profile import is_profiler_enabled as __getattr__  # noqa: F401
from ..profiler.autograd_profile import profile
from ..profiler.device_type import DeviceType as DeviceType
from ..profiler.model.events import FunctionEvent
from ..profiler.nvprof import EnforceUnique, load_nvprof, parse_nvprof_trace
from ..profiler.output.event_list import EventList
from ..profiler.record_function import record_function
from ..profiler.step_tracker import KinetoStepTracker
from .profiler_util import MEMORY_EVENT_NAME as MEMORY_EVENT_NAME
from .profiler_util import OUT_OF_MEMORY_EVENT_NAME as OUT_OF_MEMORY_EVENT_NAME
from .profiler_util import MemRecordsAcc

__all__ = [
    "EnforceUnique",
    "EventList",
    "FunctionEvent",
    "KinetoStepTracker",
    "MemRecordsAcc",
    "emit_itt",
    "emit_nvtx",
    "load_nvprof",
    "parse_nvprof_trace",
    "profile",
    "record_function",
]
