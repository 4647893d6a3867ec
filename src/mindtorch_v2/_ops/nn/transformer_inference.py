"""The operators that attention and encoder layers call in evaluation mode without gradients: one for a layer, made of products."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _dtype
from ..._backends.cpu.linalg import matmul as products
from ..._tensor import Tensor
from ..._types import Number
from ..machinery.computing import computed
from ..machinery.declare import op
from ..machinery.lookup import aten

Array = np.ndarray[Any, Any]

PADDING_MASK, FULL_MASK = 1, 2  # kinds of masks; 0 is one of queries by keys


# --- parts --------------------------------------------------------------------------------------------------------------


def _split_heads(qkv: Array, qkv_bias: Array, num_heads: int) -> tuple[Array, Array, Array]:
    """Queries, keys and values by head from a packed product: the bias added, queries scaled by 1 / sqrt(size of a head)."""
    batch, length, width = qkv.shape
    size = width // 3 // num_heads
    q, k, v = (qkv + qkv_bias).reshape(batch, length, 3, num_heads, size).transpose(2, 0, 3, 1, 4)
    return q * q.dtype.type(1 / math.sqrt(size)), k, v


def _check_split(qkv: Tensor, qkv_bias: Tensor, num_heads: int) -> Any:
    batch, length, width = qkv.shape
    shape = (batch, num_heads, length, width // 3 // num_heads)
    return shape, shape, shape


transform_bias_rescale_qkv = op(
    "_transform_bias_rescale_qkv(Tensor qkv, Tensor qkv_bias, int num_heads) -> (Tensor, Tensor, Tensor)",
    cpu=_split_heads,
    shape=_check_split,
    rows=True,
    refuses=("transform_bias_rescale_qkv", "bic"),
    variants="function",
)


def _spread(mask: Array, shape: tuple[int, ...], mask_type: int | None) -> Array:
    """A mask in the shape of the scores."""
    if mask.dtype != np.bool_:
        raise RuntimeError("Mask should be a boolean tensor")
    if mask.shape == shape:
        return mask
    if mask_type == FULL_MASK:
        raise RuntimeError("For mask_type == 2 mask shape should match input shape")
    if mask_type == PADDING_MASK:
        if mask.shape != (shape[0], shape[-1]):
            raise RuntimeError("For mask_type == 1 mask shape should be (B, L)")
        mask = mask.reshape(mask.shape[0], *(1,) * (len(shape) - 2), mask.shape[-1])
    elif mask.shape != (shape[-1],) * 2:
        raise RuntimeError("For mask_type == 0 mask shape should be (L, L)")
    return np.broadcast_to(mask, shape)


def _masked_softmax(self: Array, mask: Array, dim: int | None, mask_type: int | None) -> Array:
    """Softmax over the elements that are not masked; masked ones are zero, and all of them NaN where nothing is left."""
    axis = -1 if dim is None else dim
    masked = _spread(mask, self.shape, mask_type)
    scores = np.where(masked, -np.inf, self).astype(self.dtype)
    weights = np.exp(scores - scores.max(axis, keepdims=True, initial=-np.inf))
    return weights / weights.sum(axis, keepdims=True)


masked_softmax = op(
    "_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor",
    cpu=_masked_softmax,
    shape=lambda self: self.shape,
    refuses=("masked_softmax", "bic"),
    grad={"self": lambda grad, result, mask, dim: masked_softmax_backward(grad, result, mask, dim)},
    variants="function",
)


def _masked_softmax_backward(grad_output: Array, output: Array, mask: Array, dim: int | None) -> Array:
    axis = -1 if dim is None else dim
    if mask.shape != grad_output.shape:
        raise RuntimeError("Mask shape should match grad shape")
    kept = np.where(mask, 0, output).astype(output.dtype)
    return (grad_output - (grad_output * kept).sum(axis, keepdims=True)) * kept


masked_softmax_backward = op(
    "_masked_softmax_backward(Tensor grad_output, Tensor output, Tensor mask, int? dim=None) -> Tensor",
    cpu=_masked_softmax_backward,
    shape=lambda output: output.shape,
    rows=True,
    variants="function",
)


def _addmm_activation(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Number, alpha: Number, use_gelu: bool) -> Tensor:
    out = computed(products.addmm, self, mat1, mat2, beta, alpha)
    return aten.gelu_(out) if use_gelu else aten.relu_(out)


addmm_activation = op(
    "_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False) -> Tensor",
    over_tensors=_addmm_activation,
    shape=lambda mat1, mat2: (mat1.shape[0], mat2.shape[1]),
    variants="function",
)


# --- attention ----------------------------------------------------------------------------------------------------------


def _check_attention(
    query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_head: int, qkv_weight: Tensor, qkv_bias: Tensor
) -> None:
    for name, t in (("query", query), ("key", key), ("value", value)):
        if t.dim() != 3:
            raise RuntimeError(f"expected 3-D `{name}`, got {t.dim()}-D tensor")
        if name == "query" and t.shape[2] != embed_dim:
            raise RuntimeError(f"passed-in embed_dim {embed_dim} didn't match last dim of query {t.shape[2]}")
    if not query.shape == key.shape == value.shape:
        raise RuntimeError("expected `query`/`key`/`value` shapes to match")
    if qkv_weight.dim() != 2:
        raise RuntimeError(f"expected 2-D `qkv_weight`, got {qkv_weight.dim()}-D tensor")
    if qkv_weight.shape[0] != 3 * embed_dim:
        raise RuntimeError("expected `qkv_weight` first dim to be 3x embed_dim")
    if qkv_weight.shape[1] != embed_dim:
        raise RuntimeError("expected `qkv_weight` second dim to be embed_Dim")
    if qkv_bias.dim() != 1:
        raise RuntimeError(f"expected 1-D `qkv_bias`, got {qkv_bias.dim()}-D tensor")
    if qkv_bias.shape[0] != 3 * embed_dim:
        raise RuntimeError("expected `qkv_bias` first dim and first dim of query to be equal")
    if embed_dim % num_head:
        raise RuntimeError("`embed_dim` must divide evenly by `num_heads`")


def _packed_product(query: Tensor, key: Tensor, value: Tensor, embed_dim: int, qkv_weight: Tensor) -> Tensor:
    """Queries, keys and values side by side, from one product where the inputs are the same tensor."""
    batch, length, _ = query.shape

    def product(x: Tensor, weight: Tensor) -> Tensor:
        out = aten.mm(x.reshape(-1, embed_dim), weight.t())
        return aten._unsafe_view(out, (batch, length, weight.shape[0]))

    if key is value and query is key:
        return product(query, qkv_weight)
    q_weight, k_weight, v_weight = qkv_weight.chunk(3)
    return aten.cat([product(query, q_weight), product(key, k_weight), product(value, v_weight)], 2)


def _native_attention(
    query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_head: int, qkv_weight: Tensor, qkv_bias: Tensor,
    proj_weight: Tensor, proj_bias: Tensor, mask: Tensor | None, need_weights: bool, average_attn_weights: bool,
    mask_type: int | None,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    _check_attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias)
    batch, length, _ = query.shape
    qkv = _packed_product(query, key, value, embed_dim, qkv_weight)
    if not qkv.numel():
        return aten.empty_like(query), None
    q, k, v = transform_bias_rescale_qkv(qkv, qkv_bias, num_head)
    heads, size = batch * num_head, embed_dim // num_head
    scores = aten.bmm(q.view(heads, length, size), k.view(heads, length, size).transpose(1, 2)).view(
        batch, num_head, length, length
    )
    if mask is None:
        weights = aten._softmax(scores, -1, False)
    else:
        weights = masked_softmax(scores, mask.to(_dtype.bool_), 3, mask_type)
    context = aten.bmm(weights.view(heads, length, length), v.view(heads, length, size)).view(batch, num_head, length, size)
    flat = context.permute(0, 2, 1, 3).contiguous().view(batch, length, embed_dim).view(batch * length, embed_dim)
    out = aten.addmm(proj_bias, flat, proj_weight.t()).view(batch, length, proj_weight.shape[0])
    if not need_weights:
        return out, None
    return out, weights.sum(1).div_(num_head) if average_attn_weights else weights


native_multi_head_attention = op(
    "_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor qkv_weight, "
    "Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool need_weights=True, "
    "bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)",
    over_tensors=_native_attention,
    variants="function",
)


# --- an encoder layer -----------------------------------------------------------------------------------------------------


def _layer(
    src: Tensor, embed_dim: int, num_heads: int, qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor, proj_bias: Tensor,
    use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Tensor, norm_bias_1: Tensor, norm_weight_2: Tensor,
    norm_bias_2: Tensor, ffn_weight_1: Tensor, ffn_bias_1: Tensor, ffn_weight_2: Tensor, ffn_bias_2: Tensor,
    mask: Tensor | None, mask_type: int | None,
) -> Tensor:  # fmt: skip
    if not src.numel():
        return src.clone()

    def normalized(t: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return aten.layer_norm(t, (embed_dim,), weight, bias, eps)

    x = normalized(src, norm_weight_1, norm_bias_1) if norm_first else src
    x = native_multi_head_attention(
        x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, mask_type
    )[0].add_(src)
    if not norm_first:
        x = normalized(x, norm_weight_1, norm_bias_1)
    attended = x
    if norm_first:
        x = normalized(x, norm_weight_2, norm_bias_2)
    rows = addmm_activation(ffn_bias_1, x.view(-1, embed_dim), ffn_weight_1.t(), use_gelu=use_gelu)
    rows = aten.addmm(ffn_bias_2, rows, ffn_weight_2.t())
    x = rows.view(src.shape).add_(attended)
    return x if norm_first else normalized(x, norm_weight_2, norm_bias_2)


transformer_encoder_layer_fwd = op(
    "_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor qkv_bias, "
    "Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, Tensor norm_bias_1, "
    "Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, "
    "Tensor? mask=None, int? mask_type=None) -> Tensor",
    over_tensors=_layer,
    shape=lambda src: src.shape,
    variants="function",
)
