"""torch.amp: mixed precision. Operators compute in lower precision inside `autocast`; `GradScaler` scales losses."""

from __future__ import annotations

from . import autocast_key as _autocast_key  # puts the layer into the dispatcher
from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
