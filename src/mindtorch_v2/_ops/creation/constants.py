"""Factories of constants and of bare memory, by size or after another tensor.

On the CPU the frequent ones are one kernel, which makes memory and fills it: NumPy gets memory that is zero already from the system, where
ATen's `zeros` calls `zero_`. The others fill memory by an operator (`full_like` calls `fill_`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _device, _dtype
from ..._backends.cpu.creation.copying import fill_, number_in
from ..._backends.cpu.machinery.floating_errors import silent
from ..._backends.cpu.machinery.layout import follow_channels_last
from ..._backends.meta.adapter import meta_tensor
from ..._creation import allocate, checked_shape, device_of, dtype_of
from ..._dispatch import keys
from ..._memory_format import contiguous_format, empty_strides, preserve_format
from ..._tensor import Tensor, set_array, wrap, wrap_sized
from ..._types import Number, OptionalDevice, OptionalDType, OptionalLayout, OptionalMemoryFormat
from ..machinery.factory import factory, inlined

Array = np.ndarray[Any, Any]

# --- memory and constants -------------------------------------------------------------------------------------------


def _empty(
    size: Sequence[int],
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
    memory_format: OptionalMemoryFormat = None,
) -> Tensor:
    d = dtype if dtype.__class__ is _dtype.dtype else dtype_of(dtype)
    where = device if device.__class__ is _device.device else device_of(device)
    if memory_format is None or memory_format is contiguous_format:
        return allocate(size, d, where)
    if memory_format is preserve_format:
        raise RuntimeError("memory format option is not supported: preserve_format")
    shape = checked_shape(size)
    return strided_tensor(shape, empty_strides(shape, memory_format), d, where)


def strided_tensor(shape: tuple[int, ...], strides: tuple[int, ...], d: _dtype.dtype, where: _device.device) -> Tensor:
    """Memory laid out with these strides, in elements."""
    if len(shape) != len(strides):
        raise RuntimeError(f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(strides)})")
    if any(s < 0 for s in strides):
        raise RuntimeError(f"strides must be nonnegative, got {list(strides)}")
    byte_strides = tuple(s * d.itemsize for s in strides)
    if len(shape) in (4, 5) and strides[1] == 1 and shape[1] > 1:
        follow_channels_last()
    if where.key == keys.META:
        return meta_tensor(shape, d, byte_strides)
    length = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    memory = np.empty(length, d.np)
    t = wrap_sized(memory, d)
    set_array(t, np.ndarray(shape, d.np, memory, 0, byte_strides) if length else np.empty(shape, d.np))
    return t


def _empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
) -> Tensor:
    return strided_tensor(checked_shape(size), tuple(int(s) for s in stride), dtype_of(dtype), device_of(device))


def _empty_permuted(
    size: Sequence[int],
    physical_layout: Sequence[int],
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
) -> Tensor:
    shape = checked_shape(size)
    if len(physical_layout) != len(shape):
        raise RuntimeError(
            f"Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = {len(shape)} "
            f"is not equal to len(physical_layout) = {len(physical_layout)}"
        )
    seen: set[int] = set()
    for p in physical_layout:
        if not 0 <= p < len(shape):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(shape) - 1}, but got {p} at index {list(physical_layout).index(p)}). NB: negative dims not currently supported; file an issue if you want it."
            )
        if p in seen:
            raise RuntimeError("Duplicate dim not allowed")
        seen.add(p)
    strides, step = [0] * len(shape), 1
    for p in reversed(physical_layout):
        strides[p] = step
        step *= max(shape[p], 1)
    return strided_tensor(shape, tuple(strides), dtype_of(dtype), device_of(device))


def _zeros(
    size: Sequence[int], dtype: OptionalDType, layout: OptionalLayout, device: OptionalDevice, pin_memory: bool | None
) -> Tensor:
    d, where = dtype_of(dtype), device_of(device)
    return wrap_sized(np.zeros(checked_shape(size), d.np), d) if where.key == keys.CPU else allocate(size, d, where).zero_()


def _ones(
    size: Sequence[int], dtype: OptionalDType, layout: OptionalLayout, device: OptionalDevice, pin_memory: bool | None
) -> Tensor:
    return _filled(allocate(size, dtype_of(dtype), device_of(device)), 1)


def _filled(made: Tensor, value: Number) -> Tensor:
    """New memory with every element set to a value."""
    if not made._keys & keys.CPU:
        return made.fill_(value)
    fill_(made._array, value._array if isinstance(value, Tensor) else value)
    return made


def _full(
    size: Sequence[int],
    fill_value: Number,
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
) -> Tensor:
    d = _fill_dtype(fill_value) if dtype is None else dtype_of(dtype)
    return _filled(allocate(size, d, device_of(device)), fill_value)


def _fill_dtype(value: object) -> _dtype.dtype:
    if isinstance(value, Tensor):
        return value.dtype if value.dtype.category != _dtype.FLOAT else _dtype.get_default_dtype()
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, bool | int | float | complex):
        raise TypeError(f"argument 'fill_value' (position 2) must be Number, not {type(value).__name__}")
    return _dtype.of_scalar(value)


def _scalar_tensor(
    s: Number, dtype: OptionalDType, layout: OptionalLayout, device: OptionalDevice, pin_memory: bool | None
) -> Tensor:
    if device is _device.cpu and s.__class__ is float and dtype.__class__ is _dtype.dtype and dtype.itemsize >= 4 and dtype.inexact:
        return wrap(np.array(s, dtype.np), dtype)
    t = allocate((), dtype_of(dtype), device_of(device))
    if t._keys & keys.CPU:
        t._array[...] = number_in(s.item() if isinstance(s, Tensor) else s, t.dtype)
    return t


_OPTION_NAMES = "dtype, layout, device, pin_memory"
_GIVEN = "dtypes._default if dtype is None else dtype"
_OWN = "self.dtype if dtype is None else dtype"
_ZEROS, _ONES = "a = np_zeros({shape}, d.np)", "a = np_empty({shape}, d.np); a.fill(1)"
_DENSE = "memory_format is None and device is None and self._array.flags.c_contiguous"


@silent
def _full_array(size: Sequence[int], fill_value: Number, dtype: OptionalDType) -> Array:
    if fill_value.__class__ is float and (dtype is None or dtype.__class__ is _dtype.dtype):
        d = _dtype.get_default_dtype() if dtype is None else dtype
        if d.inexact and d.itemsize >= 4:
            try:
                array = np.empty(size, d.np)
            except (TypeError, ValueError, MemoryError):
                array = np.empty(checked_shape(size), d.np)
            array.fill(fill_value)
            return array
    return _full(size, fill_value, dtype, None, _device.cpu, None)._array


empty = factory(
    "empty.memory_format(SymInt[] size, LIKE) -> Tensor",
    _empty,
    cpu=inlined("a = np_empty(size, d.np)", _GIVEN, _empty, f"size, {_OPTION_NAMES}, memory_format", "memory_format is None"),
)
zeros = factory(
    "zeros(SymInt[] size, OPTIONS) -> Tensor",
    _zeros,
    cpu=inlined(_ZEROS.format(shape="size"), _GIVEN, _zeros, f"size, {_OPTION_NAMES}"),
)
ones = factory(
    "ones(SymInt[] size, OPTIONS) -> Tensor",
    _ones,
    cpu=inlined(_ONES.format(shape="size"), _GIVEN, _ones, f"size, {_OPTION_NAMES}"),
)
full = factory("full(SymInt[] size, Scalar fill_value, OPTIONS) -> Tensor", _full, cpu=_full_array)
# torch: zeros that have no memory, and that its operators skip; here they are elements, if of memory that came cleared
_efficientzerotensor = factory("_efficientzerotensor(SymInt[] size, OPTIONS) -> Tensor", _zeros, variants="")
scalar_tensor = factory("scalar_tensor(Scalar s, OPTIONS) -> Tensor", _scalar_tensor)
empty_strided = factory("empty_strided(SymInt[] size, SymInt[] stride, OPTIONS) -> Tensor", _empty_strided)
empty_permuted = factory("empty_permuted(SymInt[] size, int[] physical_layout, OPTIONS) -> Tensor", _empty_permuted)


# --- after another tensor -------------------------------------------------------------------------------------------


def like(
    self: Tensor, dtype: OptionalDType = None, device: OptionalDevice = None, memory_format: OptionalMemoryFormat = None
) -> Tensor:
    """Memory for a tensor of the same geometry."""
    d = self.dtype if dtype is None else dtype_of(dtype)
    where = self.device if device is None else device_of(device)
    array = self._array
    if (memory_format is None or memory_format is preserve_format) and not array.flags.c_contiguous:
        return strided_tensor(array.shape, empty_strides(array.shape, preserve_format, self.stride()), d, where)
    if memory_format is None or memory_format is preserve_format or memory_format is contiguous_format:
        return allocate(array.shape, d, where)
    return strided_tensor(array.shape, empty_strides(array.shape, memory_format), d, where)


def _empty_like(
    self: Tensor,
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
    memory_format: OptionalMemoryFormat,
) -> Tensor:
    return like(self, dtype, device, memory_format)


def _zeros_like(
    self: Tensor,
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
    memory_format: OptionalMemoryFormat,
) -> Tensor:
    return _filled(like(self, dtype, device, memory_format), 0)


def _ones_like(
    self: Tensor,
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
    memory_format: OptionalMemoryFormat,
) -> Tensor:
    return _filled(like(self, dtype, device, memory_format), 1)


def _full_like(
    self: Tensor,
    fill_value: Number,
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
    memory_format: OptionalMemoryFormat,
) -> Tensor:
    return like(self, dtype, device, memory_format).fill_(fill_value)


def _new(self: Tensor, size: int | Sequence[int], dtype: OptionalDType, device: OptionalDevice) -> Tensor:
    return allocate(size, self.dtype if dtype is None else dtype_of(dtype), self.device if device is None else device_of(device))


def _new_empty(
    self: Tensor, size: Sequence[int], dtype: OptionalDType, layout: OptionalLayout, device: OptionalDevice, pin_memory: bool | None
) -> Tensor:
    return _new(self, size, dtype, device)


def _new_zeros(
    self: Tensor, size: Sequence[int], dtype: OptionalDType, layout: OptionalLayout, device: OptionalDevice, pin_memory: bool | None
) -> Tensor:
    return _filled(_new(self, size, dtype, device), 0)


def _new_ones(
    self: Tensor, size: Sequence[int], dtype: OptionalDType, layout: OptionalLayout, device: OptionalDevice, pin_memory: bool | None
) -> Tensor:
    return _filled(_new(self, size, dtype, device), 1)


def _new_full(
    self: Tensor,
    size: Sequence[int],
    fill_value: Number,
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
) -> Tensor:
    return _new(self, size, dtype, device).fill_(fill_value)


def _new_empty_strided(
    self: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
) -> Tensor:
    d = self.dtype if dtype is None else dtype_of(dtype)
    where = self.device if device is None else device_of(device)
    return strided_tensor(checked_shape(size), tuple(int(s) for s in stride), d, where)


empty_like = factory(
    "empty_like(Tensor self, LIKE) -> Tensor",
    _empty_like,
    cpu=inlined("a = np_empty(self._array.shape, d.np)", _OWN, _empty_like, f"self, {_OPTION_NAMES}, memory_format", _DENSE),
)
zeros_like = factory(
    "zeros_like(Tensor self, LIKE) -> Tensor",
    _zeros_like,
    cpu=inlined(_ZEROS.format(shape="self._array.shape"), _OWN, _zeros_like, f"self, {_OPTION_NAMES}, memory_format", _DENSE),
)
ones_like = factory(
    "ones_like(Tensor self, LIKE) -> Tensor",
    _ones_like,
    cpu=inlined(_ONES.format(shape="self._array.shape"), _OWN, _ones_like, f"self, {_OPTION_NAMES}, memory_format", _DENSE),
)
full_like = factory("full_like(Tensor self, Scalar fill_value, LIKE) -> Tensor", _full_like)
new_empty = factory("new_empty(Tensor self, SymInt[] size, OPTIONS) -> Tensor", _new_empty, variants="method")
new_zeros = factory(
    "new_zeros(Tensor self, SymInt[] size, OPTIONS) -> Tensor",
    _new_zeros,
    cpu=inlined(_ZEROS.format(shape="size"), _OWN, _new_zeros, f"self, size, {_OPTION_NAMES}"),
    variants="method",
)
new_ones = factory(
    "new_ones(Tensor self, SymInt[] size, OPTIONS) -> Tensor",
    _new_ones,
    cpu=inlined(_ONES.format(shape="size"), _OWN, _new_ones, f"self, size, {_OPTION_NAMES}"),
    variants="method",
)
new_full = factory("new_full(Tensor self, SymInt[] size, Scalar fill_value, OPTIONS) -> Tensor", _new_full, variants="method")
new_empty_strided = factory(
    "new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, OPTIONS) -> Tensor", _new_empty_strided, variants="method"
)
