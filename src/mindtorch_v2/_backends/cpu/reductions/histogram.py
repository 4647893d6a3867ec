"""Counting elements in bins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..machinery.dtype_rules import unimplemented

if TYPE_CHECKING:
    pass

Array = np.ndarray[Any, Any]


def linear_edges(low: Any, high: Any, bins: int, d: np.dtype[Any]) -> Array:
    """`linspace` as torch computes it: from both ends towards the middle."""
    low, high = d.type(low), d.type(high)
    step = (high - low) / d.type(bins)
    i = np.arange(bins + 1)
    half = (bins + 1) // 2
    return np.where(i < half, low + step * i.astype(d), high - step * (bins - i).astype(d)).astype(d)


def outer_edges(x: Array, range_: Sequence[float] | None) -> list[tuple[Any, Any]]:
    """The ends of the range along each dimension of (points, dimensions)."""
    n = x.shape[-1]
    if range_ is not None:
        if len(range_) != 2 * n:
            raise RuntimeError(
                f"torch.histogramdd: for a {n}-dimensional histogram range should have {2 * n} elements, but got {len(range_)}"
            )
        ends: list[tuple[Any, Any]] = [(range_[2 * i], range_[2 * i + 1]) for i in range(n)]
    elif not x.size:
        ends = [(0, 1)] * n
    else:
        ends = list(zip(x.min(0), x.max(0), strict=True))
    for i, (low, high) in enumerate(ends):
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(f"torch.histogramdd: dimension {i}'s range [{low:g}, {high:g}] is not finite")
        if low > high:
            raise RuntimeError(f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for dimension {i}")
    # an empty range is widened by one half on each side
    return [(low - 0.5, high + 0.5) if low == high else (low, high) for low, high in ends]


def check_bins(bins: Sequence[int]) -> None:
    for i, n in enumerate(bins):
        if n <= 0:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {n} for dimension {i}")


def check_dtype(name: str, x: Array) -> None:
    if x.dtype not in (np.float32, np.float64):
        raise unimplemented(name, x)


def check_weight(x: Array, weight: Array | None) -> None:
    if weight is not None and weight.dtype != x.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but got "
            f"input with dtype {x.dtype} and weight with dtype {weight.dtype}"
        )
    if weight is not None and weight.shape != x.shape[:-1]:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding its "
            f"innermost dimension, but got input with shape {list(x.shape)} and weight with shape {list(weight.shape)}"
        )


def count(x: Array, edges: Sequence[Array], weight: Array | None, density: bool) -> Array:
    """The histogram of (points, dimensions) over bins with these edges; the last bin of each includes its right edge."""
    shape = tuple(len(e) - 1 for e in edges)
    flat = np.zeros(x.shape[0], np.int64)
    inside = np.ones(x.shape[0], np.bool_)
    for i, e in enumerate(edges):
        column = x[:, i]
        place = np.searchsorted(e, column, "right") - 1
        place[column == e[-1]] = shape[i] - 1
        inside &= (column >= e[0]) & (column <= e[-1])
        flat = flat * shape[i] + place
    weights = None if weight is None else weight.reshape(-1)[inside].astype(np.float64)
    hist = np.bincount(flat[inside], weights, math.prod(shape)).astype(x.dtype).reshape(shape)
    if density:
        hist /= hist.sum()
        for i, e in enumerate(edges):
            hist /= np.diff(e).reshape([-1 if j == i else 1 for j in range(len(shape))])
    return hist


def histc(self: Array, bins: int, low: Any, high: Any) -> Array:
    """Equal bins; without a range, that of the elements. Elements outside are not counted."""
    if self.dtype.kind in "biuc":
        check_dtype("histogram_cpu", self)
    check_bins([bins])
    x = self.reshape(-1)
    if low == high and x.size:
        low, high = x.min(), x.max()
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{_spelled(low)}, {_spelled(high)}] is not finite")
    if low >= high:
        raise RuntimeError("torch.histc: max must be larger than min")
    d = self.dtype.type
    low, high = d(low), d(high)
    kept = x[(x >= low) & (x <= high)]
    place = ((kept - low) * d(bins) / (high - low)).astype(np.int64)
    return np.bincount(np.minimum(place, bins - 1), minlength=bins).astype(self.dtype)


def _spelled(value: float) -> str:
    return "nan" if math.isnan(value) else f"{float(value):g}"
