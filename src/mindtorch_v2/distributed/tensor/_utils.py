"""Where the parts of a tensor over several devices lie: there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._refused import refused_here

globals().update(
    refused_here(
        __name__, functions="compute_global_tensor_info compute_local_shape compute_local_shape_and_global_offset", classes=""
    )
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
