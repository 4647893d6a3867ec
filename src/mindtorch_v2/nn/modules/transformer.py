"""The transformer (Vaswani et al., 2017): encoder, decoder, and their layers."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from typing import Any

from ..._ops.machinery.lookup import aten
from ..._tensor import Tensor
from ..._types import OptionalDevice, OptionalDType
from .. import functional as F
from .. import init
from .._functional.attention import additive_mask
from .activation import GELU, ReLU
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .multihead_attention import MultiheadAttention, can_run_fused
from .normalization import LayerNorm

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer"]

Activation = str | Callable[[Tensor], Tensor]
NEITHER, RELU, GELU_KIND = 0, 1, 2


def _causal_mask(size: int, device: OptionalDevice = None, dtype: OptionalDType = None) -> Tensor:
    return aten.triu(aten.full((size, size), -math.inf, dtype=dtype, device=device), diagonal=1)


def _is_causal(mask: Tensor | None, is_causal: bool | None, length: int) -> bool:
    """What the caller says, or else whether the mask is that of `generate_square_subsequent_mask`."""
    if is_causal is not None or mask is None:
        return is_causal is True
    causal = _causal_mask(length, device=mask.device, dtype=mask.dtype)
    return mask.shape == causal.shape and bool((mask == causal).all())


def _length(x: Tensor, batch_first: bool) -> int:
    return int(x.shape[1 if batch_first and x.dim() == 3 else 0])


def _get_activation_fn(activation: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(F, activation)


class LayerWithActivation(Module):
    """A layer that is saved with the name of its activation, as operators are not found again by theirs."""

    activation: Any

    def __getstate__(self) -> dict[str, Any]:
        name = next((name for name in ("relu", "gelu") if self.activation is getattr(F, name)), None)
        return self.__dict__ if name is None else {**self.__dict__, "activation": name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "activation" not in self._modules:
            self.activation = _get_activation_fn(state.get("activation", "relu"))  # older pickles are without it


class Transformer(Module):
    """An encoder and a decoder, each of several layers."""

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6, dim_feedforward: int = 2048,
        dropout: float = 0.1, activation: Activation = F.relu, custom_encoder: Module | None = None, custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: OptionalDevice = None,
        dtype: OptionalDType = None,
    ) -> None:  # fmt: skip
        super().__init__()
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        place: dict[str, Any] = {"device": device, "dtype": dtype}

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place)

        if custom_encoder is None:
            custom_encoder = TransformerEncoder(TransformerEncoderLayer(*options, **place), num_encoder_layers, norm())
        self.encoder = custom_encoder
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(TransformerDecoderLayer(*options, **place), num_decoder_layers, norm())
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def _reset_parameters(self) -> None:
        for p in self.parameters():
            if p.dim() > 1:
                init.xavier_uniform_(p)

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None, src_is_causal: bool | None = None, tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        batch_dim = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch_dim) != tgt.size(batch_dim):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: OptionalDevice = None, dtype: OptionalDType = None) -> Tensor:
        """A mask that lets each position see itself and those before it."""
        return _causal_mask(sz, device=device, dtype=dtype)


class TransformerEncoder(Module):
    """Copies of an encoder layer, one after the other."""

    def __init__(
        self, encoder_layer: TransformerEncoderLayer, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check
        reason = _why_padding_stays(encoder_layer)
        if enable_nested_tensor and reason:
            warnings.warn(f"enable_nested_tensor is True, but self.use_nested_tensor is False because {reason}", stacklevel=2)
        self.use_nested_tensor = enable_nested_tensor and not reason

    def forward(
        self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool | None = None
    ) -> Tensor:
        padding = additive_mask(src_key_padding_mask, "src_key_padding_mask", src.dtype, mask, "mask")
        mask = additive_mask(mask, "mask", src.dtype)
        dropped = None if padding is None else self._dropped(src, mask, padding)
        if dropped is not None:
            padding = additive_mask(dropped, "src_key_padding_mask", src.dtype)
        is_causal = _is_causal(mask, is_causal, _length(src, self.layers[0].self_attn.batch_first))
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=is_causal, src_key_padding_mask=padding)
        if dropped is not None:
            output = output.masked_fill(dropped.unsqueeze(-1), 0.0)
        return output if self.norm is None else self.norm(output)

    def _dropped(self, src: Tensor, mask: Tensor | None, padding: Tensor) -> Tensor | None:
        """Where the input is padding, if torch would leave that out (by a nested tensor) and so give zeros there."""
        first = self.layers[0]
        if not self.use_nested_tensor or first.training or src.dim() != 3 or mask is not None:
            return None
        kept = padding.logical_not()
        if self.mask_check and not _is_left_aligned(kept):
            return None
        if not can_run_fused((src, *first._fused_tensors())):
            return None
        return kept.logical_not()


def _is_left_aligned(kept: Tensor) -> bool:
    """Whether each row begins with what is kept."""
    places = aten.arange(kept.shape[1], device=kept.device)
    return bool((kept == (places < kept.sum(1, keepdim=True))).all())


def _why_padding_stays(layer: Module) -> str:
    """Why padding is not left out inside of an encoder with this layer; the empty string if it may be."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    for reason, applies in (
        ("norm_first was True", layer.norm_first),
        ("self_attn.batch_first was not True(use batch_first for better inference performance)", not attention.batch_first),
        ("self_attn._qkv_same_embed_dim was not True", not attention._qkv_same_embed_dim),
        ("self_attn was passed bias=False", attention.in_proj_bias is None),
        ("activation_relu_or_gelu was not True", not layer.activation_relu_or_gelu),
        ("norm1.eps was not equal to encoder_layer.norm2.eps", layer.norm1.eps != layer.norm2.eps),
        ("self_attn.num_heads is odd", attention.num_heads % 2 == 1),
    ):
        if applies:
            return "encoder_layer." + reason
    return ""


class TransformerDecoder(Module):
    """Copies of a decoder layer, one after the other."""

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        causal = _is_causal(tgt_mask, tgt_is_causal, _length(tgt, self.layers[0].self_attn.batch_first))
        output = tgt
        for layer in self.layers:
            output = layer(
                output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal, memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return output if self.norm is None else self.norm(output)


def _attend(attention: Module, x: Tensor, memory: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool) -> Tensor:
    out: Tensor = attention(x, memory, memory, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=is_causal)[0]
    return out


class TransformerEncoderLayer(LayerWithActivation):
    """Attention of a sequence to itself, and a network of two linear maps for each position."""

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: OptionalDevice = None,
        dtype: OptionalDType = None,
    ) -> None:  # fmt: skip
        super().__init__()
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **place)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **place)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        activation = _get_activation_fn(activation)
        self.activation_relu_or_gelu = NEITHER
        if activation is F.relu or isinstance(activation, ReLU):
            self.activation_relu_or_gelu = RELU
        elif activation is F.gelu or isinstance(activation, GELU):
            self.activation_relu_or_gelu = GELU_KIND
        self.activation = activation

    def forward(
        self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool = False
    ) -> Tensor:
        padding = additive_mask(src_key_padding_mask, "src_key_padding_mask", src.dtype, src_mask, "src_mask")
        mask = additive_mask(src_mask, "src_mask", src.dtype)
        if self._is_fast(src):
            return self._run_fused(src, mask, padding)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), mask, padding, is_causal=is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, mask, padding, is_causal=is_causal))
        return self.norm2(x + self._ff_block(x))

    def _sa_block(self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False) -> Tensor:
        return self.dropout1(_attend(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal))

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))

    def _fused_tensors(self) -> tuple[Any, ...]:
        attention = self.self_attn
        return (
            attention.in_proj_weight, attention.in_proj_bias, attention.out_proj.weight, attention.out_proj.bias, self.norm1.weight,
            self.norm1.bias, self.norm2.weight, self.norm2.bias, self.linear1.weight, self.linear1.bias, self.linear2.weight,
            self.linear2.bias,
        )  # fmt: skip

    def _is_fast(self, src: Tensor) -> bool:
        """Whether the operator for evaluation does the same: for a batch, with one weight and biases, and without hooks."""
        attention = self.self_attn
        return (
            src.dim() == 3
            and not self.training
            and attention.batch_first
            and attention.in_proj_bias is not None
            and attention._qkv_same_embed_dim
            and bool(self.activation_relu_or_gelu)
            and self.norm1.eps == self.norm2.eps
            and attention.num_heads % 2 == 0
            and not any(m._forward_hooks or m._forward_pre_hooks for m in self.modules())
            and can_run_fused((src, *self._fused_tensors()))
        )

    def _run_fused(self, src: Tensor, mask: Tensor | None, padding: Tensor | None) -> Tensor:
        attention = self.self_attn
        merged, kind = attention.merge_masks(mask, padding, src)
        tensors = self._fused_tensors()
        return aten._transformer_encoder_layer_fwd(
            src, attention.embed_dim, attention.num_heads, *tensors[:4], self.activation_relu_or_gelu == GELU_KIND, self.norm_first,
            self.norm1.eps, *tensors[4:], merged, kind,
        )  # fmt: skip


class TransformerDecoderLayer(LayerWithActivation):
    """Attention of a sequence to itself, then to the encoder's, and a network of two linear maps for each position."""

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: OptionalDevice = None,
        dtype: OptionalDType = None,
    ) -> None:  # fmt: skip
        super().__init__()
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        attention = {"dropout": dropout, "bias": bias, "batch_first": batch_first, **place}
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **place)
        self.norm_first = norm_first
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place) for _ in range(3))
        self.dropout1, self.dropout2, self.dropout3 = (Dropout(dropout) for _ in range(3))
        self.activation = _get_activation_fn(activation)

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        own = tgt_mask, tgt_key_padding_mask, tgt_is_causal
        other = memory, memory_mask, memory_key_padding_mask, memory_is_causal
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, *other))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False) -> Tensor:
        return self.dropout1(_attend(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal))

    def _mha_block(
        self, x: Tensor, mem: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        return self.dropout2(_attend(self.multihead_attn, x, mem, attn_mask, key_padding_mask, is_causal))

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))
