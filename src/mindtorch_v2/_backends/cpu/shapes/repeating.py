"""Kernels that repeat or reorder elements, and those of triangles and windows."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...._checks import wrap_dim, wrap_dims
from ..machinery.dtype_rules import refuse
from ..machinery.floating_errors import SILENT

Array = np.ndarray[Any, Any]


def repeated_shape(shape: tuple[int, ...], repeats: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A tensor's shape with as many dimensions as `repeats` has, and that of the tensor repeated."""
    extra = len(repeats) - len(shape)
    if extra < 0:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    padded = (1,) * extra + shape
    target = tuple([n * r for n, r in zip(padded, repeats, strict=True)])
    if min(target, default=0) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(target)}: {list(target)}")
    return padded, target


def repeat(self: Array, repeats: Sequence[int]) -> Array:
    """`self` side by side with itself, `repeats[d]` times along each dimension."""
    shape, target = repeated_shape(self.shape, repeats)
    out = np.empty(target, self.dtype)
    if out.size:
        # one dimension for the repetition, one for the elements: a single broadcast copy
        paired = tuple(k for pair in zip(repeats, shape, strict=True) for k in pair)
        source = tuple(k for n in shape for k in (1, n))
        out.reshape(paired)[...] = self.reshape(source)
    return out


def flip(self: Array, dims: Sequence[int]) -> Array:
    """The elements in reverse order along these dimensions."""
    reverse = [slice(None)] * self.ndim
    for d in wrap_dims(dims, self.ndim):
        if self.ndim:
            reverse[d] = slice(None, None, -1)
    out = np.empty_like(self, order="C" if 0 in self.strides else "K")  # torch: in the layout of `self`, unless it is expanded
    out[...] = self[tuple(reverse)]
    return out


def check_repeats(repeats: Array) -> None:
    """Refuse what cannot say how often positions are repeated."""
    if repeats.ndim == 0:
        raise RuntimeError("repeat_interleave with a single repeats argument expects repeats to be a 1-D tensor") from None
    if repeats.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    refuse("repeat_interleave_cpu", repeats, "bfc")
    if repeats.dtype not in (np.dtype(np.int64), np.dtype(np.int32)):
        raise RuntimeError("repeats has to be Long or Int tensor")


def repeat_interleave(repeats: Array, output_size: int | None) -> Array:
    """Position i as often as `repeats[i]` says."""
    check_repeats(repeats)
    if repeats.size and repeats.min() < 0:
        raise RuntimeError("repeats can not be negative")
    out = np.repeat(np.arange(repeats.size, dtype=repeats.dtype), repeats)
    if output_size is not None and output_size != out.size and repeats.size:
        raise RuntimeError(f"allocated size does not match required size: expected {out.size} but got {output_size}")
    return out


def triangle(self: Array, diagonal: int, *, lower: bool) -> Array:
    """The elements on one side of a diagonal, zeros elsewhere."""
    if self.ndim < 2:
        raise RuntimeError(f"{'tril' if lower else 'triu'}: input tensor must have at least 2 dimensions")
    rows, columns = self.shape[-2:]
    if self.size > 333 * rows and self.size > 16384:
        return _triangle_by_rows(self, diagonal, lower=lower)
    out = np.zeros(self.shape, self.dtype)
    np.copyto(out, self, where=_triangle_mask(rows, columns, diagonal, lower))
    return out


@functools.lru_cache(32)
def _triangle_mask(rows: int, columns: int, diagonal: int, lower: bool) -> Array:
    compare = np.greater_equal if lower else np.less_equal
    return compare.outer(np.arange(rows), np.arange(-diagonal, columns - diagonal))


def _triangle_by_rows(self: Array, diagonal: int, *, lower: bool) -> Array:
    """Copies only what is kept, a row at a time; a third of the time of a mask for long rows."""
    out = np.zeros(self.shape, self.dtype)
    columns = self.shape[-1]
    for i in range(self.shape[-2]):
        if lower:
            end = min(max(i + diagonal + 1, 0), columns)
            out[..., i, :end] = self[..., i, :end]
        else:
            start = min(max(i + diagonal, 0), columns)
            out[..., i, start:] = self[..., i, start:]
    return out


def trace(self: Array) -> Array:
    """The sum of the diagonal of a matrix."""
    if self.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self.ndim}")
    if self.dtype.kind in "iub":
        return np.asarray(self.diagonal().sum(dtype=np.int64))
    wide = np.float32 if self.dtype.itemsize == 2 else self.dtype
    return np.asarray(self.diagonal().sum(dtype=wide)).astype(self.dtype)


def unfold_backward(grad_in: Array, input_sizes: Sequence[int], dim: int, size: int, step: int) -> Array:
    """Windows added up where they overlap."""
    if step <= 0:
        raise ValueError(f"step is {step} but must be > 0")
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    out = np.zeros(tuple(input_sizes), grad_in.dtype)
    if not out.ndim:
        return np.asarray(grad_in.sum()).astype(grad_in.dtype)
    d = wrap_dim(dim, out.ndim)
    count = grad_in.shape[d]
    whole = (slice(None),) * d
    for k in range(size):
        out[(*whole, slice(k, k + (count - 1) * step + 1, step))] += grad_in[..., k]
    return out


def nonzero_static(self: Array, size: int, fill_value: int) -> Array:
    """The first `size` positions of elements that are not zero; rows that are left over hold `fill_value`."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    out = np.full((size, self.ndim), fill_value, np.int64)
    found = np.array(np.nonzero(self), np.int64).T[:size] if self.ndim else out[:0]
    out[: len(found)] = found
    return out


SILENT.update((repeat, flip, repeat_interleave, nonzero_static))  # they move elements and compute nothing
