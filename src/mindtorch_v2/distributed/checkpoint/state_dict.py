"""State dicts of parameters over several processes: each has all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._refused import refused_here

globals().update(
    refused_here(
        __name__,
        functions="get_model_state_dict get_optimizer_state_dict get_state_dict set_model_state_dict set_optimizer_state_dict set_state_dict",
        classes="StateDictOptions",
    )
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
