"""Sampling an image at the places of a grid, in two and three dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

import numpy as np

__all__ = ["sample", "sample_backward", "sample_double_backward"]

Array = np.ndarray[Any, Any]
BILINEAR, NEAREST, BICUBIC = 0, 1, 2
ZEROS, BORDER, REFLECTION = 0, 1, 2


def _unnormalize(at: Array, size: int, align: bool) -> tuple[Array, float]:
    """From [-1, 1] to pixels, and the factor that gradients take."""
    if align:
        return (at + 1) / 2 * (size - 1), (size - 1) / 2
    return ((at + 1) * size - 1) / 2, size / 2


def _reflect(at: Array, low: int, high: int) -> tuple[Array, Array]:
    """Mirror positions between twice-low and twice-high, and the sign that gradients take."""
    if low == high:
        return np.zeros_like(at), np.zeros_like(at)
    start, span = low / 2, (high - low) / 2
    shifted = at - start
    sign = np.where(shifted < 0, -1, 1)
    shifted = np.abs(shifted)
    flips = np.floor(shifted / span)
    extra = shifted - flips * span
    even = flips % 2 == 0
    return np.where(even, extra + start, span - extra + start), np.where(even, sign, -sign)


def _clip(at: Array, size: int) -> tuple[Array, Array]:
    # the comparison is written so that a NaN becomes zero
    inside = np.where(at > 0, np.minimum(at, size - 1), 0)
    return inside, ((at > 0) & (at < size - 1)).astype(at.dtype)


def _places(at: Array, size: int, padding: int, align: bool) -> tuple[Array, Array]:
    """Pixel positions of one coordinate under the padding mode, and d position / d coordinate."""
    where, factor = _unnormalize(at, size, align)
    slope: Any = np.full_like(at, factor)
    if padding == REFLECTION:
        where, sign = _reflect(where, 0, 2 * (size - 1)) if align else _reflect(where, -1, 2 * size - 1)
        slope = slope * sign
    if padding != ZEROS:
        where, kept = _clip(where, size)
        slope = slope * kept
    return where.astype(at.dtype, copy=False), slope.astype(at.dtype, copy=False)


def _whole(at: Array) -> Array:
    return np.nan_to_num(at, nan=-1, posinf=-1, neginf=-1).clip(-(2**40), 2**40).astype(np.int64)


def _flat(corner: list[Array], size: tuple[int, ...]) -> tuple[Array, Array]:
    """Flat positions of pixels (clipped into the image), and which of them lie inside."""
    inside: Any = True
    flat: Any = 0
    for where, n in zip(corner, size, strict=True):
        inside = inside & (where >= 0) & (where < n)
        flat = flat * n + where.clip(0, n - 1)
    return flat, inside


def _gather(x: Array, corner: list[Array]) -> Array:
    """(N, C, places): the pixels at these positions, zero outside."""
    size = x.shape[2:]
    flat, inside = _flat(corner, size)
    n = len(x)
    rows, pixels = flat.reshape(n, -1), x.reshape(*x.shape[:2], prod(size))
    found = np.empty((*x.shape[:2], rows.shape[1]), x.dtype)
    for i in range(n):  # a take a sample is several times as fast as indexing all of them at once
        np.take(pixels[i], rows[i], 1, found[i], "clip")
    if not inside.all():
        found *= inside.reshape(n, 1, -1)
    return found


def _scatter(total: Array, corner: list[Array], grad: Array) -> None:
    """Add (N, C, places) gradients at these positions of (N, C, pixels)."""
    n, channels, pixels = total.shape[0], total.shape[1], prod(total.shape[2:])
    flat, inside = _flat(corner, total.shape[2:])
    grad = grad * inside.reshape(n, 1, -1)
    at = flat.reshape(n, 1, -1) + np.arange(n * channels).reshape(n, channels, 1) * pixels
    added = np.bincount(at.reshape(-1), np.broadcast_to(grad, at.shape).reshape(-1), n * channels * pixels)
    total += added.reshape(total.shape).astype(total.dtype, copy=False)


class _Tap:
    """One pixel along one dimension: where, its weight, and the weight's first and second derivative by the grid's coordinate."""

    __slots__ = ("curve", "slope", "weight", "where")

    def __init__(self, where: Array, weight: Array, slope: Array, curve: Array) -> None:
        self.where, self.weight, self.slope, self.curve = where, weight, slope, curve


def _linear_taps(at: Array, slope: Array) -> list[_Tap]:
    low = np.floor(at)
    part = at - low
    base = _whole(low)
    none = np.zeros_like(at)
    return [_Tap(base, 1 - part, -slope, none), _Tap(base + 1, part, slope, none)]


def _nearest_taps(at: Array) -> list[_Tap]:
    none = np.zeros_like(at)
    return [_Tap(_whole(np.rint(at)), np.ones_like(at), none, none)]


def _cubic_taps(at: Array, size: int, padding: int, align: bool) -> list[_Tap]:
    """Four taps, which are brought into the image one by one, not the position they surround."""
    a = -0.75
    where, factor = _unnormalize(at, size, align)
    low = np.floor(where)
    t = where - low
    base = _whole(low)
    taps = []
    for k, (distance, sign) in enumerate(((t + 1, 1), (t, 1), (1 - t, -1), (2 - t, -1))):
        d = distance
        if k in (1, 2):
            weight, slope, curve = (
                ((a + 2) * d - (a + 3)) * d * d + 1,
                (3 * (a + 2) * d - 2 * (a + 3)) * d,
                6 * (a + 2) * d - 2 * (a + 3),
            )
        else:
            weight, slope, curve = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a, (3 * a * d - 10 * a) * d + 8 * a, 6 * a * d - 10 * a
        taps.append(_Tap(_bounded(base + k - 1, size, padding, align), weight, slope * sign * factor, curve * factor * factor))
    return taps


def _bounded(at: Array, size: int, padding: int, align: bool) -> Array:
    if padding == REFLECTION:
        low, high = (0, 2 * (size - 1)) if align else (-1, 2 * size - 1)
        at = _whole(_reflect(at.astype(np.float64), low, high)[0])
    return at if padding == ZEROS else at.clip(0, size - 1)


def _taps(grid: Array, size: tuple[int, ...], mode: int, padding: int, align: bool) -> list[list[_Tap]]:
    """The taps of each dimension, in the image's order; a grid's last dimension starts with the width."""
    n = len(size)
    found = []
    for i in range(n):
        at = grid[..., n - 1 - i]
        if mode == BICUBIC:
            found.append(_cubic_taps(at, size[i], padding, align))
            continue
        where, slope = _places(at, size[i], padding, align)
        found.append(_nearest_taps(where) if mode == NEAREST else _linear_taps(where, slope))
    return found


def _corners(taps: list[list[_Tap]]) -> Iterator[tuple[list[Array], tuple[_Tap, ...]]]:
    for corner in product(*taps):
        yield [tap.where for tap in corner], corner


def _weight(corner: tuple[_Tap, ...], *by: int) -> Array:
    """A corner's weight, differentiated by these dimensions."""
    total: Any = 1
    for i, tap in enumerate(corner):
        order = by.count(i)
        total = total * (tap.weight if order == 0 else tap.slope if order == 1 else tap.curve)
    return total


def _widened(*arrays: Array) -> tuple[Array, ...]:
    return tuple(a.astype(np.float32) if a.dtype.itemsize == 2 else a for a in arrays)


def sample(x: Array, grid: Array, mode: int, padding: int, align: bool) -> Array:
    """The image's values at the grid's places: (N, C, *grid)."""
    dtype = x.dtype
    shape = (*x.shape[:2], *grid.shape[1:-1])
    if not prod(shape):
        return np.zeros(shape, dtype)
    x, grid = _widened(x, grid)
    total: Any = None
    for where, corner in _corners(_taps(grid, x.shape[2:], mode, padding, align)):
        part = _gather(x, where)
        part *= _weight(corner).reshape(len(x), 1, -1)
        total = part if total is None else np.add(total, part, out=total)
    return total.reshape(shape).astype(dtype, copy=False)


def sample_backward(
    grad: Array, x: Array, grid: Array, mode: int, padding: int, align: bool, mask: tuple[bool, bool]
) -> tuple[Array | None, Array]:
    """Gradients of the image (when the mask asks for it) and of the grid."""
    dtype, grid_dtype = x.dtype, grid.dtype
    grad, x, grid = _widened(grad, x, grid)
    image = np.zeros(x.shape, x.dtype) if mask[0] else None
    grid_grad = np.zeros(grid.shape, grid.dtype)
    if grad.size:
        grad = grad.reshape(*grad.shape[:2], -1)
        n = grid.shape[-1]
        for where, corner in _corners(_taps(grid, x.shape[2:], mode, padding, align)):
            if image is not None:
                _scatter(image, where, grad * _weight(corner).reshape(len(x), 1, -1))
            if mode != NEAREST and mask[1]:
                shared = _overlap(_gather(x, where), grad, grid)
                for i in range(n):
                    grid_grad[..., n - 1 - i] += shared * _weight(corner, i)
    return None if image is None else image.astype(dtype, copy=False), grid_grad.astype(grid_dtype, copy=False)


def _overlap(pixels: Array, grad: Array, grid: Array) -> Array:
    """The sum over channels of pixels times gradients, in the grid's shape."""
    return np.einsum("ncp,ncp->np", pixels, grad).reshape(grid.shape[:-1])


def sample_double_backward(
    image_grad: Array | None, grid_grad: Array | None, grad: Array, x: Array, grid: Array, mode: int, padding: int, align: bool
) -> tuple[Array, Array, Array]:
    """Gradients of `sample_backward` with respect to its gradient, image and grid.

    With ``a`` the upstream gradient of the image's gradient and ``b`` that of the grid's, the backward pass stands for
    ``sum grad * (w a + sum_i b_i dw/dx_i x)``, of which the three are the derivatives.
    """
    dtype, grid_dtype, shape = x.dtype, grid.dtype, grad.shape
    grad, x, grid = _widened(grad, x, grid)
    n, batch = grid.shape[-1], len(x)
    flat = grad.reshape(*grad.shape[:2], prod(grad.shape[2:]))
    to_grad, to_image, to_grid = np.zeros_like(flat), np.zeros(x.shape, x.dtype), np.zeros(grid.shape, grid.dtype)
    upstream = None if image_grad is None else _widened(image_grad)[0]
    directions = None if grid_grad is None else [_widened(grid_grad)[0][..., n - 1 - i] for i in range(n)]
    for where, corner in _corners(_taps(grid, x.shape[2:], mode, padding, align)) if grad.size else ():
        if upstream is not None:
            pixels = _gather(upstream, where)
            to_grad += pixels * _weight(corner).reshape(batch, 1, -1)
            shared = _overlap(pixels, flat, grid)
            for i in range(n):
                to_grid[..., n - 1 - i] += shared * _weight(corner, i)
        if directions is not None and mode != NEAREST:
            pixels = _gather(x, where)
            along = sum(_weight(corner, i) * b for i, b in enumerate(directions))
            along = np.asarray(along).reshape(batch, 1, -1)
            to_grad += pixels * along
            _scatter(to_image, where, flat * along)
            shared = _overlap(pixels, flat, grid)
            for j in range(n):
                to_grid[..., n - 1 - j] += shared * sum(_weight(corner, i, j) * b for i, b in enumerate(directions))
    return (
        to_grad.reshape(shape).astype(dtype, copy=False),
        to_image.astype(dtype, copy=False),
        to_grid.astype(grid_dtype, copy=False),
    )
