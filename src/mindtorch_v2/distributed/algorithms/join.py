"""Processes with different numbers of batches: all need as many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._refused import refused_here

globals().update(refused_here(__name__, functions="", classes="Join JoinHook Joinable"))

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
