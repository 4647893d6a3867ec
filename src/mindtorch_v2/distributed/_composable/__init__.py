"""Parameters over several processes: each has all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._refused import refused_here

globals().update(refused_here(__name__, functions="checkpoint contract replicate", classes=""))

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
