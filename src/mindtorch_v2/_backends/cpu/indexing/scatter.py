"""Kernels that read or write along one dimension at positions given by an integer array.

gather and scatter turn their index into positions in flat memory, which NumPy reads with `take` (2 ns an element, a fancy index
with one array per dimension 10) and writes with a one-dimensional index.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...._checks import contiguous_strides, no_dimensions, wrap_dim
from ...._types import Number
from ...._writing import warn_if_expanded, writing_to_expanded
from ..linalg.matmul import check_expands
from ..machinery.dtype_rules import refuse
from ..machinery.dtypes import BOOL, INT, LONG, scalar_name
from ..machinery.floating_errors import SILENT
from .index import add_flat, add_rows, nonzero

Array = np.ndarray[Any, Any]
UINT32, UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)


def on_copy(kernel: Callable[..., None]) -> Callable[..., Array]:
    """The functional kernel of one that writes to its first argument."""

    @functools.wraps(kernel)
    def functional(self: Array, *arguments: Any) -> Array:
        out = self.copy()
        kernel(out, *arguments)
        return out

    functional.__signature__ = inspect.signature(kernel)  # type: ignore[attr-defined]
    if kernel in SILENT:
        SILENT.add(functional)
    return functional


def check_index_dtype(name: str, index: Array, dtypes: str = "int32/int64") -> None:
    if index.dtype != LONG and index.dtype != INT:
        raise RuntimeError(f"{name}(): Expected dtype {dtypes} for index")


def _is_outside(index: Array, n: int) -> bool:
    """Whether a position is negative or too large. Read as unsigned a negative one is huge: one pass instead of two."""
    unsigned = index.view(UINT64 if index.dtype == LONG else UINT32)
    if index.size <= 4096:  # by way of its position: 0.4 µs where a reduction takes 1.2
        return bool(index.size) and unsigned.item(unsigned.argmax()) >= n
    return bool(np.maximum.reduce(unsigned, None) >= n)


def _check_bounds(index: Array, dim: int, n: int) -> None:
    if _is_outside(index, n):
        bad = index[(index < 0) | (index >= n)].flat[0]
        raise RuntimeError(f"index {int(bad)} is out of bounds for dimension {dim} with size {n}")


def _flat_positions(shape: Sequence[int], dim: int, index: Array) -> Array:
    """Return the positions that `index` points to in row-major memory of this shape."""
    stride, offsets = _geometry(tuple(shape), dim, index.shape)
    at = index if stride == 1 and offsets else index * np.int64(stride)
    for offset in offsets:
        at = np.add(at, offset, out=at) if at is not index else at + offset
    return at


@functools.lru_cache(128)
def _geometry(shape: tuple[int, ...], dim: int, index_shape: tuple[int, ...]) -> tuple[int, list[Array]]:
    """The stride of the indexed dimension, and for each other one its positions' part of the flat position."""
    strides = contiguous_strides(shape)
    offsets = [
        (np.arange(index_shape[d]) * s).reshape((-1,) + (1,) * (len(shape) - 1 - d))
        for d, s in enumerate(strides)
        if d != dim and index_shape[d] > 1
    ]
    return strides[dim], offsets


# --- gather ---------------------------------------------------------------------------------------------------------


def gather(self: Array, dim: int, index: Array) -> Array:
    """`out[i][j][k] = self[index[i][j][k]][j][k]` for dim 0, and so on."""
    d = wrap_dim(dim, self.ndim)
    shape = index.shape
    if not index.size:
        return np.empty(shape, self.dtype)
    check_index_dtype("gather", index)
    if max(self.ndim, 1) != max(index.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    source = self.reshape(1) if not self.ndim else self
    index = index.reshape(1) if not index.ndim else index
    for i, n in enumerate(index.shape):
        if i != d and n > source.shape[i]:
            raise RuntimeError(
                f"Size does not match at dimension {i} expected index {list(shape)} to be no larger than self {list(self.shape)} "
                f"apart from dimension {d}"
            )
    _check_bounds(index, d, source.shape[d])
    return source.reshape(-1).take(_flat_positions(source.shape, d, index)).reshape(shape)


# --- scatter --------------------------------------------------------------------------------------------------------


class Scatter:
    """The flat target of a scatter and the positions to write; `close` copies back what could not be written in place."""

    def __init__(self, name: str, self_: Array, dim: int, index: Array, src: Array | None) -> None:
        if index.size:
            check_index_dtype(name, index)
        d = wrap_dim(dim, self_.ndim)
        self.target = self_
        self.src = src
        self.flat = self_.reshape(-1)
        self.is_copy = not self_.flags.c_contiguous
        if self.is_copy:
            self.flat = self_.flatten()
        if not index.size:
            self.at = np.empty(0, np.int64)
            self.src = None if src is None else np.empty(0, src.dtype)
            return
        if index.shape != self_.shape or (src is not None and src.shape != index.shape):
            _check_scatter_shapes(self_, d, index, src)
        shape = self_.shape or (1,)
        index = index.reshape(1) if not index.ndim else index
        _check_bounds(index, d, shape[d])
        self.at = _flat_positions(shape, d, index)
        if src is not None:
            src = src.reshape(1) if not src.ndim else src
            self.src = src if src.shape == index.shape else src[tuple([slice(n) for n in index.shape])]

    def close(self) -> None:
        if self.is_copy:
            self.target[...] = self.flat.reshape(self.target.shape)


def _check_scatter_shapes(self: Array, dim: int, index: Array, src: Array | None) -> None:
    ndims = {max(self.ndim, 1), max(index.ndim, 1)}
    if len(ndims) > 1:
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    if src is not None and max(src.ndim, 1) != max(index.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    for i, n in enumerate(index.shape):
        too_large = i != dim and self.ndim and n > self.shape[i]
        beyond_src = src is not None and src.ndim and n > src.shape[i]
        if too_large or beyond_src:
            tail = "" if src is None else f" and to be no larger size than src {list(src.shape)}"
            raise RuntimeError(
                f"Expected index {list(index.shape)} to be no larger than self {list(self.shape)} apart from dimension {dim}{tail}"
            )


def _check_src_dtype(name: str, self: Array, src: Array) -> None:
    if self.dtype != src.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")


def scatter_src(self: Array, dim: int, index: Array, src: Array) -> None:
    _check_src_dtype("scatter", self, src)
    s = Scatter("scatter", self, dim, index, src)
    s.flat[s.at] = s.src
    s.close()


def scatter_value(self: Array, dim: int, index: Array, value: Number) -> None:
    s = Scatter("scatter", self, dim, index, None)
    s.flat[s.at] = value
    s.close()


def scatter_add(self: Array, dim: int, index: Array, src: Array) -> None:
    _check_src_dtype("scatter_add", self, src)
    s = Scatter("scatter_add", self, dim, index, src)
    if s.src is not None and s.src.size:
        add_flat(s.flat, s.at, s.src)
    s.close()


def scatter_with(self: Array, dim: int, index: Array, src: Array | Any, reduce: str) -> None:
    """torch's older reductions of `scatter`: add and multiply, by elements or by one value."""
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    is_array = isinstance(src, np.ndarray)
    if is_array:
        _check_src_dtype("scatter", self, src)
    s = Scatter("scatter", self, dim, index, src if is_array else None)
    values: Any = s.src if is_array else self.dtype.type(src)
    (np.add if reduce == "add" else np.multiply).at(s.flat, s.at, values)
    s.close()


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def scatter_reduce(self: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool) -> None:
    """Reduce the elements of `src` that go to the same place, with or without what is there."""
    if reduce not in REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}.")
    _check_src_dtype("scatter_reduce", self, src)
    s = Scatter("scatter_reduce", self, dim, index, src)
    reduce_flat(s.flat, s.at, s.src, reduce, include_self=include_self)
    s.close()


def reduce_flat(flat: Array, at: Array, src: Any, reduce: str, *, include_self: bool) -> None:
    if not at.size:
        return
    if not include_self:
        flat[at] = _identity(reduce, flat.dtype)
    if reduce == "sum":
        add_flat(flat, at, src)
    elif reduce == "prod":
        np.multiply.at(flat, at, src)
    elif reduce == "amax":
        np.maximum.at(flat, at, src)
    elif reduce == "amin":
        np.minimum.at(flat, at, src)
    else:
        add_flat(flat, at, src)
        counts = np.bincount(at.reshape(-1), minlength=flat.size)
        if include_self:
            counts += 1
        counts[counts == 0] = 1
        if flat.dtype.kind in "iub":
            np.floor_divide(flat, counts, out=flat, casting="unsafe")
        else:
            flat /= counts.astype(flat.dtype)


def _identity(reduce: str, dtype: np.dtype[Any]) -> int | float:
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype.kind == "b":
        return reduce == "amin"
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return info.min if reduce == "amax" else info.max
    return -np.inf if reduce == "amax" else np.inf


# --- rows along one dimension ---------------------------------------------------------------------------------------


def _rows(self: Array, dim: int) -> Array:
    return self if dim == 0 else self.swapaxes(0, dim)


def _outside_error(self: Array, index: Array, n: int) -> Exception:
    if self.ndim < 2 or self.size:
        return IndexError("index out of range in self")
    if not n:
        return RuntimeError("index_select(): self indexing axis dim should be positive")
    found = index[(index < 0) | (index >= n)].flat[0]
    return RuntimeError(f"INDICES element is out of DATA bounds, id={int(found)} axis_dim={n}")


def index_select(self: Array, dim: int, index: Array) -> Array:
    """The parts of a dimension at these positions."""
    d = wrap_dim(dim, self.ndim)
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index.dtype != LONG and index.dtype != INT:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if not self.ndim and index.size != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index.size} value(s)")
    n = self.shape[d] if self.ndim else 1
    if _is_outside(index, n):
        raise _outside_error(self, index, n)
    if not self.ndim:
        return self.copy()
    return self.take(index if index.ndim else index.reshape(1), d)


def _check_rows(name: str, self: Array, dim: int, index: Array, source: Array) -> int:
    d = wrap_dim(dim, self.ndim)
    if index.ndim > 1:
        raise (
            IndexError(
                f"{name}_(): Index is supposed to be a vector, but got dim: {index.ndim} with type: {scalar_name(index)} and size: {list(index.shape)}"
            )
            if name == "index_add"
            else IndexError(f"{name}_(): Expected vector for index")
        )
    if index.dtype != LONG and index.dtype != INT:
        raise RuntimeError(f"{name}_(): Expected dtype int32/int64 for index but got: {scalar_name(index)}")
    if self.dtype != source.dtype:
        raise RuntimeError(
            f"{name}_(): self ({scalar_name(self)}) and source ({scalar_name(source)}) must have the same scalar type"
        )
    length = source.shape[d] if 0 <= d < source.ndim else 1
    if d >= max(source.ndim, 1):
        raise RuntimeError(f"{name}_(): Indexing dim {d} is out of bounds of the source tensor with dim {source.ndim}")
    if index.size != length:
        if not source.ndim:
            raise no_dimensions(dim)
        raise RuntimeError(
            f"{name}_(): Number of indices ({index.size}) should be equal to source.size(dim) ({length}), for dim: {dim}"
        )
    mine = self.shape[:d] + self.shape[d + 1 :]
    theirs = source.shape[:d] + source.shape[d + 1 :]
    if bool(self.ndim) != bool(source.ndim) or mine != theirs:
        raise RuntimeError(
            f"source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = {list(self.shape)} "
            f"source.shape = {list(source.shape)}"
        )
    return d


def index_add(self: Array, dim: int, index: Array, source: Array, alpha: Number) -> None:
    """Add parts of `source` to the parts of `self` at these positions, which may repeat."""
    d = _check_rows("index_add", self, dim, index, source)
    at = index.reshape(-1)
    if not at.size:
        return
    n = self.shape[d] if self.ndim else 1
    if _is_outside(at, n):
        raise IndexError("index out of range in self")
    if alpha != 1:
        source = source * np.asarray(alpha).astype(source.dtype)
    if not self.ndim:
        self += source.reshape(-1).sum(dtype=self.dtype)
        return
    rows = _rows(source.reshape(1) if not source.ndim else source, d)
    target = _rows(self, d)
    if target.flags.c_contiguous:
        add_rows(target, at, rows)
        return
    sums = np.zeros(target.shape, target.dtype)
    add_rows(sums, at, rows)
    np.add(target, sums, out=target)


def index_copy(self: Array, dim: int, index: Array, source: Array) -> None:
    """Write parts of `source` to the parts of `self` at these positions."""
    d = wrap_dim(dim, self.ndim)
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    if index.dtype != LONG:
        raise RuntimeError("index_copy_(): Expected a long tensor for index, but got " + scalar_name(index))
    if self.dtype != source.dtype:
        raise RuntimeError(
            f"index_copy_(): self and source expected to have the same dtype, but got (self) {scalar_name(self)} and (source) {scalar_name(source)}"
        )
    if source.ndim == 0 and index.size != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {index.size})")
    if source.ndim and self.ndim and source.ndim != self.ndim:
        raise IndexError(
            f"index_copy_(): When source and destination are not scalars, their dimensionality must match. Source dimensionality ({source.ndim}), destination dimensionality ({self.ndim})"
        )
    if source.ndim and source.shape[d] != index.size:
        raise IndexError(f"index_copy_(): Number of indices ({index.size}) should be equal to source.size(dim) ({source.shape[d]})")
    mine, theirs = self.shape[:d] + self.shape[d + 1 :], source.shape[:d] + source.shape[d + 1 :]
    if mine != theirs:
        raise RuntimeError(
            f"index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: {list(mine)} at dimension {d} and source slice shape: {list(theirs)} at dimension 0."
        )
    n = self.shape[d] if self.ndim else 1
    if n and not self.size:
        return  # torch: looks at no index where there is nothing to write
    at = index.reshape(-1)
    if _is_outside(at, n):
        bad = at[(at < 0) | (at >= n)][0]
        raise IndexError(f"index_copy_(): index {int(bad)} is out of bounds for dimension {d} with size {n}")
    target = _rows(self.reshape(1) if not self.ndim else self, d)
    target[at] = _rows(source.reshape(1) if not source.ndim else source, d)


def index_fill(self: Array, dim: int, index: Array, value: Number) -> None:
    """Write one value to the parts of `self` at these positions."""
    d = wrap_dim(dim, self.ndim)
    if index.dtype != LONG:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    if isinstance(value, complex) and self.dtype.kind != "c":
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    n = self.shape[d] if self.ndim else 1
    if n and not self.size:
        return
    at = index.reshape(-1)
    if at.size and (at.min() < -n or at.max() >= n):
        bad = at[(at < -n) | (at >= n)][0]
        raise IndexError(f"index {int(bad)} is out of bounds for dimension {d} with size {n}")
    warn_if_expanded(self, "index_fill_", "tensor[mask] = scalar")
    with writing_to_expanded(self):
        _rows(self.reshape(1) if not self.ndim else self, d)[at] = value


def _check_reduction(self: Array, reduce: str, include_self: bool) -> None:
    """torch: vectors go through a kernel of their own, parts of more dimensions through the operators that reduce."""
    if self.ndim <= 1:
        refuse("index_func_", self, "bc")
    if not include_self:
        refuse("index_reduce_func_exclude_input_init", self, "bc")
    if reduce == "mean":
        refuse("div_floor_cpu", self, "b")
    elif reduce != "prod":
        refuse("maximum_cpu" if reduce == "amax" else "minimum_cpu", self, "c")


def index_reduce(self: Array, dim: int, index: Array, source: Array, reduce: str, include_self: bool) -> None:
    """Reduce parts of `source` into the parts of `self` at these positions."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    d = _check_rows("index_reduce", self, dim, index, source)
    _check_reduction(self, reduce, include_self)
    n = self.shape[d] if self.ndim else 1
    at = index.reshape(-1)
    if _is_outside(at, n):
        raise IndexError("index out of range in self")
    source = source.reshape(1) if not source.ndim else source
    positions = np.broadcast_to(at.reshape((-1,) + (1,) * (source.ndim - 1 - d)), source.shape)
    s = Scatter("index_reduce", self, dim, positions, source)
    reduce_flat(s.flat, s.at, s.src, reduce, include_self=include_self)
    s.close()


# --- flat positions -------------------------------------------------------------------------------------------------


def take(self: Array, index: Array) -> Array:
    """Elements by their position in the flattened tensor."""
    if index.dtype != LONG:
        raise RuntimeError("take(): Expected a long tensor for index, but got " + scalar_name(index))
    if not self.size and index.size:
        raise IndexError("take(): tried to take from an empty tensor")
    try:
        return np.asarray(self.reshape(-1).take(index)) if index.size else np.empty(index.shape, self.dtype)
    except IndexError:
        raise IndexError(
            f"out of range: tried to access index {_beyond(index, self.size)} on a tensor of {self.size} elements."
        ) from None


def _beyond(index: Array, n: int) -> int:
    return int(index[(index < -n) | (index >= n)].flat[0])


def put(self: Array, index: Array, source: Array, accumulate: bool) -> None:
    """Write (or add) elements at positions in the flattened tensor."""
    if index.dtype != LONG:
        raise RuntimeError("put_(): Expected a long tensor for index, but got " + scalar_name(index))
    if self.dtype != source.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {scalar_name(self)} and source.dtype = "
            f"{scalar_name(source)}"
        )
    if index.size != source.size:
        raise IndexError(
            f"put_(): Expected source and index to have the same number of elements, but got source.numel() = {source.size}, "
            f"index.numel() = {index.size}"
        )
    if not index.size:
        return
    n = self.size
    if not n:
        raise IndexError("put_(): Expected self to be non-empty when index is not")
    if index.min() < -n or index.max() >= n:
        raise IndexError(f"out of range: tried to access index {_beyond(index, n)} on a tensor of {n} elements.")
    flat = self.reshape(-1) if self.flags.c_contiguous else self.flatten()
    at = index.reshape(-1)
    if accumulate:
        np.add.at(flat, at, source.reshape(-1))
    else:
        flat[at] = source.reshape(-1)
    if not self.flags.c_contiguous:
        self[...] = flat.reshape(self.shape)


# Elements from which on a mask is turned into indices: 0.8 ms instead of 5.2 for a million where half of the mask is true at random,
# 1.2 instead of 0.7 where nearly all is.
MANY = 1 << 14


def masked_select(self: Array, mask: Array) -> Array:
    """The elements where the mask is true, both broadcast against each other."""
    if mask.dtype != BOOL:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    if self.shape != mask.shape:
        self, mask = np.broadcast_arrays(self, mask)
    if mask.size >= MANY:
        return self.reshape(-1).take(np.flatnonzero(mask))
    return self[mask]


def masked_scatter(self: Array, mask: Array, source: Array) -> None:
    """Write consecutive elements of `source` where the mask is true."""
    if self.dtype != source.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got {scalar_name(self)} and {scalar_name(source)}"
        )
    if mask.dtype != BOOL:
        raise RuntimeError("masked_scatter_ only supports boolean masks, but got mask with dtype " + scalar_name(mask))
    if mask.shape != self.shape:
        check_expands(mask, self.shape)
        mask = np.broadcast_to(mask, self.shape)
    count = int(np.count_nonzero(mask))
    if count > source.size:
        raise RuntimeError("masked_scatter_: expected number of elements in source >= number of ones in mask")
    self[mask] = source.reshape(-1)[:count]


# they move elements and compute nothing
SILENT.update((gather, scatter_src, index_select, index_copy, take, masked_select, masked_scatter, nonzero))
