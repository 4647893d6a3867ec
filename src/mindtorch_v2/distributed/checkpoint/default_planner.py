"""Plans of checkpoints over several processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._refused import refused_here

globals().update(refused_here(__name__, functions="", classes="DefaultLoadPlanner DefaultSavePlanner"))

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
