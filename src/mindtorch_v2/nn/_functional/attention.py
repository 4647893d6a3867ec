"""Multi-head attention from its parts: projections, heads, masks."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ..._dtype import bool_, dtype
from ..._ops.machinery.lookup import aten
from ..._tensor import Tensor

__all__ = ["multi_head_attention_forward"]


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return aten.linear(x, weight, bias)


def _chunks(t: Tensor | None, n: int) -> list[Any]:
    return [None] * n if t is None else list(t.chunk(n))


def _in_projection_packed(q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values from one weight of three blocks: in one product when the inputs are the same."""
    size = q.size(-1)
    if k is v:
        if q is k:
            packed = _linear(q, w, b)
            parts = packed.unflatten(-1, (3, size)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
            return parts[0], parts[1], parts[2]
        w_q, w_kv = w.split([size, size * 2])
        b_q, b_kv = (None, None) if b is None else b.split([size, size * 2])
        packed = _linear(k, w_kv, b_kv)
        parts = packed.unflatten(-1, (2, size)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
        return _linear(q, w_q, b_q), parts[0], parts[1]
    w_q, w_k, w_v = w.chunk(3)
    b_q, b_k, b_v = _chunks(b, 3)
    return _linear(q, w_q, b_q), _linear(k, w_k, b_k), _linear(v, w_v, b_v)


def _check_shapes(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None, num_heads: int
) -> bool:
    """Whether there is a batch dimension; complains about arguments that disagree."""
    n = query.dim()
    if n not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {n}-D query tensor")
    kind = "batched (3-D)" if n == 3 else "unbatched (2-D)"
    if key.dim() != n or value.dim() != n:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {n}-D but found {key.dim()}-D and {value.dim()}-D tensors "
            "respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != n - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {n - 1}-D but found {key_padding_mask.dim()}-D "
            "tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor instead"
            )
        if n == 2 and attn_mask.dim() == 3:
            expected = (num_heads, query.shape[0], key.shape[0])
            if tuple(attn_mask.shape) != expected:
                raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}")
    return n == 3


def additive_mask(mask: Tensor | None, name: str, like: dtype, other: Tensor | None = None, other_name: str = "") -> Tensor | None:
    """A mask of bools as 0 and -inf of the query's dtype; a floating one as it is."""
    if mask is None:
        return None
    if mask.dtype is not bool_ and not mask.dtype.inexact:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if other is not None and other.dtype is not mask.dtype:
        warnings.warn(
            f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.", stacklevel=4
        )
    if mask.dtype is not bool_:
        return mask
    return aten.zeros_like(mask, dtype=like).masked_fill_(mask, -math.inf)


def _heads(x: Tensor, batch: int, num_heads: int, head_dim: int) -> Tensor:
    return x.view(x.shape[0], batch * num_heads, head_dim).transpose(0, 1)


def _static(x: Tensor, name: str, batch: int, num_heads: int, head_dim: int) -> Tensor:
    if x.size(0) != batch * num_heads:
        raise AssertionError(f"expecting {name}.size(0) of {batch * num_heads}, but got {x.size(0)}")
    if x.size(2) != head_dim:
        raise AssertionError(f"expecting {name}.size(2) of {head_dim}, but got {x.size(2)}")
    return x


def _grown(mask: Tensor | None) -> Tensor | None:
    """A mask with one more key, which everyone sees."""
    return None if mask is None else aten.pad(mask, [0, 1])


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention of several heads: the output, and the weights when they are wanted. Sequences come first, batches second."""
    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same_k, same_v = key is query, value is key
        query = query.unsqueeze(1)
        key = query if same_k else key.unsqueeze(1)
        value = key if same_v else value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, embed_dim = query.shape
    source = key.shape[0]
    padding = additive_mask(key_padding_mask, "key_padding_mask", query.dtype, attn_mask, "attn_mask")
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        # the kernel makes the causal mask itself
        attn_mask = None
    else:
        attn_mask = additive_mask(attn_mask, "attn_mask", query.dtype)
        if key_padding_mask is not None:
            is_causal = False
    if embed_dim != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}")
    head_dim = embed_dim // num_heads
    if head_dim * num_heads != embed_dim:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        if tuple(key.shape[:2]) != tuple(value.shape[:2]):
            raise AssertionError(f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}")
    elif key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    q, k, v = _projected(
        query, key, value, in_proj_weight, in_proj_bias, use_separate_proj_weight, (q_proj_weight, k_proj_weight, v_proj_weight)
    )
    attn_mask = _shaped_mask(attn_mask, (length, source), batch * num_heads)
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError(
                "bias cannot be added to static key." if static_k is not None else "bias cannot be added to static value."
            )
        k, v = aten.cat([k, bias_k.repeat(1, batch, 1)]), aten.cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, padding = _grown(attn_mask), _grown(padding)
    elif bias_k is not None or bias_v is not None:
        raise AssertionError("bias_k and bias_v must be both None or both not None")
    q = q.view(length, batch * num_heads, head_dim).transpose(0, 1)
    k = _heads(k, batch, num_heads, head_dim) if static_k is None else _static(static_k, "static_k", batch, num_heads, head_dim)
    v = _heads(v, batch, num_heads, head_dim) if static_v is None else _static(static_v, "static_v", batch, num_heads, head_dim)
    if add_zero_attn:
        zeros = aten.zeros([batch * num_heads, 1, head_dim], dtype=k.dtype, device=k.device)
        k, v = aten.cat([k, zeros], 1), aten.cat([v, zeros], 1)
        attn_mask, padding = _grown(attn_mask), _grown(padding)
    source = k.size(1)
    if padding is not None:
        if tuple(padding.shape) != (batch, source):
            raise AssertionError(f"expecting key_padding_mask shape of {(batch, source)}, but got {padding.shape}")
        spread = padding.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1).reshape(batch * num_heads, 1, source)
        attn_mask = spread if attn_mask is None else attn_mask + spread
    if not training:
        dropout_p = 0.0
    if need_weights:
        out, weights = _weighed(q, k, v, attn_mask, dropout_p)
        out = out.transpose(0, 1).reshape(length * batch, embed_dim)
        out = _linear(out, out_proj_weight, out_proj_bias)
        out = out.view(length, batch, out.size(1))
        weights = weights.view(batch, num_heads, length, source)
        if average_attn_weights:
            weights = weights.mean(1)
        return (out, weights) if batched else (out.squeeze(1), weights.squeeze(0))
    if attn_mask is not None:
        if attn_mask.size(0) == 1 and attn_mask.dim() == 3:
            attn_mask = attn_mask.unsqueeze(0)
        else:
            attn_mask = attn_mask.view(batch, num_heads, -1, source)
    q = q.view(batch, num_heads, length, head_dim)
    k, v = k.view(batch, num_heads, source, head_dim), v.view(batch, num_heads, source, head_dim)
    out = aten.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal)
    out = out.permute(2, 0, 1, 3).reshape(batch * length, embed_dim)
    out = _linear(out, out_proj_weight, out_proj_bias)
    out = out.view(length, batch, out.size(1))
    return (out if batched else out.squeeze(1)), None


def _weighed(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float) -> tuple[Tensor, Tensor]:
    """Attention with its weights, from heads as batches of matrices."""
    scaled = q * math.sqrt(1.0 / q.shape[-1])
    keys = k.transpose(-2, -1)
    scores = scaled.bmm(keys) if mask is None else aten.baddbmm(mask, scaled, keys)
    weights = scores.softmax(-1)
    if dropout_p > 0.0:
        weights = aten.dropout(weights, dropout_p, True)
    return weights.bmm(v), weights


def _projected(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    separate: bool,
    weights: tuple[Tensor | None, Tensor | None, Tensor | None],
) -> tuple[Tensor, Tensor, Tensor]:
    if not separate:
        if weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        return _in_projection_packed(query, key, value, weight, bias)
    for name, w in zip("qkv", weights, strict=True):
        if w is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
    biases = _chunks(bias, 3)
    q, k, v = (_linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True))  # type: ignore[arg-type]
    return q, k, v


def _shaped_mask(mask: Tensor | None, shape: tuple[int, int], heads: int) -> Tensor | None:
    """A mask with a dimension for the heads, after a check of its shape."""
    if mask is None:
        return None
    if mask.dim() == 2:
        if tuple(mask.shape) != shape:
            raise RuntimeError(f"The shape of the 2D attn_mask is {mask.shape}, but should be {shape}.")
        return mask.unsqueeze(0)
    if mask.dim() == 3:
        expected = (heads, *shape)
        if tuple(mask.shape) != expected:
            raise RuntimeError(f"The shape of the 3D attn_mask is {mask.shape}, but should be {expected}.")
        return mask
    raise RuntimeError(f"attn_mask's dimension {mask.dim()} is not supported")
