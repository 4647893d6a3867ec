"""torch.cpu.amp.autocast_mode: the older name of `torch.amp.autocast`."""

from __future__ import annotations

import warnings

from ... import _dtype
from ...amp import autocast as _autocast

__all__ = ["autocast"]


class autocast(_autocast):  # noqa: N801 - torch's spelling
    """`torch.amp.autocast("cpu")`."""

    def __init__(self, enabled: bool = True, dtype: _dtype.dtype = _dtype.bfloat16, cache_enabled: bool = True) -> None:
        warnings.warn(
            "`torch.cpu.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cpu', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)
