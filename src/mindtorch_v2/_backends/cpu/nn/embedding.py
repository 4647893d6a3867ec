"""Kernels of embeddings: rows of a table picked, summed by bag, and gradients added back to the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._dtype import FROM_NUMPY
from ...._scipy import sparsetools
from ..machinery.dtype_rules import refuse
from ..machinery.dtypes import scalar_name
from ..machinery.half_precision import widened

Array = np.ndarray[Any, Any]

SUM_MODE, MEAN_MODE, MAX_MODE = 0, 1, 2


def add_rows(rows: Array, index: Array, count: int, scale: Array | None = None) -> Array:
    """A table of `count` rows in which row `index[j]` gathers `rows[j] * scale[j]`.

    A product with a sparse selection matrix: one compiled pass without sorting, where `np.add.at` takes 5 to 20 times as long.
    """
    n = len(index)
    data = np.ones(n, rows.dtype) if scale is None else scale.astype(rows.dtype, copy=False)
    out = np.zeros((count, rows.shape[1]), rows.dtype)
    # without the object of a sparse matrix, which takes 60 µs to make
    sparsetools.csc_matvecs(
        count, n, rows.shape[1], np.arange(n + 1), index.astype(np.int64, copy=False), data, np.ascontiguousarray(rows).reshape(-1), out.reshape(-1)
    )  # fmt: skip
    return out


@widened
def embedding_dense_backward(
    grad_output: Array, indices: Array, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Array:
    index = indices.reshape(-1)
    rows = grad_output.reshape(index.size, grad_output.shape[-1])
    if padding_idx >= 0:
        kept = index != padding_idx
        if not kept.all():
            index, rows = index[kept], rows[kept]
    scale = None
    if scale_grad_by_freq:
        scale = 1 / np.bincount(index, minlength=num_weights)[index]
    return add_rows(rows, index, num_weights, scale)


def embedding_renorm_(self: Array, indices: Array, max_norm: float, norm_type: float) -> None:
    """Shrink the rows that are used and longer than `max_norm` to that length."""
    refuse("norm(): input dtype should be either floating point or complex. Got {} instead.", self, "bi")
    if self.ndim != 2:
        raise RuntimeError(f"Expected 2-dimensional tensor, but got {self.ndim}-dimensional tensor for argument #1 'self'")
    if indices.dtype not in (np.int64, np.int32):
        raise RuntimeError(
            "Expected tensor for argument #2 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{scalar_name(indices)}Tensor instead (while checking arguments for embedding_renorm_)"
        )
    used = np.unique(indices)
    if used.size and not (used[0] >= -len(self) and used[-1] < len(self)):
        beyond = int(used[-1] if used[-1] >= len(self) else used[0])
        raise IndexError(f"select(): index {beyond} out of range for tensor of size {list(self.shape)} at dimension 0")
    rows = self[used]
    wide = rows.astype(np.float32) if rows.dtype.itemsize == 2 else rows
    lengths = np.linalg.norm(wide, norm_type, 1)
    long = lengths > max_norm
    factors = max_norm / (lengths[long] + 1e-7)
    self[used[long]] = wide[long] * factors[:, None]


def _check_weight(weight: Array, mode: int, per_sample_weights: Array | None) -> None:
    if weight.ndim != 2:
        raise RuntimeError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    found = FROM_NUMPY[weight.dtype]
    if not found.is_floating_point:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, Float, Double; "
            f"but got torch.{found.scalar_name}Tensor instead (while checking arguments for embedding_bag)"
        )
    if mode not in (0, 1, 2):
        raise RuntimeError("`mode` must be sum, mean, or max.")
    if per_sample_weights is not None and per_sample_weights.dtype != weight.dtype:
        raise RuntimeError("Expected tensor for argument #1 'weight' to have the same type as tensor for 'per_sample_weights'")


def _of_one_dtype(indices: Array, offsets: Array) -> tuple[Array, Array]:
    if indices.dtype == offsets.dtype:
        return indices, offsets
    common = np.result_type(indices, offsets)
    return indices.astype(common), offsets.astype(common)


def check_bags(weight: Array, indices: Array, offsets: Array, include_last_offset: bool, is_plain: bool) -> None:
    """Raise for bags that are none. `is_plain`: sums or means without padding, whose error torch words differently."""
    if offsets.ndim != 1:
        raise RuntimeError(f"offsets has to be a 1D Tensor, but got Tensor of dimension {offsets.ndim}")
    for number, (name, a) in enumerate((("indices", indices), ("offsets", offsets)), 1):
        if a.dtype not in (np.int64, np.int32):
            found = scalar_name(a)
            raise RuntimeError(
                f"Expected tensor for argument #{number} '{name}' to have one of the following scalar types: Long, Int; but got "
                f"torch.{found}Tensor instead (while checking arguments for embedding_bag)"
            )
    if offsets.size:
        if offsets[0] != 0:
            raise RuntimeError(
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got "
                f"{int(offsets[0])}"
            )
        length = len(indices) if indices.ndim else 1
        if offsets[-1] > length:
            raise RuntimeError(
                f"offsets[-1] can not be greater than input's length {length} but got offsets[-1] of {int(offsets[-1])}"
            )
        if (np.diff(offsets) < 0).any():
            raise RuntimeError(f"offsets must not decrease: bags follow one another, but got {offsets.tolist()}")
        if indices.ndim != 1:
            raise RuntimeError(f"input has to be a 1D or 2D Tensor, but got Tensor of dimension {indices.ndim}")
    elif include_last_offset:
        raise RuntimeError("include_last_offset: number of offsets should be at least 1")
    bad = (indices < 0) | (indices >= weight.shape[0])
    if bad.any():
        at = int(np.argmax(bad))
        if not is_plain:
            raise RuntimeError(f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {int(indices[at])}")
        raise RuntimeError(
            f"Index {at} of input takes value {int(indices[at])} which is not in the valid range [0, {weight.shape[0]})"
        )


def _bags(indices: Array, offsets: Array, include_last_offset: bool) -> tuple[Array, Array]:
    """Return the start of each bag, and the bag that each index belongs to."""
    if not offsets.size:
        return offsets, np.full(indices.size, -1, indices.dtype)  # torch: in no bag
    starts = offsets[:-1] if include_last_offset else offsets
    ends = np.append(starts[1:], indices.size)
    return starts, np.repeat(np.arange(len(starts), dtype=indices.dtype), ends - starts)


def embedding_bag(
    weight: Array,
    indices: Array,
    offsets: Array,
    mode: int,
    per_sample_weights: Array | None,
    include_last_offset: bool,
    padding_idx: int,
) -> tuple[Array, Array, Array, Array]:
    """The bags' sums, means or maxima; the bag of each index; the sizes of the bags; the rows of the maxima."""
    _check_weight(weight, mode, per_sample_weights)
    indices, offsets = _of_one_dtype(indices, offsets)
    check_bags(weight, indices, offsets, include_last_offset, is_plain=mode != MAX_MODE and padding_idx < 0)
    if per_sample_weights is not None and per_sample_weights.shape != indices.shape:
        raise RuntimeError(
            f"Expected per_sample_weights of shape {list(indices.shape)}, as the indices, but got {list(per_sample_weights.shape)}"
        )
    starts, bag_of = _bags(indices, offsets, include_last_offset)
    bags = len(starts)
    kept = indices != padding_idx if padding_idx >= 0 else np.ones(indices.size, bool)
    if not bags:
        kept[:] = False
    sizes = np.bincount(bag_of[kept], minlength=bags).astype(indices.dtype)
    index, bag = indices[kept], bag_of[kept]
    if mode == MAX_MODE:
        out, rows = _bag_max(weight, index, bag, bags, sizes)
        return out, bag_of, sizes, rows
    scale = None if per_sample_weights is None else per_sample_weights[kept]
    wide = weight.astype(np.float32) if weight.dtype.itemsize == 2 else weight
    data = np.ones(index.size, wide.dtype) if scale is None else scale.astype(wide.dtype)
    bounds = np.concatenate(([0], np.cumsum(sizes)))
    out = np.zeros((bags, weight.shape[1]), wide.dtype)
    sparsetools.csr_matvecs(
        bags, weight.shape[0], weight.shape[1], bounds, index.astype(np.int64, copy=False), data, np.ascontiguousarray(wide).reshape(-1), out.reshape(-1)
    )  # fmt: skip
    if mode == MEAN_MODE:
        out /= np.maximum(sizes, 1)[:, None]
    return out.astype(weight.dtype, copy=False), bag_of, sizes, sizes.copy()


def _bag_max(weight: Array, index: Array, bag: Array, bags: int, sizes: Array) -> tuple[Array, Array]:
    width = weight.shape[1]
    out = np.zeros((bags, width), weight.dtype)
    rows = np.zeros((bags, width), index.dtype)
    filled = sizes > 0
    if not index.size:
        return out, rows
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))[filled]
    picked = weight[index]
    out[filled] = np.maximum.reduceat(picked, starts, axis=0)
    # the first position in each bag that holds the maximum
    position = np.where(picked == out[bag], np.arange(index.size)[:, None], index.size)
    first = np.minimum.reduceat(position, starts, axis=0)
    rows[filled] = index[np.minimum(first, index.size - 1)]
    return out, rows


@widened
def embedding_bag_dense_backward(
    grad: Array,
    indices: Array,
    offset2bag: Array,
    bag_size: Array,
    maximum_indices: Array,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: Array | None,
    padding_idx: int,
) -> Array:
    if mode == MAX_MODE:
        out = np.zeros((num_weights, grad.shape[1]), grad.dtype)
        filled = bag_size > 0
        columns = np.broadcast_to(np.arange(grad.shape[1]), grad.shape)
        np.add.at(out, (maximum_indices[filled], columns[filled]), grad[filled])
        return out
    index, bag, scale = indices, offset2bag, per_sample_weights
    if padding_idx >= 0:
        kept = indices != padding_idx
        index, bag = index[kept], bag[kept]
        scale = None if scale is None else scale[kept]
    factor = np.ones(index.size, grad.dtype) if scale is None else scale.astype(grad.dtype)
    if mode == MEAN_MODE:
        factor = factor / bag_size[bag]
    if scale_grad_by_freq:
        factor = factor / np.bincount(index, minlength=num_weights)[index]
    return add_rows(grad[bag], index, num_weights, factor)


@widened
def embedding_bag_per_sample_weights_backward(
    grad: Array, weight: Array, indices: Array, offset2bag: Array, padding_idx: int
) -> Array:
    out = np.einsum("ij,ij->i", grad[offset2bag], weight[indices])
    if padding_idx >= 0:
        out[indices == padding_idx] = 0
    return out
