"""`torch.special`: functions of mathematical physics and statistics. Each is the operator `special_<name>`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._functions import namespace as _namespace

globals().update(_namespace("special_"))
__all__ = sorted(_namespace("special_"))

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
