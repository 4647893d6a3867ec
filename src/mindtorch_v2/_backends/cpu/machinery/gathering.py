"""Kernels that move elements, split over threads: rows taken by an index, elements gathered, arrays joined."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .parallel import copied, over, pays

__all__ = ["split_cat", "split_gather", "split_index", "split_index_select"]

Array = np.ndarray[Any, Any]
Kernel = Callable[..., Any]

_NS_OF_BYTE = 0.05  # of a copied one
_NS_OF_ROW = 2.0  # to find one that is taken
_NS_GATHERED = 4.0  # an element


def split_index_select(kernel: Kernel) -> Kernel:
    """Some positions of the index on each thread, or some of what comes before the dimension."""

    def call(self: Array, dim: int, index: Array) -> Array:
        if index.ndim == 1 and type(dim) is int and -self.ndim <= dim < self.ndim and index.size and int(index.min()) >= 0:
            found = _taken(self, index, dim % self.ndim)
            if found is not None:
                return found
        return kernel(self, dim, index)  # type: ignore[no-any-return]

    return call


def split_index(kernel: Kernel) -> Kernel:
    """The same for an index along one dimension, or for one along each of several leading dimensions; others are left to the kernel."""

    def call(self: Array, indices: Sequence[Array | None]) -> Array:
        given = {d: i for d, i in enumerate(indices) if i is not None}
        found = None
        if all(i.dtype.kind == "i" for i in given.values()):
            if len(given) == 1:
                ((axis, index),) = given.items()
                found = _taken(self, index, axis)
            elif given and list(given) == list(range(len(given))):
                found = _taken_jointly(self, list(given.values()))
        return kernel(self, indices) if found is None else found  # type: ignore[no-any-return]

    return call


def _taken(source: Array, index: Array, axis: int) -> Array | None:
    """The parts of a dimension at these positions; None if that is one thread's work, or a position is outside."""
    if axis >= source.ndim or not source.flags.c_contiguous or not index.size or not source.size:
        return None
    outer, inner = math.prod(source.shape[:axis]), math.prod(source.shape[axis + 1 :])
    ns = (_NS_OF_ROW + _NS_OF_BYTE * inner * source.itemsize) * outer
    size = source.shape[axis]
    if not pays(index.size, ns) or int(index.min()) < -size or int(index.max()) >= size:
        return None
    flat, positions = source.reshape(outer, size, inner), index.reshape(-1)
    out = np.empty((outer, index.size, inner), source.dtype)

    # "wrap" writes where it is told to; another mode fills a buffer first, to raise before anything is written
    def some_positions(begin: int, end: int) -> None:
        flat[0].take(positions[begin:end], 0, out=out[0, begin:end], mode="wrap")

    def some_outer(begin: int, end: int) -> None:
        flat[begin:end].take(positions, 1, out=out[begin:end], mode="wrap")

    if outer == 1:
        over(index.size, ns, some_positions)
    else:
        over(outer, ns / outer * index.size, some_outer)
    return out.reshape(*source.shape[:axis], *index.shape, *source.shape[axis + 1 :])


def _taken_jointly(source: Array, indices: Sequence[Array]) -> Array | None:
    """What stands at these positions of the leading dimensions, an index for each; None as above."""
    first, lead = indices[0], source.shape[: len(indices)]
    if any(i.shape != first.shape for i in indices) or not source.flags.c_contiguous or not first.size or not source.size:
        return None
    rest = source.shape[len(indices) :]
    ns = _NS_OF_ROW * len(indices) + _NS_OF_BYTE * math.prod(rest) * source.itemsize
    if not pays(first.size, ns):
        return None
    lows = [int(i.min()) for i in indices]
    if any(low < -n or int(i.max()) >= n for i, n, low in zip(indices, lead, lows, strict=True)):
        return None
    flat, positions = source.reshape(math.prod(lead), math.prod(rest)), [i.reshape(-1) for i in indices]
    out = np.empty((first.size, flat.shape[1]), source.dtype)

    def work(begin: int, end: int) -> None:
        joint = np.zeros(end - begin, np.intp)
        for i, n, low in zip(positions, lead, lows, strict=True):
            part = i[begin:end]
            joint *= n
            joint += part
            if low < 0:
                np.add(joint, n, out=joint, where=part < 0)
        flat.take(joint, 0, out=out[begin:end], mode="wrap")

    over(first.size, ns, work)
    return out.reshape(*first.shape, *rest)


def split_gather(kernel: Kernel) -> Kernel:
    """Some rows of the index on each thread."""

    def call(self: Array, dim: int, index: Array) -> Array:
        shapes_fit = index.ndim == self.ndim > 0 and type(dim) is int and -self.ndim <= dim < self.ndim
        if not shapes_fit or not self.flags.c_contiguous or not index.size:
            return kernel(self, dim, index)  # type: ignore[no-any-return]
        along_rows = dim % self.ndim == 0
        each = _NS_GATHERED * index.size / len(index)
        if not pays(len(index), each) or (not along_rows and len(index) > len(self)):
            return kernel(self, dim, index)  # type: ignore[no-any-return]
        out = np.empty(index.shape, self.dtype)

        def work(begin: int, end: int) -> None:
            out[begin:end] = kernel(self if along_rows else self[begin:end], dim, index[begin:end])

        try:
            over(len(index), each, work)
        except Exception:
            return kernel(self, dim, index)  # type: ignore[no-any-return]  # which says what is wrong with the whole
        return out

    return call


def split_cat(kernel: Kernel) -> Kernel:
    """Some of what comes before the dimension on each thread, or some of each array."""

    def call(tensors: list[Array], dim: int) -> Array:
        joined = _joined(tensors, dim)
        return kernel(tensors, dim) if joined is None else joined  # type: ignore[no-any-return]

    return call


def _joined(tensors: list[Array], dim: int) -> Array | None:
    """Contiguous arrays of one dtype joined along a dimension; None if they are others, or that is one thread's work."""
    first = tensors[0] if tensors else np.empty(0)
    if not first.ndim or type(dim) is not int or not -first.ndim <= dim < first.ndim:
        return None
    axis = dim % first.ndim
    before, after = first.shape[:axis], first.shape[axis + 1 :]
    fit = all(
        a.dtype == first.dtype
        and a.ndim == first.ndim
        and a.shape[:axis] == before
        and a.shape[axis + 1 :] == after
        and a.flags.c_contiguous
        for a in tensors
    )
    extent, outer = sum(a.shape[axis] for a in tensors) if fit else 0, math.prod(before)
    row_bytes = extent * math.prod(after) * first.itemsize
    if not fit or not pays(outer * extent, _NS_OF_BYTE * row_bytes / max(extent, 1)):
        return None
    out = np.empty((*before, extent, *after), first.dtype)
    if outer < 8:
        at = 0
        for a in tensors:
            copied(a, out[(slice(None),) * axis + (slice(at, at + a.shape[axis]),)])
            at += a.shape[axis]
        return out
    rows, whole = [a.reshape(outer, -1) for a in tensors if a.size], out.reshape(outer, -1)
    over(outer, _NS_OF_BYTE * row_bytes, lambda begin, end: np.concatenate([a[begin:end] for a in rows], 1, out=whole[begin:end]))
    return out
