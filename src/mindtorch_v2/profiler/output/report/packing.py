"""Values of a report as bytes: JSON, behind it its columns, all of it deflated.

    4 bytes     the length of the JSON, least first
    JSON        where a column stands in the value, it has {"column": [offset, length, bytes an entry, is delta, type]}
    columns     entries as whole numbers without sign (2n, or −2n − 1 below zero), all first bytes, then all second bytes, …

Bytes of the same weight are alike, so that they deflate better side by side. `report-ui/src/model/packed.ts` reads this.
"""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import numpy as np

from ...writing.json_text import json_text

__all__ = ["Delta", "pack", "unpack"]

Column = np.ndarray[Any, np.dtype[Any]]

LEVEL = 5  # 1 % larger than at 6, in four fifths of the time
MOST = 2**53  # beyond, numbers of JavaScript are not exact


class Delta:
    """A column of which neighbours are alike: kept as differences."""

    def __init__(self, values: Column) -> None:
        self.values = np.asarray(values)


def pack(value: object) -> bytes:
    """The bytes of a value of dicts, lists, texts, numbers and columns of whole numbers."""
    columns: list[bytes] = []
    header = json_text(_with_places(value, columns), compact=True).encode()
    return zlib.compress(b"".join([struct.pack("<I", len(header)), header, *columns]), LEVEL)


def unpack(content: bytes) -> Any:
    """The value of these bytes, as the page reads it."""
    raw = zlib.decompress(content)
    (length,) = struct.unpack_from("<I", raw)
    return _with_columns(json.loads(raw[4 : 4 + length]), raw[4 + length :])


def _with_places(value: object, columns: list[bytes]) -> Any:
    if isinstance(value, dict):
        return {key: _with_places(item, columns) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [
            _with_places(item, columns) if isinstance(item, dict | list | tuple | np.ndarray | Delta) else item for item in value
        ]
    if isinstance(value, np.ndarray | Delta):
        return {"column": _packed(value, columns)}
    return value


def _packed(column: Column | Delta, columns: list[bytes]) -> list[Any]:
    """Add the bytes of a column; returns where and how they stand."""
    values = (column.values if isinstance(column, Delta) else column).astype(np.int64)
    if len(values) and max(abs(int(values.min())), abs(int(values.max()))) >= MOST:
        values = np.clip(values, 1 - MOST, MOST - 1)
    kind = "i4" if _fits(values, 31) else "f8"
    if isinstance(column, Delta):
        values = np.diff(values, prepend=0)
    unsigned = ((values << 1) ^ (values >> 63)).view(np.uint64)
    most = int(unsigned.max(initial=0))
    width = next(size for size in (1, 2, 4, 8) if most < 1 << (8 * size))
    planes = np.ascontiguousarray(unsigned.astype(f"<u{width}").view(np.uint8).reshape(-1, width).T)
    offset = sum(map(len, columns))
    columns.append(planes.tobytes())
    return [offset, len(values), width, int(isinstance(column, Delta)), kind]


def _fits(values: Column, bits: int) -> bool:
    return not len(values) or (int(values.min()) >= -(1 << bits) and int(values.max()) < 1 << bits)


def _with_columns(value: object, content: bytes) -> Any:
    if isinstance(value, list):
        return [_with_columns(item, content) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() != {"column"}:
        return {key: _with_columns(item, content) for key, item in value.items()}
    offset, length, width, is_delta, _ = value["column"]
    planes = np.frombuffer(content, np.uint8, length * width, offset).reshape(width, length)
    unsigned = np.ascontiguousarray(planes.T).view(f"<u{width}").reshape(-1).astype(np.int64)
    values = (unsigned >> 1) ^ -(unsigned & 1)
    return np.cumsum(values) if is_delta else values
