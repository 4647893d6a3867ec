"""`torch.nn.parallel.distributed`: a module in several processes. There is one process here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._refusals import refused

globals().update(
    refused(
        "mindtorch_v2.nn.parallel", "one process computes on one device; call the module itself", classes="DistributedDataParallel"
    )
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
