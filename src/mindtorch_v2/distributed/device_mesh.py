"""torch.distributed.device_mesh: devices in a grid. There is one device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._refused import refused_here

globals().update(refused_here(__name__, functions="init_device_mesh", classes="DeviceMesh"))

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
