"""torch.xpu as a PyTorch without it answers: not available, no devices, and what needs one raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._absent_device import absent_device, without_device
from . import streams
from .streams import Event, Stream, StreamContext

MESSAGE = "Torch not compiled with XPU enabled"

globals().update(absent_device("XPU", MESSAGE))
globals().update(
    without_device(
        MESSAGE,
        "MemPool XPUGraph XPUPluggableAllocator change_current_allocator clock_rate device_memory_used get_stream_from_external graph"
        " graph_pool_handle is_current_stream_capturing make_graphed_callables memory_usage power_draw temperature use_mem_pool utilization",
        RuntimeError,
    )
)


def memory_snapshot(mempool_id: Any = None) -> list[dict[str, Any]]:
    """Nothing: there is no memory of the device."""
    return []


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
