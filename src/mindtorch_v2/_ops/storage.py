"""Operators on the memory of a tensor: `set_`, `resize_`, `is_set_to`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _pickling
from .._checks import contiguous_strides
from .._creation import checked_shape
from .._dispatch import keys
from .._memory_format import empty_strides
from .._storage import MetaStorage, UntypedStorage, own
from .._tensor import Tensor
from .declare import op, public

is_set_to = op(
    "is_set_to(Tensor self, Tensor tensor) -> bool",
    composite=lambda self, tensor: (
        self.data_ptr() == tensor.data_ptr() and self._array.shape == tensor._array.shape and self.stride() == tensor.stride()
    ),
    variants="method",
)


def _resize(self: Tensor, size: Any, memory_format: Any) -> Tensor:
    if self._keys & keys.AUTOGRAD:
        raise RuntimeError("cannot resize variables that require grad")
    shape = checked_shape(size)
    strides = contiguous_strides(shape) if memory_format is None else empty_strides(shape, memory_format)
    offset, d = self.storage_offset(), self.dtype
    needed = 0 if 0 in shape else (offset + 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))) * d.itemsize
    if not self._keys & keys.META and needed > self._storage.nbytes():
        _grow(self._storage, needed)
    resized = _pickling.view_of_storage(self._storage, d, offset, shape, strides)
    self._array = resized._array
    return self


def _grow(storage: UntypedStorage, size_bytes: int) -> None:
    """Larger memory that begins with the old bytes. Other tensors keep the old memory."""
    memory = np.empty(size_bytes, np.uint8)
    old = storage.bytes()
    memory[: old.size] = old
    storage.array = memory
    storage._bytes = memory


resize_op = op(
    "resize_(Tensor(a!) self, int[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)", composite=_resize, variants="method"
)
resize_as_ = op(
    "resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
    composite=lambda self, the_template, memory_format: _resize(self, the_template._array.shape, memory_format),
)


def _set(self: Tensor, source: Any, storage_offset: Any, size: Any, stride: Any) -> Tensor:
    if self._keys & keys.AUTOGRAD and self._node is None:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    if source is None:
        source = own(np.empty(0, self.dtype.np))
    if isinstance(source, Tensor):
        if source.dtype is not self.dtype:
            raise RuntimeError(
                f"Could not set tensor of type {source.dtype.scalar_name} to a tensor of type {self.dtype.scalar_name}"
            )
        if storage_offset is None:
            storage_offset, size, stride = source.storage_offset(), source._array.shape, source.stride()
        source = source._storage
    elif not isinstance(source, UntypedStorage):
        source = source.untyped()
    if size is None:
        storage_offset, size, stride = 0, (source.nbytes() // self.dtype.itemsize,), (1,)
    shape = checked_shape(size)
    strides = tuple(stride) if stride else contiguous_strides(shape)
    made = _pickling.view_of_storage(source, self.dtype, storage_offset, shape, strides)
    self._array, self._storage = made._array, source
    self._storage.version += 1
    return self


_set_tensor = op(
    "set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)",
    composite=lambda self, source: _set(self, source, None, None, None),
    variants="",
)
_set_nothing = op("set_(Tensor(a!) self) -> Tensor(a!)", composite=lambda self: _set(self, None, None, None, None), variants="")
_set_storage = op(
    "set_.source_Storage_storage_offset(Tensor(a!) self, Storage source, int storage_offset, int[] size, int[] stride=[]) -> Tensor(a!)",
    composite=_set,
    variants="",
)


@public("method")
def set_(self: Tensor, source: Any = None, storage_offset: Any = None, size: Any = None, stride: Any = None) -> Tensor:
    """Use another tensor's or storage's memory from now on."""
    if source is None:
        return _set_nothing(self)  # type: ignore[no-any-return]
    if isinstance(source, Tensor) and storage_offset is None:
        return _set_tensor(self, source)  # type: ignore[no-any-return]
    return _set_storage(self, source, storage_offset, size, stride)  # type: ignore[no-any-return]
