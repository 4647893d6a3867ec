"""Checkpoint files as archives of records. Sizes that a file claims are compared with the file's own before memory is taken.

Whatever is wrong with an archive is a CheckpointError; `load` adds the file's name to it.
"""

from __future__ import annotations

import io
import pickle
import struct
import sys
import zipfile
import zlib
from typing import IO, Any

import numpy as np

from .. import _dtype, _pickling
from .._shared_memory import map_path
from .._storage import UntypedStorage, own
from ..storage import TypedStorage
from . import options
from .locations import Restore
from .names import StorageType

__all__ = ["CheckpointError", "CheckpointFile", "Window", "begins_as_zip", "checked_reference", "read_into", "size_of"]

_LOCAL_HEADER = struct.Struct("<4s22xHH")
_LOCAL_SIGNATURE = b"PK\x03\x04"
_ENCRYPTED = 0x1
# torch writes records as they are. Where another tool compressed them, what comes out is limited: by a floor, and by a multiple of
# the file's size above it.
_INFLATED_FLOOR, _INFLATED_FACTOR = 64 << 20, 16
_PICKLE_FLOOR, _PICKLE_FACTOR = 4 << 20, 4  # a byte of the pickle becomes 50 to 200 in memory

# What zipfile raises for damaged archives, depending on what is damaged.
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, ValueError, LookupError, OverflowError)


class CheckpointError(RuntimeError):
    """A checkpoint's archive is damaged."""


class CheckpointFile:
    """An open archive: its records, and the storages read so far."""

    def __init__(
        self, file: IO[bytes] | Window, restore: Restore, *, to_meta: bool = False, mapped_path: str | None = None
    ) -> None:
        self.file = file
        self.size_bytes = size_of(file)
        try:
            self.archive = zipfile.ZipFile(file)
        except _DAMAGE as error:
            raise CheckpointError(
                f"PytorchStreamReader failed reading zip archive: {error}. The file is damaged or cut off; copy or save it again"
            ) from error
        self.records = {info.filename: info for info in self.archive.infolist()}
        root = next((name[: -len("data.pkl")] for name in self.records if name.endswith("/data.pkl")), None)
        if root is None:
            raise CheckpointError("PytorchStreamReader failed locating file data.pkl: file not found")
        self.root = root
        self._stored_left = self.size_bytes
        self._inflated_left = max(_INFLATED_FLOOR, _INFLATED_FACTOR * self.size_bytes)
        self._restore, self._to_meta = restore, to_meta
        self._mapped = None if mapped_path is None else _mapped(mapped_path, self.size_bytes)
        self._swapped = self._byte_order() != sys.byteorder
        if f"{root}.format_version" in self.records:
            self._read(self._find(".format_version"))
        self._storages: dict[str, UntypedStorage] = {}

    @property
    def is_torchscript(self) -> bool:
        """Whether this is the archive of a TorchScript module, which is no checkpoint."""
        return f"{self.root}constants.pkl" in self.records

    def pickled(self) -> bytes:
        """The pickle in which tensors name their storages."""
        info = self._find("data.pkl")
        limit = max(_PICKLE_FLOOR, _PICKLE_FACTOR * self.size_bytes)
        if info.file_size > limit:
            raise CheckpointError(
                f"data.pkl takes {info.file_size} bytes in a file of {self.size_bytes}, and {limit} are allowed: it is compressed "
                "beyond what a checkpoint needs. Save it again with torch.save, which compresses nothing"
            )
        return self._read(info).tobytes()

    def typed_storage(self, reference: object) -> TypedStorage:
        """The storage of a persistent id: `("storage", type, key, location, number of elements)`."""
        kind, key, location, count = checked_reference(reference, 5)
        storage = self._storages.get(key)
        if storage is None:
            info = self._record_of(kind.dtype, key, count)
            storage = self._storages[key] = self._located(info, kind.dtype, location)
        elif storage.nbytes() // kind.dtype.itemsize != count:
            raise CheckpointError(f"data/{key} has {storage.nbytes()} bytes, and not {count} elements of {kind.dtype}")
        return TypedStorage(wrap_storage=storage, dtype=kind.dtype, _internal=True)

    def _record_of(self, dtype: _dtype.dtype, key: str, count: int) -> zipfile.ZipInfo:
        info = self._find(f"data/{key}")
        if info.file_size // dtype.itemsize != count:
            raise CheckpointError(
                f"record size ({info.file_size} bytes) does not match expected size ({count * dtype.itemsize} bytes = {count} elements "
                f"* {dtype.itemsize} bytes/element) of data/{key}; the file is damaged, copy or save it again"
            )
        return info

    def _located(self, info: zipfile.ZipInfo, dtype: _dtype.dtype, location: str) -> UntypedStorage:
        """A record's storage, where it is wanted. On the meta device it knows where its bytes are in the file."""
        if self._to_meta:
            storage = _pickling.meta_storage(info.file_size)
            if info.compress_type == zipfile.ZIP_STORED:
                storage._checkpoint_offset = self._start(info)
            return storage
        return self._restore(self._read_storage(info, dtype), location)

    def _read_storage(self, info: zipfile.ZipInfo, dtype: _dtype.dtype) -> UntypedStorage:
        if options.skips_data():
            if info.compress_type != zipfile.ZIP_STORED or info.file_size > self.size_bytes:
                raise CheckpointError(f"{info.filename} is longer than the file, which is damaged; copy or save it again")
            return own(np.zeros(info.file_size, np.uint8))
        if self._mapped is not None and not self._swapped and info.compress_type == zipfile.ZIP_STORED:
            return self._mapped[self._start(info) :][: info.file_size]
        data = self._read(info)
        if self._swapped and dtype.itemsize > 1:
            unit = dtype.itemsize // (2 if dtype.is_complex else 1)
            whole = data[: len(data) // unit * unit].reshape(-1, unit)
            whole[...] = whole[:, ::-1].copy()
        return own(data)

    def _byte_order(self) -> str:
        if f"{self.root}byteorder" not in self.records:
            return options.assumed_byte_order()
        order = self._read(self._find("byteorder")).tobytes()
        if order not in (b"little", b"big"):
            raise CheckpointError(f"Unknown endianness type: {order[:20]!r}; the file is damaged, copy or save it again")
        return order.decode()

    def _find(self, name: str) -> zipfile.ZipInfo:
        info = self.records.get(self.root + name)
        if info is None:
            raise CheckpointError(
                f"PytorchStreamReader failed locating file {name}: file not found; the file is damaged, copy or save it again"
            )
        if not 0 <= info.header_offset < self.size_bytes:
            raise CheckpointError(
                f"{info.filename} begins past the end of the file or before its start; the file is damaged, copy or save it again"
            )
        return info

    def _read(self, info: zipfile.ZipInfo) -> np.ndarray[Any, Any]:
        """A record's bytes, in memory of their own."""
        self._stored_left -= info.compress_size
        if self._stored_left < 0:
            raise CheckpointError("records overlap: together they are longer than the file; it is damaged, copy or save it again")
        try:
            data = self._stored(info) if info.compress_type == zipfile.ZIP_STORED else self._inflated(info)
        except _DAMAGE as error:
            raise CheckpointError(
                f"PytorchStreamReader failed reading file {info.filename}: {error}. The file is damaged, copy or save it again"
            ) from error
        if info.CRC and zlib.crc32(data.data) != info.CRC:  # 0: saved without checksums
            raise CheckpointError(f"{info.filename} has a bad checksum (CRC-32); the file is damaged, copy or save it again")
        return data

    def _stored(self, info: zipfile.ZipInfo) -> np.ndarray[Any, Any]:
        start = self._start(info)
        data = np.empty(info.file_size, np.uint8)
        self.file.seek(start)
        if len(data) != (read_into(self.file, data) if len(data) else 0):
            raise EOFError("the file ends inside of it")
        return data

    def _start(self, info: zipfile.ZipInfo) -> int:
        """Return the offset of an uncompressed record's bytes in the file."""
        if info.flag_bits & _ENCRYPTED or info.file_size != info.compress_size:
            raise CheckpointError(f"{info.filename} is encrypted, or its sizes differ; the file is damaged, copy or save it again")
        self.file.seek(info.header_offset)
        header = self.file.read(_LOCAL_HEADER.size)
        if len(header) != _LOCAL_HEADER.size or header[:4] != _LOCAL_SIGNATURE:
            raise CheckpointError(f"no record begins where {info.filename} is expected; the file is damaged, copy or save it again")
        _, name_length, extra_length = _LOCAL_HEADER.unpack(header)
        start: int = info.header_offset + _LOCAL_HEADER.size + name_length + extra_length
        if start + info.file_size > self.size_bytes:
            raise CheckpointError(
                f"{info.filename} reaches past the end of the file, which is damaged or cut off; copy or save it again"
            )
        return start

    def _inflated(self, info: zipfile.ZipInfo) -> np.ndarray[Any, Any]:
        if info.compress_type != zipfile.ZIP_DEFLATED or info.flag_bits & _ENCRYPTED:
            raise CheckpointError(
                f"{info.filename} is compressed in a way that checkpoints never are, or encrypted. Save it again with torch.save"
            )
        self._inflated_left -= info.file_size
        if self._inflated_left < 0:
            raise CheckpointError(
                f"its compressed records become more than {_INFLATED_FACTOR} times as long as the file of {self.size_bytes} bytes. "
                "Save it again with torch.save, which compresses nothing"
            )
        with self.archive.open(info) as member:
            content = bytearray(member.read(info.file_size))  # `read()` without a size would inflate past it
        if len(content) != info.file_size:
            raise EOFError(f"{len(content)} bytes instead of {info.file_size}")
        return np.frombuffer(content, np.uint8)


class Window:
    """The rest of a file, from where it stands, as a file of its own."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.start = file, file.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        place = self.file.seek(offset + (self.start if whence == io.SEEK_SET else 0), whence)
        return self.tell() if place is None else int(place) - self.start

    def tell(self) -> int:
        return int(self.file.tell()) - self.start

    def read(self, size: int = -1) -> bytes:
        return self.file.read(size)

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if hasattr(self.file, "readinto"):
            return self.file.readinto(buffer)
        content = self.file.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)


def _mapped(path: str, size_bytes: int) -> UntypedStorage:
    shared = options.get_default_mmap_options() == options.MAP_SHARED
    with open(path, "r+b" if shared else "rb") as file:
        return own(map_path(file.fileno(), size_bytes, shared=shared))


def size_of(file: IO[bytes] | Window) -> int:
    """The number of bytes in a file."""
    size: int = file.seek(0, io.SEEK_END)
    return file.tell() if size is None else size


def begins_as_zip(file: IO[bytes]) -> bool:
    """Whether a file is an archive, by its first bytes; refuses an empty one."""
    start = file.tell()
    first = file.read(len(_LOCAL_SIGNATURE))
    file.seek(start)
    if not first:
        raise EOFError("Ran out of input: the file is empty")
    return bool(first == _LOCAL_SIGNATURE)


def read_into(file: IO[bytes] | Window, data: np.ndarray[Any, Any]) -> int:
    """Fill the array from the file; how many bytes there were."""
    view, at = data.data, 0
    if not hasattr(file, "readinto"):
        content = file.read(len(data))
        view[: len(content)] = content
        return len(content)
    while at < len(data):
        count = file.readinto(view[at:])
        if not count:
            break
        at += count
    return at


def checked_reference(reference: object, length: int) -> tuple[StorageType, str, str, int]:
    """The type, key, location and number of elements in a persistent id."""
    if type(reference) is tuple and len(reference) == length:
        typename, kind, key, location, count = reference[:5]
        # Python 2 wrote texts that are read as bytes when the user asks for it
        key = key.decode("latin1") if type(key) is bytes else key
        location = location.decode("ascii", "replace") if type(location) is bytes else location
        if (
            typename in ("storage", b"storage")
            and type(kind) is StorageType
            and type(key) is type(location) is str
            and type(count) is int
            and count >= 0
        ):
            return kind, key, location, count
    first = reference[0] if type(reference) is tuple and reference else reference
    raise pickle.UnpicklingError(
        f"Only persistent_load of storage is allowed, but got {type(first)}: a persistent id is that of a storage (its type, key, "
        "location and number of elements); the file is damaged, copy or save it again"
    )
