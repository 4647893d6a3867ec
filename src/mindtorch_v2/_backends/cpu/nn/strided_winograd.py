"""Winograd's convolution F(2×2, 2×2) for 4×4 windows with stride two, with both gradients: 9 products instead of 16.

With stride two, results of a 4×4 window are those of a 2×2 window with stride one over the even and the odd rows and columns of the image, taken as
four times as many channels. Two neighbours of one dimension, `x0·g0 + x1·g1` and `x1·g0 + x2·g1`, need three products: of `x0 - x1` with `g0`, of `x1`
with `g0 + g1`, and of `x2 - x1` with `g1`. The gradients are the same sums transposed.

An infinity takes away another inside of a window, so that results which are not finite are computed in another way. Channels are last inside, so
that all passes run over rows of channels. The errors are 1.1e-6 of the largest value where columns have 0.6e-6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..machinery.parallel import over
from .small_products import multiply

__all__ = ["strided_forward", "strided_grad_input", "strided_grad_weight", "suits_strided", "suits_strided_grad_input"]

Array = np.ndarray[Any, Any]
Sizes = tuple[int, ...]

FEWEST_CHANNELS = 32
FEWEST_RESULTS = 128  # for each of which 9 products are saved, where turning the input takes the same for any number
FEWEST_TILES, MOST_POSITIONS = 128, 400
CHUNK_BYTES = 1 << 21
_NS_OF_PRODUCT = 1 / 45  # for a multiplication and an addition
# From the four places of a kernel's side to the three factors of its even places, and those of its odd ones.
_SIDE = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1]], np.float32).reshape(3, 2, 4)
_OF_WEIGHT = np.einsum("ipk,jql->ijpqkl", _SIDE, _SIDE).reshape(36, 16)


def _tiles(size: Sizes) -> tuple[int, int]:
    return (size[0] + 1) // 2, (size[1] + 1) // 2


def suits_strided(x: Array, weight_shape: Sizes, out: Sizes, stride: Sizes, dilation: Sizes) -> bool:
    """Whether a convolution with these results, or the gradient of its weight, takes less time by tiles: many results, few positions."""
    return (
        weight_shape[0] >= FEWEST_RESULTS
        and out[0] * out[1] <= MOST_POSITIONS
        and len(x) * _tiles(out)[0] * _tiles(out)[1] >= FEWEST_TILES
        and suits_strided_grad_input(x, weight_shape, out, stride, dilation)
    )


def suits_strided_grad_input(grad: Array, weight_shape: Sizes, out: Sizes, stride: Sizes, dilation: Sizes) -> bool:
    """The same for the gradient of the input, where the sum of columns takes longer: enough tiles to make up for the turn of the weight."""
    results, channels, *kernel = weight_shape
    if grad.dtype != np.float32 or kernel != [4, 4] or tuple(stride) != (2, 2) or max(dilation) > 1:
        return False
    tiles = _tiles(out)[0] * _tiles(out)[1]
    return (
        min(results, channels) >= FEWEST_CHANNELS
        and 4 * tiles <= 1.35 * out[0] * out[1]
        and 4 * len(grad) * tiles >= max(results, 4 * channels)
    )


def _turn_weight(weight: Array) -> Array:
    """The factors of the nine products, (9, results, 4 × channels); the channels of the even rows and columns are first."""
    results, channels = weight.shape[:2]
    factors = np.matmul(_OF_WEIGHT, weight.reshape(results, channels, 16).swapaxes(1, 2))
    return factors.reshape(results, 9, 4 * channels).swapaxes(0, 1)


def _turn_input(x: Array, padding: Sizes, tiles: tuple[int, int]) -> Array:
    """What is multiplied for each tile: (9, N × tiles, 4 × channels)."""
    (samples, channels), (high, wide) = x.shape[:2], tiles
    image = np.zeros((samples, 4 * high + 2, 4 * wide + 2, channels), x.dtype)
    inside = x[:, :, : image.shape[1] - padding[0], : image.shape[2] - padding[1]]  # what is left over reaches no result
    image[:, padding[0] : padding[0] + inside.shape[2], padding[1] : padding[1] + inside.shape[3]] = np.moveaxis(inside, 1, -1)
    pairs = image.reshape(samples, 2 * high + 1, 2, 2 * wide + 1, 2 * channels)
    rows = np.empty((3, samples, high, *pairs.shape[2:]), x.dtype)
    _turn_three([pairs[:, i : i + 2 * high : 2] for i in range(3)], list(rows))
    turned = np.empty((3, 3, samples, high, wide, 2, 2 * channels), x.dtype)
    _turn_three([rows[:, :, :, :, j : j + 2 * wide : 2] for j in range(3)], [turned[:, j].swapaxes(3, 4) for j in range(3)])
    return turned.reshape(9, -1, 4 * channels)


def _turn_three(values: Sequence[Array], out: Sequence[Array]) -> None:
    np.subtract(values[0], values[1], out=out[0])
    np.copyto(out[1], values[1])
    np.subtract(values[2], values[1], out=out[2])


def _turn_gradient(grad: Array, tiles: tuple[int, int]) -> Array:
    """What is multiplied for the gradients of each tile: (9, N × tiles, results)."""
    (samples, results), (high, wide) = grad.shape[:2], tiles
    image = np.zeros((samples, 2 * high, 2 * wide, results), grad.dtype)
    image[:, : grad.shape[2], : grad.shape[3]] = np.moveaxis(grad, 1, -1)
    pairs = image.reshape(samples, high, 2, 2 * wide, results)
    rows = np.empty((3, samples, high, 2 * wide, results), grad.dtype)
    _turn_two(pairs[:, :, 0], pairs[:, :, 1], list(rows))
    beside = rows.reshape(3, samples, high, wide, 2, results)
    turned = np.empty((3, 3, samples, high, wide, results), grad.dtype)
    _turn_two(beside[..., 0, :], beside[..., 1, :], [turned[:, j] for j in range(3)])
    return turned.reshape(9, -1, results)


def _turn_two(first: Array, second: Array, out: Sequence[Array]) -> None:
    np.copyto(out[0], first)
    np.add(first, second, out=out[1])
    np.copyto(out[2], second)


def _chunks(begin: int, end: int, channels: int, tiles: tuple[int, int]) -> Iterator[slice]:
    """Samples whose products fit the cache, of so many channels."""
    pieces = -(-(end - begin) // max(1, CHUNK_BYTES // (tiles[0] * tiles[1] * 9 * channels * 4)))
    at_once = -(-(end - begin) // max(pieces, 1))
    return (slice(first, min(first + at_once, end)) for first in range(begin, end, max(at_once, 1)))


def _cost(results: int, channels: int, tiles: tuple[int, int]) -> float:
    """What a sample takes, in nanoseconds."""
    return _NS_OF_PRODUCT * 36 * results * channels * tiles[0] * tiles[1]


def _if_finite(found: Array) -> Array | None:
    return found if np.isfinite(np.add.reduce(found, axis=None)) else None


def strided_forward(x: Array, weight: Array, out: Sizes, padding: Sizes) -> Array | None:
    """Correlate (N, C, H, W) with (O, C, 4, 4), in steps of two; None if a result is not finite."""
    results, channels = weight.shape[:2]
    tiles = high, wide = _tiles(out)
    matrices = _turn_weight(weight).swapaxes(1, 2)
    if 2 * results <= len(x) * high * wide:  # products of some rows at a time take less than the copy
        matrices = np.ascontiguousarray(matrices)
    found = np.empty((len(x), results, *out), x.dtype)

    def work(begin: int, end: int) -> None:
        for chunk in _chunks(begin, end, max(results, 4 * channels), tiles):
            part = x[chunk]
            products = multiply(_turn_input(part, padding, tiles), matrices).reshape(3, 3, len(part), high, wide, results)
            image = np.empty((len(part), high, 2, wide, 2, results), x.dtype)
            for i in range(2):
                rows = products[i] + products[i + 1]
                for j in range(2):
                    np.add(rows[j], rows[j + 1], out=image[:, :, i, :, j])
            image = image.reshape(len(part), 2 * high, 2 * wide, results)
            found[chunk] = np.moveaxis(image[:, : out[0], : out[1]], -1, 1)

    over(len(x), _cost(results, channels, tiles), work)
    return _if_finite(found)


def strided_grad_input(grad: Array, weight: Array, size: Sizes, padding: Sizes) -> Array | None:
    """The gradient of the input, (N, C, *size); None if a value is not finite."""
    results, channels = weight.shape[:2]
    tiles = high, wide = _tiles(grad.shape[2:])
    matrices = _turn_weight(weight)
    found = np.zeros((len(grad), channels, *size), grad.dtype)

    def work(begin: int, end: int) -> None:
        for chunk in _chunks(begin, end, max(results, 4 * channels), tiles):
            part = grad[chunk]
            products = multiply(_turn_gradient(part, tiles), matrices).reshape(3, 3, len(part), high, wide, 2, 2 * channels)
            columns = np.empty((3, len(part), high, 2, 2 * wide + 1, 2 * channels), grad.dtype)
            _spread(np.moveaxis(products, (1, 4), (0, 1)), np.moveaxis(columns, 4, 0))
            image = np.empty((len(part), 2 * high + 1, 2, 2 * wide + 1, 2 * channels), grad.dtype)
            _spread(columns.swapaxes(1, 2), image.swapaxes(0, 1))
            whole = image.reshape(len(part), 4 * high + 2, 4 * wide + 2, channels)
            inside = whole[:, padding[0] : padding[0] + size[0], padding[1] : padding[1] + size[1]]
            found[chunk, :, : inside.shape[1], : inside.shape[2]] = np.moveaxis(inside, -1, 1)

    over(len(grad), _cost(results, channels, tiles), work)
    return _if_finite(found)


def _spread(products: Array, out: Array) -> None:
    """Add up what each place gets from the tiles that see it, the dimension of the tiles first: the last place of a tile is the first of the next."""
    first, middle, last = products
    np.subtract(middle, first, out=out[1::2])
    out[1::2] -= last
    out[0] = first[0]
    np.add(first[1:], last[:-1], out=out[2:-1:2])
    out[-1] = last[-1]


def strided_grad_weight(x: Array, grad: Array, padding: Sizes) -> Array | None:
    """The gradient of the weight, (O, C, 4, 4); None if a value is not finite."""
    results, channels = grad.shape[1], x.shape[1]
    tiles = _tiles(grad.shape[2:])
    found: dict[int, Array] = {}

    def work(begin: int, end: int) -> None:
        total = found[begin] = np.zeros((9, results, 4 * channels), x.dtype)
        for chunk in _chunks(begin, end, max(results, 4 * channels), tiles):
            total += np.matmul(_turn_gradient(grad[chunk], tiles).swapaxes(1, 2), _turn_input(x[chunk], padding, tiles))

    over(len(x), _cost(results, channels, tiles), work)
    total = sum((found[begin] for begin in sorted(found)[1:]), start=found[0])
    products = total.reshape(3, 3, results, 2, 2, channels)
    rows = products[:2] + products[1:]
    both = rows[:, :2] + rows[:, 1:]
    return _if_finite(np.ascontiguousarray(both.transpose(2, 5, 0, 3, 1, 4)).reshape(results, channels, 4, 4))
