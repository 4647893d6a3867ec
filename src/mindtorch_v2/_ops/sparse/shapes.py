"""Sparse tensors in another order or of another shape, parts of them, and several as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ..._dispatch import keys
from ..._memory_format import sparse_bsc, sparse_bsr, sparse_csc, sparse_csr
from ..._tensor import Tensor, set_array, wrap
from ..indexing import index as _index  # noqa: F401 - declared first
from ..machinery.declare import op
from . import compressed
from .compressed import as_coo, compressed_tensor, in_layout_of
from .construction import check_dims, empty_coo
from .storage import Array, coalesced, from_arrays, kernel, parts, replace, sparse_tensor, storage_of

__all__: list[str] = []

TURNED = {sparse_csr: sparse_csc, sparse_csc: sparse_csr, sparse_bsr: sparse_bsc, sparse_bsc: sparse_bsr}


def _wrap_dim(dim: int, ndim: int) -> int:
    if not -ndim <= dim < max(ndim, 1):
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    return dim % max(ndim, 1)


# --- order ------------------------------------------------------------------------------------------------------------


def _permute(self: Tensor, dims: Sequence[int]) -> Tensor:
    ndim = self._array.ndim
    order = [_wrap_dim(d, ndim) for d in dims]
    if len(order) != ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of "
            f"dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(order)}"
        )
    if sorted(order) != list(range(ndim)):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    indices, values = parts(self)
    sparse_dim = indices.shape[0]
    if sorted(order[:sparse_dim]) != list(range(sparse_dim)):
        raise RuntimeError("permute(sparse_coo): sparse dimensions and dense dimensions cannot be exchanged; use to_dense()")
    turned = values.transpose(0, *(d - sparse_dim + 1 for d in order[sparse_dim:]))
    same = order[:sparse_dim] == list(range(sparse_dim))
    size = [self._array.shape[d] for d in order]
    return from_arrays(indices[order[:sparse_dim]], turned, self, size, coalesced=same and storage_of(self).coalesced)


@kernel("transpose", "int")
def _transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    ndim = self._array.ndim
    order = list(range(ndim))
    dim0, dim1 = _wrap_dim(dim0, ndim), _wrap_dim(dim1, ndim)
    if ndim:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return _permute(self, order)


@kernel("transpose", "int", key=keys.SPARSE_COMPRESSED)
def _transpose_compressed(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Rows become columns: the same parts, read the other way."""
    storage, ndim = compressed.storage_of(self), self._array.ndim
    pair = {_wrap_dim(dim0, ndim), _wrap_dim(dim1, ndim)}
    if len(pair) == 1:
        return compressed_tensor(storage.layout, storage.compressed, storage.plain, storage.values, self._array.shape)
    first = storage.batch_dim
    if pair != {first, first + 1}:
        raise RuntimeError(
            f"transpose(): for a tensor of layout {storage.layout}, the two dimensions of the matrices can be exchanged, not {sorted(pair)}"
        )
    size = list(self._array.shape)
    size[first], size[first + 1] = size[first + 1], size[first]
    values = storage.values
    if storage.layout in compressed.BLOCKS:
        values = values.transpose(first + 1, first + 2)
    return compressed_tensor(TURNED[storage.layout], storage.compressed, storage.plain, values, size)


kernel("t")(lambda self: _transpose(self, 0, 1) if self._array.ndim == 2 else _t_of(self))
kernel("t", key=keys.SPARSE_COMPRESSED)(lambda self: _transpose_compressed(self, 0, 1))
kernel("permute")(_permute)


def _t_of(self: Tensor) -> Tensor:
    if self._array.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {self.sparse_dim()} sparse and {self.dense_dim()} dense dimensions")  # fmt: skip
    return self


@kernel("transpose_")
def _transpose_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    return replace(self, _transpose(self, dim0, dim1))


kernel("t_")(lambda self: replace(self, _transpose(self, 0, 1)))

# --- shape ------------------------------------------------------------------------------------------------------------


@kernel("unsqueeze")
def _unsqueeze(self: Tensor, dim: int) -> Tensor:
    ndim = self._array.ndim
    if not -ndim - 1 <= dim <= ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim - 1}, {ndim}], but got {dim})")
    dim %= ndim + 1
    indices, values = parts(self)
    size = [*self._array.shape[:dim], 1, *self._array.shape[dim:]]
    if dim <= indices.shape[0]:
        indices = np.insert(indices, dim, 0, axis=0)
    else:
        values = np.expand_dims(values, dim - indices.shape[0] + 1)
    return from_arrays(indices, values, self, size, coalesced=storage_of(self).coalesced)


def _squeezed(self: Tensor, dims: Sequence[int]) -> Tensor:
    size = self._array.shape
    gone = {d for d in (_wrap_dim(d, len(size)) for d in dims) if size and size[d] == 1}
    indices, values = parts(self)
    sparse_dim = indices.shape[0]
    kept = [d for d in range(sparse_dim) if d not in gone]
    dense = tuple(d - sparse_dim + 1 for d in gone if d >= sparse_dim)
    new = [n for d, n in enumerate(size) if d not in gone]
    return from_arrays(indices[kept], values.squeeze(dense), self, new, coalesced=storage_of(self).coalesced)


kernel("squeeze")(lambda self: _squeezed(self, range(self._array.ndim)))
kernel("squeeze", "dim")(lambda self, dim: _squeezed(self, [dim]))
kernel("squeeze", "dims")(_squeezed)


def _no_reshape(self: Tensor, *arguments: Any) -> NoReturn:
    raise RuntimeError("reshape is not implemented for sparse tensors")


for _key in (keys.SPARSE, keys.SPARSE_COMPRESSED):
    kernel("reshape", key=_key)(_no_reshape)

# --- parts ------------------------------------------------------------------------------------------------------------


def _select(self: Tensor, dim: int, index: int) -> Tensor:
    """One place along a dimension; an element by itself is dense."""
    size = self._array.shape
    if not size:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = _wrap_dim(dim, len(size))
    if not -size[dim] <= index < size[dim]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(size)} at dimension {dim}")
    index %= size[dim]
    indices, values = parts(self)
    sparse_dim = indices.shape[0]
    rest = [n for d, n in enumerate(size) if d != dim]
    if dim >= sparse_dim:
        return from_arrays(indices, values.take(index, dim - sparse_dim + 1), self, rest, coalesced=storage_of(self).coalesced)
    found = indices[dim] == index
    if sparse_dim == 1:
        return wrap(np.asarray(values[found].sum(axis=0, dtype=values.dtype)), self.dtype)
    kept = np.delete(indices[:, found], dim, axis=0)
    return from_arrays(kept, values[found], self, rest, coalesced=storage_of(self).coalesced)


def _select_compressed(self: Tensor, dim: int, index: int) -> Tensor:
    """A matrix of a batch, or a line of a matrix in coordinate form."""
    storage, size = compressed.storage_of(self), self._array.shape
    dim = _wrap_dim(dim, len(size))
    if not -size[dim] <= index < size[dim]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(size)} at dimension {dim}")
    index %= size[dim]
    if dim < storage.batch_dim:
        return compressed_tensor(
            storage.layout,
            storage.compressed.select(dim, index),
            storage.plain.select(dim, index),
            storage.values.select(dim, index),
            [n for d, n in enumerate(size) if d != dim],
        )
    if storage.batch_dim:
        raise RuntimeError("select(): selecting rows or columns is not implemented for batched sparse compressed tensors.")
    return _select(as_coo(self), dim, index)


def _index_select(self: Tensor, dim: int, index: Tensor) -> Tensor:
    dim = _wrap_dim(dim, self._array.ndim)
    wanted = index._array
    if wanted.ndim != 1 or index.dtype.name not in ("int64", "int32"):
        raise RuntimeError(f"index_select() argument index must be 1-D long-tensor, but got {wanted.ndim}D of {index.dtype}")
    extent = self._array.shape[dim]
    if wanted.size and (wanted.min() < -extent or wanted.max() >= extent):
        raise IndexError(f"index_select(): index contains {int(wanted.max())} that is out of range for tensor of size {list(self._array.shape)} at dimension {dim}")  # fmt: skip
    wanted = np.where(wanted < 0, wanted + extent, wanted)
    indices, values = parts(self)
    size = [*self._array.shape]
    size[dim] = wanted.size
    if dim >= indices.shape[0]:
        return from_arrays(
            indices, values.take(wanted, dim - indices.shape[0] + 1), self, size, coalesced=storage_of(self).coalesced
        )
    picked, new = _matches(indices[dim], wanted)
    rows = indices[:, picked]
    rows[dim] = new
    return from_arrays(rows, values[picked], self, size)


def _matches(have: Array, wanted: Array) -> tuple[Array, Array]:
    """The pairs of places in `have` and `wanted` at which the same number stands, those of `wanted` in order."""
    order = np.argsort(have, kind="stable")
    ordered = have[order]
    first, last = np.searchsorted(ordered, wanted, "left"), np.searchsorted(ordered, wanted, "right")
    counts = last - first
    new = np.repeat(np.arange(wanted.size), counts)
    offsets = np.arange(new.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return order[np.repeat(first, counts) + offsets], new


def _narrow(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    dim = _wrap_dim(dim, self._array.ndim)
    extent = self._array.shape[dim]
    start = start + extent if start < 0 else start
    if length < 0 or start + length > extent:
        raise RuntimeError(f"Invalid range to narrow. range(start, start+length) must be a subset of range(0, {extent}).")
    indices, values = parts(self)
    size = [*self._array.shape]
    size[dim] = length
    if dim >= indices.shape[0]:
        span = range(start, start + length)
        return from_arrays(indices, values.take(span, dim - indices.shape[0] + 1), self, size, coalesced=storage_of(self).coalesced)
    found = (indices[dim] >= start) & (indices[dim] < start + length)
    rows = indices[:, found]
    rows[dim] -= start
    return from_arrays(rows, values[found], self, size, coalesced=storage_of(self).coalesced)


kernel("select", "int")(_select)
kernel("select", "int", key=keys.SPARSE_COMPRESSED)(_select_compressed)
kernel("narrow_copy")(_narrow)
for _key in (keys.CPU | keys.SPARSE, keys.SPARSE):
    kernel("index_select", key=_key)(_index_select)

# --- several as one ---------------------------------------------------------------------------------------------------


def _cat(tensors: Sequence[Tensor], dim: int) -> Tensor:
    """Sparse tensors one after the other along a dimension."""
    if not all(t._keys & keys.SPARSE_LAYOUTS for t in tensors):
        raise RuntimeError("cat: sparse and dense tensors are not joined; use to_dense() or to_sparse()")
    sources = [as_coo(t) for t in tensors]
    first = sources[0]
    dim, sparse_dim = _wrap_dim(dim, first._array.ndim), first.sparse_dim()
    for i, t in enumerate(sources):
        others = [n for d, n in enumerate(t._array.shape) if d != dim]
        if t.sparse_dim() != sparse_dim or others != [n for d, n in enumerate(first._array.shape) if d != dim]:
            raise RuntimeError(
                f"All tensors must have the same shape: {list(first._array.shape)} (except in the concatenating dimension), but got "
                f"shape: {list(t._array.shape)} at position {i}, with as many sparse dimensions"
            )
    offsets = np.cumsum([0, *(t._array.shape[dim] for t in sources)])
    size = [*first._array.shape]
    size[dim] = int(offsets[-1])
    rows, values = [], []
    for offset, t in zip(offsets, sources):
        indices, own = parts(t)
        indices = indices.copy()
        if dim < sparse_dim:
            indices[dim] += offset
        else:
            widths = [(0, 0)] * own.ndim
            widths[dim - sparse_dim + 1] = (int(offset), int(size[dim] - offset - t._array.shape[dim]))
            own = np.pad(own, widths)
        rows.append(indices)
        values.append(own)
    made = sparse_tensor(wrap(np.concatenate(rows, 1)), wrap(np.concatenate(values)), size)
    return made if first is tensors[0] else in_layout_of(coalesced(made), tensors[0])


for _key in (keys.SPARSE, keys.SPARSE_COMPRESSED, keys.CPU | keys.SPARSE):
    kernel("cat", key=_key)(_cat)
kernel("stack")(lambda tensors, dim: _cat([_unsqueeze(t, dim) for t in tensors], dim))

# --- another size -----------------------------------------------------------------------------------------------------


def _resize(self: Tensor, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Tensor:
    check_dims(size, sparse_dim, dense_dim)
    indices, values = parts(self)
    if indices.shape[1] == 0:
        return replace(self, empty_coo(size, self.dtype, dense_dim))
    if sparse_dim != indices.shape[0]:
        raise RuntimeError(f"changing the number of sparse dimensions (from {indices.shape[0]} to {sparse_dim}) on a non-empty sparse tensor is not supported.")  # fmt: skip
    if dense_dim != values.ndim - 1:
        raise RuntimeError(f"changing the number of dense dimensions (from {values.ndim - 1} to {dense_dim}) on a non-empty sparse tensor is not supported.")  # fmt: skip
    for kind, dims in (("sparse", slice(sparse_dim)), ("dense", slice(sparse_dim, None))):
        old, new = list(self._array.shape[dims]), list(size[dims])
        if any(n < o for n, o in zip(new, old)):
            raise RuntimeError(f"shrinking the size of {kind} dimensions (from {old} to {new}) on a non-empty sparse tensor is not supported.")  # fmt: skip
    grown = np.pad(values, [(0, 0), *((0, n - o) for n, o in zip(size[sparse_dim:], values.shape[1:]))])
    return replace(self, from_arrays(indices, grown, self, size, coalesced=storage_of(self).coalesced))


def _resize_as(self: Tensor, the_template: Tensor) -> Tensor:
    if self._keys & the_template._keys & keys.SPARSE_COMPRESSED:  # torch: takes the places of the template, with values of its own
        wanted, own = compressed.storage_of(the_template), compressed.storage_of(self)
        own.compressed, own.plain, own.layout = wanted.compressed.clone(), wanted.plain.clone(), wanted.layout
        own.values = wrap(np.zeros(wanted.values._array.shape, self.dtype.np), self.dtype)
        own.array = own.values._array
        own.version += 1
        set_array(self, np.broadcast_to(np.zeros((), self.dtype.np), the_template._array.shape))
        return self
    return _resize(self, the_template._array.shape, the_template.sparse_dim(), the_template.dense_dim())


op(
    "sparse_resize_(Tensor(a!) self, int[] size, int sparse_dim, int dense_dim) -> Tensor(a!)",
    composite=_resize,
    variants="method",
    tags=("no_derivative",),
)


def _resize_and_clear(self: Tensor, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Tensor:
    check_dims(size, sparse_dim, dense_dim)
    return replace(self, empty_coo(size, self.dtype, dense_dim))


op(
    "sparse_resize_and_clear_(Tensor(a!) self, int[] size, int sparse_dim, int dense_dim) -> Tensor(a!)",
    composite=_resize_and_clear,
    variants="method",
    tags=("no_derivative",),
)
op(
    "resize_as_sparse_(Tensor(a!) self, Tensor the_template) -> Tensor(a!)",
    composite=_resize_as,
    tags=("no_derivative",),
)
