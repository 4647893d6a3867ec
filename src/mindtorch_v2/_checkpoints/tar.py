"""Checkpoints of PyTorch's first year: a tar file of `storages`, `tensors` and a `pickle`. Only read where the source is trusted."""

from __future__ import annotations

import pickle
import struct
import tarfile
from types import ModuleType
from typing import IO, Any

import numpy as np

from .. import _pickling
from .._storage import own
from ..storage import TypedStorage
from .archive import CheckpointError
from .legacy import check_source
from .locations import Restore
from .names import StorageType
from .unpickler import trusting

__all__ = ["is_tar", "load_tar"]


def is_tar(file: IO[bytes]) -> bool:
    """Whether a file begins as a tar file does; it stays where it is."""
    start = file.tell()
    try:
        block = file.read(tarfile.BLOCKSIZE)
        tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except (tarfile.HeaderError, ValueError, TypeError):
        return False
    finally:
        file.seek(start)
    return len(block) == tarfile.BLOCKSIZE


def load_tar(file: IO[bytes], restore: Restore, pickle_module: ModuleType, options: dict[str, Any]) -> Any:
    """The object in such a file."""
    with tarfile.open(fileobj=file, mode="r:", format=tarfile.PAX_FORMAT) as tar:
        loader = _Loader(restore, pickle_module, options)
        loader.read_storages(_member(tar, "storages"))
        loader.read_tensors(_member(tar, "tensors"))
        return trusting(pickle_module, _member(tar, "pickle"), loader.find, options).load()


def _member(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    try:
        found = tar.extractfile(name)
    except KeyError:
        found = None
    if found is None:
        raise CheckpointError(f"the tar file has no {name}: it is no checkpoint, or is damaged")
    return found


class _Loader:
    """The storages and tensors of one file, by their keys."""

    def __init__(self, restore: Restore, pickle_module: ModuleType, options: dict[str, Any]) -> None:
        self._restore, self._module, self._options = restore, pickle_module, options
        self._objects: dict[Any, Any] = {}

    def _load(self, file: IO[bytes]) -> Any:
        return trusting(self._module, file, self.find, self._options).load()

    def find(self, reference: Any) -> Any:
        """The object of a persistent id: a tensor, or a class with its source."""
        if isinstance(reference, tuple):
            cls, name, source = reference
            if name and source:
                check_source(cls, source)
            return cls
        return self._objects[int(reference)]

    def read_storages(self, file: IO[bytes]) -> None:
        for _ in range(self._load(file)):
            key, location, kind = self._load(file)
            if not isinstance(kind, StorageType):
                raise pickle.UnpicklingError(f"{kind!r} is no type of a storage")
            (count,) = struct.unpack("<q", file.read(8))
            content = np.frombuffer(bytearray(file.read(count * kind.dtype.itemsize)), np.uint8)
            if len(content) != count * kind.dtype.itemsize:
                raise CheckpointError("the bytes of a storage are missing; the file is cut off, copy or save it again")
            memory = self._restore(own(content), location)
            self._objects[key] = TypedStorage(wrap_storage=memory, dtype=kind.dtype, _internal=True)
        for key, root, offset, count in self._load(file):
            whole = self._objects[root]
            unit = whole.dtype.itemsize
            part = whole._untyped_storage[offset * unit : (offset + count) * unit]
            self._objects[key] = TypedStorage(wrap_storage=part, dtype=whole.dtype, _internal=True)

    def read_tensors(self, file: IO[bytes]) -> None:
        for _ in range(self._load(file)):
            key, storage_key, _ = self._load(file)
            storage = self._objects[storage_key]
            (dims,) = struct.unpack("<i4x", file.read(8))
            size = struct.unpack(f"<{dims}q", file.read(8 * dims))
            stride = struct.unpack(f"<{dims}q", file.read(8 * dims))
            (offset,) = struct.unpack("<q", file.read(8))
            self._objects[key] = _pickling.view_of_storage(storage._untyped_storage, storage.dtype, offset, size, stride)
