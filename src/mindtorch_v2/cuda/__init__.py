"""torch.cuda as a PyTorch without CUDA answers: not available, no devices, and what needs one raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._absent_device import absent_device, tensor_types, without_device
from .._errors import AcceleratorError, OutOfMemoryError
from ..storage import legacy_classes
from . import amp, memory, nvtx, profiler, random, streams
from .streams import Event, ExternalStream, Stream, StreamContext

MESSAGE = "Torch not compiled with CUDA enabled"

has_half = True  # torch: a fact of the API
has_magma = False

globals().update(absent_device("CUDA", MESSAGE))
globals().update(tensor_types("torch.cuda"))
globals().update(legacy_classes("torch.cuda", "a GPU", "cuda"))
globals().update({name: vars(memory)[name] for name in memory.__all__})
globals().update(
    without_device(
        MESSAGE,
        "clock_rate cudart current_blas_handle current_solver_handle default_stream device_memory_used get_stream_from_external get_sync_debug_mode"
        " graph_pool_handle ipc_collect is_current_stream_capturing make_graphed_callables memory_usage power_draw set_sync_debug_mode"
        " temperature utilization CUDAGraph graph",
    )
)


class CudaError(RuntimeError):
    """An error of CUDA's; never raised here."""


class DeferredCudaCallError(Exception):
    """An error in a call that was put off until CUDA starts; never raised here."""


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
