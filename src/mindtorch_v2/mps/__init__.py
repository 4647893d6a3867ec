"""torch.mps as a PyTorch without it answers: no devices, and what needs one raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._absent_device import device_count, is_available, manual_seed, without_device

__all__ = ["device_count", "is_available", "manual_seed"]

_NEEDING = (
    "compile_shader current_allocated_memory driver_allocated_memory empty_cache get_rng_state recommended_max_memory seed"
    " set_per_process_memory_fraction set_rng_state synchronize"
)
globals().update(without_device("Cannot use torch.mps without MPS backend.", _NEEDING, RuntimeError))

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
