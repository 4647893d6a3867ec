"""Compressed rows or columns: their parts, and the way between them, coordinates and dense arrays.

A matrix by rows (CSR) keeps for each row where its elements begin (`compressed`), for each element its column (`plain`), and the
values; by columns (CSC) it is the other way round. In blocks (BSR, BSC), each element is a small matrix. Dimensions before the two
of the matrix are batches with the same number of elements in each; those after it are dense.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._dispatch import keys
from ..._memory_format import layout as layout_type
from ..._memory_format import sparse_bsc, sparse_bsr, sparse_csc, sparse_csr
from ..._storage import UntypedStorage
from ..._tensor import Tensor, wrap
from .storage import Array, coalesced, flat_places, from_arrays, parts, placeholder, sparse_tensor

__all__ = [
    "BLOCKS", "BY_ROWS", "CompressedStorage", "as_coo", "compress", "compress_coordinates", "compressed_tensor", "dense_array",
    "in_layout_of", "values_of", "with_values",
]  # fmt: skip

BY_ROWS = (sparse_csr, sparse_bsr)
BLOCKS = (sparse_bsr, sparse_bsc)
COMPRESSED_LAYOUTS = (sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)


class CompressedStorage(UntypedStorage):
    """The parts of a tensor in compressed form."""

    __slots__ = ("compressed", "layout", "plain", "values")
    compressed: Tensor
    plain: Tensor
    values: Tensor
    layout: layout_type
    memory = property()  # is that of the values

    def parts(self) -> tuple[Any, ...]:
        """What a tensor of this layout is made of again."""
        return self.compressed, self.plain, self.values

    def alias(self, version: int = 0) -> CompressedStorage:
        new = CompressedStorage()
        new.array, new.version, new.layout = self.array, version, self.layout
        new.compressed, new.plain, new.values = self.compressed, self.plain, self.values
        return new

    @property
    def count(self) -> int:
        """How many elements (or blocks) each matrix has."""
        return self.plain._array.shape[-1]

    @property
    def batch_dim(self) -> int:
        return self.compressed._array.ndim - 1

    @property
    def blocksize(self) -> tuple[int, int]:
        if self.layout not in BLOCKS:
            return (1, 1)
        at = self.batch_dim + 1
        rows, columns = self.values._array.shape[at : at + 2]
        return rows, columns

    @property
    def dense_dim(self) -> int:
        return self.values._array.ndim - self.batch_dim - 1 - 2 * (self.layout in BLOCKS)


def storage_of(t: Tensor) -> CompressedStorage:
    storage = t._storage
    assert isinstance(storage, CompressedStorage)
    return storage


def values_of(t: Tensor) -> Tensor:
    return storage_of(t).values


def compressed_tensor(which: layout_type, compressed: Tensor, plain: Tensor, values: Tensor, size: Sequence[int]) -> Tensor:
    """A tensor over these parts, unchecked and outside of any graph."""
    storage = CompressedStorage()
    storage.layout = which
    storage.compressed, storage.plain, storage.values = compressed.detach(), plain.detach(), values.detach()
    return placeholder(values, size, storage, keys.SPARSE_COMPRESSED)


def from_parts(which: layout_type, pieces: tuple[Any, ...], size: Sequence[int]) -> Tensor:
    """A sparse tensor of any layout over the parts of another's storage."""
    if which in COMPRESSED_LAYOUTS:
        compressed, plain, elements = pieces
        return compressed_tensor(which, compressed, plain, elements, size)
    indices, values, is_coalesced = pieces
    return sparse_tensor(indices, values, size, coalesced=is_coalesced)


def with_values(self: Tensor, values: Tensor) -> Tensor:
    """Other values at the same places."""
    storage = storage_of(self)
    return compressed_tensor(storage.layout, storage.compressed, storage.plain, values, self._array.shape)


# --- dense ------------------------------------------------------------------------------------------------------------


def _as_blocks(array: Array, batch_dim: int, block: tuple[int, int], by_rows: bool) -> Array:
    """The blocks of each matrix: batch, row (or column) of blocks, column (or row), and then the block and its dense dimensions."""
    rows, columns = array.shape[batch_dim : batch_dim + 2]
    dense = array.shape[batch_dim + 2 :]
    shape = (int(np.prod(array.shape[:batch_dim])), rows // block[0], block[0], columns // block[1], block[1])
    blocks = array.reshape(*shape, *dense).swapaxes(2, 3)
    return blocks if by_rows else blocks.swapaxes(1, 2)


def compress(array: Array, like: Tensor, which: layout_type, blocksize: Sequence[int] | None, dense_dim: int) -> Tensor:
    """What is not zero of a dense array, in compressed form."""
    batch_dim = array.ndim - 2 - dense_dim
    block = (1, 1) if blocksize is None else (int(blocksize[0]), int(blocksize[1]))
    blocks = _as_blocks(array, batch_dim, block, which in BY_ROWS)
    mask = (blocks != 0).any(axis=tuple(range(3, blocks.ndim)))
    counts = mask.sum(axis=(1, 2))
    if counts.size and (counts != counts[0]).any():
        raise RuntimeError("Expect the same number of specified elements per batch.")
    batch, count = array.shape[:batch_dim], int(counts[0]) if counts.size else 0
    starts = np.zeros((mask.shape[0], mask.shape[1] + 1), np.int64)
    np.cumsum(mask.sum(axis=2), axis=1, out=starts[:, 1:])
    places = np.nonzero(mask)
    picked = blocks[places]
    if which not in BLOCKS:
        picked = picked[:, 0, 0]
    return compressed_tensor(
        which,
        wrap(starts.reshape(*batch, mask.shape[1] + 1)),
        wrap(np.ascontiguousarray(places[2]).reshape(*batch, count)),
        wrap(np.ascontiguousarray(picked).reshape(*batch, count, *picked.shape[1:]), like.dtype),
        array.shape,
    )


def dense_array(t: Tensor) -> Array:
    """All elements of a compressed tensor."""
    storage, shape = storage_of(t), t._array.shape
    by_rows, block, batch_dim = storage.layout in BY_ROWS, storage.blocksize, storage.batch_dim
    out = np.zeros(shape, t.dtype.np)
    blocks = _as_blocks(out, batch_dim, block, by_rows)
    owned = np.zeros(blocks.shape, out.dtype)
    starts, others, values = flat_parts(t)
    for n in range(starts.shape[0]):
        rows = np.repeat(np.arange(starts.shape[1] - 1), np.diff(starts[n]))
        owned[n, rows, others[n]] = values[n]
    if not by_rows:
        owned = owned.swapaxes(1, 2)
    return np.ascontiguousarray(owned.swapaxes(2, 3)).reshape(shape)


def flat_parts(t: Tensor) -> tuple[Array, Array, Array]:
    """The parts with one dimension for all batches, and values in blocks whatever the layout."""
    storage = storage_of(t)
    starts, others, values = storage.compressed._array, storage.plain._array, storage.values._array
    batch_dim = storage.batch_dim
    n = int(np.prod(starts.shape[:-1]))
    rest = values.shape[batch_dim + 1 :] if storage.layout in BLOCKS else (1, 1, *values.shape[batch_dim + 1 :])
    return starts.reshape(n, starts.shape[-1]), others.reshape(n, storage.count), values.reshape(n, storage.count, *rest)


# --- coordinates ------------------------------------------------------------------------------------------------------


def as_coo(t: Tensor) -> Tensor:
    """A sparse tensor of any layout in coordinate form, with a coordinate for each batch dimension."""
    if t._keys & keys.SPARSE:
        return t
    storage = storage_of(t)
    starts, others, values = flat_parts(t)
    block, batch = storage.blocksize, t._array.shape[: storage.batch_dim]
    rows = np.concatenate([np.repeat(np.arange(starts.shape[1] - 1), np.diff(s)) for s in starts] or [np.empty(0, np.int64)])
    columns = others.reshape(-1).astype(np.int64)
    if storage.layout not in BY_ROWS:
        rows, columns = columns, rows
    inner = np.indices(block).reshape(2, -1)
    rows = (rows[:, None] * block[0] + inner[0]).reshape(-1)
    columns = (columns[:, None] * block[1] + inner[1]).reshape(-1)
    each = np.repeat(np.arange(starts.shape[0]), storage.count * inner.shape[1])
    batches = np.stack(np.unravel_index(each, batch)) if batch else np.empty((0, each.size), np.int64)
    elements = values.reshape(rows.size, *values.shape[4:])
    made = from_arrays(np.concatenate([batches, [rows, columns]]), elements, t, t._array.shape)
    if storage.layout is sparse_csr:
        made._coalesced_(True)
    return coalesced(made)


def compress_coordinates(t: Tensor, which: layout_type, blocksize: Sequence[int] | None) -> Tensor:
    """A matrix in coordinate form, possibly of batches, in compressed form."""
    indices, values = parts(coalesced(t))
    size, batch_dim = t._array.shape, indices.shape[0] - 2
    block = (1, 1) if blocksize is None else (int(blocksize[0]), int(blocksize[1]))
    extents = (size[batch_dim] // block[0], size[batch_dim + 1] // block[1])
    outer, inner = indices[-2] // block[0], indices[-1] // block[1]
    if which not in BY_ROWS:
        outer, inner, extents = inner, outer, extents[::-1]
    batch = size[:batch_dim]
    each = flat_places(indices[:-2], batch)
    flat = (each * extents[0] + outer) * extents[1] + inner
    unique, group = np.unique(flat, return_inverse=True)
    blocks = np.zeros((unique.size, *block, *values.shape[1:]), values.dtype)
    blocks[group, indices[-2] % block[0], indices[-1] % block[1]] = values
    number = int(np.prod(batch))
    per_line = np.bincount(unique // max(extents[1], 1), minlength=number * extents[0]).reshape(number, extents[0])
    counts = per_line.sum(axis=1)
    if counts.size and (counts != counts[0]).any():
        raise RuntimeError("Expect the same number of specified elements per batch.")
    starts = np.zeros((number, extents[0] + 1), np.int64)
    np.cumsum(per_line, axis=1, out=starts[:, 1:])
    count = int(counts[0]) if counts.size else 0
    rest = blocks.shape[1:] if which in BLOCKS else blocks.shape[3:]
    return compressed_tensor(
        which,
        wrap(starts.reshape(*batch, extents[0] + 1)),
        wrap((unique % max(extents[1], 1)).reshape(*batch, count)),
        wrap(blocks.reshape(*batch, count, *rest), t.dtype),
        size,
    )


def in_layout_of(coo: Tensor, like: Tensor) -> Tensor:
    """A tensor in coordinate form in the layout of another."""
    if like._keys & keys.SPARSE:
        return coo
    storage = storage_of(like)
    return compress_coordinates(coo, storage.layout, storage.blocksize if storage.layout in BLOCKS else None)
