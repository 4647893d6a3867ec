"""Why names of `torch.distributed` refuse, in one place."""

from __future__ import annotations

from typing import Any

from .._refusals import refused

__all__ = ["refused_here"]

_WHY = "parameters and tensors are not spread over processes here; DistributedDataParallel has a copy of the module in each"


def refused_here(module: str, *, functions: str = "", classes: str = "") -> dict[str, Any]:
    """Functions and classes of a module below `torch.distributed`, by name, that refuse when they are called."""
    return refused(module, _WHY, functions=functions, classes=classes)
