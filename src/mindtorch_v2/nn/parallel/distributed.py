"""A module trained by several processes, which the runtime does not do."""

from __future__ import annotations

from typing import Any

from ..modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Refused when it is made: there is no communication between processes here."""

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            "DistributedDataParallel needs process groups (torch.distributed), which there are none of here; train the module itself "
            "in one process"
        )
