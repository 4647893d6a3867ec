"""Checkpoint files as torch writes them: an archive of records, or a row of pickles in the format before PyTorch 1.6."""

from __future__ import annotations

import pickle
import struct
import sys
import zlib
from typing import IO

from .._storage import UntypedStorage
from ..utils.serialization import config
from . import options
from .pickler import Pickled

__all__ = ["MAGIC_NUMBER", "PROTOCOL_VERSION", "write_archive", "write_legacy"]

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
TYPE_SIZES = {"short": struct.calcsize("=h"), "int": struct.calcsize("=i"), "long": struct.calcsize("=l")}

# The zip format, in the form in which torch's own reader finds a record without its header: sizes follow the bytes.
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END = struct.Struct("<4sHHHHIIH")
_END_64 = struct.Struct("<4sQHHIIQQQQ")
_LOCATOR_64 = struct.Struct("<4sIQI")
_SIZES_FOLLOW, _UTF8 = 0x8, 0x800
_LIMIT = 0xFFFFFFFF
_PADDING_TAG = 0x4246


class _Archive:
    """A zip file that is written from front to back, to any stream."""

    def __init__(self, file: IO[bytes], root: str) -> None:
        self.file, self.root = file, root
        self.position = 0
        self.alignment = config.save.storage_alignment
        self.entries: list[tuple[bytes, int, int, int]] = []  # name, checksum, size, place

    def write(self, data: bytes | memoryview) -> None:
        self.file.write(data)
        self.position += len(data)

    def record(self, name: str, data: bytes | memoryview, *, hollow: bool = False) -> None:
        """Add a record, whose bytes start at a multiple of the alignment; a hollow one has zeros in their place."""
        encoded, size, place = f"{self.root}/{name}".encode(), len(data), self.position
        checksum = zlib.crc32(data) if options.get_crc32_options() and not hollow else 0
        large = struct.pack("<HHQQ", 1, 16, size, size) if size >= _LIMIT else b""
        start = place + _LOCAL.size + len(encoded) + len(large) + 4
        padding = -start % self.alignment
        extra = large + struct.pack("<HH", _PADDING_TAG, padding) + b"Z" * padding
        self.write(_LOCAL.pack(b"PK\3\4", 0, _SIZES_FOLLOW | _UTF8, 0, 0, 0, 0, 0, 0, len(encoded), len(extra)) + encoded + extra)
        if hollow:
            self._zeros(size)
        elif size:
            self.write(data)
        if size:
            sizes = struct.pack("<QQ" if large or place >= _LIMIT else "<II", size, size)
            self.write(b"PK\7\x08" + struct.pack("<I", checksum) + sizes)
        self.entries.append((encoded, checksum, size, place))

    def _zeros(self, size: int) -> None:
        block = bytes(min(size, 1 << 20))
        for start in range(0, size, len(block)):
            self.write(block[: size - start])

    def close(self) -> None:
        """Write the list of records."""
        start = self.position
        for name, checksum, size, place in self.entries:
            wide = [n for n in (size, size, place) if n >= _LIMIT]
            extra = struct.pack(f"<HH{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
            narrow = [min(n, _LIMIT) for n in (size, size, place)]
            self.write(
                _CENTRAL.pack(
                    b"PK\1\2",
                    0,
                    0,
                    _SIZES_FOLLOW | _UTF8,
                    0,
                    0,
                    0,
                    checksum,
                    *narrow[:2],
                    len(name),
                    len(extra),
                    0,
                    0,
                    0,
                    0,
                    narrow[2],
                )
                + name
                + extra
            )
        count, length, end = len(self.entries), self.position - start, self.position
        if start >= _LIMIT or count >= 0xFFFF:
            self.write(_END_64.pack(b"PK\6\6", _END_64.size - 12, 45, 45, 0, 0, count, count, length, start))
            self.write(_LOCATOR_64.pack(b"PK\6\7", 0, end, 1))
        counts = [min(count, 0xFFFF)] * 2
        self.write(_END.pack(b"PK\5\6", 0, 0, *counts, min(length, _LIMIT), min(start, _LIMIT), 0))


def write_archive(file: IO[bytes], root: str, made: Pickled, *, byteorder: bool) -> None:
    """Write torch's zip format."""
    archive = _Archive(file, root)
    archive.record("data.pkl", made.content)
    archive.record(".format_version", b"1")
    archive.record(".storage_alignment", str(archive.alignment).encode())
    if byteorder:
        archive.record("byteorder", sys.byteorder.encode())
    for key, (storage, _) in enumerate(made.storages):
        archive.record(f"data/{key}", _content(storage), hollow=options.skips_data())
    archive.record("version", b"3\n")
    archive.record(".data/serialization_id", _serialization_id(archive.entries))
    archive.close()


def _content(storage: UntypedStorage) -> memoryview:
    return storage.cpu().bytes().data


def _serialization_id(entries: list[tuple[bytes, int, int, int]]) -> bytes:
    """Forty digits that are the same for the same content, as torch's are."""
    names = zlib.crc32(b"\n".join(name for name, *_ in entries))
    content = zlib.crc32(b"".join(checksum.to_bytes(4, "little") for _, checksum, _, _ in entries))
    return f"{names:020d}{content:020d}".encode()


def write_legacy(file: IO[bytes], made: Pickled, protocol: int) -> None:
    """Write the format before PyTorch 1.6: pickles one after the other, then the storages, each behind its number of elements."""
    system = {"protocol_version": PROTOCOL_VERSION, "little_endian": sys.byteorder == "little", "type_sizes": TYPE_SIZES}
    for item in (MAGIC_NUMBER, PROTOCOL_VERSION, system):
        file.write(pickle.dumps(item, protocol))
    file.write(made.content)
    keys = sorted(map(str, range(len(made.storages))))
    file.write(pickle.dumps(keys, protocol))
    for key in keys:
        storage, dtype = made.storages[int(key)]
        file.write(struct.pack("<q", storage.nbytes() // dtype.itemsize))
        file.write(_content(storage))
