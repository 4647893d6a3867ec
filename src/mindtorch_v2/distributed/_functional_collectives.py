"""Operations between processes for compiled code: nothing is compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._refused import refused_here

globals().update(
    refused_here(
        __name__,
        functions="all_gather_tensor all_reduce all_to_all_single all_to_all_single_autograd reduce_scatter_tensor wait_tensor",
        classes="AsyncCollectiveTensor",
    )
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
