"""Attention of several heads as a module."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..._dispatch.tls import state
from ..._ops.machinery.lookup import aten
from ..._tensor import Tensor
from ..._types import OptionalDevice, OptionalDType
from ...overrides import has_torch_function
from .. import functional as F
from .. import init
from .._functional.attention import additive_mask
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

__all__ = ["MultiheadAttention", "can_run_fused"]


def can_run_fused(tensors: Iterable[Tensor | None]) -> bool:
    """Whether operators without derivatives may take these: plain tensors on the CPU, none of which needs a gradient."""
    given = [t for t in tensors if t is not None]
    if has_torch_function(given) or any(t.device.type != "cpu" for t in given):
        return False
    return not (state.grad_enabled and any(t.requires_grad for t in given))


class MultiheadAttention(Module):
    """Attention of `num_heads` heads between a query and pairs of keys and values (Vaswani et al., 2017)."""

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False, device: OptionalDevice = None,
        dtype: OptionalDType = None,
    ) -> None:  # fmt: skip
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim == self.vdim
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")

        def parameter(*shape: int) -> Parameter:
            return Parameter(aten.empty(shape, device=device, dtype=dtype))

        packed = self._qkv_same_embed_dim
        separate = {"q_proj_weight": embed_dim, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}
        if packed:
            self.in_proj_weight = parameter(3 * embed_dim, embed_dim)
        for name, width in separate.items():
            self.register_parameter(name, None if packed else parameter(embed_dim, width))
        if not packed:
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", parameter(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.bias_k = parameter(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = parameter(1, 1, embed_dim) if add_bias_kv else None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None, need_weights: bool = True,
        attn_mask: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        floating = any(m is not None and m.is_floating_point() for m in (attn_mask, key_padding_mask))
        key_padding_mask = additive_mask(key_padding_mask, "key_padding_mask", query.dtype, attn_mask, "attn_mask")
        attn_mask = additive_mask(attn_mask, "attn_mask", query.dtype)
        if not floating and self._is_fast(query, key, value):
            mask, kind = self.merge_masks(attn_mask, key_padding_mask, query)
            return aten._native_multi_head_attention(
                query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.out_proj.weight,
                self.out_proj.bias, mask, need_weights, average_attn_weights, kind,
            )  # fmt: skip
        transposed = self.batch_first and query.dim() == 3
        if transposed:
            query, key, value = _sequence_first(query, key, value)
        out, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v,
            self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, training=self.training,
            key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim, q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight, v_proj_weight=self.v_proj_weight, average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )  # fmt: skip
        return (out.transpose(1, 0) if transposed else out), weights

    def _is_fast(self, query: Tensor, key: Tensor, value: Tensor) -> bool:
        """Whether the operator for evaluation does the same: attention of a batch to itself, with one weight and a bias."""
        return (
            query.dim() == 3
            and query is key is value
            and not self.training
            and self.batch_first
            and self.num_heads % 2 == 0
            and self.in_proj_weight is not None
            and self.in_proj_bias is not None
            and query.dtype is self.in_proj_weight.dtype is self.in_proj_bias.dtype
            and self.bias_k is None
            and self.bias_v is None
            and not self.add_zero_attn
            and can_run_fused((query, self.in_proj_weight, self.in_proj_bias, self.out_proj.weight, self.out_proj.bias))
        )

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """One mask of both, and its kind: 1 for one of padding alone, 2 for one in the shape of the scores."""
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, length, _ = query.shape
        if attn_mask.dim() == 3:
            merged = attn_mask.view(batch, -1, length, length)
        else:
            merged = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1)
        return merged, 2

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({"_qkv_same_embed_dim": True, **state})  # older pickles are without it


def _sequence_first(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """All three with the sequence before the batch; the same tensor stays the same, which attention asks for."""
    if key is value:
        if query is key:
            query = query.transpose(1, 0)
            return query, query, query
        query, key = query.transpose(1, 0), key.transpose(1, 0)
        return query, key, key
    return query.transpose(1, 0), key.transpose(1, 0), value.transpose(1, 0)
