"""Pooling over the last n dimensions: one pass over a strided slice of the input for each place in the window.

Only windows that reach into the input take part in a pass, so that no padded copy is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

__all__ = [
    "adaptive_average", "adaptive_average_backward", "adaptive_max", "average_pool", "average_pool_backward", "fractional_max",
    "max_pool", "max_pool_backward", "scatter_by_index", "unpool",
]  # fmt: skip

Array = np.ndarray[Any, Any]
Sizes = tuple[int, ...]
_SMALL = 8192  # elements below which calls cost more than passes


def _is_half(x: Array) -> bool:
    return x.dtype.itemsize == 2 and x.dtype.kind not in "iu"


def _lowest(dtype: np.dtype[Any]) -> float:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def _valid(size: int, out: int, offset: int, stride: int) -> tuple[slice, slice]:
    """The windows whose place at `offset` from the window's start lies in the input, and those places in the input."""
    first = max(0, -(offset // stride)) if offset < 0 else 0
    last = min(out, (size - 1 - offset) // stride + 1) if size > offset else 0
    last = max(last, first)
    start = first * stride + offset
    return slice(first, last), slice(start, start + (last - first) * stride if last > first else start, stride)


def _places(x: Array, out: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Iterator[tuple[int, Any, Any]]:
    """For each place in the window: its distance from the window's start in the flat image, windows and input slices."""
    size = x.shape[-len(kernel) :]
    steps = [prod(size[i + 1 :]) for i in range(len(size))]
    for place in np.ndindex(*kernel):
        pairs = [_valid(n, o, k * d - p, s) for n, o, k, d, p, s in zip(size, out, place, dilation, padding, stride, strict=True)]
        flat = sum(k * d * t for k, d, t in zip(place, dilation, steps, strict=True))
        yield flat, (..., *(a for a, _ in pairs)), (..., *(b for _, b in pairs))


def max_pool(x: Array, out: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> tuple[Array, Array]:
    """The largest element of each window, and its position in the flat image."""
    if x.size <= _SMALL and not any(padding) and x.flags.c_contiguous:
        found = _small_max_pool(x, out, kernel, stride, dilation)
        if found is not None:
            return found
    if kernel == stride and _tiles(x, out, kernel, padding, dilation):
        best, code = _tiled_max(x, out, kernel)
        if x.dtype.kind in "iu" or not np.isnan(best).any():
            size = x.shape[-len(out) :]
            indices = _place_positions(size, kernel, dilation).take(code)
            indices += _window_positions(size, stride, out)
            return best, indices
    best = np.full((*x.shape[: -len(out)], *out), _lowest(x.dtype), x.dtype)
    places = list(_places(x, out, kernel, stride, padding, dilation))
    for _, windows, inside in places:
        target = best[windows]
        np.maximum(target, x[inside], out=target)
    # the winning place, found by comparing again from the last to the first: much cheaper than moving 64-bit indices about
    code = np.zeros(best.shape, np.min_scalar_type(len(places)))
    for i in range(len(places) - 1, -1, -1):
        _, windows, inside = places[i]
        np.copyto(code[windows], code.dtype.type(i), where=x[inside] == best[windows])
    if x.dtype.kind not in "iu" and np.isnan(best).any():
        for i, (_, windows, inside) in enumerate(places):  # torch: the last NaN wins
            np.copyto(code[windows], code.dtype.type(i), where=np.isnan(x[inside]))
    indices = np.take(np.array([flat for flat, _, _ in places], np.int64), code)
    size = x.shape[-len(out) :]
    for axis, (o, s, p) in enumerate(zip(out, stride, padding, strict=True)):
        starts = (np.arange(o, dtype=np.int64) * s - p) * prod(size[axis + 1 :])
        indices += starts.reshape(-1, *(1,) * (len(out) - axis - 1))
    return best, indices


def _tiles(x: Array, out: Sizes, kernel: Sizes, padding: Sizes, dilation: Sizes) -> bool:
    """Whether the windows cover the image side by side, and nothing is left over."""
    exact = all(o * k == n for o, k, n in zip(out, kernel, x.shape[-len(out) :], strict=True))
    return exact and not any(padding) and all(d == 1 for d in dilation) and 1 < prod(kernel) < 256 and x.flags.c_contiguous


def _tiled_max(x: Array, out: Sizes, kernel: Sizes) -> tuple[Array, Array]:
    """The largest element of each tile, and its number in the tile.

    One dimension after the other, the innermost last: its passes run over all the image at once instead of over short rows. With
    2×2 tiles on 64×16×16×16, 0.5 ms; a pass for each place in the window took 1.7.
    """
    rest = prod(x.shape[-len(out) :])
    best = x
    code: Array | None = None
    for n, k in zip(out, kernel, strict=True):
        rest //= n * k
        values = best.reshape(-1, k, rest)
        numbers = None if code is None else (code * np.uint8(k)).reshape(-1, k, rest)
        best, code = _first_largest(values, numbers)
    assert code is not None
    shape = (*x.shape[: -len(out)], *out)
    return best.reshape(shape), code.reshape(shape)


def _first_largest(values: Array, numbers: Array | None) -> tuple[Array, Array]:
    """The largest along the middle axis, and its number: of equals the smallest number wins."""
    best = values[:, 0]
    code: Any = np.uint8(0) if numbers is None else numbers[:, 0]
    for i in range(1, values.shape[1]):
        value = values[:, i]
        better = value > best
        if numbers is None:
            code = better.view(np.uint8) if i == 1 else np.where(better, np.uint8(i), code)
        else:
            number = numbers[:, i] + np.uint8(i)
            equal = value == best
            equal &= number < code
            better |= equal
            # the code or the number, chosen by arithmetic on bytes: a fifth of the time of `np.where`
            number -= code
            number *= better.view(np.uint8)
            number += code
            code = number
        best = np.maximum(best, value)
    return best, code if isinstance(code, np.ndarray) else np.zeros(best.shape, np.uint8) + code


def _small_max_pool(x: Array, out: Sizes, kernel: Sizes, stride: Sizes, dilation: Sizes) -> tuple[Array, Array] | None:
    """All windows at once by `argmax`: a fifth of the calls, which is what counts for a small image.

    None when a window reaches past the image, or there is a NaN, of which torch takes the last.
    """
    n = len(out)
    size = x.shape[-n:]
    if any((o - 1) * s + (k - 1) * d >= m for o, s, k, d, m in zip(out, stride, kernel, dilation, size, strict=True)):
        return None
    steps = x.strides[-n:]
    strides = (
        *x.strides[:-n],
        *(a * b for a, b in zip(steps, stride, strict=True)),
        *(a * b for a, b in zip(steps, dilation, strict=True)),
    )
    lead = x.shape[:-n]
    windows = np.ndarray((*lead, *out, *kernel), x.dtype, x, 0, strides).reshape(*lead, *out, prod(kernel))
    place = windows.argmax(-1)
    best = np.take_along_axis(windows, place[..., None], -1)[..., 0]
    if x.dtype.kind not in "iu" and np.isnan(best).any():
        return None
    return best, _place_positions(size, kernel, dilation)[place] + _window_positions(size, stride, out)


@lru_cache(maxsize=64)
def _window_positions(size: Sizes, stride: Sizes, out: Sizes) -> Array:
    """The flat position of each window's first place."""
    total: Any = 0
    for axis, (o, s) in enumerate(zip(out, stride, strict=True)):
        starts = np.arange(o, dtype=np.int64) * (s * prod(size[axis + 1 :]))
        total = total + starts.reshape(-1, *(1,) * (len(out) - axis - 1))
    return np.asarray(total)


@lru_cache(maxsize=64)
def _place_positions(size: Sizes, kernel: Sizes, dilation: Sizes) -> Array:
    """The distance of each place in a window from its first."""
    return _window_positions(size, dilation, kernel).reshape(-1)


def scatter_by_index(grad: Array, indices: Array, shape: Sizes, n: int, *, distinct: bool) -> Array:
    """Add gradients up at flat positions of images with this shape. `distinct`: no position occurs twice in an image."""
    planes = prod(shape[:-n])
    area = prod(shape[-n:])
    if not grad.size or not area:
        return np.zeros(shape, grad.dtype)
    flat = indices.reshape(planes, -1) + np.arange(0, planes * area, area, dtype=np.int64)[:, None]
    if distinct:
        out = np.zeros(shape, grad.dtype)
        out.reshape(-1)[flat.reshape(-1)] = grad.reshape(-1)
        return out
    if _is_half(grad):
        return np.bincount(flat.reshape(-1), grad.reshape(-1), planes * area).astype(grad.dtype).reshape(shape)
    out = np.zeros(shape, grad.dtype)
    np.add.at(out.reshape(-1), flat.reshape(-1), grad.reshape(-1))
    return out


def max_pool_backward(grad: Array, indices: Array, shape: Sizes, kernel: Sizes, stride: Sizes, dilation: Sizes) -> Array:
    distinct = all(s >= d * (k - 1) + 1 for k, s, d in zip(kernel, stride, dilation, strict=True))
    return scatter_by_index(grad, indices, shape, len(kernel), distinct=distinct)


# --- averages -------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _divisors(
    size: Sizes, out: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, *, include_padding: bool, override: int | None
) -> int | Array:
    """Return the number that each window's sum is divided by."""
    if override is not None:
        return override
    result: Any = 1
    for axis, (n, o, k, s, p) in enumerate(zip(size, out, kernel, stride, padding, strict=True)):
        start = np.arange(o) * s - p
        end = np.minimum(start + k, n + p)
        count = end - start if include_padding else np.minimum(end, n) - np.maximum(start, 0)
        result = result * count.reshape(-1, *(1,) * (len(size) - axis - 1))
    first = result.flat[0] if result.size else 1
    return int(first) if (result == first).all() else result


def average_pool(
    x: Array, out: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, *, include_padding: bool, override: int | None
) -> Array:
    """The mean of each window; sums run along one dimension after the other."""
    dtype = x.dtype
    n = len(kernel)
    divisor = _divisors(x.shape[-n:], out, kernel, stride, padding, include_padding=include_padding, override=override)
    total = x.astype(np.float32) if _is_half(x) else x
    if x.size <= _SMALL and not any(padding) and total.flags.c_contiguous and _all_inside(x.shape[-n:], out, kernel, stride):
        strides = (*total.strides[:-n], *(a * b for a, b in zip(total.strides[-n:], stride, strict=True)), *total.strides[-n:])
        windows = np.ndarray((*x.shape[:-n], *out, *kernel), total.dtype, total, 0, strides)
        total = np.add.reduce(windows, tuple(range(-n, 0)))
        n = 0
    for axis in range(-1, -n - 1, -1):
        total = _sum_windows(total, axis, out[axis], kernel[axis], stride[axis], padding[axis])
    total = _quotient(total, divisor) if dtype.kind in "iu" else np.divide(total, _as(divisor, total.dtype), out=total)
    return total.astype(dtype, copy=False)


def _all_inside(size: Sizes, out: Sizes, kernel: Sizes, stride: Sizes) -> bool:
    return all((o - 1) * s + k <= m for o, s, k, m in zip(out, stride, kernel, size, strict=True))


def _quotient(total: Array, divisor: Any) -> Array:
    """Integers divided and rounded towards zero, as in C."""
    return np.sign(total) * np.sign(divisor) * (np.abs(total) // np.abs(divisor))


def _as(divisor: Any, dtype: np.dtype[Any]) -> Any:
    return divisor.astype(dtype) if isinstance(divisor, np.ndarray) else dtype.type(divisor)


def _along(axis: int, part: slice) -> tuple[Any, ...]:
    return (..., part, *(slice(None),) * (-axis - 1))


def _sum_windows(x: Array, axis: int, out: int, kernel: int, stride: int, padding: int) -> Array:
    shape = list(x.shape)
    shape[axis] = out
    total = np.zeros(shape, x.dtype)
    for k in range(kernel):
        windows, inside = _valid(x.shape[axis], out, k - padding, stride)
        target = total[_along(axis, windows)]
        target += x[_along(axis, inside)]
    return total


def _spread_windows(grad: Array, axis: int, size: int, kernel: int, stride: int, padding: int) -> Array:
    shape = list(grad.shape)
    shape[axis] = size
    total = np.zeros(shape, grad.dtype)
    for k in range(kernel):
        windows, inside = _valid(size, grad.shape[axis], k - padding, stride)
        target = total[_along(axis, inside)]
        target += grad[_along(axis, windows)]
    return total


def average_pool_backward(
    grad: Array, shape: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, *, include_padding: bool, override: int | None
) -> Array:
    n = len(kernel)
    dtype = grad.dtype
    total = grad.astype(np.float32) if _is_half(grad) else grad
    divisor = _divisors(shape[-n:], grad.shape[-n:], kernel, stride, padding, include_padding=include_padding, override=override)
    total = total / _as(divisor, total.dtype)
    for axis in range(-n, 0):
        total = _spread_windows(total, axis, shape[axis], kernel[axis], stride[axis], padding[axis])
    return total.astype(dtype, copy=False)


# --- adaptive and fractional ----------------------------------------------------------------------------------------


def _adaptive_bounds(size: int, out: int) -> tuple[Array, Array]:
    i = np.arange(out, dtype=np.int64)
    return i * size // max(out, 1), -((-(i + 1) * size) // max(out, 1))


def _averaging_matrix(size: int, out: int, dtype: np.dtype[Any]) -> Array:
    start, end = _adaptive_bounds(size, out)
    at = np.arange(size)
    inside = (at >= start[:, None]) & (at < end[:, None])
    return (inside / (end - start)[:, None]).astype(dtype)


def adaptive_average(x: Array, out: Sizes) -> Array:
    """Means over windows that share the input out among so many results."""
    dtype = x.dtype
    size = x.shape[-len(out) :]
    if all(o and s % o == 0 for s, o in zip(size, out, strict=True)):
        kernel = tuple(s // o for s, o in zip(size, out, strict=True))
        return average_pool(x, out, kernel, kernel, (0,) * len(out), include_padding=True, override=None)
    result = x.astype(np.float32) if _is_half(x) else x
    for axis in range(-1, -len(out) - 1, -1):
        result = _reduce_axis(result, axis, out[axis])
    return np.ascontiguousarray(result.astype(dtype, copy=result is x))


def _reduce_axis(x: Array, axis: int, out: int) -> Array:
    size = x.shape[axis]
    if size == out:
        return x
    matrix = _averaging_matrix(size, out, x.dtype)
    return np.matmul(x, matrix.T) if axis == -1 else np.moveaxis(np.matmul(matrix, np.moveaxis(x, axis, -2)), -2, axis)


def adaptive_average_backward(grad: Array, size: Sizes) -> Array:
    dtype = grad.dtype
    result = grad.astype(np.float32) if _is_half(grad) else grad
    for axis in range(-len(size), 0):
        out = result.shape[axis]
        if out == size[axis]:
            continue
        matrix = _averaging_matrix(size[axis], out, result.dtype)
        result = np.moveaxis(np.matmul(np.moveaxis(result, axis, -1), matrix), -1, axis)
    return np.ascontiguousarray(result.astype(dtype, copy=result is grad))


def adaptive_max(x: Array, out: Sizes) -> tuple[Array, Array]:
    """The largest element of each adaptive window and its position in the flat image."""
    size = x.shape[-len(out) :]
    if x.size and all(o and s % o == 0 for s, o in zip(size, out, strict=True)):
        found = _even_max(x, size, out)
        if found is not None:
            return found
    bounds = [_adaptive_bounds(n, o) for n, o in zip(size, out, strict=True)]
    starts = [b[0] for b in bounds]
    ends = [b[1] for b in bounds]
    widest = tuple(int((e - s).max(initial=0)) for s, e in bounds)
    return _gathered_max(x, starts, ends, widest)


def _even_max(x: Array, size: Sizes, out: Sizes) -> tuple[Array, Array] | None:
    """The largest elements of windows that do not overlap, without a step for each place in a window; None if some are not numbers.

    A maximum over 56 by 56 in 64 planes takes 0.17 ms instead of 145.
    """
    n, lead = len(out), x.shape[: x.ndim - len(out)]
    kernel = tuple(s // o for s, o in zip(size, out, strict=True))
    pairs = [length for o, k in zip(out, kernel, strict=True) for length in (o, k)]
    axes = [*range(len(lead)), *(len(lead) + 2 * i for i in range(n)), *(len(lead) + 2 * i + 1 for i in range(n))]
    windows = x.reshape(*lead, *pairs).transpose(axes).reshape(*lead, *out, prod(kernel))
    place = np.argmax(windows, -1)
    best = np.take_along_axis(windows, place[..., None], -1)[..., 0]
    if x.dtype.kind not in "iu" and np.isnan(best).any():  # the last of these counts
        return None
    indices: Any = 0
    for axis, inside in enumerate(np.unravel_index(place, kernel)):
        start = np.arange(out[axis]).reshape(-1, *(1,) * (n - axis - 1)) * kernel[axis]
        indices = indices * size[axis] + start + inside
    return best, indices.astype(np.int64, copy=False)


def fractional_max(x: Array, kernel: Sizes, out: Sizes, samples: Array) -> tuple[Array, Array]:
    """As `adaptive_max`, with windows of one size at pseudo-random places that differ from plane to plane."""
    n = len(kernel)
    planes = x.shape[:-n]
    order = (1, 0) if n == 2 else (0, 1, 2)  # torch: of two samples, the first is for the width
    starts = [_fractional_starts(samples[..., order[i]].reshape(planes), x.shape[i - n], out[i], kernel[i]) for i in range(n)]
    return _gathered_max(x, starts, [s + k for s, k in zip(starts, kernel, strict=True)], kernel)


def _fractional_starts(sample: Array, size: int, out: int, kernel: int) -> Array:
    starts = np.full((*sample.shape, out), size - kernel, np.int64)
    if out > 1:
        alpha = sample.dtype.type(size - kernel) / sample.dtype.type(out - 1)
        i = np.arange(out - 1).astype(sample.dtype)
        starts[..., :-1] = ((i + sample[..., None]) * alpha).astype(np.int64) - (sample[..., None] * alpha).astype(np.int64)
    return starts


def _gathered_max(x: Array, starts: list[Array], ends: list[Array], widest: Sizes) -> tuple[Array, Array]:
    n = len(starts)
    size = x.shape[-n:]
    flat = x.reshape(*x.shape[:-n], prod(size))
    best: Any = None
    indices: Any = None
    for place in np.ndindex(*widest):
        at = _outer_positions(starts, ends, place, size)
        value = flat[..., at] if at.ndim == n else _take_by_plane(flat, at)
        if best is None:
            best, indices = value.copy(), np.broadcast_to(at, value.shape).copy()
            continue
        better = value > best
        if x.dtype.kind not in "iu":
            better |= np.isnan(value)
        np.copyto(best, value, where=better)
        np.copyto(indices, at, where=better)
    if best is None:
        shape = (*x.shape[:-n], *(s.shape[-1] for s in starts))
        return np.empty(shape, x.dtype), np.empty(shape, np.int64)
    return best, indices


def _outer_positions(starts: list[Array], ends: list[Array], place: Sizes, size: Sizes) -> Array:
    """Flat positions of one place in all windows: (*out), or (*planes, *out) where the windows differ from plane to plane.

    Past the end of a window that is not the widest, its last element is looked at again.
    """
    n = len(starts)
    total: Any = 0
    for axis in range(n):
        where = np.minimum(starts[axis] + place[axis], ends[axis] - 1) * prod(size[axis + 1 :])
        lead = where.shape[:-1]
        total = total + where.reshape(*lead, *(1,) * axis, where.shape[-1], *(1,) * (n - axis - 1))
    return np.asarray(total)


def _take_by_plane(flat: Array, at: Array) -> Array:
    return np.take_along_axis(flat, at.reshape(*flat.shape[:-1], prod(at.shape[flat.ndim - 1 :])), -1).reshape(at.shape)


# --- unpooling ------------------------------------------------------------------------------------------------------


def unpool(x: Array, indices: Array, out: Sizes) -> Array:
    """Zeros with the elements put at flat positions of each plane."""
    n = len(out)
    area = prod(out)
    if min(out) < 0:
        raise RuntimeError(
            f"max_unpooling{n}d(): output_size must contain non-negative spatial dimensions, but got output_size={tuple(out)}"
        )
    if indices.size and (int(indices.min()) < 0 or int(indices.max()) >= area):
        bad = int(indices.max()) if int(indices.max()) >= area else int(indices.min())
        shape = "x".join(map(str, out))
        raise RuntimeError(f"Found an invalid max index: {bad} (output volumes are of size {shape})")
    planes = prod(x.shape[:-n])
    result = np.zeros(planes * area, x.dtype)
    flat = (
        indices.reshape(planes, prod(indices.shape[-n:]))
        + np.arange(0, max(planes * area, 1), max(area, 1), dtype=np.int64)[:planes, None]
    )
    result[flat.reshape(-1)] = x.reshape(-1)
    return result.reshape(*x.shape[:-n], *out)
