"""What programs do with a storage as a sequence of bytes: read and write them, copy, resize, map files, share.

Operators use none of this. It is attached to the storage's class here, where tensors and their memory are known.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from . import _device, _dtype
from ._creation import device_of
from ._pickling import copied_storage, meta_storage
from ._shared_memory import allocate, array_of, map_path, mapping_of, move, share
from ._storage import MetaStorage, UntypedStorage, identity, own
from ._types import OptionalDevice, OptionalDType

__all__ = ["StorageMethods", "attach", "copied_buffer", "mapped_file", "new_storage", "shown_elements", "with_casts"]

Array = np.ndarray[Any, Any]
_BYTE_ORDERS = ("big", "little", "native")


class StorageMethods:
    """Bytes as a sequence, by torch's names."""

    is_cuda = is_hpu = is_sparse = is_sparse_csr = False
    device: _device.device
    version: int
    if TYPE_CHECKING:

        def bytes(self) -> Array: ...
        def nbytes(self) -> int: ...

    def _me(self) -> UntypedStorage:
        return cast("UntypedStorage", self)

    # --- elements ---------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.nbytes()

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def tolist(self) -> list[int]:
        """The bytes as numbers."""
        return cast("list[int]", self._memory().tolist())

    def _memory(self) -> Array:
        if self.device is _device.meta:
            raise NotImplementedError("Not available for 'meta' device type")
        return self.bytes()

    def __getitem__(self, index: Any) -> Any:
        """One byte, or a storage over some of them, which shares the memory."""
        memory = self._memory()
        if isinstance(index, slice):
            part = own(memory[self._range(index)])
            part.is_fixed = True
            return part
        return int(memory[self._position(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        memory = self._memory()
        if isinstance(value, float) or not isinstance(value, int | np.integer):
            raise RuntimeError(f"can only set storage content with a int types, but got {_typename(value)} instead")
        where = self._range(index) if isinstance(index, slice) else self._position(index)
        memory[where] = int(value) & 0xFF
        self.version += 1

    def _position(self, index: Any) -> int:
        if not isinstance(index, int | np.integer):
            raise TypeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
        size = self.nbytes()
        if not -size <= index < size:
            raise IndexError(f"index {index} out of range for storage of size {size}")
        return int(index) % size

    def _range(self, index: slice) -> slice:
        start, stop, step = index.indices(self.nbytes())
        if step != 1:
            raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
        return slice(start, max(start, stop))

    def fill_(self, value: int) -> UntypedStorage:
        """Set every byte."""
        if self.device is not _device.meta:
            self[:] = value
        return self._me()

    def copy_(self, source: Any, non_blocking: bool | None = None) -> UntypedStorage:
        """Take the bytes of another storage of the same size."""
        other: UntypedStorage = getattr(source, "_untyped_storage", source)
        if other.nbytes() != self.nbytes():
            raise RuntimeError(f"size does not match, self was {self.nbytes()} bytes but src was {other.nbytes()} bytes")
        if other.device is _device.meta and self.device is not _device.meta:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        if self.device is not _device.meta:
            self.bytes()[...] = other.bytes()
            self.version += 1
        return self._me()

    def byteswap(self, dtype: _dtype.dtype) -> None:
        """Reverse the bytes of each number of this dtype; of a complex one, those of both parts."""
        unit = dtype.itemsize // (2 if dtype.is_complex else 1)
        memory = self._memory()
        if len(memory) % unit:
            raise RuntimeError(f"the length of data is not a multiple of {unit}")
        numbers = memory.reshape(-1, unit)
        numbers[...] = numbers[:, ::-1].copy()
        self.version += 1

    # --- other storages ---------------------------------------------------------------------------------------------

    def new(self) -> UntypedStorage:
        """An empty storage."""
        return new_storage(0, self.device)

    def clone(self) -> UntypedStorage:
        """A copy with memory of its own."""
        return new_storage(self.nbytes(), self.device).copy_(self)

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[Any, Any]) -> UntypedStorage:
        return copied_storage(self._me(), memo)

    def untyped(self) -> UntypedStorage:
        """This storage: it has no type of elements."""
        return self._me()

    def cpu(self) -> UntypedStorage:
        """This storage: it is on the CPU."""
        return self.to(device="cpu")

    def to(self, *, device: OptionalDevice, non_blocking: bool = False) -> UntypedStorage:
        """This storage, or one of its size on another device."""
        where = device if isinstance(device, _device.device) else _device.device(device)
        if where.type == self.device.type:
            return self._me()
        return new_storage(self.nbytes(), where).copy_(self)

    def cuda(self, device: OptionalDevice = None, non_blocking: bool = False) -> UntypedStorage:
        """Refused: there is no CUDA."""
        return self.to(device="cuda")

    # --- memory -----------------------------------------------------------------------------------------------------

    def element_size(self) -> int:
        """One byte."""
        return 1

    def get_device(self) -> Any:
        """The number of the device, which the CPU does not have."""
        return self.device.index

    @property
    def _cdata(self) -> int:
        return identity(self)

    @property
    def is_fixed(self) -> bool:
        """Whether the memory is somebody else's, and cannot be exchanged for more."""
        return hasattr(self, "_owner")

    @is_fixed.setter
    def is_fixed(self, value: bool) -> None:
        if value:
            self._owner: str | None = None

    @property
    def filename(self) -> str | None:
        """The file that this memory is a part of, when writes go to it."""
        return self._owner if self.is_fixed else None

    def resizable(self) -> bool:
        """Whether `resize_` may give this storage other memory."""
        return not self.is_fixed

    def resize_(self, size: int) -> UntypedStorage:
        """Make the memory longer or shorter, with what it holds."""
        if not self.resizable():
            raise RuntimeError("Trying to resize storage that is not resizable")
        me, old = self._me(), self.bytes()
        if self.device is _device.meta:
            me.replace(new_storage(size, self.device).array)
        elif size <= len(old):
            me.replace(old[:size] if size else np.empty(0, np.uint8))
        else:
            grown = np.zeros(size, np.uint8)
            grown[: len(old)] = old
            move(me, grown)
            me.replace(grown)
        return me

    def is_shared(self) -> bool:
        """Whether the memory is shared between processes."""
        return mapping_of(self._me()) is not None

    def share_memory_(self) -> UntypedStorage:
        """Move to memory that processes share, with all tensors on it."""
        share(self._me())
        return self._me()

    def is_pinned(self, device: OptionalDevice = None) -> bool:
        """Whether the memory is pinned for another device: never."""
        return False

    def pin_memory(self, device: OptionalDevice = None) -> UntypedStorage:
        """Refused: there is no device to pin memory for."""
        raise RuntimeError("Cannot access accelerator device when none is available.")

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def __repr__(self) -> str:
        return f"{shown_elements(self)}[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"

    # --- made from elsewhere ----------------------------------------------------------------------------------------

    @classmethod
    def from_file(cls, filename: str, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The bytes of a file, mapped. With `shared`, writes go to the file, which is made or made longer if need be."""
        return mapped_file(os.fspath(filename), shared=shared, size_bytes=nbytes)

    @classmethod
    def from_buffer(
        cls, buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0, dtype: OptionalDType = None
    ) -> UntypedStorage:
        """A copy of numbers in an object with the buffer protocol, in this machine's byte order."""
        if dtype is None:
            raise RuntimeError("argument 'dtype' cannot be None")
        return copied_buffer(buffer, dtype, byte_order, count, offset)

    @classmethod
    def _new_shared(cls, size: int, *, device: OptionalDevice = "cpu") -> UntypedStorage:
        where = _device.device(device)
        return own(array_of(allocate(size))) if where.type == "cpu" else new_storage(size, where)


_CASTS = {
    "double": _dtype.float64, "float": _dtype.float32, "half": _dtype.float16, "long": _dtype.int64, "int": _dtype.int32,
    "short": _dtype.int16, "char": _dtype.int8, "byte": _dtype.uint8, "bool": _dtype.bool_, "bfloat16": _dtype.bfloat16,
    "complex_double": _dtype.complex128, "complex_float": _dtype.complex64,
}  # fmt: skip


def with_casts(cls: Any) -> Any:
    """Give a class of storages `double()`, `float()` and so on, which copy to another dtype."""
    for name, d in _CASTS.items():

        def cast_to(self: Any, d: _dtype.dtype = d) -> Any:
            return self._to(d)

        cast_to.__name__, cast_to.__doc__ = name, f"A copy with elements of {d}."
        setattr(cls, name, cast_to)
    return cls


def attach(methods: type, cls: Any) -> None:
    """Give a class the methods of another."""
    for name, value in vars(methods).items():
        if name not in ("__dict__", "__weakref__", "__module__", "__doc__", "__slots__", "__annotations__"):
            setattr(cls, name, value)


with_casts(StorageMethods)
attach(StorageMethods, UntypedStorage)


class _WithoutMemory:
    """A storage of the meta device is the same in every process."""

    def is_shared(self) -> bool:
        return False

    def share_memory_(self: Any) -> Any:
        return self


attach(_WithoutMemory, MetaStorage)


def _typename(value: object) -> str:
    return "torch.storage.UntypedStorage" if isinstance(value, StorageMethods) else type(value).__name__


def shown_elements(storage: Any) -> str:
    """The lines that a printed storage has before its last."""
    if storage.device is _device.meta:
        return "...\n"
    return " " + "\n ".join(map(str, storage.tolist())) + "\n"


def new_storage(size_bytes: int, device: _device.device) -> UntypedStorage:
    """A storage of zeros."""
    if device.type == "meta":
        return meta_storage(size_bytes)
    if device.type != "cpu":
        device_of(device)
    if size_bytes < 0:
        raise RuntimeError(f"a storage cannot have {size_bytes} bytes")
    return own(np.zeros(size_bytes, np.uint8))


def copied_buffer(buffer: Any, dtype: _dtype.dtype, byte_order: str | None, count: int, offset: int) -> UntypedStorage:
    """`from_buffer`."""
    if byte_order is None and dtype.itemsize == 1:
        byte_order = "native"
    if byte_order not in _BYTE_ORDERS:
        raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
    memory = np.frombuffer(memoryview(buffer).cast("B"), np.uint8)
    unit, length = dtype.itemsize, len(memory)
    if not 0 <= offset <= length:
        raise ValueError(f"offset must be non-negative and no greater than buffer length ({length}), but got {offset}")
    if count < 0:
        if (length - offset) % unit:
            raise ValueError(f"buffer size ({length}) must be a multiple of element size ({unit})")
        count = (length - offset) // unit
    if offset + count * unit > length:
        raise ValueError(
            f"buffer has only {(length - offset) // unit} elements after offset {offset}, but specified a size of {count}"
        )
    storage = own(memory[offset : offset + count * unit].copy())
    if byte_order not in ("native", sys.byteorder):
        storage.byteswap(dtype)
    if dtype is _dtype.bool_:
        storage.array[...] = storage.array != 0
    return storage


def mapped_file(filename: str, *, shared: bool, size_bytes: int) -> UntypedStorage:
    """`from_file`."""
    flags = os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY
    try:
        descriptor = os.open(filename, flags | getattr(os, "O_CLOEXEC", 0), 0o666)
    except OSError as error:
        mode = "read-write" if shared else "read-only"
        raise RuntimeError(f"unable to open file <{filename}> in {mode} mode: {error.strerror} ({error.errno})") from error
    try:
        there = os.fstat(descriptor).st_size
        if there < size_bytes:
            if not shared:
                raise RuntimeError(f"file <{filename}> size <{there}> is smaller than the required mapping size <{size_bytes}>")
            os.truncate(descriptor, size_bytes)
        storage = own(map_path(descriptor, size_bytes, shared=shared))
    finally:
        os.close(descriptor)
    storage._owner = filename if shared else None
    return storage
