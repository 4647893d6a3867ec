"""torch.cuda.memory: no memory of a GPU is in use. `torch.cpu.memory` has the history of what is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .._absent_device import no_stats, no_stats_nested, nothing, without_device, zero
from .._types import OptionalDevice

_NEEDING = (
    "caching_allocator_alloc caching_allocator_delete change_current_allocator get_allocator_backend get_per_process_memory_fraction"
    " mem_get_info memory_snapshot memory_summary reset_accumulated_host_memory_stats reset_accumulated_memory_stats"
    " reset_max_memory_allocated reset_max_memory_cached reset_peak_host_memory_stats reset_peak_memory_stats"
    " set_per_process_memory_fraction use_mem_pool CUDAPluggableAllocator MemPool"
)
globals().update(without_device("Torch not compiled with CUDA enabled", _NEEDING))

empty_cache = caching_allocator_enable = nothing
max_memory_allocated = max_memory_cached = max_memory_reserved = memory_allocated = memory_cached = memory_reserved = zero
memory_stats = host_memory_stats = no_stats
memory_stats_as_nested_dict = host_memory_stats_as_nested_dict = no_stats_nested


def list_gpu_processes(device: OptionalDevice = None) -> str:
    """A text that there are none."""
    return "no processes are running"


@contextlib.contextmanager
def caching_allocator_disabled() -> Iterator[None]:
    """Nothing to change."""
    yield


__all__ = [
    name
    for name in list(globals())
    if not name.startswith("_")
    and name
    not in (
        "Any",
        "Iterator",
        "TYPE_CHECKING",
        "annotations",
        "contextlib",
        "no_stats",
        "no_stats_nested",
        "nothing",
        "without_device",
        "zero",
    )
]

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
