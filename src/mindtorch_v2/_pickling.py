"""Copying and pickling of tensors: the whole storage goes along, and tensors that share one keep sharing it."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from . import _device, _dtype
from ._backends.meta.adapter import meta_array
from ._dispatch import keys
from ._pending import resolved
from ._storage import MetaStorage, UntypedStorage, own
from ._tensor import Tensor, shallow_copy
from ._wrapper_subclass import is_wrapper

if TYPE_CHECKING:
    from ._memory_format import layout

__all__ = ["copied_storage", "deepcopy_tensor", "own_slots", "rebuild", "reduce_tensor", "view_of_storage"]


def view_of_storage(
    storage: UntypedStorage,
    d: _dtype.dtype,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    cls: type[Tensor] = Tensor,
) -> Tensor:
    """A tensor over part of a storage; offset and strides in elements."""
    t: Tensor = object.__new__(cls)
    byte_strides = tuple(s * d.itemsize for s in strides)
    if isinstance(storage, MetaStorage):
        t._array = meta_array(tuple(shape), d, byte_strides)
        t._keys, t.device = keys.META | cls._class_keys, _device.meta
    else:
        t._array = strided_view(storage, d, offset, tuple(shape), byte_strides)
        t._keys, t.device = (keys.NARROW if isinstance(d, _dtype.NarrowDtype) else keys.CPU) | cls._class_keys, _device.cpu
    t._storage = storage
    t.dtype = d
    t._node = t._base = t._extra = None
    return t


def strided_view(
    storage: UntypedStorage, d: _dtype.dtype, offset: int, shape: tuple[int, ...], byte_strides: tuple[int, ...]
) -> np.ndarray[Any, Any]:
    """An array over a storage's bytes; raises when it would reach past their end."""
    memory = storage.bytes()
    elements = d.bits if isinstance(d, _dtype.NarrowDtype) else d.np
    if 0 in shape:
        return np.ndarray(shape, elements, memory if memory.size else None, 0, None)
    end = offset * d.itemsize + sum((n - 1) * s for n, s in zip(shape, byte_strides, strict=True)) + d.itemsize
    if end > memory.size:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {[s // d.itemsize for s in byte_strides]}, storage offset {offset}, and "
            f"itemsize {d.itemsize} requiring a storage size of {end} are out of bounds for storage of size {memory.size}"
        )
    return np.ndarray(shape, elements, memory, offset * d.itemsize, byte_strides)


def deepcopy_tensor(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy of a leaf with memory of its own, its gradient and its attributes."""
    if id(self) in memo:
        return memo[id(self)]
    if self._node is not None:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you "
            "were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    if is_wrapper(self):
        new = _copied_wrapper(self)
    elif self._keys & keys.SPARSE_LAYOUTS:
        new = shallow_copy(self.detach().clone(), type(self))
    else:
        source = resolved(shallow_copy(self)) if self._keys & keys.PENDING else self
        storage = copied_storage(source._storage, memo)
        new = view_of_storage(storage, self.dtype, source.storage_offset(), self._array.shape, source.stride(), type(self))
    memo[id(self)] = new
    new._keys |= self._keys & keys.AUTOGRAD
    if self._extra is not None and self._extra.grad is not None:
        new._require_extra().grad = copy.deepcopy(self._extra.grad, memo)
    if self.__dict__:
        new.__dict__.update(copy.deepcopy(self.__dict__, memo))
    if type(self) is not Tensor:
        for name in own_slots(type(self)):
            if hasattr(self, name):
                setattr(new, name, copy.deepcopy(getattr(self, name), memo))
    return new


def _copied_wrapper(t: Tensor) -> Tensor:
    """A copy of a tensor that wraps others, as its class makes one."""
    new: Tensor = t.clone().detach()
    if type(new) is not type(t):
        raise RuntimeError(
            "The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types that properly "
            f"implement clone() and for which cloning returns another instance of the same subclass: that of {type(t).__name__} returned a "
            f"{type(new).__name__}. Implement it so, or override __deepcopy__()"
        )
    return new


def own_slots(cls: type[Tensor]) -> list[str]:
    """The slots that a subclass of tensors adds."""
    found: list[str] = []
    for base in cls.__mro__[: cls.__mro__.index(Tensor)]:
        names = vars(base).get("__slots__", ())
        found += [names] if isinstance(names, str) else names
    return [name for name in found if name not in ("__dict__", "__weakref__")]


def copied_storage(storage: UntypedStorage, memo: dict[Any, Any]) -> UntypedStorage:
    """A copy of a storage, the same one for all that share it."""
    found = memo.get(id(storage))
    if found is None:
        if isinstance(storage, MetaStorage):
            found = own(storage.array, MetaStorage)
        else:
            found = own(storage.array.copy(order="K"))
        memo[id(storage)] = found
        memo.setdefault(id(memo), []).append(storage)  # keeps the id from being reused, as copy.deepcopy does
    return found


def reduce_tensor(self: Tensor, protocol: SupportsIndex | None) -> tuple[Any, ...]:
    """Return what pickle and copy need to make this tensor again: without its graph, as a leaf."""
    state = dict(self.__dict__)
    if self._keys & keys.SPARSE_LAYOUTS:
        storage: Any = self._storage
        return (rebuild_sparse, (self.layout, storage.parts(), tuple(self._array.shape), state))
    arguments = (
        type(self), self._storage, self.dtype, self.storage_offset(), tuple(self._array.shape), self.stride(),
        self._keys & keys.AUTOGRAD != 0, state,
    )  # fmt: skip
    return (rebuild, arguments)


def rebuild(
    cls: type[Tensor],
    storage: UntypedStorage,
    d: _dtype.dtype,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    requires_grad: bool,
    state: dict[str, Any],
) -> Tensor:
    """The tensor that `reduce_tensor` took apart."""
    t = view_of_storage(storage, d, offset, shape, strides, cls)
    if requires_grad:
        t._keys |= keys.AUTOGRAD
    t.__dict__.update(state)
    return t


def rebuild_sparse(layout: layout, parts: tuple[Any, ...], size: tuple[int, ...], state: dict[str, Any]) -> Tensor:
    """The sparse tensor that `reduce_tensor` took apart."""
    from ._ops.sparse.compressed import from_parts  # cycle with _ops.sparse.compressed

    t = from_parts(layout, parts, size)
    t.__dict__.update(state)
    return t


def reduce_storage(storage: UntypedStorage) -> tuple[Any, ...]:
    if isinstance(storage, MetaStorage):
        return (meta_storage, (storage.nbytes(),))
    return (storage_from_bytes, (bytes(storage.bytes().data),))


def storage_from_bytes(data: bytes) -> UntypedStorage:
    return own(np.frombuffer(bytearray(data), np.uint8))


def meta_storage(size_bytes: int) -> UntypedStorage:
    return own(meta_array((size_bytes,), _dtype.uint8), MetaStorage)


UntypedStorage.__reduce_ex__ = lambda self, protocol: reduce_storage(self)  # type: ignore
