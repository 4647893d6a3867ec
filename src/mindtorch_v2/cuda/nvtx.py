"""torch.cuda.nvtx: marks for NVIDIA's profilers, which need CUDA. `torch.profiler.record_function` marks a block here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._absent_device import without_device

_NAMES = "mark range range_end range_pop range_push range_start"
__all__ = _NAMES.split()

globals().update(without_device("NVTX functions not installed. Are you sure you have a CUDA build?", _NAMES, RuntimeError))

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
