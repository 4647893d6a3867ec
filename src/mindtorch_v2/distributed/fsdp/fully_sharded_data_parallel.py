"""Modules whose parameters are spread over processes, under the name of their own module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import fsdp

globals().update({name: value for name, value in vars(fsdp).items() if isinstance(value, type)})

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
