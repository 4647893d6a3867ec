"""Kernels for distinct elements and positions in sorted sequences."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ..machinery.dtypes import BFLOAT, FLOAT, LONG

Array = np.ndarray[Any, Any]
Three = tuple[Array, Array, Array]


def orderable(x: Array) -> Array:
    return x.astype(FLOAT) if x.dtype == BFLOAT else x


def unique(self: Array, return_inverse: bool, return_counts: bool) -> Three:
    """Distinct elements in ascending order; every NaN is distinct. What is not asked for is empty."""
    inverse = counts = np.empty(0, LONG)
    if not (return_inverse or return_counts):
        values = np.unique(orderable(self), equal_nan=False)
    else:
        values, inverse, counts = np.unique(orderable(self), return_inverse=True, return_counts=True, equal_nan=False)
        inverse = inverse.reshape(self.shape).astype(LONG, copy=False) if return_inverse else np.empty(0, LONG)
        counts = counts.astype(LONG, copy=False) if return_counts else np.empty(0, LONG)
    return values.astype(self.dtype, copy=False), inverse, counts


def unique_dim(self: Array, dim: int) -> Three:
    """Distinct slices along a dimension, in lexicographic order."""
    if not self.shape[dim]:
        return self.copy(), np.empty(0, LONG), np.empty(0, LONG)
    if self.dtype.kind == "f" and np.isnan(self).any():
        return _unique_with_nans(self, dim)
    values, inverse, counts = np.unique(orderable(self), axis=dim, return_inverse=True, return_counts=True)
    values = np.ascontiguousarray(values.astype(self.dtype, copy=False))
    return values, inverse.reshape(-1).astype(LONG, copy=False), counts.astype(LONG, copy=False)


def _unique_with_nans(self: Array, dim: int) -> Three:
    """As `unique_dim`, where a NaN decides nothing about the order and makes its slice differ from every other, as in torch."""
    slices = np.moveaxis(self, dim, 0)
    rows = slices.reshape(len(slices), -1).tolist()

    def compared(i: int, j: int) -> int:
        return next((-1 if a < b else 1 for a, b in zip(rows[i], rows[j], strict=True) if a < b or a > b), 0)

    order = sorted(range(len(rows)), key=functools.cmp_to_key(compared))
    new = [not k or rows[i] != rows[order[k - 1]] for k, i in enumerate(order)]
    starts = np.flatnonzero(new)
    inverse = np.empty(len(rows), LONG)
    inverse[order] = np.cumsum(new) - 1
    values = np.moveaxis(slices[np.asarray(order)[starts]], 0, dim)
    return np.ascontiguousarray(values), inverse, np.diff(starts, append=len(rows)).astype(LONG, copy=False)


def unique_consecutive(self: Array, dim: int | None, return_inverse: bool, return_counts: bool) -> Three:
    """The first element (or slice) of each run of equal ones."""
    x = self.reshape(-1) if dim is None else np.moveaxis(self, dim, 0)
    n = x.shape[0]
    empty = np.empty(0, LONG)
    if not n:
        return (
            (self.reshape(-1) if dim is None else self).copy(),
            empty.reshape(self.shape) if dim is None and return_inverse else empty,
            empty,
        )
    new = np.ones(n, np.bool_)
    differs = x[1:] != x[:-1]
    new[1:] = differs if x.ndim == 1 else differs.any(tuple(range(1, x.ndim)))
    starts = np.flatnonzero(new)
    values = x[starts]
    if dim is not None:
        values = np.moveaxis(values, 0, dim)
    inverse = np.cumsum(new, dtype=LONG) - 1
    counts = np.diff(starts, append=n).astype(LONG, copy=False)
    if dim is None:
        inverse = inverse.reshape(self.shape)
    return values, inverse if return_inverse or dim is not None else empty, counts if return_counts or dim is not None else empty


def search(sequence: Array, values: Array, right: bool, d: Any, sorter: Array | None) -> Array:
    """Return the positions at which the values would be inserted; the sequence's leading dimensions pair up with those of the values."""
    side: Any = "right" if right else "left"
    sequence, values = orderable(sequence), orderable(values)
    if sequence.ndim == 1:
        return np.asarray(np.searchsorted(sequence, values, side, sorter)).astype(d)
    if not values.size:
        return np.empty(values.shape, d)
    rows = sequence.reshape(math.prod(sequence.shape[:-1]), sequence.shape[-1])
    wanted = values.reshape(rows.shape[0], -1)
    found = np.empty(wanted.shape, d)
    orders = None if sorter is None else sorter.reshape(rows.shape)
    for i, row in enumerate(rows):
        found[i] = np.searchsorted(row, wanted[i], side, None if orders is None else orders[i])
    return found.reshape(values.shape)
