"""torch.utils.serialization: settings of `torch.save` and `torch.load`."""

from __future__ import annotations

from . import config

__all__ = ["config"]
