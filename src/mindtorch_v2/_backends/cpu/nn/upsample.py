"""Resampling along the last dimensions, one after the other: each is a sum over a few taps, or a product with a small matrix.

Positions are computed in the precision torch computes them in (single, or double for double input), because a position that
falls on the other side of an integer picks another element.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

__all__ = ["resample", "resample_backward"]

Array = np.ndarray[Any, Any]
Taps = tuple[tuple[Array, Array | None], ...]  # positions, and weights unless all are one


def _scale(size: int, out: int, align: bool, factor: float | None, real: Any) -> Any:
    """Input elements for each output element."""
    if align:
        return real(size - 1) / real(out - 1) if out > 1 else real(0)
    return real(1.0 / factor) if factor is not None and factor > 0 else real(size) / real(out)


def _nearest(size: int, out: int, factor: float | None, real: Any, *, exact: bool) -> Taps:
    i = np.arange(out)
    if not exact and out in (size, 2 * size):
        return ((i >> (out > size), None),)  # torch: whatever the factor
    scale = _scale(size, out, False, factor, real)
    # torch: the position is rounded to single precision, of double images too
    at = np.floor(((i.astype(real) + real(0.5 if exact else 0)) * scale).astype(np.float32)).astype(np.int64)
    return ((np.minimum(at, size - 1), None),)


def _linear(size: int, out: int, align: bool, factor: float | None, real: Any) -> Taps:
    i = np.arange(out)
    scale = _scale(size, out, align, factor, real)
    at = i.astype(real) * scale if align else np.maximum((i.astype(real) + real(0.5)) * scale - real(0.5), real(0))
    low = np.minimum(at.astype(np.int64), size - 1)
    high = np.minimum(low + 1, size - 1)
    weight = np.clip(at - low.astype(real), 0, 1).astype(real)
    return ((low, real(1) - weight), (high, weight))


def _cubic(size: int, out: int, align: bool, factor: float | None, real: Any) -> Taps:
    scale = _scale(size, out, align, factor, real)
    i = np.arange(out).astype(real)
    at = i * scale if align else (i + real(0.5)) * scale - real(0.5)
    low = np.floor(at)
    t = at - low
    base = low.astype(np.int64)
    weights = (_cubic_far(t + 1), _cubic_near(t), _cubic_near(1 - t), _cubic_far(2 - t))
    return tuple((np.clip(base + k - 1, 0, size - 1), w.astype(real)) for k, w in enumerate(weights))


def _cubic_near(x: Array, a: float = -0.75) -> Array:
    return ((a + 2) * x - (a + 3)) * x * x + 1


def _cubic_far(x: Array, a: float = -0.75) -> Array:
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


def _hat(x: Array) -> Array:
    return np.maximum(1 - np.abs(x), 0)


def _smooth_cubic(x: Array) -> Array:
    x = np.abs(x)
    return np.where(x < 1, _cubic_near(x, -0.5), np.where(x < 2, _cubic_far(x, -0.5), 0))


def _lanczos(x: Array) -> Array:
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


_FILTERS = {"bilinear_aa": (2, _hat), "bicubic_aa": (4, _smooth_cubic), "lanczos_aa": (6, _lanczos)}


@lru_cache(maxsize=256)
def _antialiased(mode: str, size: int, out: int, align: bool, factor: float | None, dtype: str) -> Array:
    """The matrix of a filter that widens with the scale when the image shrinks."""
    real = np.dtype(dtype).type
    width, shape = _FILTERS[mode]
    scale = _scale(size, out, align, factor, real)
    support = real(width * 0.5) * (scale if scale >= 1 else real(1))
    inverse = 1 / scale if scale >= 1 else real(1)
    center = scale * (np.arange(out).astype(real) + real(0.5))
    first = np.maximum((center - support + real(0.5)).astype(np.int64), 0)
    last = np.minimum((center + support + real(0.5)).astype(np.int64), size)
    at = np.arange(size)
    weights = shape((at - center[:, None] + real(0.5)) * inverse)
    weights = np.where((at >= first[:, None]) & (at < last[:, None]), weights, 0).astype(real)
    total = weights.sum(1, keepdims=True)
    return np.divide(weights, total, out=weights, where=total != 0)


@lru_cache(maxsize=256)
def _taps(mode: str, size: int, out: int, align: bool, factor: float | None, dtype: str) -> Taps:
    real = np.dtype(dtype).type
    if mode in ("nearest", "nearest_exact"):
        return _nearest(size, out, factor, real, exact=mode == "nearest_exact")
    return (_cubic if mode == "cubic" else _linear)(size, out, align, factor, real)


def _is_identity(mode: str, size: int, out: int, align: bool, factor: float | None) -> bool:
    return size == out and (align or factor is None or factor == 1 or mode in ("nearest", "linear"))


def _real(x: Array) -> str:
    return "float64" if x.dtype in (np.float64, np.complex128) else "float32"


def resample(x: Array, mode: str, out: tuple[int, ...], align: bool, factors: tuple[float | None, ...]) -> Array:
    """The image with its last dimensions resampled to these extents."""
    dtype = x.dtype
    if mode in _FILTERS and x.shape[-len(out) :] == out:
        return x.copy()
    nearest = mode.startswith("nearest")
    result = x if nearest or (dtype.itemsize >= 4 and dtype.kind in "fc") else x.astype(np.float32)
    for axis in range(-1, -len(out) - 1, -1):
        size = x.shape[axis]
        if mode in _FILTERS:
            result = _multiply(result, _antialiased(mode, size, out[axis], align, factors[axis], _real(x)), axis)
        elif not _is_identity(mode, size, out[axis], align, factors[axis]):
            result = _combine(result, _taps(mode, size, out[axis], align, factors[axis], _real(x)), axis)
    if result.dtype != dtype and dtype.kind in "iu":
        info = np.iinfo(dtype)
        result = np.clip(np.rint(result), info.min, info.max)
    return np.ascontiguousarray(result.astype(dtype, copy=result is x))


def _combine(x: Array, taps: Taps, axis: int) -> Array:
    total: Any = None
    for at, weight in taps:
        part = np.take(x, at, axis)
        if weight is not None:
            part *= weight.reshape(-1, *(1,) * (-axis - 1))
        total = part if total is None else np.add(total, part, out=total)
    assert total is not None
    return total


def _multiply(x: Array, matrix: Array, axis: int) -> Array:
    """Replace a dimension by its product with a matrix of (out, size)."""
    matrix = matrix.astype(x.dtype, copy=False)
    if axis == -1:
        return np.matmul(x, matrix.T)
    return np.moveaxis(np.matmul(matrix, np.moveaxis(x, axis, -2)), -2, axis)


def resample_backward(grad: Array, mode: str, shape: tuple[int, ...], align: bool, factors: tuple[float | None, ...]) -> Array:
    """The gradient of an input of this shape."""
    dtype = grad.dtype
    n = len(shape) - 2
    result = grad.astype(np.float32) if dtype.itemsize == 2 else grad
    for axis in range(-n, 0):
        size, out = shape[axis], grad.shape[axis]
        if mode not in _FILTERS and _is_identity(mode, size, out, align, factors[axis]):
            continue
        whole = out // size if size and out % size == 0 else 0
        if mode.startswith("nearest") and whole and factors[axis] in (None, float(whole)):
            rest: Any = (slice(None),) * (-axis - 1)
            total = result[(..., slice(0, None, whole), *rest)].copy()
            for k in range(1, whole):
                total += result[(..., slice(k, None, whole), *rest)]
            result = total
        else:
            result = _multiply(result, _matrix(mode, size, out, align, factors[axis], _real(grad)).T, axis)
    return np.ascontiguousarray(result.astype(dtype, copy=result is grad))


def _matrix(mode: str, size: int, out: int, align: bool, factor: float | None, dtype: str) -> Array:
    if mode in _FILTERS:
        return _antialiased(mode, size, out, align, factor, dtype)
    matrix = np.zeros((out, size), dtype)
    for at, weight in _taps(mode, size, out, align, factor, dtype):
        np.add.at(matrix, (np.arange(out), at), 1 if weight is None else weight)
    return matrix
