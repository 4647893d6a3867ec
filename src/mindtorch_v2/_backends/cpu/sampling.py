"""Sampling an image at the places of a grid, in two and three dimensions."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np

__all__ = ["sample", "sample_backward"]

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
    found = np.take_along_axis(x.reshape(*x.shape[:2], prod(size)), flat.reshape(n, 1, -1), 2)
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


def _coordinates(grid: Array, size: tuple[int, ...], padding: int, align: bool) -> tuple[list[Array], list[Array]]:
    """Positions and slopes in the image's order of dimensions; a grid's last dimension starts with the width."""
    n = len(size)
    pairs = [_places(grid[..., n - 1 - i], size[i], padding, align) for i in range(n)]
    return [p for p, _ in pairs], [s for _, s in pairs]


def sample(x: Array, grid: Array, mode: int, padding: int, align: bool) -> Array:
    """The image's values at the grid's places: (N, C, *grid)."""
    dtype = x.dtype
    if dtype.itemsize == 2:
        x, grid = x.astype(np.float32), grid.astype(np.float32)
    shape = (*x.shape[:2], *grid.shape[1:-1])
    if not prod(shape):
        return np.zeros(shape, dtype)
    if mode == BICUBIC:
        return _sample_cubic(x, grid, padding, align).reshape(shape).astype(dtype, copy=False)
    where, _ = _coordinates(grid, x.shape[2:], padding, align)
    if mode == NEAREST:
        total = _gather(x, [_whole(np.rint(p)) for p in where])
    else:
        lows = [np.floor(p) for p in where]
        fractions = [p - low for p, low in zip(where, lows, strict=True)]
        base = [_whole(low) for low in lows]
        total = np.zeros((*x.shape[:2], prod(shape[2:])), x.dtype)
        for corner in product((0, 1), repeat=len(base)):
            weight = _corner_weight(fractions, corner)
            total += _gather(x, [b + c for b, c in zip(base, corner, strict=True)]) * weight.reshape(len(x), 1, -1)
    return total.reshape(shape).astype(dtype, copy=False)


def _corner_weight(fractions: list[Array], corner: tuple[int, ...], skip: int = -1) -> Array:
    weight: Any = np.ones_like(fractions[0])
    for i, (f, c) in enumerate(zip(fractions, corner, strict=True)):
        if i != skip:
            weight = weight * (f if c else 1 - f)
    return weight  # type: ignore[no-any-return]


def sample_backward(
    grad: Array, x: Array, grid: Array, mode: int, padding: int, align: bool, mask: tuple[bool, bool]
) -> tuple[Array | None, Array]:
    """Gradients of the image (when the mask asks for it) and of the grid."""
    dtype, grid_dtype = x.dtype, grid.dtype
    if dtype.itemsize == 2:
        grad, x, grid = (a.astype(np.float32) for a in (grad, x, grid))
    grad = grad.reshape(*grad.shape[:2], -1)
    image = np.zeros(x.shape, x.dtype) if mask[0] else None
    grid_grad = np.zeros(grid.shape, grid.dtype)
    if grad.size:
        if mode == BICUBIC:
            _cubic_backward(grad, x, grid, padding, align, image, grid_grad)
        else:
            _linear_backward(grad, x, grid, mode, padding, align, image, grid_grad)
    return None if image is None else image.astype(dtype, copy=False), grid_grad.astype(grid_dtype, copy=False)


def _linear_backward(
    grad: Array, x: Array, grid: Array, mode: int, padding: int, align: bool, image: Array | None, grid_grad: Array
) -> None:
    where, slopes = _coordinates(grid, x.shape[2:], padding, align)
    if mode == NEAREST:
        if image is not None:
            _scatter(image, [_whole(np.rint(p)) for p in where], grad)
        return
    n = len(where)
    lows = [np.floor(p) for p in where]
    fractions = [p - low for p, low in zip(where, lows, strict=True)]
    base = [_whole(low) for low in lows]
    for corner in product((0, 1), repeat=n):
        at = [b + c for b, c in zip(base, corner, strict=True)]
        if image is not None:
            _scatter(image, at, grad * _corner_weight(fractions, corner).reshape(len(x), 1, -1))
        shared = (_gather(x, at) * grad).sum(1).reshape(grid.shape[:-1])
        for i in range(n):
            weight = _corner_weight(fractions, corner, skip=i)
            grid_grad[..., n - 1 - i] += shared * (weight if corner[i] else -weight) * slopes[i]


# --- bicubic --------------------------------------------------------------------------------------------------------


def _cubic_weights(t: Array) -> tuple[Array, Array, Array, Array]:
    a = -0.75
    near = lambda x: ((a + 2) * x - (a + 3)) * x * x + 1  # noqa: E731
    far = lambda x: ((a * x - 5 * a) * x + 8 * a) * x - 4 * a  # noqa: E731
    return far(t + 1), near(t), near(1 - t), far(2 - t)


def _cubic_slopes(t: Array) -> tuple[Array, Array, Array, Array]:
    a = -0.75
    near = lambda x: (3 * (a + 2) * x - 2 * (a + 3)) * x  # noqa: E731
    far = lambda x: (3 * a * x - 10 * a) * x + 8 * a  # noqa: E731
    return far(t + 1), near(t), -near(1 - t), -far(2 - t)


def _bounded(at: Array, size: int, padding: int, align: bool) -> Array:
    """A tap's pixel under the padding mode: taps are bounded one by one, not the position they surround."""
    if padding == REFLECTION:
        where, _ = _reflect(at.astype(np.float64), 0, 2 * (size - 1)) if align else _reflect(at.astype(np.float64), -1, 2 * size - 1)
        at = _whole(where)
    return at if padding == ZEROS else at.clip(0, size - 1)


def _cubic_setup(x: Array, grid: Array, padding: int, align: bool) -> Any:
    size = x.shape[2:]
    pairs = [_unnormalize(grid[..., 1 - i], size[i], align) for i in range(2)]
    lows = [np.floor(p) for p, _ in pairs]
    fractions = [p - low for (p, _), low in zip(pairs, lows, strict=True)]
    taps = [[_bounded(_whole(low) + k - 1, size[i], padding, align) for k in range(4)] for i, low in enumerate(lows)]
    return taps, fractions, [factor for _, factor in pairs]


def _sample_cubic(x: Array, grid: Array, padding: int, align: bool) -> Array:
    taps, fractions, _ = _cubic_setup(x, grid, padding, align)
    weights = [_cubic_weights(f) for f in fractions]
    total = np.zeros((*x.shape[:2], prod(grid.shape[1:-1])), x.dtype)
    for i, j in product(range(4), repeat=2):
        total += _gather(x, [taps[0][i], taps[1][j]]) * (weights[0][i] * weights[1][j]).reshape(len(x), 1, -1)
    return total


def _cubic_backward(grad: Array, x: Array, grid: Array, padding: int, align: bool, image: Array | None, grid_grad: Array) -> None:
    taps, fractions, factors = _cubic_setup(x, grid, padding, align)
    weights = [_cubic_weights(f) for f in fractions]
    slopes = [_cubic_slopes(f) for f in fractions]
    for i, j in product(range(4), repeat=2):
        at = [taps[0][i], taps[1][j]]
        if image is not None:
            _scatter(image, at, grad * (weights[0][i] * weights[1][j]).reshape(len(x), 1, -1))
        shared = (_gather(x, at) * grad).sum(1).reshape(grid.shape[:-1])
        grid_grad[..., 1] += shared * slopes[0][i] * weights[1][j] * factors[0]
        grid_grad[..., 0] += shared * weights[0][i] * slopes[1][j] * factors[1]
