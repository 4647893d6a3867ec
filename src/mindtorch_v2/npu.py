"""torch.npu: the Ascend devices of this machine."""

from __future__ import annotations

from typing import Any

from ._backends.backend import unavailable
from ._device import device
from ._types import OptionalDevice

__all__ = [
    "current_device",
    "device_count",
    "get_device_name",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "set_device",
    "synchronize",
]


def is_available() -> bool:
    """Whether this process can use an NPU: False without CANN's runtime."""
    return device_count() > 0


def device_count() -> int:
    """The number of NPUs that this process can use."""
    return 0


def is_initialized() -> bool:
    """Whether the runtime has been started."""
    return False


def _refuse(index: Any = None) -> Exception:
    return unavailable(device("npu", index) if isinstance(index, int) else device("npu"))


def current_device() -> int:
    """The number of the NPU on which new tensors are put."""
    raise _refuse()


def set_device(device: OptionalDevice) -> None:
    """Choose the NPU on which new tensors are put."""
    raise _refuse(device)


def get_device_name(device: OptionalDevice = None) -> str:
    """The name of an NPU."""
    raise _refuse(device)


def synchronize(device: OptionalDevice = None) -> None:
    """Wait for all work launched on an NPU."""
    raise _refuse(device)


def manual_seed(seed: int) -> None:
    """Seed the current NPU's generator; without NPUs there is none to seed, as in torch."""


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all NPUs; without NPUs there is none to seed, as in torch."""
