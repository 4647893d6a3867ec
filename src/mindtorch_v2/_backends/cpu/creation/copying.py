"""Copies in a memory format, and fills."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from .... import _checks, _dtype, _promotion
from ...._memory_format import contiguous_format, empty_strides, preserve_format
from ...._types import Number, OptionalMemoryFormat
from ...._writing import check_partial_overlap
from ..machinery.floating_errors import silent
from ..machinery.layout import follow_channels_last
from ..machinery.parallel import copied

Array = np.ndarray[Any, Any]


def format_name(memory_format: OptionalMemoryFormat) -> str:
    return "preserve_format" if memory_format is None else str(memory_format).removeprefix("torch.")


# For a memory format, the order of dimensions from the slowest to the fastest.
_ORDERS: dict[str, Any] = {"preserve_format": "K", "contiguous_format": "C"}  # what NumPy calls the others
_CHANNELS_LAST = {"channels_last": (0, 2, 3, 1), "channels_last_3d": (0, 2, 3, 4, 1)}


def is_contiguous(self: Array, memory_format: OptionalMemoryFormat = None) -> bool:
    """Whether the elements lie row by row, or in the order of the format."""
    order = _CHANNELS_LAST.get(format_name(memory_format))
    if order is None:
        return self.flags.c_contiguous
    return len(order) == self.ndim and self.transpose(order).flags.c_contiguous


def preserved(self: Array, dtype: np.dtype[Any]) -> Array:
    """A dense copy with the dimensions in the same order. NumPy would make expanded ones the innermost."""
    if 0 not in self.strides:
        return self.astype(dtype, order="K", copy=True)
    strides = empty_strides(self.shape, preserve_format, [s // self.itemsize for s in self.strides])
    out = np.ndarray(self.shape, dtype, None, 0, [s * dtype.itemsize for s in strides])
    out[...] = self
    return out


def laid_out(self: Array, memory_format: OptionalMemoryFormat, dtype: np.dtype[Any] | None = None) -> Array:
    """A copy in a memory format, possibly of another dtype."""
    name = format_name(memory_format)
    d = self.dtype if dtype is None else dtype
    if name == "preserve_format":
        return preserved(self, d)
    if name == "contiguous_format":
        return self.astype(d, order="C", copy=True)
    order = _CHANNELS_LAST[name]
    if len(order) != self.ndim:
        raise RuntimeError(f"required rank {len(order)} tensor to use {name} format")
    follow_channels_last()
    out = np.empty([self.shape[i] for i in order], d).transpose(np.argsort(order))
    out[...] = self
    return out


def strides_of_copy(self: Array, memory_format: OptionalMemoryFormat) -> tuple[int, ...]:
    """The strides, in elements, that a copy would have."""
    wanted = preserve_format if memory_format is None else memory_format
    return empty_strides(self.shape, wanted, [s // self.itemsize for s in self.strides])


def clone(self: Array, memory_format: OptionalMemoryFormat) -> Array:
    if memory_format is None:
        return self.copy("K") if 0 not in self.strides else preserved(self, self.dtype)
    if memory_format is contiguous_format:
        return self.copy("C")
    return laid_out(self, memory_format)


_warned = False


def _warn_about_imaginary_part() -> None:
    global _warned
    if _warned:  # torch: once in a process
        return
    _warned = True
    warnings.warn("Casting complex values to real discards the imaginary part", UserWarning, stacklevel=5)


def cast(self: Array, d: _dtype.dtype, memory_format: OptionalMemoryFormat = None) -> Array:
    """The elements in another dtype. Floats outside of an integer type's range become what C makes of them, as in torch."""
    if self.dtype.kind == "c" and d.category in (_dtype.INTEGER, _dtype.FLOAT):
        _warn_about_imaginary_part()
        self = self.real
    if memory_format is None:
        return preserved(self, d.np)
    return laid_out(self, memory_format, d.np)


def cast_large(self: Array, d: _dtype.dtype, memory_format: OptionalMemoryFormat = None) -> Array:
    """The same on several threads, if that pays."""
    order = _ORDERS.get(format_name(memory_format))
    if order is None or 0 in self.strides or (self.dtype.kind == "c" and d.category in (_dtype.INTEGER, _dtype.FLOAT)):
        return cast(self, d, memory_format)
    return copied(self, np.empty_like(self, d.np, order))


def clone_large(self: Array, memory_format: OptionalMemoryFormat) -> Array:
    return cast_large(self, _dtype.FROM_NUMPY[self.dtype], memory_format)


def copy_(self: Array, src: Array | Number) -> None:
    if not isinstance(src, np.ndarray):
        src = number_in(src, _dtype.FROM_NUMPY[self.dtype])
    elif src.size > 1 and self.size > 1 and np.may_share_memory(self, src):
        check_partial_overlap(self, src)
    if src.dtype != self.dtype:
        src = cast(src, _dtype.FROM_NUMPY[self.dtype])
    if src.ndim > self.ndim:  # NumPy drops leading dimensions of one
        shape = _checks.broadcast_shapes(self.shape, src.shape)
        raise RuntimeError(f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(shape)}")
    try:
        self[...] = src
    except ValueError:
        if not self.flags.writeable:
            raise  # the adapter decides whether it may be written after all
        shape = _checks.broadcast_shapes(self.shape, src.shape)
        raise RuntimeError(f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(shape)}") from None


# As C++ calls the types in the message about a number that does not fit.
CPP_NAMES = {
    "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t", "uint16": "uint16_t",
    "uint32": "uint32_t", "uint64": "uint64_t", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double",
}  # fmt: skip


def overflow_error(d: _dtype.dtype) -> RuntimeError:
    return RuntimeError(f"value cannot be converted to type {CPP_NAMES.get(d.name, d.name)} without overflow")


def number_in(value: Any, d: _dtype.dtype) -> Array:
    """A number as an element of a dtype; raises when it is out of an integer type's range, or not real."""
    if d.category == _dtype.BOOL:
        return np.asarray(value != 0)
    if isinstance(value, complex | np.complexfloating) and not d.is_complex:
        if value.imag:
            raise overflow_error(d)
        value = value.real
    if d.category != _dtype.INTEGER:
        return np.asarray(value).astype(d.np)
    if not math.isfinite(value):
        raise overflow_error(d)
    number = int(value)
    info = np.iinfo(d.np)
    # torch: a negative number wraps around in an unsigned type
    if number > info.max or number < (info.min if d.is_signed else -info.max - 1):
        raise overflow_error(d)
    return _promotion.number_array(number, d)


@silent
def fill_(self: Array, value: Array | Number) -> None:
    if isinstance(value, np.ndarray):
        if value.ndim:
            raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions.")
        self.fill(cast(value, _dtype.FROM_NUMPY[self.dtype]))
        return
    if self.dtype.kind == "f" and value.__class__ is float:
        self.fill(value)
    else:
        self.fill(number_in(value, _dtype.FROM_NUMPY[self.dtype]))


@silent
def zero_(self: Array) -> None:
    self.fill(0)
