"""Recording what a program does, and reading it: `torch.profiler`.

here      profile, schedule, record_function, ExecutionTraceObserver: when to record
capture/  what happened: the recorder inside every call (hot), scopes, backward, modules, stacks, memory
model/    what it means, as data alone: sessions, trees, events, averages, timelines
opening/  recordings from files: saved sessions, traces of torch, torch_npu and this package
device/   what a device did: kernels, streams, idle time and its causes
output/   what people see: lists of events, tables, traces, pages
writing/  what outputs are written with: units, tables of text, JSON, files that appear complete
advice/   what could be faster
cli/      `python -m mindtorch_v2.profiler`
"""

from __future__ import annotations

from .activity import ProfilerActivity, kineto_available, supported_activities
from .advice import advise
from .device_type import DeviceType
from .execution_trace import ExecutionTraceObserver
from .experimental_config import RecordScope, _ExperimentalConfig
from .model.session import Session
from .output.tensorboard import tensorboard_trace_handler
from .output.trace_check import validate
from .record_function import record_function
from .results import Results
from .schedule import ProfilerAction, schedule
from .step_tracker import KinetoStepTracker

from .profiler import _KinetoProfile, profile  # isort: skip - reads what is above
from ..autograd import profiler as _  # isort: skip - so that `torch.autograd.profiler` is there, as it is in torch
from . import itt  # isort: skip - torch: an attribute, and not in `__all__`
from .._missing import install as _install_lookup  # isort: skip

# torch: `KinetoStepTracker`, `RecordScope`, `_ExperimentalConfig` and `_KinetoProfile` are here too, and not listed
__all__ = [
    "DeviceType",
    "ExecutionTraceObserver",
    "ProfilerAction",
    "ProfilerActivity",
    "Results",
    "Session",
    "advise",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
    "validate",
]

_install_lookup(("profiler",))
