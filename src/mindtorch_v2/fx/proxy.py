"""torch.fx.proxy: names that libraries import. Nothing is traced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._refusals import refused
from . import WHY, Proxy

__all__ = ["Proxy"]

globals().update(refused(__name__, WHY, classes="Attribute GraphAppendingTracer ParameterProxy TracerBase"))

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
