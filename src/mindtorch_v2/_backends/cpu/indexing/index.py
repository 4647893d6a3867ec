"""Kernels of indexing with tensors: reading, writing and accumulating at positions given by integer arrays."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...._scipy import sparsetools
from ..machinery.dtypes import BOOL, LONG

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
            return np.asarray(self.take(indices[given[0]], given[0]))  # type: ignore[arg-type]
        out = _flat_take(self, indices) if self.size > 65536 else self[key_of(indices)]
        if out.__class__ is not np.ndarray:
            return np.asarray(out)
        return out if out.flags.c_contiguous else out.copy()
    except IndexError as error:
        raise index_error(self, indices, error) from None


def _flat_take(self: Array, indices: Sequence[Array | None]) -> Array:
    """Positions in the leading dimensions joined into one: `take` costs half of a fancy index with several arrays."""
    given = [d for d, i in enumerate(indices) if i is not None]
    if given != list(range(len(given))) or not self.flags.c_contiguous or len({i.shape for i in indices if i is not None}) > 1:
        return self[key_of(indices)]
    at, shape = _joint_positions(self, indices, given)
    rest = self.shape[len(given) :]
    return self.reshape(-1, *rest).take(at, 0).reshape(shape + rest)


def _result_shape(self: Array, indices: Sequence[Array | None]) -> tuple[int, ...]:
    """The shape of the elements that these indices name."""
    given = [d for d, i in enumerate(indices) if i is not None]
    if not given:
        return self.shape
    shapes = {i.shape for i in indices if i is not None}
    try:
        shape = shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)
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
    if values.ndim > 1 and values.ndim > _result_ndim(self, indices):
        raise _value_error(values, _result_shape(self, indices))  # NumPy drops leading dimensions of one
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
        raise _value_error(values, _result_shape(self, indices)) from None


def check_values(self: Array, indices: Sequence[Array | None], values: Array) -> None:
    """Refuse values that do not broadcast to what these indices name."""
    shape = _result_shape(self, indices)
    try:
        fits = np.broadcast_shapes(values.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise _value_error(values, shape)


def _result_ndim(self: Array, indices: Sequence[Array | None]) -> int:
    given = [i.ndim for i in indices if i is not None]
    return max(given) + self.ndim - len(given) if given else self.ndim


def _value_error(values: Array, shape: tuple[int, ...]) -> RuntimeError:
    return RuntimeError(
        f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of shape {list(shape)}"
    )


def _put_accumulate(self: Array, indices: Sequence[Array | None], values: Array) -> None:
    """Add values at positions of which some may be the same."""
    given = [d for d, i in enumerate(indices) if i is not None]
    whole = _result_shape(self, indices)
    if values.shape != whole:
        try:
            values = np.broadcast_to(values, whole)
        except ValueError:
            raise _value_error(values, whole) from None
    if not values.size:
        return
    at, shape = _joint_positions(self, indices, given)
    others = [d for d in range(self.ndim) if d not in given]
    rest = tuple([self.shape[d] for d in others])
    lead = given[0] if given == list(range(given[0], given[-1] + 1)) else 0
    if lead:
        values = np.moveaxis(values, range(lead, lead + len(shape)), range(len(shape)))
    rows = values.reshape(at.size, *rest)
    target = self if given == list(range(len(given))) else self.transpose(*given, *others)
    extent = math.prod([self.shape[d] for d in given])
    if target.flags.c_contiguous:
        add_rows(target.reshape(extent, *rest), at, rows)
        return
    flat = np.array(target).reshape(extent, *rest)
    add_rows(flat, at, rows)
    target[...] = flat.reshape(target.shape)


def _joint_positions(self: Array, indices: Sequence[Array | None], given: list[int]) -> tuple[Array, tuple[int, ...]]:
    """One flat array of positions over all indexed dimensions together, and the shape the indices broadcast to."""
    joint: Any = 0
    for d in given:
        i, n = indices[d], self.shape[d]
        assert i is not None
        if i.size:
            low = int(i.min())
            if low < -n or int(i.max()) >= n:
                raise IndexError(f"index out of bounds for dimension {d}")
            if low < 0:
                i = np.where(i < 0, i + n, i)
        joint = i if d == given[0] else joint * n + i
    return joint.reshape(-1), joint.shape


def add_rows(target: Array, at: Array, rows: Array) -> None:
    """`target[at[k]] += rows[k]` for every k, where positions may repeat.

    A sparse matrix with one 1 per column times `rows` is that sum in one compiled loop: 20 times `np.add.at` for rows of 64.
    """
    if not at.size or not rows.size:
        return
    if target.ndim == 1:
        add_flat(target, at, rows)
        return
    if rows.dtype != target.dtype:
        rows = rows.astype(target.dtype)
    if target.flags.c_contiguous and target.dtype in _SPARSE_DTYPES:
        count = at.size
        sparsetools.csc_matvecs(
            target.shape[0], count, rows.size // count, np.arange(count + 1), np.ascontiguousarray(at, LONG),
            np.ones(count, target.dtype), np.ascontiguousarray(rows).reshape(-1), target.reshape(-1),
        )  # fmt: skip
        return
    (np.logical_or if target.dtype == BOOL else np.add).at(target, at, rows)


_ONE_COLUMN: dict[np.dtype[Any], Array] = {dtype: np.ones(1, dtype) for dtype in _SPARSE_DTYPES}


def add_flat(flat: Array, at: Array, values: Array) -> None:
    """`flat[at[k]] += values[k]`: a sparse column times one, 2 ns an element where `np.add.at` takes 18."""
    if flat.dtype in _SPARSE_DTYPES and flat.flags.c_contiguous:
        at = np.ascontiguousarray(at, LONG).reshape(-1)
        values = np.ascontiguousarray(values, flat.dtype).reshape(-1)
        sparsetools.csc_matvec(flat.size, 1, np.array((0, at.size)), at, values, _ONE_COLUMN[flat.dtype], flat)
    else:
        (np.logical_or if flat.dtype == BOOL else np.add).at(flat, at, values)


def nonzero(self: Array) -> Array:
    """The positions of elements that are not zero, one per row; columns lie together in memory, as in torch."""
    if not self.ndim:
        return np.empty((1 if self else 0, 0), np.int64)
    if self.ndim == 1 or self.size < 4096:
        return np.array(np.nonzero(self), np.int64).T
    # positions in the last dimension from flat ones and the counts of rows: half the time of NumPy's own loop
    true = self if self.dtype == BOOL else self != 0
    table = true.reshape(-1, true.shape[-1])
    flat = np.flatnonzero(table)
    row = np.repeat(np.arange(table.shape[0]), np.count_nonzero(table, axis=1))
    out = np.empty((self.ndim, flat.size), np.int64)
    np.subtract(flat, row * table.shape[1], out=out[-1])
    if self.ndim == 2:
        out[0] = row
    else:
        out[:-1] = np.unravel_index(row, self.shape[:-1])
    return out.T
