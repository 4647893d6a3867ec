"""Copies of sparse tensors, in other dtypes too, and empty ones of the same size."""

from __future__ import annotations

import numpy as np

from ..._dispatch import keys
from ..._memory_format import preserve_format
from ..._tensor import Tensor, shallow_copy, wrap
from ..._types import Number, OptionalDevice, OptionalDType, OptionalLayout, OptionalMemoryFormat
from ..creation import python_values  # noqa: F401 - declared first
from . import compressed
from .arithmetic import BOTH, other_values, values_of
from .compressed import as_coo, compressed_tensor, in_layout_of
from .construction import empty_coo
from .storage import coalesced, kernel, layout_name, parts, replace, storage_of

__all__ = ["check_format"]


def check_format(function: str, memory_format: OptionalMemoryFormat) -> None:
    """Refuse an order of elements in memory, which sparse tensors have none of."""
    if memory_format is not None and memory_format is not preserve_format:
        raise RuntimeError(f"{function}: memory format option is only supported by strided tensors, but got {memory_format}")


def _clone(self: Tensor, memory_format: OptionalMemoryFormat) -> Tensor:
    """A copy with parts of its own."""
    check_format("clone", memory_format)
    if self._keys & keys.SPARSE_COMPRESSED:
        storage = compressed.storage_of(self)
        return compressed_tensor(
            storage.layout, storage.compressed.clone(), storage.plain.clone(), storage.values.clone(), self._array.shape
        )
    made = other_values(self, values_of(self).clone())
    storage_of(made).indices = storage_of(self).indices.clone()
    return made


def _converted(
    self: Tensor,
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
    non_blocking: bool | None,
    memory_format: OptionalMemoryFormat,
) -> Tensor:
    if device is not None and str(device) != "cpu":
        raise NotImplementedError(f"to: sparse tensors are on the CPU only, not on {device}")
    if layout is not None and layout is not self.layout:
        raise RuntimeError(f"to(options) doesn't support converting to a different layout, but got self.layout being {self.layout} and options.layout set as {layout}")  # fmt: skip
    copy = _clone(self, memory_format)
    return copy if dtype is None or dtype is self.dtype else other_values(copy, values_of(copy).to(dtype))


def _empty_like(self: Tensor) -> Tensor:
    if self._keys & keys.SPARSE:
        return empty_coo(self._array.shape, self.dtype, self.dense_dim())
    return in_layout_of(empty_coo(self._array.shape, self.dtype, self.dense_dim()), self)


def _zeros_like(
    self: Tensor,
    dtype: OptionalDType,
    layout: OptionalLayout,
    device: OptionalDevice,
    pin_memory: bool | None,
    memory_format: OptionalMemoryFormat,
) -> Tensor:
    check_format("zeros_like", memory_format)
    if layout is not None and layout is not self.layout:
        if self._keys & keys.SPARSE_COMPRESSED:
            raise RuntimeError(f"empty_like with different sparse layout is not supported (self is {layout_name(self)} and you requested Strided)")  # fmt: skip
        return wrap(np.zeros(self._array.shape, (dtype or self.dtype).np), dtype or self.dtype)
    made = _empty_like(self)
    return made if dtype is None or dtype is self.dtype else other_values(made, values_of(made).to(dtype))


def _zero_(self: Tensor) -> Tensor:
    if self._keys & keys.SPARSE:
        return replace(self, _empty_like(self))
    values_of(self).zero_()
    self._storage.version += 1
    return self


def _copy_(self: Tensor, src: Tensor, non_blocking: bool) -> Tensor:
    """Take the elements of another tensor."""
    if not self._keys & keys.SPARSE_LAYOUTS:
        raise RuntimeError("copy_() between dense and sparse Tensors is not implemented! Use to_dense() on the source")
    if not src._keys & keys.SPARSE_LAYOUTS:
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type = sparse and src type = dense"
        )
    if self._array.shape != src._array.shape:
        raise RuntimeError(f"copy_: expected a tensor of size {list(self._array.shape)}, but got {list(src._array.shape)}")
    copy = _clone(src, None)
    if copy.dtype is not self.dtype:
        copy = other_values(copy, values_of(copy).to(self.dtype))
    if self._keys & keys.SPARSE:
        return replace(self, as_coo(copy))
    copy = in_layout_of(coalesced(as_coo(copy)), self) if copy.layout is not self.layout else copy
    own, other = compressed.storage_of(self), compressed.storage_of(copy)
    own.array, own.compressed, own.plain, own.values = other.array, other.compressed, other.plain, other.values
    own.version += 1
    return self


@kernel("_local_scalar_dense")
def _item(self: Tensor) -> Number:
    """The number of a tensor of one element, which several entries may add up to."""
    number: Number = parts(self)[1].sum(dtype=self.dtype.np).item()
    return number


for _key in BOTH[:2]:
    kernel("detach", key=_key)(shallow_copy)
    kernel("clone", key=_key)(_clone)
    kernel("_to_copy", key=_key)(_converted)
    kernel("zeros_like", key=_key)(_zeros_like)
    kernel("empty_like", key=_key)(_zeros_like)
    kernel("zero_", key=_key)(_zero_)
    kernel("any", key=_key)(lambda self: values_of(self).any())
for _key in (*BOTH, *(keys.CPU | k for k in BOTH)):
    kernel("copy_", key=_key)(_copy_)
