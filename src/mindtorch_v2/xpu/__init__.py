"""torch.xpu as a PyTorch without it answers: not available, no devices, and what needs one raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._absent_device import absent_device

globals().update(absent_device("XPU", "Torch not compiled with XPU enabled"))

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
