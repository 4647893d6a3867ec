"""`torch.nn.parallel`: modules over several devices, of which there is one here, and several processes."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ..._refusals import refused
from .data_parallel import DataParallel, data_parallel
from .scatter_gather import gather, scatter

if TYPE_CHECKING:
    from .distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter"]

globals().update(
    refused(
        __name__,
        "one process computes on one device; call the module itself",
        functions="parallel_apply replicate",
    )
)


def __getattr__(name: str) -> Any:
    """`DistributedDataParallel` and its module are loaded when they are asked for, with sockets and all."""
    if name in ("DistributedDataParallel", "distributed"):
        module = importlib.import_module(f"{__name__}.distributed")
        return module if name == "distributed" else module.DistributedDataParallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
