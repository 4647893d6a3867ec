"""Attention in blocks of heads: scores of a few heads at a time stay in the cache, and only their normalisers are kept."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..machinery.half_precision import widened

Array = np.ndarray[Any, Any]

_BLOCK_ELEMENTS = 1 << 20  # scores held at a time


def _blocks(heads: int, scores: int) -> Iterator[slice]:
    step = max(1, _BLOCK_ELEMENTS // max(scores, 1))
    for start in range(0, heads, step):
        yield slice(start, start + step)


def _flat(x: Array, heads: int | None = None) -> Array:
    """(batch * heads, length, width); `heads` repeats groups of shared heads."""
    b, h, n, d = x.shape
    if heads is not None and heads != h:
        x = np.repeat(x, heads // h, axis=1)
        h = heads
    return x.reshape(b * h, n, d)


def _flat_mask(mask: Array | None, shape: tuple[int, int, int, int]) -> Array | None:
    if mask is None:
        return None
    b, h, n, m = shape
    while mask.ndim < 4:
        mask = mask[None]
    return np.broadcast_to(mask, shape).reshape(b * h, n, m)


def _scores(q: Array, k: Array, mask: Array | None, causal: Array | None, scale: float) -> Array:
    s: Array = np.matmul(q, k.swapaxes(1, 2))
    s *= scale
    if mask is not None:
        s += mask
    if causal is not None:
        s += causal
    return s


def _normalize(s: Array, *, masked: bool) -> tuple[Array, Array]:
    """Softmax in place along the last axis; the maxima and the sums. A row that sees nothing becomes zeros."""
    top = np.maximum.reduce(s, 2, keepdims=True)
    if masked:
        top[np.isneginf(top)] = 0
    s -= top
    np.exp(s, out=s)
    total = np.add.reduce(s, 2, keepdims=True)
    s /= np.where(total == 0, np.ones((), s.dtype), total) if masked else total
    return top, total


def _causal_mask(n: int, m: int, dtype: np.dtype[Any]) -> Array:
    return np.triu(np.full((n, m), -np.inf, dtype), 1)


def _scale_of(query: Array, scale: float | None) -> float:
    return 1 / math.sqrt(query.shape[-1]) if scale is None else scale


def flash_attention(
    query: Array, key: Array, value: Array, is_causal: bool, attn_mask: Array | None, scale: float | None
) -> tuple[Array, Array]:
    dtype = query.dtype
    if dtype.itemsize == 2:
        query, key, value = (a.astype(np.float32) for a in (query, key, value))
        attn_mask = None if attn_mask is None else attn_mask.astype(np.float32)
    b, h, n, _ = query.shape
    m = key.shape[2]
    q, k, v = _flat(query), _flat(key, h), _flat(value, h)
    mask = _flat_mask(attn_mask, (b, h, n, m))
    causal = _causal_mask(n, m, q.dtype) if is_causal else None
    out = np.empty((b * h, n, v.shape[2]), q.dtype)
    lse = np.empty((b * h, n), q.dtype)
    factor = _scale_of(query, scale)
    masked = mask is not None
    for block in _blocks(b * h, n * m):
        s = _scores(q[block], k[block], None if mask is None else mask[block], causal, factor)
        top, total = _normalize(s, masked=masked)
        np.matmul(s, v[block], out=out[block])
        lse[block] = (np.log(total) + top)[:, :, 0]
    return out.reshape(b, h, n, -1).astype(dtype, copy=False), lse.reshape(b, h, n)


@widened
def flash_attention_backward(
    grad_out: Array,
    query: Array,
    key: Array,
    value: Array,
    is_causal: bool,
    attn_mask: Array | None,
    scale: float | None,
) -> tuple[Array, Array, Array]:
    b, h, n, _ = query.shape
    m = key.shape[2]
    q, k, v, g = _flat(query), _flat(key, h), _flat(value, h), _flat(grad_out)
    mask = _flat_mask(attn_mask, (b, h, n, m))
    causal = _causal_mask(n, m, q.dtype) if is_causal else None
    to_q, to_k, to_v = np.empty_like(q), np.empty_like(k), np.empty_like(v)
    factor = _scale_of(query, scale)
    for block in _blocks(b * h, n * m):
        p = _scores(q[block], k[block], None if mask is None else mask[block], causal, factor)
        _normalize(p, masked=mask is not None)
        np.matmul(p.swapaxes(1, 2), g[block], out=to_v[block])
        s = np.matmul(g[block], v[block].swapaxes(1, 2))
        # Weights that sum to 1, and their own mean of `s`: where one weight is nearly 1 the difference then cancels, while
        # weights from exp(score - logsumexp) leave the rounding of the logarithm, 1e-5 of the gradient at scores of 100.
        s -= np.vecdot(p, s)[:, :, None]
        s *= p
        s *= factor
        np.matmul(s, k[block], out=to_q[block])
        np.matmul(s.swapaxes(1, 2), q[block], out=to_k[block])
    return to_q.reshape(query.shape), _grouped(to_k, key.shape, h), _grouped(to_v, value.shape, h)


def _grouped(grads: Array, shape: tuple[int, ...], heads: int) -> Array:
    """Gradients of heads that share keys and values, added up."""
    b, h, m, d = shape
    if heads == h:
        return grads.reshape(shape)
    return grads.reshape(b, h, heads // h, m, d).sum(2, dtype=grads.dtype)
