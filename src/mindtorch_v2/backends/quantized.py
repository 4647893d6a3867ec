"""torch.backends.quantized: engines for quantized tensors. There are none."""

from __future__ import annotations

__all__ = ["engine", "supported_engines"]

engine = "none"
supported_engines = ["none"]
