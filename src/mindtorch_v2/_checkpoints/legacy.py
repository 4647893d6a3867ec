"""Checkpoints in the format before PyTorch 1.6: pickles one after the other, then the bytes of the storages.

The object is unpickled before its storages are filled. What a pickle claims about their sizes is compared with the file first.
"""

from __future__ import annotations

import inspect
import io
import mmap
import pickle
import struct
import sys
import warnings
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import IO, Any, NoReturn

import numpy as np

from .._storage import UntypedStorage, own
from ..storage import TypedStorage
from . import options
from .archive import CheckpointError, checked_reference, read_into, size_of
from .locations import Restore, default_restore_location
from .names import PACKAGE
from .rebuild import deferring_checks
from .unpickler import trusting
from .weights_only import WeightsOnlyUnpickler
from .writing import MAGIC_NUMBER, PROTOCOL_VERSION

__all__ = [
    "RestrictedReader",
    "SourceChangeWarning",
    "TrustingReader",
    "check_seekable",
    "content_of",
    "load_legacy",
    "storage_from_bytes",
]

_COUNT = struct.Struct("<q")


class SourceChangeWarning(Warning):
    """The class of a module that is loaded is written differently from the one that was saved."""


def check_seekable(file: IO[bytes]) -> None:
    """Raise, with what to do, for a file that cannot go back."""
    try:
        file.seek(file.tell())
    except (io.UnsupportedOperation, AttributeError) as error:
        raise type(error)(
            f"{error}. You can only torch.load from a file that is seekable. Please pre-load the data into a buffer like io.BytesIO "
            "and try to load from it instead."
        ) from None


def content_of(file: IO[bytes]) -> memoryview:
    """What is left of a file: mapped where it is one of the system's, else read."""
    if isinstance(file, io.BufferedReader | io.FileIO | io.BufferedRandom):
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))[file.tell() :]
    if not hasattr(file, "readinto"):
        return memoryview(file.read())
    start = file.tell()
    content = np.empty(size_of(file) - start, np.uint8)
    file.seek(start)
    return content[: read_into(file, content)].data


class RestrictedReader:
    """Reads one pickle after the other, each restricted to data."""

    trusts = False

    def __init__(self, content: memoryview, allowed: Mapping[str, Any], encoding: str) -> None:
        self.content, self.position = content, 0
        self._options: dict[str, Any] = {"allowed": allowed, "encoding": encoding, "file_bytes": len(content)}

    def load(self, persistent_load: Callable[[Any], Any]) -> Any:
        """The value of the next pickle."""
        unpickler = WeightsOnlyUnpickler(_Bytes(self.content), persistent_load, start=self.position, **self._options)
        value = unpickler.load()
        self.position = unpickler.at
        return value


class _Bytes:
    """Memory with what an unpickler needs of `bytes`, of which it copies no more than it is asked for."""

    def __init__(self, content: memoryview) -> None:
        self._content = content

    def __len__(self) -> int:
        return len(self._content)

    def __getitem__(self, index: int | slice) -> Any:
        found = self._content[index]
        return found if isinstance(index, int) else bytes(found)

    def find(self, wanted: bytes, start: int) -> int:
        for at in range(start, len(self), 4096):
            found = bytes(self._content[at : at + 4096]).find(wanted)
            if found >= 0:
                return at + found
        return -1


class TrustingReader:
    """Reads one pickle after the other, each of which may call anything."""

    trusts = True

    def __init__(self, content: memoryview, pickle_module: ModuleType, options: dict[str, Any]) -> None:
        self.content, self._stream = content, _Stream(content)
        self._module, self._options = pickle_module, options

    @property
    def position(self) -> int:
        return self._stream.at

    def load(self, persistent_load: Callable[[Any], Any]) -> Any:
        """The value of the next pickle."""
        return trusting(self._module, self._stream, persistent_load, self._options).load()


class _Stream:
    """Memory as a file that is read from front to back, a pickle's own bytes and no more."""

    def __init__(self, content: memoryview) -> None:
        self._content, self.at = _Bytes(content), 0

    def read(self, size: int = -1) -> bytes:
        end = len(self._content) if size < 0 else min(self.at + size, len(self._content))
        found: bytes = self._content[self.at : end]
        self.at = end
        return found

    def readline(self) -> bytes:
        end = self._content.find(b"\n", self.at)
        return self.read(-1 if end < 0 else end + 1 - self.at)


Reader = RestrictedReader | TrustingReader


def load_legacy(reader: Reader, restore: Restore) -> Any:
    """The object in a file of the older format."""
    if _first(reader) != MAGIC_NUMBER:
        raise CheckpointError("Invalid magic number; corrupt file? It is not a checkpoint, or is damaged")
    version = reader.load(_refuse)
    if version != PROTOCOL_VERSION:
        raise CheckpointError(f"Invalid protocol version: {version!s:.50}")
    reader.load(_refuse)  # the sizes of C's types on the machine that saved it
    storages = _Storages(restore, len(reader.content), trusts=reader.trusts)
    with deferring_checks():
        value = reader.load(storages.find)
        keys = reader.load(_refuse)
        if not options.skips_data():
            storages.fill(keys, reader.content[reader.position :])
    return value


def _first(reader: Reader) -> Any:
    try:
        return reader.load(_refuse)
    except (pickle.UnpicklingError, EOFError) as error:
        raise type(error)(f"not a checkpoint, or a damaged one: {error}") from None


def _refuse(reference: object) -> NoReturn:
    raise pickle.UnpicklingError("a persistent id where a checkpoint has none; the file is damaged, copy or save it again")


class _Storages:
    """The storages of one file, by their keys."""

    def __init__(self, restore: Restore, size_bytes: int, *, trusts: bool) -> None:
        self._restore, self._left, self._trusts = restore, size_bytes, trusts
        self._found: dict[str, TypedStorage] = {}
        self._views: dict[str, TypedStorage] = {}

    def find(self, reference: Any) -> Any:
        """The storage of a persistent id, to be filled later; for a trusted file, also the class of a module."""
        if self._trusts and type(reference) is tuple and reference[:1] in (("module",), (b"module",)):
            _, cls, file, source = reference
            if file and source:
                check_source(cls, source)
            return cls
        kind, key, location, count = checked_reference(reference, 6)
        storage = self._found.get(key)
        if storage is None:
            size = count * kind.dtype.itemsize
            self._left -= size
            if self._left < 0:
                raise CheckpointError("its storages are together longer than the file, which is damaged; copy or save it again")
            memory = self._restore(own(np.zeros(size, np.uint8)), location)
            storage = self._found[key] = TypedStorage(wrap_storage=memory, dtype=kind.dtype, _internal=True)
        elif storage.dtype is not kind.dtype:
            storage = TypedStorage(wrap_storage=storage._untyped_storage, dtype=kind.dtype, _internal=True)
        return storage if reference[5] is None else self._view(storage, reference[5])

    def _view(self, storage: TypedStorage, view: object) -> TypedStorage:
        """Part of a storage, which very old files have."""
        if type(view) is not tuple or len(view) != 3 or not all(type(n) is int and n >= 0 for n in view[1:]):
            raise pickle.UnpicklingError("a view of a storage is a key, an offset and a size; the file is damaged")
        key, offset, size = view
        if key not in self._views:
            unit = storage.dtype.itemsize
            part = storage._untyped_storage[offset * unit : (offset + size) * unit]
            self._views[key] = TypedStorage(wrap_storage=part, dtype=storage.dtype, _internal=True)
        return self._views[key]

    def fill(self, keys: Any, content: memoryview) -> None:
        """Copy the bytes of the storages, which follow one another in the order of their keys."""
        at = 0
        for key in keys if type(keys) is list else [None]:
            name = key.decode("latin1") if type(key) is bytes else key
            storage = self._found.get(name) if type(name) is str else None
            if storage is None or at + _COUNT.size > len(content):
                raise CheckpointError("the bytes of a storage are missing; the file is damaged or cut off, copy or save it again")
            (count,) = _COUNT.unpack_from(content, at)
            size, at = storage._nbytes(), at + _COUNT.size
            if count * storage.dtype.itemsize != size or at + size > len(content):
                raise CheckpointError(
                    f"a storage of {size} bytes has {count} elements of {storage.dtype} in a file that is damaged or cut off; copy or "
                    "save it again"
                )
            _fill(storage._untyped_storage, content[at : at + size], storage)
            at += size


def _fill(memory: UntypedStorage, content: memoryview, storage: TypedStorage) -> None:
    if memory.device.type != "cpu" or not len(content):
        return
    memory.bytes()[...] = np.frombuffer(content, np.uint8)
    if sys.byteorder == "big":
        memory.byteswap(storage.dtype)


def check_source(cls: type, saved: str) -> None:
    """Warn when the class of a module is not written as it was when it was saved. Sources of torch are not those of this package."""
    if cls.__module__.partition(".")[0] == PACKAGE:
        return
    try:
        current = inspect.getsource(cls)
    except (OSError, TypeError):
        warnings.warn(
            f"Couldn't retrieve source code for container of type {cls.__name__}. It won't be checked for correctness upon loading.",
            stacklevel=2,
        )
        return
    if current != saved:
        warnings.warn(
            f"source code of class '{cls.__module__}.{cls.__qualname__}' has changed since it was saved. Compare the two if it does not "
            "behave as it did.",
            SourceChangeWarning,
            stacklevel=2,
        )


def storage_from_bytes(content: bytes) -> TypedStorage:
    """The storage that a plain pickle of PyTorch holds in these bytes: data, and nothing else."""
    return load_legacy(RestrictedReader(memoryview(content), {}, "utf-8"), default_restore_location)
