"""The module of a device type: `torch.cpu`, `torch.cuda` and others."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from ._device import device as device_class
from ._types import OptionalDevice

__all__ = ["get_device_module"]


def get_device_module(device: OptionalDevice = None) -> ModuleType:
    """The module with the functions of a device; that of the CPU without an argument, for there is no accelerator."""
    if not (device is None or isinstance(device, str | device_class)):
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    name = "cpu" if device is None else device_class(device).type
    package = __name__.partition(".")[0]
    if importlib.util.find_spec(f"{package}.{name}") is None:
        raise RuntimeError(f"Device '{name}' does not have a corresponding module registered as 'torch.{name}'.")
    return importlib.import_module(f"{package}.{name}")
