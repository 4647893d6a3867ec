"""Winograd's convolution F(2×2, 3×3): four results of a 3×3 window from 16 products instead of 36.

Each result is made of the values in its own window alone, as in the direct sum, and errors are the same: of 32×256×8×8 with 256 results
6.7e-7 of the largest value, 5.1e-7 by columns. An infinity takes away another inside of a window, so that results which are not finite are
computed by columns.

Channels are last inside, so that all passes run over rows of channels. Measured on one thread, in ms, against columns and torch:

| | here | by columns | torch |
|---|--:|--:|--:|
| 4×64×16×16, 64 results | 0.93 | 1.18 | 0.74 |
| 4×256×8×8, 256 results | 3.67 | 4.40 | 2.91 |
| 32×64×16×16, 64 results | 7.25 | 9.20 | 5.84 |
| 32×128×16×16, 128 results | 22.8 | 30.9 | 21.4 |
| 32×256×8×8, 256 results | 21.1 | 31.8 | 19.0 |
| 32×512×4×4, 512 results | 24.6 | 29.2 | 17.3 |
| 4×512×4×4, 512 results | 9.57 | 4.29 | 3.92 |
| 4×64×32×32, 64 results | 4.51 | 4.37 | 3.11 |
| gradient of the weight, 32×128×8×8, 128 results | 6.78 | 9.55 | 6.31 |
| gradient of the weight, 32×256×4×4, 256 results | 6.69 | 10.7 | 7.90 |
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..machinery.parallel import over

__all__ = ["GRAD_WEIGHT_CHANNELS", "suits_winograd", "winograd", "winograd_grad_weight"]

Array = np.ndarray[Any, Any]

FEWEST_CHANNELS = 64
GRAD_WEIGHT_CHANNELS = 128  # from which the gradient of a weight takes less time, too
MOST_POSITIONS = 400
CHUNK_BYTES = 1 << 21
_NS_OF_PRODUCT = 1 / 45  # for a multiplication and an addition
_SIDE = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]], np.float32)
_OF_WEIGHT = np.kron(_SIDE, _SIDE)


def _tiles(n: int) -> int:
    return (n + 1) // 2


def suits_winograd(weight_shape: tuple[int, ...], samples: int, out: tuple[int, ...], fewest: int = FEWEST_CHANNELS) -> bool:
    """Whether a convolution of float32 with stride one, of these results, takes less time by tiles: few positions, many channels."""
    if weight_shape[2:] != (3, 3) or min(weight_shape[:2]) < fewest:
        return False
    height, width = out
    tiles = _tiles(height) * _tiles(width)
    return height * width <= MOST_POSITIONS and 4 * tiles <= 1.35 * height * width and 4 * samples * tiles >= max(weight_shape[:2])


def winograd(x: Array, weight: Array, padding: tuple[int, ...]) -> Array | None:
    """Correlate (N, C, H, W) with (O, C, 3, 3); None if a result is not finite."""
    results, channels = weight.shape[:2]
    height, width = (n + 2 * p - 2 for n, p in zip(x.shape[2:], padding, strict=True))
    matrices = np.matmul(_OF_WEIGHT, weight.reshape(results * channels, 9).T).reshape(16, results, channels).swapaxes(1, 2)
    out = np.empty((len(x), results, height, width), x.dtype)
    tiles = _tiles(height), _tiles(width)
    at_once = max(1, CHUNK_BYTES // (tiles[0] * tiles[1] * 16 * max(results, channels) * x.itemsize))

    def work(begin: int, end: int) -> None:
        for first in range(begin, end, at_once):
            part = x[first : min(first + at_once, end)]
            turned = _turn_input(part, padding, tiles)
            products = np.matmul(turned.reshape(16, -1, channels), matrices).reshape(4, 4, len(part), *tiles, results)
            found = _turn_products(products)[:, :height, :width]
            out[first : first + len(part)] = np.moveaxis(found, -1, 1)

    over(len(x), _NS_OF_PRODUCT * 16 * results * channels * tiles[0] * tiles[1], work)
    return out if np.isfinite(np.add.reduce(out, axis=None)) else None


def _turn_input(x: Array, padding: tuple[int, ...], tiles: tuple[int, int]) -> Array:
    """What is multiplied for each tile: (4, 4, N, *tiles, C)."""
    top, left = padding
    image = np.zeros((len(x), 2 * tiles[0] + 2, 2 * tiles[1] + 2, x.shape[1]), x.dtype)
    image[:, top : top + x.shape[2], left : left + x.shape[3]] = np.moveaxis(x, 1, -1)
    rows = np.empty((4, len(x), tiles[0], *image.shape[2:]), x.dtype)
    _turn([image[:, i : i + 2 * tiles[0] : 2] for i in range(4)], list(rows))
    turned = np.empty((4, 4, len(x), *tiles, x.shape[1]), x.dtype)
    _turn([rows[:, :, :, j : j + 2 * tiles[1] : 2] for j in range(4)], [turned[:, j] for j in range(4)])
    return turned


def _turn(values: list[Array], out: list[Array]) -> None:
    np.subtract(values[0], values[2], out=out[0])
    np.add(values[1], values[2], out=out[1])
    np.subtract(values[2], values[1], out=out[2])
    np.subtract(values[1], values[3], out=out[3])


def _turn_products(products: Array) -> Array:
    """Four results of each tile from its 16 products: (N, height, width, results)."""
    samples, high, wide, results = products.shape[2:]
    found = np.empty((samples, high, 2, wide, 2, results), products.dtype)
    for i, rows in enumerate(_pair(products)):
        for j, values in enumerate(_pair(rows)):
            found[:, :, i, :, j] = values
    return found.reshape(samples, 2 * high, 2 * wide, results)


def _pair(products: Array) -> tuple[Array, Array]:
    total, difference = products[1] + products[2], products[1] - products[2]
    total += products[0]
    difference -= products[3]
    return total, difference


def winograd_grad_weight(x: Array, grad: Array, padding: tuple[int, ...]) -> Array | None:
    """The gradient of a 3×3 weight, (O, C, 3, 3), by the same sums transposed; None if a value is not finite."""
    results, channels = grad.shape[1], x.shape[1]
    tiles = _tiles(grad.shape[2]), _tiles(grad.shape[3])
    at_once = max(1, CHUNK_BYTES // (tiles[0] * tiles[1] * 16 * max(results, channels) * x.itemsize))
    found: dict[int, Array] = {}

    def work(begin: int, end: int) -> None:
        total = found[begin] = np.zeros((16, results, channels), x.dtype)
        for first in range(begin, end, at_once):
            part = slice(first, min(first + at_once, end))
            turned = _turn_input(x[part], padding, tiles).reshape(16, -1, channels)
            total += np.matmul(_turn_gradient(grad[part], tiles).swapaxes(1, 2), turned)

    over(len(x), _NS_OF_PRODUCT * 16 * results * channels * tiles[0] * tiles[1], work)
    total = sum((found[begin] for begin in sorted(found)[1:]), start=found[0])
    out = np.matmul(total.reshape(16, results * channels).T, _OF_WEIGHT).reshape(results, channels, 3, 3)
    return out if np.isfinite(np.add.reduce(out, axis=None)) else None


def _turn_gradient(grad: Array, tiles: tuple[int, int]) -> Array:
    """What is multiplied for the gradients of each tile: (16, N × tiles, O)."""
    (samples, results), (high, wide) = grad.shape[:2], tiles
    image = np.zeros((samples, 2 * high, 2 * wide, results), grad.dtype)
    image[:, : grad.shape[2], : grad.shape[3]] = np.moveaxis(grad, 1, -1)
    pairs = image.reshape(samples, high, 2, 2 * wide, results)
    rows = np.empty((4, samples, high, 2 * wide, results), grad.dtype)
    _turn_pair(pairs[:, :, 0], pairs[:, :, 1], list(rows))
    beside = rows.reshape(4, samples, high, wide, 2, results)
    turned = np.empty((4, 4, samples, high, wide, results), grad.dtype)
    _turn_pair(beside[..., 0, :], beside[..., 1, :], [turned[:, j] for j in range(4)])
    return turned.reshape(16, -1, results)


def _turn_pair(first: Array, second: Array, out: list[Array]) -> None:
    np.copyto(out[0], first)
    np.add(first, second, out=out[1])
    np.subtract(first, second, out=out[2])
    np.negative(second, out=out[3])
