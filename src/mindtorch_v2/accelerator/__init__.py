"""torch.accelerator: the device beside the CPU that programs choose by themselves. There is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._absent_device import device_count, is_available, without_device
from .._device import device
from .._types import OptionalDevice

__all__ = ["current_accelerator", "device_count", "is_available", "set_device_idx", "set_device_index"]

MESSAGE = "Cannot access accelerator device when none is available."


def current_accelerator(check_available: bool = False) -> device | None:
    """None: tensors are on the CPU."""
    return None


def set_device_index(device: OptionalDevice, /) -> None:
    """Choose a device; a number below 0 chooses none."""
    if not (isinstance(device, int) and device < 0):
        raise RuntimeError(MESSAGE)


set_device_idx = set_device_index

_NEEDING = (
    "current_device_idx current_device_index current_stream empty_cache empty_host_cache get_device_capability get_memory_info"
    " max_memory_allocated max_memory_reserved memory_allocated memory_reserved memory_stats reset_accumulated_memory_stats"
    " reset_peak_memory_stats set_stream synchronize Graph"
)
globals().update(without_device(MESSAGE, _NEEDING, RuntimeError))


class device_index:  # noqa: N801 - torch's spelling
    """A context that chooses a device; None chooses none."""

    def __init__(self, device: int | None, /) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            raise RuntimeError(MESSAGE)

    def __exit__(self, *exception: object) -> None:
        pass


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
