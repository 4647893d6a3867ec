"""Reductions of consecutive segments along a dimension."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ...._types import Number

Array = np.ndarray[Any, Any]
IDENTITY = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
UFUNC = {"sum": np.add, "mean": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def bounds(lengths: Array | None, offsets: Array | None) -> Array:
    """Return the begins and ends of segments, along the last dimension."""
    if offsets is not None:
        return offsets
    assert lengths is not None
    zero = np.zeros((*lengths.shape[:-1], 1), np.int64)
    return np.concatenate([zero, np.cumsum(lengths, -1)], -1)


def flattened(data: Array, starts: Array, axis: int) -> tuple[Array, Array, Array]:
    """Data as (outer × extent, inner), the segment of each row (-1 for none), and the lengths as (outer × segments)."""
    extent = data.shape[axis]
    outer = math.prod(data.shape[:axis])
    rows = data.reshape(outer * extent, -1) if data.size else data.reshape(outer * extent, math.prod(data.shape[axis + 1 :]))
    edges = starts.reshape(outer, -1)
    segments = edges.shape[1] - 1
    place = np.full((outer, extent), -1, np.int64)
    for i, row in enumerate(edges):
        ids = np.repeat(np.arange(segments), np.diff(row)) + i * segments
        place[i, row[0] : row[0] + len(ids)] = ids
    return rows, place.reshape(-1), np.diff(edges, axis=1).reshape(-1)


def segment_reduce(
    data: Array, reduce: str, lengths: Array | None, offsets: Array | None, axis: int, initial: Number | None
) -> Array:
    starts = bounds(lengths, offsets)
    rows, place, counts = flattened(data, starts, axis)
    out = np.full((len(counts), rows.shape[1]), IDENTITY[reduce] if initial is None else initial, data.dtype)
    used = place >= 0
    UFUNC[reduce].at(out, place[used], rows[used])
    if reduce == "mean":
        if initial is None:
            out[counts == 0] = math.nan
        filled = counts > 0
        out[filled] /= counts[filled, None].astype(data.dtype)
    return out.reshape(*data.shape[:axis], starts.shape[-1] - 1, *data.shape[axis + 1 :])


def segment_reduce_backward(
    grad: Array,
    output: Array,
    data: Array,
    reduce: str,
    lengths: Array | None,
    offsets: Array | None,
    axis: int,
    initial: Number | None,
) -> Array:
    rows, place, counts = flattened(data, bounds(lengths, offsets), axis)
    used = place >= 0
    at = place[used]
    given = np.ascontiguousarray(grad).reshape(len(counts), rows.shape[1])
    result = output.reshape(len(counts), rows.shape[1])
    out = np.zeros_like(rows)
    part = given[at]
    if reduce == "mean":
        part = part / counts[at, None].astype(data.dtype)
    elif reduce in ("max", "min"):
        hit = (rows[used] == result[at]) | np.isnan(rows[used])
        shared = np.zeros(result.shape, data.dtype)
        np.add.at(shared, at, hit.astype(data.dtype))
        part = np.where(hit, part / np.maximum(shared[at], 1), 0)
    elif reduce == "prod":
        part = part * _products_of_others(rows[used], at, result, initial)
    out[used] = part
    return out.reshape(data.shape)


def _products_of_others(x: Array, at: Array, result: Array, initial: Number | None) -> Array:
    """For each row, the product of the rest of its segment; zeros are counted apart so that nothing is divided by zero."""
    zeros = x == 0
    number = np.zeros(result.shape, np.int64)
    np.add.at(number, at, zeros.astype(np.int64))
    product = np.full(result.shape, 1 if initial is None else initial, x.dtype)
    np.multiply.at(product, at, np.where(zeros, 1, x))
    others = product[at] / np.where(zeros, 1, x)
    return np.where(number[at] - zeros > 0, 0, others).astype(x.dtype)
