"""torch._custom_ops: the first form of `torch.library.custom_op`, which libraries still import."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._refusals import refused

globals().update(
    refused(
        __name__,
        "torch.library.custom_op has taken its place",
        functions="custom_op get_ctx impl impl_abstract impl_backward impl_save_for_backward",
    )
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
