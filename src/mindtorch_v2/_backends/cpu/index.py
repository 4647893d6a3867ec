"""Kernels of indexing with tensors: reading, writing and accumulating at positions given by integer arrays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import _sparsetools

Array = np.ndarray[Any, Any]

# dtypes that scipy's sparse products know
_SPARSE_DTYPES = frozenset(map(np.dtype, "bBhHiIlLqQfdFD"))


def key_of(indices: Sequence[Array | None]) -> tuple[Any, ...]:
    """NumPy's key for these indices: dimensions without one are taken whole."""
    return tuple([slice(None) if i is None else i for i in indices])


def index(self: Array, indices: Sequence[Array | None]) -> Array:
    """The elements at these positions; index arrays broadcast against each other."""
    given = [d for d, i in enumerate(indices) if i is not None]
    try:
        if len(given) == 1:
            # `take` along one dimension takes 0.3 µs, a fancy index 1.2
            return np.asarray(self.take(indices[given[0]], given[0]))
        return np.ascontiguousarray(self[key_of(indices)]).reshape(_result_shape(self, indices))
    except IndexError as error:
        raise index_error(self, indices, error) from None


def _result_shape(self: Array, indices: Sequence[Array | None]) -> tuple[int, ...]:
    """The shape of the elements that these indices name."""
    given = [d for d, i in enumerate(indices) if i is not None]
    try:
        shape = np.broadcast_shapes(*(i.shape for i in indices if i is not None))
    except ValueError as error:
        raise index_error(self, indices, error) from None
    others = [d for d in range(self.ndim) if d not in given]
    # NumPy and torch: the indices' dimensions come first unless the indexed dimensions stand side by side
    front = [self.shape[d] for d in others if d < given[0]] if given == list(range(given[0], given[-1] + 1)) else []
    return (*front, *shape, *[self.shape[d] for d in others][len(front) :])


def index_error(self: Array, indices: Sequence[Array | None], error: Exception) -> IndexError:
    """torch's words for what NumPy complains about."""
    given = [(d, i) for d, i in enumerate(indices) if i is not None]
    try:
        np.broadcast_shapes(*(i.shape for _, i in given))
    except ValueError:
        shapes = ", ".join(str(list(i.shape)) for _, i in given)
        return IndexError(f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}")
    for k, (d, i) in enumerate(given):
        n = self.shape[d]
        if not n and i.size:
            return IndexError("index is out of bounds for dimension with size 0")
        bad = i[(i < -n) | (i >= n)]
        if bad.size:
            # torch: counts the index tensors, not the tensor's dimensions
            return IndexError(f"index {int(bad.flat[0])} is out of bounds for dimension {k} with size {n}")
    return IndexError(re.sub(r"\baxis\b", "dimension", str(error)))


def index_put(self: Array, indices: Sequence[Array | None], values: Array, *, accumulate: bool) -> None:
    """Write (or add) values, broadcast to the positions' shape."""
    try:
        if accumulate:
            _put_accumulate(self, indices, values)
        else:
            self[key_of(indices)] = values
    except IndexError as error:
        if 0 in _result_shape(self, indices):
            return  # torch: where nothing is written no index is checked
        raise index_error(self, indices, error) from None
    except ValueError:
        if not self.flags.writeable:
            raise
        shape = _result_shape(self, indices)
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of shape {list(shape)}"
        ) from None


def _put_accumulate(self: Array, indices: Sequence[Array | None], values: Array) -> None:
    """Add values at positions of which some may be the same."""
    given = [d for d, i in enumerate(indices) if i is not None]
    whole = _result_shape(self, indices)
    arrays = np.broadcast_arrays(*[indices[d] for d in given])
    shape = arrays[0].shape
    extents = [self.shape[d] for d in given]
    others = [d for d in range(self.ndim) if d not in given]
    front = [d for d in others if d < given[0]] if given == list(range(given[0], given[-1] + 1)) else []
    try:
        spread = np.broadcast_to(values, whole)
    except ValueError:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of shape {list(whole)}"
        ) from None
    if not spread.size:
        return
    wrapped = []
    for d, i, n in zip(given, arrays, extents, strict=True):
        if i.min() < -n or i.max() >= n:
            raise index_error(self, indices, IndexError(f"index out of bounds for dimension {d}"))
        wrapped.append(np.where(i < 0, i + n, i))
    rows = np.moveaxis(spread, range(len(front), len(front) + len(shape)), range(len(shape)))
    rows = rows.reshape(int(np.prod(shape, dtype=np.int64)), *[self.shape[d] for d in others])
    at = np.ravel_multi_index(tuple(w.reshape(-1) for w in wrapped), tuple(extents)) if wrapped[0].size else np.empty(0, np.int64)
    target = self.transpose(*given, *others)
    if target.flags.c_contiguous:
        add_rows(target.reshape(-1, *[self.shape[d] for d in others]), at, rows)
        return
    flat = target.reshape(int(np.prod(extents, dtype=np.int64)), *[self.shape[d] for d in others])
    if np.shares_memory(flat, self):
        flat = flat.copy()
    add_rows(flat, at, rows)
    target[...] = flat.reshape(target.shape)


def add_rows(target: Array, at: Array, rows: Array) -> None:
    """`target[at[k]] += rows[k]` for every k, where positions may repeat.

    A sparse matrix with one 1 per column times `rows` is that sum in one compiled loop: 20 times `np.add.at` for rows of 64.
    """
    if not at.size or not rows.size:
        return
    if rows.dtype != target.dtype:
        rows = rows.astype(target.dtype)
    if target.ndim == 1:
        np.add.at(target, at, rows)
        return
    if target.dtype == bool:
        np.logical_or.at(target, at, rows)
        return
    if target.flags.c_contiguous and target.dtype in _SPARSE_DTYPES:
        count = at.size
        at = np.ascontiguousarray(at, np.int64)
        width = rows.size // count
        _sparsetools.csc_matvecs(
            target.shape[0], count, width, np.arange(count + 1), at, np.ones(count, target.dtype),
            np.ascontiguousarray(rows).reshape(-1), target.reshape(-1),
        )  # fmt: skip
        return
    np.add.at(target, at, rows)


def nonzero(self: Array) -> Array:
    """The positions of elements that are not zero, one per row; columns lie together in memory, as in torch."""
    if not self.ndim:
        return np.empty((1 if self else 0, 0), np.int64)
    return np.array(np.nonzero(self), np.int64).T
