"""Recording what a program does, and reading it: `torch.profiler`.

control   profiler, schedule, activity, experimental_config      when to record
capture   recorder (hot), capture, record_function, node_scopes, python_tracer, stack_walk, columns      what happened
model     session, tree, events, event_list, averages, kineto_results      what it means: data alone
output    table, units, chrome_trace, stacks, tensorboard, validate, session_file      what people see
"""

from __future__ import annotations

from .activity import ProfilerActivity, kineto_available, supported_activities
from .device_type import DeviceType
from .experimental_config import RecordScope, _ExperimentalConfig
from .record_function import record_function
from .schedule import ProfilerAction, schedule
from .tensorboard import tensorboard_trace_handler

from .profiler import _KinetoProfile, profile  # isort: skip - reads what is above

__all__ = [
    "DeviceType",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

_ = (RecordScope, _ExperimentalConfig, _KinetoProfile)  # private in torch too, and imported from here by programs
