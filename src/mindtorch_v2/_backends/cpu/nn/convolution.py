"""Convolution over any number of spatial dimensions: windows gathered into columns, and a matrix product for each chunk of them.

The columns of a sample are (channels × kernel, positions), so that its product is written where the result belongs. Images of fewer than 64
positions have their samples side by side in one product. Groups are one more dimension of the same product: the channels of a group, and so
the rows of its columns, lie side by side.

Images with wide rows, and the gradients of their inputs, go by `bands` instead, which gathers less.

Chunks are 256 to 768 positions, measured with 32 to 512 channels and a 3×3 kernel: BLAS does 90 to 98 GFLOP/s there, 78 to 85 with 16
positions or with rows of 4 or 8 kB, which fall into the same places of the cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ..machinery.blas import threaded
from ..machinery.parallel import over
from .bands import correlate_by_bands, results_at_once
from .depthwise import depthwise_forward, depthwise_grad_input, depthwise_grad_weight, is_depthwise, is_small
from .strided_winograd import strided_forward, strided_grad_input, strided_grad_weight, suits_strided, suits_strided_grad_input
from .winograd import GRAD_WEIGHT_CHANNELS, suits_winograd, winograd, winograd_grad_weight

__all__ = ["conv_forward", "conv_grad_input", "conv_grad_weight", "conv_output_size", "transposed_output_size"]

Array = np.ndarray[Any, Any]
Sizes = tuple[int, ...]

COLUMN_BYTES = 1 << 20  # what fits the second-level cache
FEWEST, MOST = 256, 768  # positions of a product
TOGETHER = 64  # positions of an image below which samples share a product
SHORTEST_ROW = 16  # channels from which scattering adds rows of them
LONG_SIDE = 128  # channels of a result up to which the gradient of a weight is computed as its transpose
NS_OF_PRODUCT = 1 / 45  # for a multiplication and an addition


def _terms(a: Array, b: Array, out: Array | None = None) -> int:
    return a.size * b.shape[-1]


_matmul = threaded(np.matmul, _terms)  # for a product that is all there is to do


def conv_output_size(size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Sizes:
    """Spatial extents of a convolution's result."""
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
    )


def transposed_output_size(size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, extra: Sizes) -> Sizes:
    """Spatial extents of a transposed convolution's result."""
    return tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + e + 1
        for n, k, s, p, d, e in zip(size, kernel, stride, padding, dilation, extra, strict=True)
    )


def _accumulating(x: Array) -> Array:
    """Half precision is computed in single precision and rounded at the end."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x


def _pad(x: Array, padding: Sizes) -> Array:
    """The image with zeros around it, contiguous."""
    if not any(padding):
        return np.ascontiguousarray(x)
    padded = np.zeros(x.shape[:2] + tuple(n + 2 * p for n, p in zip(x.shape[2:], padding, strict=True)), x.dtype)
    inside: Any = [slice(p, p + n) for n, p in zip(x.shape[2:], padding, strict=True)]
    padded[(..., *inside)] = x
    return padded


class _Geometry:
    """The places of one convolution's columns in the padded image, and the chunks they are gathered in."""

    def __init__(
        self, padded: Sizes, channels: int, kernel: Sizes, stride: Sizes, dilation: Sizes, itemsize: int, out: Sizes | None
    ) -> None:
        self.kernel, self.stride, self.dilation = kernel, stride, dilation
        self.channels = channels
        self.out = conv_output_size(padded, kernel, stride, (0,) * len(kernel), dilation) if out is None else out
        self.steps = tuple(prod(padded[i + 1 :]) for i in range(len(padded)))  # elements from one position to the next
        self.depth = channels * prod(kernel)  # rows of the column matrix
        self.positions, self.row = prod(self.out), prod(self.out[1:])
        at_once = max(FEWEST, COLUMN_BYTES // max(self.depth * itemsize, 1))
        rows = max(self.out[0], 1)
        pieces = -(-rows // max(1, min(at_once, MOST) // max(self.row, 1)))
        self.rows_at_once = -(-rows // pieces)
        self.samples_at_once = max(1, at_once // max(self.positions, 1)) if pieces == 1 else 1
        self.together = self.positions < TOGETHER

    def chunks(self, samples: int) -> Iterator[tuple[int, int, int, int]]:
        """First sample, sample count, first row and row count of each chunk."""
        rows = self.out[0]
        for n in range(0, samples, self.samples_at_once):
            for r in range(0, rows, self.rows_at_once):
                yield n, min(self.samples_at_once, samples - n), r, min(self.rows_at_once, rows - r)

    def windows(self, x: Array, first: int, samples: int, row: int, rows: int, *, together: bool) -> Array:
        """A view of the padded image as (samples, channels, *kernel, rows, …), or with the samples after the kernel."""
        size = x.itemsize
        offset = first * x.strides[0] + row * self.stride[0] * self.steps[0] * size
        inner = tuple(t * s * size for t, s in zip(self.stride, self.steps, strict=True))
        taps = (x.strides[1], *(d * s * size for d, s in zip(self.dilation, self.steps, strict=True)))
        depth, extents = (self.channels, *self.kernel), (rows, *self.out[1:])
        if together:
            return np.ndarray((*depth, samples, *extents), x.dtype, x, offset, (*taps, x.strides[0], *inner))
        return np.ndarray((samples, *depth, *extents), x.dtype, x, offset, (x.strides[0], *taps, *inner))

    def columns(self, x: Array, first: int, samples: int, row: int, rows: int, *, together: bool) -> Array:
        """The windows as (channels × kernel, samples × positions), or as a matrix of (channels × kernel, positions) for each sample."""
        shape = (self.depth, samples * rows * self.row) if together else (samples, self.depth, rows * self.row)
        return np.ascontiguousarray(self.windows(x, first, samples, row, rows, together=together)).reshape(shape)

    def part(self, flat: Array, first: int, samples: int, row: int, rows: int, *, together: bool) -> Array:
        """What belongs to a chunk of (samples, channels, positions), laid out as the chunk's columns are."""
        chunk = flat[first : first + samples, :, row * self.row : (row + rows) * self.row]
        return chunk.swapaxes(0, 1).reshape(flat.shape[1], -1) if together else chunk


_kept_geometry = lru_cache(maxsize=256)(_Geometry)


def _geometry(
    padded: Sizes, channels: int, kernel: Sizes, stride: Sizes, dilation: Sizes, itemsize: int, out: Sizes | None = None
) -> _Geometry:
    """A geometry, kept: making one takes as long as a small convolution. `out`: fewer results than would fit."""
    return _kept_geometry(padded, channels, kernel, tuple(stride), tuple(dilation), itemsize, out)


def _is_pointwise(kernel: Sizes, stride: Sizes, padding: Sizes) -> bool:
    return prod(kernel) == 1 and all(s == 1 for s in stride) and not any(padding)


def conv_forward(x: Array, weight: Array, bias: Array | None, stride: Sizes, padding: Sizes, dilation: Sizes) -> Array:
    """Correlate (N, C, *spatial) with (O, C / groups, *kernel)."""
    dtype = x.dtype
    x, weight = _accumulating(x), _accumulating(weight)
    kernel = weight.shape[2:]
    if _is_pointwise(kernel, stride, padding):
        out = np.empty((len(x), len(weight), *x.shape[2:]), x.dtype)
        groups = _groups(x, weight)
        _multiply_samples(_by_groups(weight, groups), _flat_groups(x, groups), _flat_groups(out, groups))
    elif is_depthwise(weight, _groups(x, weight), x.shape[2:]):
        out = depthwise_forward(x, weight, stride, padding, dilation)
    else:
        out = _correlate_padded(x, weight, stride, padding, dilation)
    if bias is not None:
        out += bias.reshape(-1, *(1,) * len(kernel))
    return out if out.dtype == dtype else out.astype(dtype)


def _multiply_samples(matrices: Array, x: Array, out: Array) -> None:
    """Multiply (groups, rows, channels) by (N, groups, channels, positions): some samples on each thread, or one on all."""
    if len(x) == 1:
        _matmul(matrices, x, out)
        return

    def work(begin: int, end: int) -> None:
        np.matmul(matrices, x[begin:end], out=out[begin:end])

    over(len(x), NS_OF_PRODUCT * matrices.size * x.shape[-1], work)


def _groups(x: Array, weight: Array) -> int:
    """Into how many groups the channels of `x` fall when each weight has so many."""
    return 1 if x.shape[1] == weight.shape[1] else x.shape[1] // weight.shape[1]


def _by_groups(weight: Array, groups: int) -> Array:
    """A weight as a matrix for each group: (groups, rows, channels × kernel)."""
    rows = len(weight) // groups
    return weight.reshape(groups, rows, math.prod(weight.shape[1:]))


def _flat_groups(x: Array, groups: int) -> Array:
    """An image as (N, groups, channels, positions)."""
    return x.reshape(len(x), groups, x.shape[1] // groups, math.prod(x.shape[2:]))


def _correlate_padded(x: Array, weight: Array, stride: Sizes, padding: Sizes, dilation: Sizes) -> Array:
    if x.shape[1] == weight.shape[1] and len(padding) == 2:
        size = conv_output_size(x.shape[2:], weight.shape[2:], stride, padding, dilation)
        if max(*stride, *dilation) == 1 and weight.dtype == np.float32 and suits_winograd(weight.shape, len(x), size):
            out = winograd(x, np.ascontiguousarray(weight), padding)
            if out is not None:
                return out
        if suits_strided(x, weight.shape, size, stride, dilation):
            out = strided_forward(x, np.ascontiguousarray(weight), size, padding)
            if out is not None:
                return out
        at_once = results_at_once(weight, size, dilation)
        if at_once:
            return correlate_by_bands(x, weight, size, stride, padding, dilation, at_once)
    return _correlate(_pad(x, padding), weight, stride, dilation)


def _correlate(x: Array, weight: Array, stride: Sizes, dilation: Sizes) -> Array:
    geometry = _geometry(x.shape[2:], x.shape[1], weight.shape[2:], stride, dilation, x.itemsize)
    out = np.empty((len(x), len(weight), *geometry.out), x.dtype)
    if not out.size:
        return out
    groups = _groups(x, weight)
    matrices = _by_groups(weight, groups)
    flat, together = out.reshape(len(out), len(weight), geometry.positions), geometry.together
    chunks = list(geometry.chunks(len(x)))
    multiply = np.matmul if len(chunks) > 1 else _matmul

    def work(begin: int, end: int) -> None:
        for chunk in chunks[begin:end]:
            columns = _rows_by_groups(geometry.columns(x, *chunk, together=together), groups)
            if together:
                product = multiply(matrices, columns).reshape(len(weight), chunk[1], geometry.positions)
                flat[chunk[0] : chunk[0] + chunk[1]] = product.swapaxes(0, 1)
            else:
                multiply(matrices, columns, _rows_by_groups(geometry.part(flat, *chunk, together=False), groups))

    over(len(chunks), NS_OF_PRODUCT * weight.size * geometry.positions * len(x) / len(chunks), work)
    return out


def _rows_by_groups(matrix: Array, groups: int) -> Array:
    """A matrix, or one for each sample, with its rows split: (…, groups, rows, positions)."""
    return matrix.reshape(*matrix.shape[:-2], groups, matrix.shape[-2] // groups, matrix.shape[-1])


def conv_grad_weight(
    x: Array, grad: Array, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int = 1
) -> Array:
    """The gradient of a convolution with respect to its weight, (O, C / groups, *kernel)."""
    dtype = grad.dtype
    x, grad = _accumulating(x), _accumulating(grad)
    if x.dtype.kind == "c":
        x = x.conj()
    if _is_pointwise(kernel, stride, padding):
        total = _pointwise_grad_weight(x, grad, groups)
    elif groups == x.shape[1] and is_small(kernel, groups, x.shape[2:]):
        total = depthwise_grad_weight(x, grad, kernel, stride, padding, dilation)
    elif (by_tiles := _grad_weight_by_tiles(x, grad, kernel, stride, padding, dilation, groups)) is not None:
        total = by_tiles
    else:
        x = _pad(x, padding)
        # fewer results than fit when a transposed convolution padded its output
        geometry = _geometry(x.shape[2:], x.shape[1], kernel, stride, dilation, x.itemsize, grad.shape[2:])
        total = _sum_products(geometry, x, grad, groups)
    return total.reshape(grad.shape[1], x.shape[1] // groups, *kernel).astype(dtype, copy=False)


def _grad_weight_by_tiles(
    x: Array, grad: Array, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> Array | None:
    """The gradient of a weight by Winograd's tiles; None where another way takes less time, or a value is not finite."""
    if len(kernel) != 2 or groups != 1 or not grad.size:
        return None
    size, shape = grad.shape[2:], (grad.shape[1], x.shape[1], *kernel)
    if suits_strided(x, shape, size, stride, dilation):
        return strided_grad_weight(x, grad, padding)
    if max(*stride, *dilation) == 1 and x.dtype == np.float32 and suits_winograd(shape, len(x), size, GRAD_WEIGHT_CHANNELS):
        return winograd_grad_weight(x, grad, padding)
    return None


def _pointwise_grad_weight(x: Array, grad: Array, groups: int) -> Array:
    """The gradient of a 1×1 weight, (groups, results, channels)."""
    results, inputs = _flat_groups(grad, groups), _flat_groups(x, groups)
    count, channels, positions = results.shape[2], inputs.shape[2], results.shape[3]
    if positions * (count + channels) < count * channels:  # less to copy than to add up: one product of all samples
        results, inputs = (
            np.ascontiguousarray(np.moveaxis(a, 0, 2)).reshape(1, groups, a.shape[2], len(x) * positions) for a in (results, inputs)
        )
    if count <= min(LONG_SIDE, channels):
        return np.ascontiguousarray(np.matmul(inputs, results.swapaxes(2, 3)).sum(0).swapaxes(1, 2))
    total: Array = np.matmul(results, inputs.swapaxes(2, 3)).sum(0)
    return total


@lru_cache(maxsize=256)
def _rows_of_small_products(depth: int, results: int) -> int:
    """How many rows of columns are multiplied at once to get up to 1,200 values, which OpenBLAS does without copying its operands; all if that is few.

    With 32 results it does 101 to 110 GFLOP/s instead of 87 to 91, with 64 results 99 to 102 instead of 95, with more results no more than before.
    """
    rows = max((n for n in range(1, min(depth, 1200 // max(results, 1)) + 1) if depth % n == 0), default=1) if results <= 64 else 1
    return rows if rows >= 9 else max(depth, 1)


def _sum_products(geometry: _Geometry, x: Array, grad: Array, groups: int) -> Array:
    """The products of the gradient with the columns, added up: (groups, results, channels × kernel)."""
    results, depth = grad.shape[1] // groups, geometry.depth // groups
    # the longer side first: BLAS does 86 instead of 54 GFLOP/s for 32 results, 96 instead of 72 for 64, 99 instead of 90 for 128
    turned = results <= LONG_SIDE
    shape = (groups, depth, results) if turned else (groups, results, depth)
    rows = _rows_of_small_products(depth, results)
    flat = grad.reshape(len(grad), grad.shape[1], geometry.positions)
    chunks = list(geometry.chunks(len(x))) if grad.size else []
    multiply = np.matmul if len(chunks) > 1 else _matmul
    found: dict[int, Array] = {}

    def work(begin: int, end: int) -> None:
        total = found[begin] = np.zeros(shape, grad.dtype)
        for chunk in chunks[begin:end]:
            part = _rows_by_groups(geometry.part(flat, *chunk, together=True), groups)
            columns = _rows_by_groups(geometry.columns(x, *chunk, together=True), groups)
            if turned:
                blocks = columns.reshape(groups, depth // rows, rows, columns.shape[-1])
                total += multiply(blocks, part.swapaxes(1, 2)[:, None]).reshape(shape)
            else:
                total += multiply(part, columns.swapaxes(1, 2))

    over(len(chunks), NS_OF_PRODUCT * results * depth * groups * geometry.positions * len(x) / max(len(chunks), 1), work)
    total = sum((found[begin] for begin in sorted(found)[1:]), start=found[0])
    return np.ascontiguousarray(total.swapaxes(1, 2)) if turned else total


def conv_grad_input(
    grad: Array,
    weight: Array,
    size: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int = 1,
    *,
    conjugate: bool = True,
) -> Array:
    """The gradient of a convolution with respect to its input of these spatial extents: (N, C, *size)."""
    dtype = grad.dtype
    grad, weight = _accumulating(grad), _accumulating(weight)
    if conjugate and weight.dtype.kind == "c":
        weight = weight.conj()
    kernel = weight.shape[2:]
    channels = weight.shape[1] * groups
    if _is_pointwise(kernel, stride, padding) and grad.shape[2:] == tuple(size):  # output padding makes it larger
        out = np.empty((len(grad), channels, *size), grad.dtype)
        _multiply_samples(_by_groups(weight, groups).swapaxes(1, 2), _flat_groups(grad, groups), _flat_groups(out, groups))
        return out.astype(dtype, copy=False)
    if is_depthwise(weight, groups, size):
        return depthwise_grad_input(grad, weight, size, stride, padding, dilation, groups).astype(dtype, copy=False)
    border = tuple(d * (k - 1) - p for k, p, d in zip(kernel, padding, dilation, strict=True))
    unit = all(s == 1 for s in stride)
    # correlating the gradient with the flipped weight copies the weight and gathers columns of `grad`, scattering adds up columns
    # of the input; the weights are what a copied or added element takes
    results, positions = len(weight), len(grad) * prod(grad.shape[2:])
    copying, adding = results * (2.5 * weight.shape[1] + positions), 4 * channels * positions
    if unit and min(border) >= 0 and copying <= adding and _fits(grad.shape[2:], size, kernel, padding, dilation):
        flipped = np.flip(weight, tuple(range(2, weight.ndim)))
        swapped = flipped.reshape(groups, -1, *weight.shape[1:]).swapaxes(1, 2).reshape(channels, len(weight) // groups, *kernel)
        # contiguous, even where one channel a group makes it a view: matmul takes 3 times as long with negative strides
        return _correlate_padded(grad, np.ascontiguousarray(swapped), stride, border, dilation).astype(dtype, copy=False)
    if groups == 1 and len(kernel) == 2 and suits_strided_grad_input(grad, weight.shape, grad.shape[2:], stride, dilation):
        found = strided_grad_input(grad, np.ascontiguousarray(weight), size, padding)
        if found is not None:
            return found.astype(dtype, copy=False)
    if groups == 1 and prod(kernel) > 2 and results <= positions and channels >= SHORTEST_ROW:
        return _scatter_rows(grad, weight, size, stride, padding, dilation).astype(dtype, copy=False)
    return _scatter_columns(grad, weight, size, stride, padding, dilation, groups).astype(dtype, copy=False)


def _fits(grad_size: Sizes, size: Sizes, kernel: Sizes, padding: Sizes, dilation: Sizes) -> bool:
    """Whether the convolution with stride one left nothing of its input over (a transposed one with output padding may)."""
    return conv_output_size(size, kernel, (1,) * len(size), padding, dilation) == grad_size


def _scatter_rows(grad: Array, weight: Array, size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Array:
    """The same as `_scatter_columns` with the channels last, which are long rows to add: 3 ns an element become 0.3.

    It copies gradient, weight and result into that order, which pays unless the weight is larger than all else.
    """
    kernel, (results, channels), n = weight.shape[2:], weight.shape[:2], len(size)
    total = np.zeros((len(grad), *(m + 2 * p for m, p in zip(size, padding, strict=True)), channels), grad.dtype)
    rows = np.ascontiguousarray(np.moveaxis(grad, 1, -1))
    matrix = np.ascontiguousarray(np.moveaxis(weight, 1, -1)).reshape(results, prod(kernel) * channels)
    extents = grad.shape[2:]
    at_once = max(1, max(FEWEST, COLUMN_BYTES // max(matrix[0].nbytes, 1)) // max(prod(extents), 1))

    def work(begin: int, end: int) -> None:
        for first in range(begin, end, at_once):
            part = rows[first : min(first + at_once, end)]
            columns = np.matmul(part.reshape(-1, results), matrix).reshape(len(part), *extents, *kernel, channels)
            target = total[first : first + len(part)]
            for offset in np.ndindex(*kernel):
                begins = (i * d for i, d in zip(offset, dilation, strict=True))
                reached: Any = [slice(b, b + (m - 1) * s + 1, s) for b, m, s in zip(begins, extents, stride, strict=True)]
                target[(slice(None), *reached)] += columns[(slice(None),) * (n + 1) + offset]

    over(len(grad), NS_OF_PRODUCT * weight.size * prod(extents), work)
    inside: Any = [slice(p, p + m) for m, p in zip(size, padding, strict=True)]
    return np.ascontiguousarray(np.moveaxis(total[(slice(None), *inside)], -1, 1))


def _scatter_columns(grad: Array, weight: Array, size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Array:
    kernel = weight.shape[2:]
    channels = weight.shape[1] * groups
    padded = tuple(n + 2 * p for n, p in zip(size, padding, strict=True))
    total = np.zeros((len(grad), channels, *padded), grad.dtype)
    geometry = _geometry(padded, channels, kernel, stride, dilation, grad.itemsize, grad.shape[2:])
    matrices, together = _by_groups(weight, groups).swapaxes(1, 2), geometry.together
    flat = grad.reshape(len(grad), grad.shape[1], geometry.positions)
    before: Sizes = () if together else (slice(None),)  # type: ignore[assignment]
    for chunk in geometry.chunks(len(grad) if grad.size else 0):
        part = _rows_by_groups(geometry.part(flat, *chunk, together=together), groups)
        target = geometry.windows(total, *chunk, together=together)
        columns = np.matmul(matrices, part).reshape(target.shape)
        for offset in np.ndindex(*kernel):
            target[(*before, slice(None), *offset)] += columns[(*before, slice(None), *offset)]
    inside: Any = [slice(p, p + n) for n, p in zip(size, padding, strict=True)]
    out = np.empty((len(grad), channels, *size), grad.dtype)
    np.copyto(out, total[(..., *inside)])
    return out
