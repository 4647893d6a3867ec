"""torch.nn.attention.flex_attention: names that libraries import. Its kernels are compiled by PyTorch for each mask; that is refused here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._refusals import refused

globals().update(
    refused(
        __name__,
        "its kernels are compiled for each mask, and nothing is compiled here; use scaled_dot_product_attention with attn_mask",
        functions="and_masks create_block_mask create_mask create_nested_block_mask flex_attention noop_mask or_masks",
        classes="AuxOutput AuxRequest BlockMask",
    )
)

_DEFAULT_SPARSE_BLOCK_SIZE = 128

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
