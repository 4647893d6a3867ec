"""Convolution over any number of spatial dimensions: windows gathered into columns, and one matrix product a chunk.

With a stride of one the windows are gathered in the *wide* layout: the padded image is one flat row a channel, and the window
at kernel offset (i, j) is that row from `i * width + j` on. The columns are then copies of long runs instead of short rows; the
product has a few columns too many at each row's end, which are dropped when the result is copied out.

Groups are one more dimension of the same product: the channels of a group, and so the rows of its columns, lie side by side.

Measured on 32×64×56×56 with a 3×3 kernel, one thread: 104 ms in chunks of 2 MB, 110 ms with all of an image's columns at once;
the matrix product alone takes 91 ms of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

__all__ = ["conv_forward", "conv_grad_input", "conv_grad_weight", "conv_output_size", "transposed_output_size"]

Array = np.ndarray[Any, Any]
Sizes = tuple[int, ...]

COLUMN_BYTES = 1 << 21  # what fits the second-level cache


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
        self.padded, self.kernel, self.stride, self.dilation = padded, kernel, stride, dilation
        self.channels = channels
        self.out = conv_output_size(padded, kernel, stride, (0,) * len(kernel), dilation) if out is None else out
        self.steps = tuple(prod(padded[i + 1 :]) for i in range(len(padded)))  # elements from one position to the next
        self.wide = all(s == 1 for s in stride)
        self.depth = channels * prod(kernel)  # rows of the column matrix
        row = (self.steps[0] if self.wide else prod(self.out[1:])) * self.depth * itemsize
        self.rows_at_once = max(1, COLUMN_BYTES // max(row, 1))

    def chunks(self, samples: int) -> Iterator[tuple[int, int, int, int]]:
        """First sample, sample count, first row and row count of each chunk."""
        rows = self.out[0]
        if self.rows_at_once >= rows:
            at_once = max(1, self.rows_at_once // max(rows, 1))
            for n in range(0, samples, at_once):
                yield n, min(at_once, samples - n), 0, rows
            return
        for n in range(samples):
            for r in range(0, rows, self.rows_at_once):
                yield n, 1, r, min(self.rows_at_once, rows - r)

    def extents(self, rows: int) -> Sizes:
        """Extents of a chunk's result as the product leaves it."""
        if self.wide:
            last = sum((n - 1) * s for n, s in zip(self.out[1:], self.steps[1:], strict=True))
            return ((rows - 1) * self.steps[0] + last + 1,)
        return (rows, *self.out[1:])

    def windows(self, x: Array, first: int, samples: int, row: int, rows: int) -> Array:
        """A view of the padded image as (channels, *kernel, samples, *extents)."""
        size = x.itemsize
        offset = first * x.strides[0] + row * self.stride[0] * self.steps[0] * size
        inner = (size,) if self.wide else tuple(t * s * size for t, s in zip(self.stride, self.steps, strict=True))
        strides = (x.strides[1], *(d * s * size for d, s in zip(self.dilation, self.steps, strict=True)), x.strides[0], *inner)
        return np.ndarray((self.channels, *self.kernel, samples, *self.extents(rows)), x.dtype, x, offset, strides)

    def columns(self, x: Array, first: int, samples: int, row: int, rows: int) -> Array:
        """The windows as a matrix of (channels × kernel) rows."""
        return np.ascontiguousarray(self.windows(x, first, samples, row, rows)).reshape(self.depth, -1)

    def result_buffer(self, channels: int, samples: int, rows: int, dtype: np.dtype[Any]) -> tuple[Array, Array]:
        """Memory for a chunk's product, as the matrix to write and as the (channels, samples, rows, …) to read."""
        if not self.wide:
            flat = np.empty((channels, samples * rows * prod(self.out[1:])), dtype)
            return flat, flat.reshape(channels, samples, rows, *self.out[1:])
        (length,) = self.extents(rows)
        product = np.empty((channels, samples * length), dtype)
        size = product.itemsize
        strides = (samples * length * size, length * size, *(s * size for s in self.steps))
        return product, np.ndarray((channels, samples, rows, *self.out[1:]), dtype, product, 0, strides)

    def spread(self, grad: Array) -> Array:
        """A chunk of (channels, samples, rows, …) laid out as columns, with zeros where the wide layout has gaps."""
        channels, samples, rows = grad.shape[:3]
        if not self.wide:
            return np.ascontiguousarray(grad).reshape(channels, -1)
        (length,) = self.extents(rows)
        memory = np.zeros(channels * samples * length, grad.dtype)
        size = memory.itemsize
        strides = (samples * length * size, length * size, *(s * size for s in self.steps))
        np.ndarray(grad.shape, grad.dtype, memory, 0, strides)[...] = grad
        return memory.reshape(channels, samples * length)


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
        np.matmul(_by_groups(weight, groups), _flat_groups(x, groups), out=_flat_groups(out, groups))
    else:
        out = _correlate(_pad(x, padding), weight, stride, dilation)
    if bias is not None:
        out += bias.reshape(-1, *(1,) * len(kernel))
    return out if out.dtype == dtype else out.astype(dtype)


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


def _correlate(x: Array, weight: Array, stride: Sizes, dilation: Sizes) -> Array:
    geometry = _geometry(x.shape[2:], x.shape[1], weight.shape[2:], stride, dilation, x.itemsize)
    out = np.empty((len(x), len(weight), *geometry.out), x.dtype)
    if not out.size:
        return out
    groups = _groups(x, weight)
    matrices = _by_groups(weight, groups)
    for first, samples, row, rows in geometry.chunks(len(x)):
        product, readable = geometry.result_buffer(len(weight), samples, rows, x.dtype)
        columns = geometry.columns(x, first, samples, row, rows)
        np.matmul(matrices, _rows_by_groups(columns, groups), out=_rows_by_groups(product, groups))
        out[first : first + samples, :, row : row + rows] = readable.swapaxes(0, 1)
    return out


def _rows_by_groups(matrix: Array, groups: int) -> Array:
    return matrix.reshape(groups, len(matrix) // groups, matrix.shape[1])


def conv_grad_weight(
    x: Array, grad: Array, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int = 1
) -> Array:
    """The gradient of a convolution with respect to its weight, (O, C / groups, *kernel)."""
    dtype = grad.dtype
    x, grad = _accumulating(x), _accumulating(grad)
    if x.dtype.kind == "c":
        x = x.conj()
    if _is_pointwise(kernel, stride, padding):
        total = np.matmul(_flat_groups(grad, groups), _flat_groups(x, groups).swapaxes(2, 3)).sum(0)
    else:
        x = _pad(x, padding)
        # fewer results than fit when a transposed convolution padded its output
        geometry = _geometry(x.shape[2:], x.shape[1], kernel, stride, dilation, x.itemsize, grad.shape[2:])
        total = np.zeros((groups, grad.shape[1] // groups, geometry.depth // groups), grad.dtype)
        for first, samples, row, rows in geometry.chunks(len(x) if grad.size else 0):
            part = geometry.spread(grad[first : first + samples, :, row : row + rows].swapaxes(0, 1))
            columns = geometry.columns(x, first, samples, row, rows)
            total += np.matmul(_rows_by_groups(part, groups), _rows_by_groups(columns, groups).swapaxes(1, 2))
    return total.reshape(grad.shape[1], x.shape[1] // groups, *kernel).astype(dtype, copy=False)


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
        np.matmul(_by_groups(weight, groups).swapaxes(1, 2), _flat_groups(grad, groups), out=_flat_groups(out, groups))
        return out.astype(dtype, copy=False)
    border = tuple(d * (k - 1) - p for k, p, d in zip(kernel, padding, dilation, strict=True))
    unit = all(s == 1 for s in stride)
    # correlating the gradient with the flipped weight gathers columns of `grad`, scattering adds up columns of the input
    if unit and min(border) >= 0 and len(weight) <= 2 * channels and _fits(grad.shape[2:], size, kernel, padding, dilation):
        flipped = np.flip(weight, tuple(range(2, weight.ndim)))
        swapped = flipped.reshape(groups, -1, *weight.shape[1:]).swapaxes(1, 2).reshape(channels, len(weight) // groups, *kernel)
        return _correlate(_pad(grad, border), swapped, stride, dilation).astype(dtype, copy=False)
    return _scatter_columns(grad, weight, size, stride, padding, dilation, groups).astype(dtype, copy=False)


def _fits(grad_size: Sizes, size: Sizes, kernel: Sizes, padding: Sizes, dilation: Sizes) -> bool:
    """Whether the convolution with stride one left nothing of its input over (a transposed one with output padding may)."""
    return conv_output_size(size, kernel, (1,) * len(size), padding, dilation) == grad_size


def _scatter_columns(grad: Array, weight: Array, size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Array:
    kernel = weight.shape[2:]
    channels = weight.shape[1] * groups
    padded = tuple(n + 2 * p for n, p in zip(size, padding, strict=True))
    total = np.zeros((len(grad), channels, *padded), grad.dtype)
    geometry = _geometry(padded, channels, kernel, stride, dilation, grad.itemsize, grad.shape[2:])
    matrices = np.ascontiguousarray(_by_groups(weight, groups).swapaxes(1, 2))
    for first, samples, row, rows in geometry.chunks(len(grad) if grad.size else 0):
        part = geometry.spread(grad[first : first + samples, :, row : row + rows].swapaxes(0, 1))
        columns = np.matmul(matrices, _rows_by_groups(part, groups)).reshape(channels, *kernel, samples, *geometry.extents(rows))
        target = geometry.windows(total, first, samples, row, rows)
        for offset in np.ndindex(*kernel):
            target[(slice(None), *offset)] += columns[(slice(None), *offset)]
    inside: Any = [slice(p, p + n) for n, p in zip(size, padding, strict=True)]
    out = np.empty((len(grad), channels, *size), grad.dtype)
    np.copyto(out, total[(..., *inside)])
    return out
