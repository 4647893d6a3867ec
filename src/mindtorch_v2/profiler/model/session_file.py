"""Sessions in files: a zip that `numpy.load` opens, with the columns as arrays in numbered chunks and the tables as JSON.

    label.0.npy  label.1.npy …  start_ns.0.npy …  memory.time_ns.0.npy …  session.json

A member can be added while a recording goes on; what the columns point into comes last.
"""

from __future__ import annotations

import ast
import dataclasses
import errno
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import IO, Any

import numpy as np

from ..writing.atomic_file import replacing
from .session import (
    COLUMNS,
    Column,
    Copies,
    DataFlow,
    Frame,
    Info,
    Label,
    MemoryLog,
    ModulePart,
    Roles,
    Session,
    TensorInput,
    Track,
)
from .session_check import check

__all__ = ["VERSION", "from_json", "label_of", "load", "save", "to_json"]

FORMAT = "mindtorch_v2 session"
VERSION = 4  # 1 had no compilations, and not what a summary needs; 2 had no copies, and fewer kinds; 3 did not say what was dropped
TABLES = "session.json"

CHUNK_ROWS = 1 << 20

LOGS: dict[str, Any] = {
    "memory": MemoryLog,
    "roles": Roles,
    "flow": DataFlow,
    "copies": Copies,
}  # columns of other lengths, named `memory.time_ns` and so on

# Columns that are computed with, and have 64 bits in every session: a file may have them narrower.
_WIDE = ("_ns", "_bytes", "address", "sequence", "function_id", "heap_before", "heap_after")

COMPRESSION_LEVEL = 1

# How much larger than the file its contents may be. Columns of a recording become 3 to 10 times as small by compression; tables, whose
# texts become objects of 20 times their size, 5 to 10 times.
LARGEST_FLOOR, LARGEST_FACTOR = 128 << 20, 64
TABLES_FLOOR, TABLES_FACTOR = 16 << 20, 16


def save(session: Session, path: str | os.PathLike[str]) -> None:
    """Write the session to `path`, in full or not at all."""
    with replacing(path) as file:
        archive = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=COMPRESSION_LEVEL)
        try:
            _write(session, archive)
            archive.close()
        except BaseException:
            archive.fp = None  # closing it would raise over this exception if a member is open
            raise


def _write(session: Session, archive: zipfile.ZipFile) -> None:
    columns = dict(_columns(session))
    for name, column in columns.items():
        for number, first in enumerate(_chunk_starts(len(column))):
            with _create(archive, f"{name}.{number}.npy") as member:
                np.lib.format.write_array(member, np.ascontiguousarray(column[first : first + CHUNK_ROWS]), allow_pickle=False)
    tables = {"format": FORMAT, "version": VERSION, "chunks": {n: len(_chunk_starts(len(c))) for n, c in columns.items()}}
    text = json.dumps(tables | _tables(session), separators=(",", ":")).encode("ascii")
    with _create(archive, TABLES, is_stored=_packs_too_well(text)) as member:
        member.write(text)


def _packs_too_well(text: bytes) -> bool:
    """Whether tables, compressed, would be taken for ones that someone made to fill the memory: long names of few letters are."""
    return len(text) > TABLES_FLOOR and len(text) > TABLES_FACTOR * len(zlib.compress(text, COMPRESSION_LEVEL))


def load(path: str | os.PathLike[str]) -> Session:
    """The session that was saved to `path`. A file that is no session, or is damaged, is a ValueError that names it."""
    name = os.fspath(path)
    with open(name, "rb") as file:
        try:
            return _read(file, name)
        except _UnreadableError as error:
            raise ValueError(str(error)) from None
        except _DAMAGE as error:
            if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
                raise  # the disk's, not the file's
            reason = f"{type(error).__name__}: {error!s:.300}"
            raise ValueError(f"{name} is no session file, or is damaged or cut off ({reason}); save the session again") from error


# What zipfile, json and the making of a session raise, depending on what is damaged.
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, LookupError, TypeError, ValueError, ArithmeticError,
    AttributeError, RuntimeError, SyntaxError, MemoryError,
)  # fmt: skip


class _UnreadableError(Exception):
    pass


def _read(file: IO[bytes], name: str) -> Session:
    with zipfile.ZipFile(file) as archive:
        members = _Members(archive, os.fstat(file.fileno()).st_size)
        tables = _read_tables(members, name)
        columns = {column: _read_column(members, column, count) for column, count in _chunks(tables).items()}
        session = _session(tables, columns)
    check(session)
    return session


class _Members:
    """The contents of an archive, whose sizes are limited by the file's own before memory is taken."""

    def __init__(self, archive: zipfile.ZipFile, size_bytes: int) -> None:
        self._archive = archive
        self._stored_left = size_bytes
        self._left = max(LARGEST_FLOOR, LARGEST_FACTOR * size_bytes)
        self.largest_tables = max(TABLES_FLOOR, TABLES_FACTOR * size_bytes)

    def read(self, name: str, largest: int | None = None) -> bytes:
        info = self._archive.getinfo(name)
        self._stored_left -= info.compress_size
        self._left -= info.file_size
        if self._stored_left < 0 or self._left < 0 or (largest is not None and info.file_size > largest):
            raise ValueError(f"{name} is larger than the file can hold")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name} is compressed in another way than by deflate")
        with self._archive.open(info) as member:
            content = member.read(info.file_size)  # `read()` without a size would inflate past it
        if len(content) != info.file_size:
            raise EOFError(f"{name} ends early")
        return content


# Columns -----------------------------------------------------------------------------------------------------------------------


def _columns(session: Session) -> Iterator[tuple[str, Column]]:
    for field in dataclasses.fields(session):
        value = getattr(session, field.name)
        if isinstance(value, np.ndarray):
            yield field.name, value
    for name in LOGS:
        log = getattr(session, name)
        if log is not None:
            yield from ((f"{name}.{part}", column) for part, column in log._asdict().items() if column is not None)


def _chunk_starts(rows: int) -> range:
    return range(0, max(rows, 1), CHUNK_ROWS)  # of an empty column one chunk, for its type


def _create(archive: zipfile.ZipFile, name: str, *, is_stored: bool = False) -> IO[bytes]:
    info = zipfile.ZipInfo(name)  # without the time of day: the same session is the same file
    info.compress_type, info.external_attr = zipfile.ZIP_STORED if is_stored else archive.compression, 0o644 << 16
    return archive.open(info, "w", force_zip64=True)


def _chunks(tables: dict[str, Any]) -> dict[str, int]:
    """Count the members of each column."""
    known = {*COLUMNS, *(f"{log}.{part}" for log, kind in LOGS.items() for part in kind._fields)}
    chunks: dict[str, int] = tables["chunks"]
    for column, count in chunks.items():
        if column not in known:
            raise ValueError(f"a column {column[:50]!r}, which sessions do not have")
        if type(count) is not int or count < 1:
            raise ValueError(f"{count!r:.50} chunks of {column}")
    return chunks


def _read_column(members: _Members, name: str, count: int) -> Column:
    chunks = [_array(members.read(f"{name}.{number}.npy"), name) for number in range(count)]
    if len({chunk.dtype for chunk in chunks}) > 1:
        raise ValueError(f"chunks of {name} are of different types")
    column = chunks[0] if count == 1 else np.concatenate(chunks)
    return column.astype(np.int64, copy=False) if name.endswith(_WIDE) else column


_LENGTH_OF_HEADER = {b"\x01\x00": "<H", b"\x02\x00": "<I", b"\x03\x00": "<I"}  # by NumPy's version of its format
_LONGEST_HEADER = 10_000


def _array(content: bytes, name: str) -> Column:
    """The column that a member in NumPy's format holds."""
    layout = _LENGTH_OF_HEADER.get(content[6:8])
    if content[:6] != b"\x93NUMPY" or layout is None:
        raise ValueError(f"{name} is not in NumPy's format")
    (length,) = struct.unpack_from(layout, content, 8)
    start = 8 + struct.calcsize(layout) + length
    if length > _LONGEST_HEADER:
        raise ValueError(f"{name} has a header of {length} bytes")
    header = ast.literal_eval(content[start - length : start].decode("latin1").strip())
    dtype, (rows,) = np.dtype(str(header["descr"])), header["shape"]
    if dtype.kind not in "iu" or dtype == np.uint64 or len(content) - start != rows * dtype.itemsize:
        raise ValueError(f"{name} has {len(content) - start} bytes, and not {rows!r:.50} whole numbers of {dtype}")
    return np.frombuffer(bytearray(content[start:]), dtype)


# Tables ------------------------------------------------------------------------------------------------------------------------


def _tables(session: Session) -> dict[str, Any]:
    return {
        "labels": [list(label) for label in session.labels],
        "tracks": [list(track) for track in session.tracks],
        "frames": [list(frame) for frame in session.frames],
        "stacks": [list(stack) for stack in session.stack_table],
        "inputs": [[to_json(value) for value in inputs] for inputs in session.input_table],
        "info": {field.name: to_json(getattr(session.info, field.name)) for field in dataclasses.fields(session.info)},
    }


def _read_tables(members: _Members, name: str) -> dict[str, Any]:
    tables: dict[str, Any] = json.loads(members.read(TABLES, members.largest_tables))
    if tables["format"] != FORMAT:
        raise ValueError(f"the format is {tables['format']!r:.100}")
    if type(tables["version"]) is not int:
        raise ValueError(f"the version is {tables['version']!r:.50}")
    if tables["version"] > VERSION:
        raise _UnreadableError(
            f"{name} is of version {tables['version']} of the session format, and this mindtorch_v2 reads versions up to {VERSION}: "
            "update mindtorch_v2 to read it"
        )
    return tables


def _session(tables: dict[str, Any], columns: dict[str, Column]) -> Session:
    of_events: dict[str, Any] = {name: column for name, column in columns.items() if "." not in name}
    return Session(
        **of_events,
        **{name: _log(name, columns) for name in LOGS},
        labels=tuple(label_of(*row) for row in tables["labels"]),
        tracks=tuple(Track(*row) for row in tables["tracks"]),
        frames=tuple(Frame(*row) for row in tables["frames"]),
        stack_table=tuple(map(tuple, tables["stacks"])),
        input_table=tuple(tuple(from_json(value) for value in inputs) for inputs in tables["inputs"]),
        info=Info(**{name: from_json(value) for name, value in tables["info"].items()}),
    )


def _log(name: str, columns: dict[str, Column]) -> Any:
    parts = {column.partition(".")[2]: values for column, values in columns.items() if column.startswith(f"{name}.")}
    return LOGS[name](**parts) if parts else None


def label_of(
    name: str,
    kind: str,
    scope: int,
    overload: str,
    module: list[list[str]] | tuple[()] = (),
    operator: str = "",
    category: str = "",
) -> Label:
    """The label of a row that JSON has."""
    return Label(name, kind, scope, overload, tuple(ModulePart(*part) for part in module), operator, category)


# JSON knows neither tuples nor every float; an object with one member says what it stands for.


def to_json(value: Any) -> Any:
    """A value of a table as JSON knows it."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if np.isfinite(value) else {"float": str(value)}
        case complex():
            return {"complex": [to_json(value.real), to_json(value.imag)]}
        case TensorInput():
            return {"tensor": [list(value.shape), list(value.strides), value.dtype]}
        case list():
            return [to_json(v) for v in value]
        case tuple():
            return {"tuple": [to_json(v) for v in value]}
        case Mapping():
            return {"mapping": [[to_json(k), to_json(v)] for k, v in value.items()]}
    raise TypeError(f"a session holds numbers, texts, lists and descriptions of tensors, not {type(value).__name__}: {value!r:.80}")


def from_json(value: Any) -> Any:
    """The value that `to_json` made this of."""
    if isinstance(value, list):
        return [from_json(v) for v in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    match kind:
        case "float":
            return float(content)
        case "complex":
            return complex(*map(from_json, content))
        case "tensor":
            shape, strides, dtype = content
            return TensorInput(tuple(shape), tuple(strides), dtype)
        case "tuple":
            return tuple(from_json(v) for v in content)
        case "mapping":
            return {from_json(k): from_json(v) for k, v in content}
    raise ValueError(f"a value of the kind {kind!r}")
