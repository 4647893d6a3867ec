"""The frames of a spool: pieces of bytes, each with its kind, its length and a checksum, one after the other.

    b"MTspool1"  then frames:  b"MTf\\n"  kind (u4)  length of the JSON (u4)  length of the columns (u8)  CRC-32 of all that (u4)  JSON  columns

All numbers are little-endian. What is no whole frame with the right checksum is passed over, to the next that is.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple

import numpy as np

__all__ = ["CHUNK", "END", "HEAD", "MAGIC", "MEMORY", "NOW", "Frame", "frame_bytes", "read_frames"]

MAGIC = b"MTspool1"
HEAD, CHUNK, NOW, END, MEMORY = range(1, 6)

_MARK = b"MTf\n"
_HEADER = struct.Struct("<4sIIQ")
_CHECKSUM = struct.Struct("<I")
_TYPES = ("<i4", "<i8", "<f8")
_AT_ONCE = (
    1 << 12
)  # bytes of a checksum; for more than 5,120, `zlib` lets other threads run, and it would be long until this one does again
_BLOCK = 1 << 20
_FIRST_BLOCK = 1 << 8  # where many marks stand behind one another
_IN_VAIN = 16  # times its size are read of a file at most to find that pieces are not whole

Column = np.ndarray[Any, np.dtype[Any]]


class Frame(NamedTuple):
    kind: int
    facts: dict[str, Any]
    columns: list[Column]


def frame_bytes(kind: int, facts: dict[str, Any], columns: Sequence[Column] = ()) -> bytes:
    """A frame as it is written."""
    little = [np.ascontiguousarray(column, column.dtype.newbyteorder("<")) for column in columns]
    data = bytearray()  # which is put together without letting other threads run, as `join` of more than a megabyte does
    for column in little:
        data += column.data.cast("B") if len(column) else b""
    return joined_frame(kind, json_text(facts, little), data)


def json_text(facts: dict[str, Any], columns: Sequence[Column]) -> bytes:
    """The JSON of a frame, which says what its columns are."""
    facts = facts | {"columns": [[column.dtype.str, len(column)] for column in columns]}
    return json.dumps(facts, separators=(",", ":")).encode("ascii")


def joined_frame(kind: int, text: bytes, data: bytes | bytearray) -> bytes:
    """A frame of its two contents."""
    header = _HEADER.pack(_MARK, kind, len(text), len(data))
    return header + _CHECKSUM.pack(_checksum(header, text, data)) + text + data


def _checksum(*parts: bytes | bytearray) -> int:
    checksum = 0
    for part in parts:
        view = memoryview(part)
        for at in range(0, len(view), _AT_ONCE):
            checksum = zlib.crc32(view[at : at + _AT_ONCE], checksum)
    return checksum


def read_frames(file: IO[bytes]) -> Iterator[Frame]:
    """The frames of an open file, from its beginning. Then the file stands behind the last of them."""
    if file.read(len(MAGIC)) != MAGIC:
        raise ValueError("the file begins in another way")
    size = os.fstat(file.fileno()).st_size
    behind = at = len(MAGIC)
    in_vain, most = 0, _IN_VAIN * size + _BLOCK
    while at >= 0:
        file.seek(at)
        frame = _read(file, size - at)
        if frame is None:
            in_vain += file.tell() - at
            if in_vain > most:
                raise ValueError("it is full of pieces that are not whole")
            at = _next_mark(file, at + 1)
        else:
            behind = at = file.tell()
            yield frame
    file.seek(behind)


def _next_mark(file: IO[bytes], at: int) -> int:
    """Where the next frame may begin; -1 if none does."""
    size = _FIRST_BLOCK
    while True:
        file.seek(at)
        block = file.read(size)
        found = block.find(_MARK)
        if found >= 0 or len(block) < len(_MARK):
            return at + found if found >= 0 else -1
        at += max(1, len(block) - len(_MARK) + 1)
        size = min(2 * size, _BLOCK)


def _read(file: IO[bytes], left: int) -> Frame | None:
    """The frame that begins here; None if none does that is whole. No more is read than the file has left."""
    start = file.read(_HEADER.size + _CHECKSUM.size)
    if len(start) < _HEADER.size + _CHECKSUM.size:
        return None
    mark, kind, text_size, data_size = _HEADER.unpack_from(start)
    if mark != _MARK or len(start) + text_size + data_size > left:
        return None
    text, data = file.read(text_size), file.read(data_size)
    if _checksum(start[: _HEADER.size], text, data) != _CHECKSUM.unpack_from(start, _HEADER.size)[0]:
        return None
    facts = json.loads(text)
    return Frame(kind, facts, _columns(facts["columns"], data))


def _columns(described: list[list[Any]], data: bytes) -> list[Column]:
    found, at = [], 0
    for name, count in described:
        if name not in _TYPES or type(count) is not int or count < 0 or at + count * int(name[-1]) > len(data):
            raise ValueError(f"a column of {count!r:.50} {name!r:.50} that a frame of a spool cannot have")
        found.append(np.frombuffer(data, name, count, at))
        at += count * int(name[-1])
    return found
