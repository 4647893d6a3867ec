"""`torch.nn.parallel.scatter_gather`: tensors moved between devices, of which there is one here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._refusals import refused

globals().update(refused(__name__, "there is one device; call the module itself", functions="gather scatter scatter_kwargs"))

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
