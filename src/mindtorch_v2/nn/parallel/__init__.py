"""`torch.nn.parallel`: modules over several devices and processes. There is one of each here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._refusals import refused
from .data_parallel import DataParallel, data_parallel
from .distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter"]

globals().update(
    refused(
        __name__,
        "one process computes on one device; call the module itself",
        functions="gather parallel_apply replicate scatter",
    )
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
