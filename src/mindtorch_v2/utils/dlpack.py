"""torch.utils.dlpack: sharing memory through DLPack."""

from __future__ import annotations

from .._interop import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
