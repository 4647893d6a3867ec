"""Options that torch keeps under `_ExperimentalConfig`, and the scopes of its record functions."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["RecordScope", "_ExperimentalConfig"]


class RecordScope(enum.Enum):
    """The kind of code that a record function is about."""

    FUNCTION = 0
    BACKWARD_FUNCTION = 1
    TORCHSCRIPT_FUNCTION = 2
    KERNEL_FUNCTION_DTYPE = 3
    CUSTOM_CLASS = 4
    BUILD_FEATURE = 5
    LITE_INTERPRETER = 6
    USER_SCOPE = 7
    STATIC_RUNTIME_OP = 8
    STATIC_RUNTIME_MODEL = 9


@dataclass
class _ExperimentalConfig:
    """Options beyond the profiler's arguments. Those that only make sense for CUDA, Vulkan or other backends are refused.

    Args:
        profiler_metrics: hardware counters of a GPU; refused, because there is no CUDA.
        profiler_measure_per_kernel: reads those counters for each kernel; refused likewise.
        verbose: traces carry the stack a second time, as `Call stack`.
        performance_events: counters of the processor; refused, because none are read.
        enable_cuda_sync_events: events of CUDA's synchronisation; refused, because there is no CUDA.
        adjust_profiler_step: fits steps into the Python functions around them; here they always fit.
        disable_external_correlation: leaves `External id` out of traces.
        profile_all_threads: records all threads, which is the default here; False records the thread that starts the profiler alone.
        capture_overload_names: events know their overload (`Tensor` of `aten::add.Tensor`).
        record_python_gc_info: runs of the garbage collector are events.
        expose_kineto_event_metadata: `FunctionEvent.metadata_json` holds what the trace shows of an event.
        custom_profiler_config: settings of another backend's profiler; refused, because there is none.
        adjust_timestamps: corrects the times of Vulkan's events; refused, because there is no Vulkan.
        trace_only: makes no events, so that only traces can be exported.
    """

    profiler_metrics: Sequence[str] = ()
    profiler_measure_per_kernel: bool = False
    verbose: bool = False
    performance_events: Sequence[str] = ()
    enable_cuda_sync_events: bool = False
    adjust_profiler_step: bool = False
    disable_external_correlation: bool = False
    profile_all_threads: bool = True
    capture_overload_names: bool = False
    record_python_gc_info: bool = False
    expose_kineto_event_metadata: bool = False
    custom_profiler_config: str = ""
    adjust_timestamps: bool = False
    trace_only: bool = False

    def __post_init__(self) -> None:
        reasons = {
            "profiler_metrics": "hardware counters are read through CUPTI, which needs CUDA",
            "profiler_measure_per_kernel": "hardware counters are read through CUPTI, which needs CUDA",
            "performance_events": "hardware counters are not read",
            "enable_cuda_sync_events": "there is no CUDA",
            "custom_profiler_config": "there is no custom backend to configure",
            "adjust_timestamps": "there is no Vulkan",
        }
        for name, reason in reasons.items():
            if getattr(self, name):
                raise ValueError(f"_ExperimentalConfig({name}=…) has no effect here: {reason}; leave it out")
