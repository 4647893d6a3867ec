"""torch.storage: the memory behind tensors, as bytes (`UntypedStorage`) or as elements of one dtype (`TypedStorage`)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import _device, _dtype
from ._storage import UntypedStorage, own
from ._tensor import Tensor

__all__ = ["TypedStorage", "UntypedStorage"]


class TypedStorage:
    """A storage seen as a flat sequence of one dtype."""

    def __init__(self, *, wrap_storage: UntypedStorage, dtype: _dtype.dtype) -> None:
        self._untyped_storage = wrap_storage
        self.dtype = dtype

    @property
    def device(self) -> _device.device:
        return self._untyped_storage.device

    def _elements(self) -> np.ndarray[Any, Any]:
        return self._untyped_storage.bytes().view(self.dtype.np)

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return self._untyped_storage

    def size(self) -> int:
        """The number of elements."""
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    def __len__(self) -> int:
        return self.size()

    def nbytes(self) -> int:
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._untyped_storage.data_ptr()

    def tolist(self) -> list[Any]:
        return self._elements().tolist()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not -self.size() <= index < self.size():
            raise IndexError(f"index {index} out of range for storage of size {self.size()}")
        return self._elements()[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements()[index] = value
        self._untyped_storage.version += 1

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def fill_(self, value: Any) -> TypedStorage:
        """Set every element."""
        self._elements()[...] = value
        self._untyped_storage.version += 1
        return self

    def clone(self) -> TypedStorage:
        """A copy with memory of its own."""
        return TypedStorage(wrap_storage=own(self._elements().copy()), dtype=self.dtype)

    def is_shared(self) -> bool:
        """Whether the memory is shared between processes."""
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> TypedStorage:
        """Move to memory that processes share, with all tensors on it."""
        self._untyped_storage.share_memory_()
        return self

    def pickle_storage_type(self) -> str:
        """The name under which checkpoints know this kind of storage."""
        return f"{self.dtype.scalar_name}Storage"

    def __repr__(self) -> str:
        lines = "".join(f" {v}\n" for v in self.tolist())
        return f"{lines}[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"


def typed_storage_of(t: Tensor) -> TypedStorage:
    """`Tensor.storage()`, with torch's warning."""
    warnings.warn(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. This "
        "should only matter to you if you are using storages directly.  To access UntypedStorage directly, use "
        "tensor.untyped_storage() instead of tensor.storage()",
        UserWarning,
        stacklevel=3,
    )
    return TypedStorage(wrap_storage=t._storage, dtype=t.dtype)


def _load_from_bytes(content: bytes) -> Any:
    """The storage in a plain pickle that PyTorch wrote, which calls this by name."""
    from ._pickled_storage import load_from_bytes  # cycle with _pickled_storage

    return load_from_bytes(content)
