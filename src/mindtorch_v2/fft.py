"""`torch.fft`: discrete Fourier transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._functions import namespace as _namespace

globals().update(_namespace("fft_"))
__all__ = sorted(_namespace("fft_"))

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
