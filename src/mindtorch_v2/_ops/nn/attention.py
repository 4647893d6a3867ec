"""Scaled dot product attention: as operators, or in blocks where that is asked for and possible."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _checks, _dtype
from ..._backends.cpu.nn import attention as kernels
from ..._dispatch import keys
from ..._tensor import Tensor
from ..elementwise.arithmetic import mul_number
from ..machinery.declare import op
from ..machinery.lookup import aten

Array = np.ndarray[Any, Any]

ERROR, MATH, FLASH = -1, 0, 1
allowed = {MATH}  # `torch.nn.attention.sdpa_kernel` changes it; in blocks only on request, as profiles then show one operator


def _check(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None) -> None:
    if not query.dtype is key.dtype is value.dtype:
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {query.dtype.cpp_name} key.dtype: "
            f"{key.dtype.cpp_name} and value.dtype: {value.dtype.cpp_name} instead."
        )
    if query.dim() < 2 or key.dim() < 2 or value.dim() < 2:
        raise RuntimeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {query.dim()} key.dim: "
            f"{key.dim()} and value.dim: {value.dim()} instead."
        )
    if attn_mask is not None and attn_mask.dtype not in (_dtype.bool_, _dtype.float32, query.dtype):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{attn_mask.dtype.cpp_name} and  query.dtype: {query.dtype.cpp_name} instead."
        )


def _check_mask_of_blocks(attn_mask: Tensor, fits: bool) -> None:
    """torch: where the blocked kernel could be taken, the mask is asked for its last two sizes."""
    if fits:
        raise _checks.dimension_error(-2, 1) if attn_mask.dim() else _checks.no_dimensions(-2)


def _choice(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> int:
    """Choose among the allowed ways the one that takes these arguments."""
    fits = FLASH in allowed and _blocks_fit(query, key, value, attn_mask, dropout_p, enable_gqa)
    return FLASH if fits else MATH if MATH in allowed else ERROR


def _blocks_fit(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float, enable_gqa: bool) -> bool:
    """Whether the blocked kernel takes these arguments: no dropout, four dimensions, one batch, shared heads only if asked."""
    q, k, v = query._array.shape, key._array.shape, value._array.shape
    if (query._keys | key._keys | value._keys) & (keys.DUAL | keys.BATCHED):
        return False  # what it is made of has rules for these
    if dropout_p > 0 or not len(q) == len(k) == len(v) == 4 or not query.dtype.is_floating_point:
        return False
    if q[0] != k[0] or k[0] != v[0] or q[3] != k[3] or k[3] != v[3] or k[2] != v[2] or 0 in (*q, *k, *v):
        return False
    if k[1] != v[1] or (q[1] != k[1] and not enable_gqa) or q[1] % k[1]:
        return False
    if attn_mask is None:
        return True
    if attn_mask._keys & keys.TRACKED or attn_mask.dim() not in (2, 4):
        return False
    fits = attn_mask.shape[-2] in (1, q[2]) and attn_mask.shape[-1] in (1, k[2])
    if attn_mask.dim() == 4:
        fits = fits and attn_mask.shape[0] in (1, q[0]) and attn_mask.shape[1] in (1, q[1])
    return fits


_fused_sdp_choice = op(
    "_fused_sdp_choice(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, "
    "float? scale=None, bool enable_gqa=False) -> int",
    composite=_choice,
    variants="function",
)


def _additive(mask: Tensor | None, query: Tensor) -> Tensor | None:
    """A mask of bools as what is added to the scores: 0 or -inf."""
    if mask is None or mask.dtype is not _dtype.bool_:
        return mask
    low = aten.scalar_tensor(-math.inf, dtype=query.dtype, device=query.device)
    return aten.where(mask, 0.0, low)


def _attention_to_nothing(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Zeros that depend on all three, for values without elements."""
    zeros = aten.zeros((*query.shape[:-1], value.shape[-1]), dtype=query.dtype, device=query.device)
    return zeros + (query.sum() + key.sum() + value.sum()) * 0


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Tensor:
    _check(query, key, value, attn_mask)
    if not value._array.size:
        return _attention_to_nothing(query, key, value)
    if attn_mask is not None and attn_mask.dim() < 2 and not attn_mask._keys & keys.TRACKED:
        _check_mask_of_blocks(attn_mask, _blocks_fit(query, key, value, None, dropout_p, enable_gqa))
    choice = _choice(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    if choice == ERROR:
        if FLASH in allowed:
            raise RuntimeError("No available kernel.  Aborting execution.")
        raise RuntimeError(
            "No viable backend for scaled_dot_product_attention was found. This is likely due to turning off both the math kernel "
            "and the fused kernels."
        )
    mask = _additive(attn_mask, query)
    if choice == FLASH:
        return flash_attention(query, key, value, dropout_p, is_causal, attn_mask=mask, scale=scale)[0]
    return attention_math(query, key, value, mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa)[0]


def _shared_heads(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    if query.shape[-3] % key.shape[-3] or query.shape[-3] % value.shape[-3]:
        raise RuntimeError("Number of heads in key and value must divide the number of heads in ")
    return (
        key.repeat_interleave(query.shape[-3] // key.shape[-3], -3),
        value.repeat_interleave(query.shape[-3] // value.shape[-3], -3),
    )


def _attention_math(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    dropout_mask: Tensor | None,
    scale: float | None,
    enable_gqa: bool,
) -> tuple[Tensor, Tensor]:
    if is_causal:
        if attn_mask is not None:
            raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
        ones = aten.ones([query.shape[-2], key.shape[-2]], dtype=_dtype.bool_, device=query.device)
        attn_mask = ones.tril()
    origin = query.dtype
    if origin.itemsize == 2:
        # torch: 16-bit floats are multiplied in float32, and the result is rounded once
        query, key, value = (t.to(_dtype.float32) for t in (query, key, value))
        attn_mask = attn_mask if attn_mask is None or attn_mask.dtype is _dtype.bool_ else attn_mask.to(_dtype.float32)
    factor = 1 / math.sqrt(query.shape[-1] or math.inf) if scale is None else scale
    root = math.sqrt(abs(factor))
    # torch: both factors are scaled before the product, which keeps half precision from overflowing
    q = mul_number(query, -root if factor < 0 else root)
    mask = _additive(attn_mask, q)
    if enable_gqa:
        key, value = _shared_heads(query, key, value)
    scores = q.matmul(mul_number(key.transpose(-2, -1), root))
    if mask is not None:
        scores = scores.add_(mask)
    weights = aten._safe_softmax(scores, -1)
    if dropout_p > 0:
        if dropout_mask is not None:
            dropped = weights.masked_fill(dropout_mask.logical_not(), 0.0)
            return dropped.matmul(mul_number(value, 1 / (1 - dropout_p))).to(origin), weights.to(origin)
        weights = aten.dropout(weights, dropout_p, True)
    if value.dtype.inexact:
        weights = weights.to(value.dtype)
    return weights.matmul(value).to(origin), weights.to(origin)


scaled_dot_product_attention = op(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, "
    "bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
    composite=_attention,
    variants="",
)
attention_math = op(
    "_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, "
    "bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, bool enable_gqa=False) -> (Tensor, Tensor)",
    composite=_attention_math,
    variants="function",
)


def _flash_attention(
    query: Array, key: Array, value: Array, dropout_p: float, is_causal: bool, attn_mask: Array | None, scale: float | None
) -> tuple[Array, Array]:
    if dropout_p > 0:
        raise RuntimeError("scaled_dot_product_attention_flash_attention: Currently do not support dropout > 0")
    return kernels.flash_attention(query, key, value, is_causal, attn_mask, scale)


flash_attention = op(
    "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool is_causal=False, *, "
    "Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
    cpu=_flash_attention,
    shape=lambda query, value: ((*query.shape[:3], value.shape[3]), query.shape[:3]),
    grad={
        ("query", "key", "value"): lambda grad, query, key, value, output, logsumexp, dropout_p, is_causal, attn_mask, scale: (
            flash_attention_backward(
                grad, query, key, value, output, logsumexp, dropout_p, is_causal, attn_mask=attn_mask, scale=scale
            )
        )
    },
    node="ScaledDotProductFlashAttentionForCpuBackward0",
    nondifferentiable=("logsumexp",),
    variants="function",
)
flash_attention_backward = op(
    "_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, "
    "Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) "
    "-> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
    cpu=kernels.flash_attention_backward,
    shape=lambda query, key, value: (query.shape, key.shape, value.shape),
    variants="function",
)
