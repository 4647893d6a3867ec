"""Tensors of a subclass that have a geometry, a dtype and a device, and no memory: what they stand for is in their attributes."""

from __future__ import annotations

from typing import Any

from numpy.lib.stride_tricks import as_strided

from . import _device, _dtype
from ._backends.meta.adapter import meta_array
from ._checks import contiguous_strides
from ._dispatch import keys
from ._memory_format import contiguous_format, empty_strides, strided
from ._storage import MetaStorage, own
from ._tensor import Tensor
from ._types import OptionalDevice, OptionalDType, OptionalLayout

__all__ = ["is_wrapper", "wrapper_of"]


class WrapperStorage(MetaStorage):
    """The storage of a wrapper: there is nothing at its address, which is not to be asked for."""

    __slots__ = ()

    def data_ptr(self) -> int:
        raise RuntimeError(
            "Attempted to access the data pointer on an invalid python storage: the tensor stands for others, and has no memory of its own"
        )


def wrapper_of(
    cls: Any,
    size: Any,
    strides: Any = None,
    storage_offset: int = 0,
    memory_format: Any = None,
    dtype: OptionalDType = None,
    layout: OptionalLayout = strided,
    device: OptionalDevice = None,
    requires_grad: bool = False,
) -> Any:
    """`Tensor._make_wrapper_subclass`. Operators reach `__torch_dispatch__`; one that got past it would find the meta device."""
    if not isinstance(cls, type) or not issubclass(cls, Tensor):
        raise TypeError(f"cls must be a type that is a subclass of Tensor, not {cls!r}")
    if not cls._class_keys & keys.PYTHON:
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__; _make_wrapper_subclass leaves all operators to it")
    if layout is not strided:
        raise NotImplementedError(f"_make_wrapper_subclass: only dense tensors can be wrapped, not those of layout {layout}")
    d = _dtype.get_default_dtype() if dtype is None else dtype
    if requires_grad and not d.inexact:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    shape = tuple(int(n) for n in size)
    if strides is None:
        dense = memory_format is None or memory_format is contiguous_format
        strides = contiguous_strides(shape) if dense else empty_strides(shape, memory_format)
    t = object.__new__(cls)
    whole = meta_array((storage_offset + 1,), d)  # from the start of the storage to the first element
    t._array = as_strided(whole[storage_offset:], shape, tuple(s * d.itemsize for s in strides))
    t._storage = own(whole, WrapperStorage)
    t.dtype, t.device = d, _device.device("cpu" if device is None else device)
    t._keys = keys.META | cls._class_keys | (keys.AUTOGRAD if requires_grad else 0)
    t._node = t._base = t._extra = t._geometry = None
    return t


def is_wrapper(t: Tensor) -> bool:
    """Whether a tensor was made by `wrapper_of` and is of no meta device."""
    return t._keys & keys.META != 0 and t.device.type != "meta"
