"""Embeddings: rows of a table by index, and bags of them."""

from __future__ import annotations

from ..._backends.cpu.nn import embedding as kernels
from ..._dispatch import keys
from ..._tensor import Tensor
from ..machinery.declare import not_implemented, op
from ..machinery.lookup import aten


def _embedding(weight: Tensor, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool, sparse: bool) -> Tensor:
    if weight.dim() != 2:
        raise RuntimeError("'weight' must be 2-D")
    if indices.dtype.scalar_name not in ("Long", "Int"):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{indices.dtype.scalar_name}Tensor instead (while checking arguments for embedding)"
        )
    if indices.dim() == 1:
        return weight.index_select(0, indices)
    return weight.index_select(0, indices.reshape(-1)).view([*indices.shape, weight.shape[1]])


embedding = op(
    "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
    composite=_embedding,
    grad={
        "weight": lambda grad, weight_shape, indices, padding_idx, scale_grad_by_freq, sparse: embedding_backward(
            grad, indices, weight_shape[0], padding_idx, scale_grad_by_freq, sparse
        )
    },
    variants="function",
)


def _embedding_backward(
    grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> Tensor:
    if sparse:
        return embedding_sparse_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)
    return embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)


embedding_backward = op(
    "embedding_backward(Tensor grad, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq, bool sparse) -> Tensor",
    composite=_embedding_backward,
    variants="",
)


def _embedding_sparse_backward(
    grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    """The gradient as a sparse tensor of the rows that were used, with a row for each use."""
    if scale_grad_by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    rows, width = indices.reshape(-1), grad.shape[-1]
    values = grad.reshape(rows.shape[0], width)
    if padding_idx != -1:
        used = (rows != padding_idx).nonzero().view(-1)
        rows, values = rows.index_select(0, used), values.index_select(0, used)
    return aten.sparse_coo_tensor(rows.reshape(1, -1), values, [num_weights, width])


embedding_sparse_backward = op(
    "embedding_sparse_backward(Tensor grad, Tensor indices, int num_weights, int padding_idx, bool scale_grad_by_freq) -> Tensor",
    composite=_embedding_sparse_backward,
    variants="",
)


def _embedding_double_backward(grad: Tensor, indices: Tensor, padding_idx: int) -> Tensor:
    out = grad.index_select(0, indices.reshape(-1))
    if padding_idx >= 0:
        out = out.masked_fill((indices.reshape(-1, 1) == padding_idx).expand(out.shape), 0)
    return out.view([*indices.shape, grad.shape[1]])


embedding_dense_backward = op(
    "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq) -> Tensor",
    cpu=kernels.embedding_dense_backward,
    shape=lambda grad_output, num_weights: (num_weights, grad_output.shape[-1]),
    grad={"grad_output": lambda grad, indices, padding_idx: _embedding_double_backward(grad, indices, padding_idx)},
    variants="",
)
embedding_renorm_ = op(
    "embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!)",
    cpu=kernels.embedding_renorm_,
    variants="function",
    grad={"self": not_implemented("embedding_renorm")},
)

# --- bags -----------------------------------------------------------------------------------------------------------


def _embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    if weight.ndim != 2:
        raise RuntimeError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    if padding_idx is None:
        padding_idx = -1
    elif padding_idx < 0:
        if padding_idx < -weight.shape[0]:
            raise RuntimeError(
                f"padding_idx must be within the number of embeddings, -{weight.shape[0]} through {weight.shape[0] - 1}, but got {padding_idx}"
            )
        padding_idx += weight.shape[0]
    elif padding_idx >= weight.shape[0]:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, -{weight.shape[0]} through {weight.shape[0] - 1}, but got {padding_idx}"
        )
    wanted = any(t is not None and t._keys & keys.TRACKED for t in (weight, per_sample_weights))
    return (_embedding_bag_op if wanted else _embedding_bag_forward_only)(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
    )


embedding_bag = op(
    "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, "
    "Tensor? per_sample_weights=None, bool include_last_offset=False) -> (Tensor, Tensor, Tensor, Tensor)",
    composite=_embedding_bag,
    variants="function",
)
embedding_bag_padding_idx = op(
    "embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool sparse, "
    "Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)",
    composite=_embedding_bag,
    variants="function",
)
_embedding_bag_forward_only = op(
    "_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, "
    "bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) "
    "-> (Tensor, Tensor, Tensor, Tensor)",
    cpu=kernels.embedding_bag,
    tags=("nondifferentiable",),
    variants="function",
)
_embedding_bag_op = op(
    "_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, "
    "Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
    cpu=kernels.embedding_bag,
    grad={
        "weight": lambda grad, weight_shape, indices, offsets, result1, result2, result3, scale_grad_by_freq, mode, sparse, per_sample_weights, padding_idx: (
            _embedding_bag_backward(
                grad, indices, offsets, result1, result2, result3, weight_shape[0], scale_grad_by_freq, mode, sparse,
                per_sample_weights, padding_idx,
            )
        ),
        "per_sample_weights": lambda grad, weight, indices, offsets, result1, mode, padding_idx: (
            _embedding_bag_per_sample_weights_backward(grad, weight, indices, offsets, result1, mode, padding_idx)
        ),
    },
    node="EmbeddingBagBackward0",
    nondifferentiable=("result1", "result2", "result3"),
    variants="function",
)  # fmt: skip


def _bag_sparse_backward(
    grad: Tensor,
    indices: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: Tensor | None,
    padding_idx: int,
) -> Tensor:
    rows = grad.index_select(0, offset2bag)
    if mode == kernels.MEAN_MODE:
        rows = rows / bag_size.index_select(0, offset2bag).to(grad.dtype).unsqueeze(1)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    return embedding_backward(rows, indices, num_weights, padding_idx, scale_grad_by_freq, True)


def _bag_backward(
    grad: Tensor,
    indices: Tensor,
    offsets: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    maximum_indices: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    padding_idx: int,
) -> Tensor:
    if sparse:
        return _bag_sparse_backward(
            grad, indices, offset2bag, bag_size, num_weights, scale_grad_by_freq, mode, per_sample_weights, padding_idx
        )
    return _embedding_bag_dense_backward(
        grad, indices, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode, per_sample_weights, padding_idx
    )


_embedding_bag_backward = op(
    "_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, "
    "Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, "
    "int padding_idx=-1) -> Tensor",
    composite=_bag_backward,
    variants="",
    grad=dict.fromkeys(("grad", "per_sample_weights"), not_implemented("_embedding_bag_backward")),
)
_embedding_bag_dense_backward = op(
    "_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, Tensor maximum_indices, "
    "SymInt num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
    cpu=kernels.embedding_bag_dense_backward,
    grad=dict.fromkeys(("grad", "per_sample_weights"), not_implemented("_embedding_bag_dense_backward")),
    variants="",
)
_embedding_bag_per_sample_weights_backward = op(
    "_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, Tensor offset2bag, "
    "int mode, int padding_idx=-1) -> Tensor",
    cpu=kernels.embedding_bag_per_sample_weights_backward,
    variants="",
)
