"""View kernels: other shapes and strides over the same memory. None of them copies an element.

Where the general NumPy function is slow the view is built by hand: `np.ndarray(shape, dtype, buffer, offset, strides)` takes
0.4 µs, `np.lib.stride_tricks.as_strided` and `np.broadcast_to` more than 3.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .... import _dtype
from ...._checks import contiguous_strides, dimension_error, wrap_dim

Array = np.ndarray[Any, Any]

# WHOLE[n] is the index of the first n dimensions taken whole.
WHOLE: tuple[tuple[slice, ...], ...] = tuple((slice(None),) * n for n in range(65))


def strided(self: Array, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> Array:
    """A view of this geometry, in bytes from the first element of `self`."""
    if self.flags.c_contiguous:
        return np.ndarray(shape, self.dtype, self, offset, strides)
    if offset:
        raise ValueError("an offset needs a contiguous array")
    return np.lib.stride_tricks.as_strided(self, shape, strides, writeable=bool(self.flags.writeable))


# --- the same elements in other shapes ------------------------------------------------------------------------------


def view(self: Array, size: Sequence[int]) -> Array:
    """`self` in another shape, where its strides allow that."""
    try:
        out = self.reshape(size) if self.flags.c_contiguous else self.reshape(size, copy=False)
    except (ValueError, TypeError):
        raise view_error(self, size) from None
    if out.shape != size and size and min(size) < -1:
        raise view_error(self, size)
    return out


def view_error(self: Array, size: Sequence[int]) -> RuntimeError:
    """Return the error about this shape for this array."""
    if len(size) > 64:
        return RuntimeError(f"tensors are NumPy arrays here, of at most 64 dimensions; got a size of {len(size)}")
    if sum(n == -1 for n in size) > 1:
        return RuntimeError("only one dimension can be inferred")
    shown = [int(n) for n in size]
    for i, n in enumerate(shown):
        if n < -1:
            return RuntimeError(f"invalid shape dimension {n} at index {i} of shape {shown}")
    known = math.prod([n for n in shown if n != -1])
    if -1 in shown and known == 0 and self.size == 0:
        return RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {shown} because the unspecified dimension size -1 can be any value "
            "and is ambiguous"
        )
    fits = known != 0 and self.size % known == 0 if -1 in shown else known == self.size
    if not fits:
        return RuntimeError(f"shape '{shown}' is invalid for input of size {self.size}")
    return RuntimeError(
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous "
        "subspaces). Use .reshape(...) instead."
    )


def can_view(self: Array, size: Sequence[int]) -> bool:
    """Whether a reshape needs no copy. Raises where the shape does not fit at all."""
    if self.flags.c_contiguous:
        return True
    try:
        self.reshape(size, copy=False)
    except (ValueError, TypeError):
        error = view_error(self, size)
        if not str(error).startswith("view size"):
            raise error from None
        return False
    return True


def view_dtype(self: Array, dtype: _dtype.dtype) -> Array:
    """The same bytes read as another dtype; the last dimension shrinks or grows with the element size."""
    elements = dtype.bits if isinstance(dtype, _dtype.NarrowDtype) else dtype.np
    old, new = self.dtype.itemsize, dtype.itemsize
    if old != new:
        if not self.size and not any(self.strides):  # NumPy forgets the strides of an array that is made without elements
            self = strided(self, self.shape, tuple(s * old for s in contiguous_strides(self.shape)))
        _check_view_dtype(self, old, new, dtype)
        if new > old and any(n > 1 and s % new for n, s in zip(self.shape[:-1], self.strides[:-1], strict=True)):
            raise RuntimeError(f"self.stride(-1) must be divisible by {new // old}")
    return self.view(elements)


def _check_view_dtype(self: Array, old: int, new: int, dtype: _dtype.dtype) -> None:
    mine = _dtype.from_numpy_dtype(self.dtype).scalar_name
    if not self.ndim:
        raise RuntimeError(f"self.dim() cannot be 0 to view {mine} as {dtype.scalar_name} (different element sizes)")
    if self.shape[-1] != 1 and self.strides[-1] != old and self.size:
        raise RuntimeError(
            f"self.stride(-1) must be 1 to view {mine} as {dtype.scalar_name} (different element sizes), "
            f"but got {self.strides[-1] // old}"
        )
    if new > old:
        ratio = new // old
        if self.shape[-1] % ratio:
            raise RuntimeError(
                f"self.size(-1) must be divisible by {ratio} to view {mine} as {dtype.scalar_name} (different element sizes), "
                f"but got {self.shape[-1]}"
            )
        for i, s in enumerate(self.strides[:-1]):
            if s // old % ratio:
                raise RuntimeError(
                    f"self.stride({i}) must be divisible by {ratio} to view {mine} as {dtype.scalar_name} "
                    f"(different element sizes), but got {s // old}"
                )


def expand(self: Array, size: Sequence[int]) -> Array:
    """`self` repeated along dimensions of extent one by a stride of zero.

    The result is read-only, so that a write which would hit one element several times fails; see `_writing.make_writable`.
    """
    shape, size = self.shape, tuple(size)
    extra = len(size) - len(shape)
    if extra < 0:
        raise RuntimeError(
            f"expand({_tensor_type(self)}{{{list(shape)}}}, size={[int(n) for n in size]}): the number of sizes provided "
            f"({len(size)}) must be greater or equal to the number of dimensions in the tensor ({self.ndim})"
        )
    if shape == size:
        return self[...]
    if size[extra:] == shape and (size[0] if extra == 1 else min(size[:extra])) > 0:
        # only new dimensions in front: the common case of a bias or a batch
        out = strided(self, size, (0,) * extra + self.strides)
        out.setflags(write=False)
        return out
    strides = list(self.strides)
    target = list(size)
    repeated = False
    if extra:
        strides[:0] = [0] * extra
        for i in range(extra):
            if target[i] < 0:
                raise _expand_error(size, shape, i)
            repeated = repeated or target[i] > 1
    for i, m in enumerate(shape, extra):
        n = target[i]
        if n == m:
            continue
        if n == -1:
            target[i] = m
        elif m != 1 or n < 0:
            raise _expand_error(size, shape, i)
        else:
            strides[i] = 0
            repeated = repeated or n > 1
    out = strided(self, tuple(target), tuple(strides))
    if repeated:
        out.setflags(write=False)
    return out


def _expand_error(size: Sequence[int], shape: Sequence[int], i: int) -> RuntimeError:
    extra = len(size) - len(shape)
    if i < extra:
        return RuntimeError(f"The expanded size of the tensor ({size[i]}) isn't allowed in a leading, non-existing dimension {i}")
    return RuntimeError(
        f"The expanded size of the tensor ({size[i]}) must match the existing size ({shape[i - extra]}) at non-singleton dimension "
        f"{i}.  Target sizes: {[int(n) for n in size]}.  Tensor sizes: {list(shape)}"
    )


def _tensor_type(self: Array) -> str:
    names = {"bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long", "float16": "Half"}
    names |= {"float32": "Float", "float64": "Double", "bfloat16": "BFloat16", "complex64": "ComplexFloat"}
    return f"torch.{names.get(self.dtype.name, 'ComplexDouble')}Tensor"


def transpose(self: Array, dim0: int, dim1: int) -> Array:
    try:
        return self.swapaxes(dim0, dim1)
    except ValueError:
        wrap_dim(dim0, self.ndim)
        wrap_dim(dim1, self.ndim)
        return self[...]  # torch: a zero-dim tensor has dimensions 0 and -1


def t(self: Array) -> Array:
    if self.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
    return self.T


def permute(self: Array, dims: Sequence[int]) -> Array:
    try:
        return self.transpose(dims) if dims else _permute_none(self)
    except (ValueError, TypeError):
        if len(dims) != self.ndim:
            raise RuntimeError(
                "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of "
                f"dimensions i.e. input.dim() = {self.ndim} is not equal to len(dims) = {len(dims)}"
            ) from None
        for d in dims:
            wrap_dim(d, self.ndim)
        raise RuntimeError("permute(): duplicate dims are not allowed.") from None


def _permute_none(self: Array) -> Array:
    if self.ndim:
        raise ValueError
    return self[...]


def squeeze(self: Array) -> Array:
    return self.squeeze()


def squeeze_dim(self: Array, dim: int) -> Array:
    d = wrap_dim(dim, self.ndim)
    return self.squeeze(d) if self.ndim and self.shape[d] == 1 else self[...]


def squeeze_dims(self: Array, dim: Sequence[int]) -> Array:
    dims = {wrap_dim(d, self.ndim) for d in dim}
    if len(dims) != len(dim):
        repeated = next(d for d in dims if [wrap_dim(x, self.ndim) for x in dim].count(d) > 1)
        raise RuntimeError(f"dim {repeated} appears multiple times in the list of dims")
    return self.squeeze(tuple(d for d in dims if self.ndim and self.shape[d] == 1))


def unsqueeze(self: Array, dim: int) -> Array:
    ndim = self.ndim
    if not -ndim - 1 <= dim <= ndim:
        raise dimension_error(dim, ndim + 1)
    if dim < 0:
        dim += ndim + 1
    if dim == ndim and not self.flags.c_contiguous:
        return self[..., None]
    # reshape gives a new dimension the stride that torch does, a None in an index gives it zero
    shape = list(self.shape)  # 0.15 µs less than tuples put together
    shape.insert(dim, 1)
    return self.reshape(shape)


# --- parts ----------------------------------------------------------------------------------------------------------


def select(self: Array, dim: int, index: int) -> Array:
    """The elements at one position of a dimension, which disappears."""
    ndim = self.ndim
    if index.__class__ is not int:
        index = operator.index(index)
    try:
        if dim < 0:
            dim = wrap_dim(dim, ndim)
        if ndim > 1:
            return self[index] if not dim else self[WHOLE[dim] + (index,)]
        return self[index, ...] if not dim else self[WHOLE[dim] + (index, ...)]
    except IndexError:
        raise _select_error(self, dim, index) from None


def _select_error(self: Array, dim: int, index: int) -> IndexError:
    if not self.ndim:
        return IndexError("select() cannot be applied to a 0-dim tensor.")
    if not -self.ndim <= dim < self.ndim:
        return dimension_error(dim, self.ndim)
    return IndexError(
        f"select(): index {index} out of range for tensor of size {list(self.shape)} at dimension {wrap_dim(dim, self.ndim)}"
    )


def slice_(self: Array, dim: int, start: int | None, end: int | None, step: int) -> Array:
    """Every `step`-th position of a dimension from `start` up to `end`, both cut to what there is."""
    ndim = self.ndim
    if not ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    if not dim:
        return self[start:end:step]
    return self[(*WHOLE[wrap_dim(dim, ndim)], slice(start, end, step))]


def split_with_sizes(self: Array, split_sizes: Sequence[int], dim: int) -> list[Array]:
    """Consecutive parts of these lengths."""
    if not self.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    whole = WHOLE[wrap_dim(dim, self.ndim)]
    length = self.shape[len(whole)]
    for n in split_sizes:
        if n < 0:
            raise RuntimeError(
                "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes="
                f"[{', '.join(map(str, split_sizes))}]"
            )
    if sum(split_sizes) != length:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {length} (input tensor's size at dimension {len(whole)}), "
            f"but got split_sizes={[int(n) for n in split_sizes]}"
        )
    parts = []
    at = 0
    for n in split_sizes:
        parts.append(self[(*whole, slice(at, at + n))])
        at += n
    return parts


def diagonal(self: Array, offset: int, dim1: int, dim2: int) -> Array:
    """The elements whose indices along the two dimensions differ by `offset`, as a new last dimension."""
    d1, d2 = wrap_dim(dim1, self.ndim), wrap_dim(dim2, self.ndim)
    if d1 == d2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return self.diagonal(offset, d1, d2)  # read-only: made writable on the first write


def unfold(self: Array, dimension: int, size: int, step: int) -> Array:
    """Windows of `size` every `step` positions; the positions in a window become a new last dimension."""
    d = wrap_dim(dimension, self.ndim)
    length = self.shape[d] if self.ndim else 1
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {length} but size is {size}")
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if not self.ndim:
        return strided(self, (size,), (self.itemsize,))
    shape, strides = list(self.shape), list(self.strides)
    shape[d] = (length - size) // step + 1
    shape.append(size)
    strides.append(strides[d])
    strides[d] *= step
    return strided(self, tuple(shape), tuple(strides))
