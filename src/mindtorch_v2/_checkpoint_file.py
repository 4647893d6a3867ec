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
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _device, _dtype, _pickling
from ._storage import UntypedStorage, own
from .storage import TypedStorage

__all__ = ["CheckpointError", "CheckpointFile", "StorageType"]

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


class StorageType:
    """Stands for `torch.FloatStorage` in a pickle."""

    __slots__ = ("dtype", "name")

    def __init__(self, name: str, dtype: _dtype.dtype) -> None:
        self.name, self.dtype = name, dtype


class CheckpointFile:
    """An open archive: its records, and the storages read so far."""

    def __init__(self, file: Any, locate: Callable[[str], _device.device], *, mapped_path: str | None = None) -> None:
        self.file = file
        self.size_bytes = _size(file)
        _refuse_other_files(file, self.size_bytes)
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
        self._locate = locate
        self._mapped = None if mapped_path is None else np.memmap(mapped_path, np.uint8, "c")
        self._swapped = self._byte_order() != sys.byteorder
        self._storages: dict[str, UntypedStorage] = {}

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

    def typed_storage(self, reference: Any) -> TypedStorage:
        """The storage of a persistent id: `("storage", type, key, location, number of elements)`."""
        kind, key, location, count = _checked_reference(reference)
        storage = self._storages.get(key)
        if storage is None:
            storage = self._storages[key] = self._read_storage(kind.dtype, key, count, location)
        elif storage.nbytes() // kind.dtype.itemsize != count:
            raise CheckpointError(f"data/{key} has {storage.nbytes()} bytes, and not {count} elements of {kind.dtype}")
        return TypedStorage(wrap_storage=storage, dtype=kind.dtype)

    def _read_storage(self, dtype: _dtype.dtype, key: str, count: int, location: str) -> UntypedStorage:
        where = self._locate(location)
        info = self._find(f"data/{key}")
        if info.file_size // dtype.itemsize != count:
            raise CheckpointError(
                f"record size ({info.file_size} bytes) of data/{key} does not match expected size ({count * dtype.itemsize} bytes "
                f"= {count} elements * {dtype.itemsize} bytes/element); the file is damaged, copy or save it again"
            )
        if where.type == "meta":
            return _pickling.meta_storage(info.file_size)
        if self._mapped is not None and not self._swapped and info.compress_type == zipfile.ZIP_STORED:
            return own(np.ndarray((info.file_size,), np.uint8, self._mapped, self._start(info)))
        data = self._read(info)
        if self._swapped and dtype.itemsize > 1:
            unit = dtype.itemsize // (2 if dtype.is_complex else 1)
            whole = data[: len(data) // unit * unit].reshape(-1, unit)
            whole[...] = whole[:, ::-1].copy()
        return own(data)

    def _byte_order(self) -> str:
        if f"{self.root}byteorder" not in self.records:
            return sys.byteorder
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
        if zlib.crc32(data.data) != info.CRC:
            raise CheckpointError(f"{info.filename} has a bad checksum (CRC-32); the file is damaged, copy or save it again")
        return data

    def _stored(self, info: zipfile.ZipInfo) -> np.ndarray[Any, Any]:
        start = self._start(info)
        data = np.empty(info.file_size, np.uint8)
        self.file.seek(start)
        if len(data) != (_read_into(self.file, data) if len(data) else 0):
            raise EOFError("the file ends inside of it")
        return data

    def _start(self, info: zipfile.ZipInfo) -> int:
        """Return the offset of an uncompressed record's bytes in the file."""
        if info.flag_bits & _ENCRYPTED or info.file_size != info.compress_size:
            raise CheckpointError(f"{info.filename} is encrypted, or its sizes differ; the file is damaged, copy or save it again")
        if not 0 <= info.header_offset < self.size_bytes:
            raise CheckpointError(f"{info.filename} begins past the end of the file, which is damaged; copy or save it again")
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


def _size(file: Any) -> int:
    size: int = file.seek(0, io.SEEK_END)
    return file.tell() if size is None else size


def _refuse_other_files(file: Any, size_bytes: int) -> None:
    if not size_bytes:
        raise EOFError("the file is empty")
    file.seek(0)
    begins_as_zip = file.read(4) == _LOCAL_SIGNATURE
    if not begins_as_zip and not zipfile.is_zipfile(file):
        raise pickle.UnpicklingError(
            "not a checkpoint in torch's zip format (torch.save of version 1.6 or newer); files of the older format must be "
            "saved again with a newer torch"
        )
    file.seek(0)


def _read_into(file: Any, data: np.ndarray[Any, Any]) -> int:
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


def _checked_reference(reference: Any) -> tuple[StorageType, str, str, int]:
    if type(reference) is tuple and len(reference) == 5:
        typename, kind, key, location, count = reference
        if (
            typename in ("storage", b"storage")
            and type(kind) is StorageType
            and type(key) is type(location) is str
            and type(count) is int
            and count >= 0
        ):
            return kind, key, location, count
    raise pickle.UnpicklingError(
        "a persistent id in the checkpoint is none of a storage (its type, key, location and number of elements); the file is "
        "damaged, copy or save it again"
    )
