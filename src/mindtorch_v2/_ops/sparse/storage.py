"""The parts of a sparse tensor in coordinate form, and how kernels for it are registered.

A sparse tensor keeps `indices` (one column for each stored element) and `values` in its storage; its array is a single zero
with strides of zero, there for its shape and dtype only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._device import cpu
from ..._dispatch import keys, registry
from ..._storage import UntypedStorage
from ..._tensor import Tensor, set_array, shallow_copy, wrap
from ..creation import conversion, copying  # noqa: F401 - declared first

__all__ = [
    "DENSE_AND_SPARSE", "SparseStorage", "coalesced", "flat_places", "kernel", "layout_name", "parts", "placeholder", "replace",
    "sparse_tensor", "storage_of", "unflattened", "with_values",
]  # fmt: skip

Array = np.ndarray[Any, Any]
DENSE_AND_SPARSE = keys.CPU | keys.SPARSE


class SparseStorage(UntypedStorage):
    """The coordinates and values of a sparse tensor."""

    __slots__ = ("coalesced", "indices", "values")
    indices: Tensor
    values: Tensor
    coalesced: bool
    memory = property()  # is that of the values

    def parts(self) -> tuple[Any, ...]:
        """What a tensor of this layout is made of again."""
        return self.indices, self.values, self.coalesced

    def alias(self, version: int = 0) -> SparseStorage:
        new = SparseStorage()
        new.array, new.version = self.array, version
        new.indices, new.values, new.coalesced = self.indices, self.values, self.coalesced
        return new


def placeholder(values: Tensor, size: Sequence[int], storage: UntypedStorage, key: int) -> Tensor:
    """A tensor of this size over a storage with parts of its own."""
    t: Tensor = object.__new__(Tensor)
    t._array = np.broadcast_to(np.zeros((), values.dtype.np), tuple(size))
    storage.array = values._array
    storage.version = 0
    t._storage = storage
    t.dtype, t.device, t._keys = values.dtype, cpu, key
    t._node = t._base = t._extra = None
    return t


def sparse_tensor(indices: Tensor, values: Tensor, size: Sequence[int], *, coalesced: bool = False) -> Tensor:
    """A sparse tensor over these coordinates and values, unchecked and outside of any graph."""
    storage = SparseStorage()
    storage.indices, storage.values = _plain(indices), _plain(values)
    storage.coalesced = coalesced or indices._array.shape[1] <= 1
    return placeholder(values, size, storage, keys.SPARSE)


def _plain(t: Tensor) -> Tensor:
    return shallow_copy(t) if t._keys & keys.AUTOGRAD else t


def from_arrays(indices: Array, values: Array, like: Tensor, size: Sequence[int], *, coalesced: bool = False) -> Tensor:
    """A sparse tensor of the dtype of another."""
    return sparse_tensor(
        wrap(np.ascontiguousarray(indices, np.int64)), wrap(np.ascontiguousarray(values), like.dtype), size, coalesced=coalesced
    )


def layout_name(t: Tensor) -> str:
    """ATen's name of a tensor's layout, for messages."""
    name = str(t.layout).removeprefix("torch.")
    return {"strided": "Strided", "sparse_coo": "Sparse"}.get(name, "Sparse" + name.removeprefix("sparse_").capitalize())


def storage_of(t: Tensor, name: str = "") -> SparseStorage:
    storage = t._storage
    if not isinstance(storage, SparseStorage):
        if name:
            raise RuntimeError(f"{name} expected sparse coordinate tensor layout but got {layout_name(t)}")
        raise RuntimeError(
            f"expected a tensor of sparse layout, but got a dense one of shape {list(t._array.shape)}; use to_sparse()"
        )
    return storage


def parts(t: Tensor) -> tuple[Array, Array]:
    """The arrays of coordinates and of values."""
    storage = storage_of(t)
    return storage.indices._array, storage.values._array


def with_values(self: Tensor, values: Tensor) -> Tensor:
    """Other values at the same coordinates."""
    storage = storage_of(self)
    return sparse_tensor(storage.indices, values, self._array.shape, coalesced=storage.coalesced)


def replace(self: Tensor, new: Tensor) -> Tensor:
    """Give a sparse tensor the coordinates and values of another."""
    own, other = storage_of(self), storage_of(new)
    own.array, own.indices, own.values, own.coalesced = other.array, other.indices, other.values, other.coalesced
    own.version += 1
    if self._array.shape != new._array.shape:
        set_array(self, new._array)
    return self


def flat_places(indices: Array, sizes: Sequence[int]) -> Array:
    """One number for each column of coordinates, in the order of rows."""
    if indices.shape[1] == 0 or indices.shape[0] == 0:
        return np.zeros(indices.shape[1], np.int64)
    flat = np.zeros(indices.shape[1], np.int64)
    for row, size in zip(indices, sizes):
        flat = flat * size + row
    return flat


def unflattened(flat: Array, sizes: Sequence[int]) -> Array:
    """The coordinates that `flat_places` made these numbers of."""
    rows = np.empty((len(sizes), flat.size), np.int64)
    for d in range(len(sizes) - 1, -1, -1):
        flat, rows[d] = np.divmod(flat, sizes[d]) if flat.size else (flat, flat)
    return rows


def coalesced(self: Tensor) -> Tensor:
    """Sort the coordinates and add the values of equal ones, unless that is done."""
    storage = storage_of(self)
    if storage.coalesced:
        return self
    indices, values = storage.indices._array, storage.values._array
    sizes = self._array.shape[: indices.shape[0]]
    unique, group = np.unique(flat_places(indices, sizes), return_inverse=True)
    summed = np.zeros((len(unique), *values.shape[1:]), values.dtype)
    np.add.at(summed, group, values)
    return from_arrays(unflattened(unique, sizes), summed, self, self._array.shape, coalesced=True)


def kernel(name: str, overload: str = "default", key: int = keys.SPARSE) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as the kernel of an existing operator for sparse arguments."""
    found = registry.aten(name, overload)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        found.kernels[key] = function
        return function

    return register
