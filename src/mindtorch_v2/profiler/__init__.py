"""Recording what a program does, and reading it: `torch.profiler`.

control   profiler, schedule, activity, experimental_config, execution_trace, itt      when to record
capture   recorder (hot), capture, watching, execution_layer (hot), record_function, node_scopes, module_calls, python_tracer, stack_walk, memory, storage_hooks,
          history, survivors, living, operands, roles, columns      what happened
model     session, tree, modules, events, event_list, averages, module_times, kineto_results,
          data_flow, memory_categories, leaks      what it means: data alone
output    table, units, chrome_trace, stacks, tensorboard, trace_check, session_file, snapshot,
          memory_timeline, memory_page, advice      what people see
"""

from __future__ import annotations

from .activity import ProfilerActivity, kineto_available, supported_activities
from .advice import advise
from .device_type import DeviceType
from .execution_trace import ExecutionTraceObserver
from .experimental_config import RecordScope, _ExperimentalConfig
from .record_function import record_function
from .schedule import ProfilerAction, schedule
from .session import Session
from .tensorboard import tensorboard_trace_handler
from .trace_check import validate

from ..autograd.profiler import KinetoStepTracker  # isort: skip - reads what is above
from .profiler import _KinetoProfile, profile  # isort: skip
from . import itt  # isort: skip - torch: an attribute, and not in `__all__`

__all__ = [
    "DeviceType",
    "ExecutionTraceObserver",
    "ProfilerAction",
    "ProfilerActivity",
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

_ = (
    KinetoStepTracker,
    RecordScope,
    _ExperimentalConfig,
    _KinetoProfile,
    itt,
)  # torch has them without listing them, and imported from here by programs
