"""Sessions in files: a zip that `numpy.load` opens, with the columns as arrays in numbered chunks and the tables as JSON.

    label.0.npy  label.1.npy …  start_ns.0.npy …  memory.time_ns.0.npy …  session.json

A member can be added while a recording goes on; what the columns point into comes last.
"""

from __future__ import annotations

import dataclasses
import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import IO, Any

import numpy as np

from ..model.session import Column, DataFlow, Frame, Info, Label, MemoryLog, ModulePart, Roles, Session, TensorInput, Track
from .atomic_file import replacing

__all__ = ["VERSION", "load", "save"]

FORMAT = "mindtorch_v2 session"
VERSION = 1
TABLES = "session.json"

CHUNK_ROWS = 1 << 20

LOGS: dict[str, Any] = {
    "memory": MemoryLog,
    "roles": Roles,
    "flow": DataFlow,
}  # columns of other lengths, named `memory.time_ns` and so on

COMPRESSION_LEVEL = 1


def save(session: Session, path: str | os.PathLike[str]) -> None:
    """Write the session to `path`, in full or not at all."""
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=COMPRESSION_LEVEL) as archive:
        columns = dict(_columns(session))
        for name, column in columns.items():
            for number, first in enumerate(_chunk_starts(len(column))):
                with _create(archive, f"{name}.{number}.npy") as member:
                    np.lib.format.write_array(member, np.ascontiguousarray(column[first : first + CHUNK_ROWS]), allow_pickle=False)
        tables = {"format": FORMAT, "version": VERSION, "chunks": {n: len(_chunk_starts(len(c))) for n, c in columns.items()}}
        with _create(archive, TABLES) as member:
            member.write(json.dumps(tables | _tables(session), separators=(",", ":")).encode("ascii"))


def load(path: str | os.PathLike[str]) -> Session:
    """The session that was saved to `path`."""
    name = os.fspath(path)
    try:
        with zipfile.ZipFile(name) as archive:
            tables = _read_tables(archive, name)
            columns = {column: _read_column(archive, column, count) for column, count in tables["chunks"].items()}
            session = _session(tables, columns)
            _check(session)
            return session
    except _UnreadableError as error:
        raise ValueError(str(error)) from None
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, TypeError, ValueError, NotImplementedError) as error:
        raise ValueError(
            f"{name} is no session file, or is damaged or cut off ({type(error).__name__}: {error}); save the session again"
        ) from error


class _UnreadableError(Exception):
    pass


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


def _create(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    info = zipfile.ZipInfo(name)  # without the time of day: the same session is the same file
    info.compress_type, info.external_attr = archive.compression, 0o644 << 16
    return archive.open(info, "w", force_zip64=True)


def _read_column(archive: zipfile.ZipFile, name: str, count: int) -> Column:
    chunks = []
    for number in range(count):
        with archive.open(f"{name}.{number}.npy") as member:
            chunks.append(np.lib.format.read_array(member, allow_pickle=False))
    return chunks[0] if count == 1 else np.concatenate(chunks)


# Tables ------------------------------------------------------------------------------------------------------------------------


def _tables(session: Session) -> dict[str, Any]:
    return {
        "labels": [list(label) for label in session.labels],
        "tracks": [list(track) for track in session.tracks],
        "frames": [list(frame) for frame in session.frames],
        "stacks": [list(stack) for stack in session.stack_table],
        "inputs": [[_to_json(value) for value in inputs] for inputs in session.input_table],
        "info": {field.name: _to_json(getattr(session.info, field.name)) for field in dataclasses.fields(session.info)},
    }


def _read_tables(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    tables: dict[str, Any] = json.loads(archive.read(TABLES))
    if tables["format"] != FORMAT:
        raise ValueError(f"the format is {tables['format']!r}")
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
        labels=tuple(_label(*row) for row in tables["labels"]),
        tracks=tuple(Track(*row) for row in tables["tracks"]),
        frames=tuple(Frame(*row) for row in tables["frames"]),
        stack_table=tuple(map(tuple, tables["stacks"])),
        input_table=tuple(tuple(_from_json(value) for value in inputs) for inputs in tables["inputs"]),
        info=Info(**{name: _from_json(value) for name, value in tables["info"].items()}),
    )


def _log(name: str, columns: dict[str, Column]) -> Any:
    parts = {column.partition(".")[2]: values for column, values in columns.items() if column.startswith(f"{name}.")}
    return LOGS[name](**parts) if parts else None


def _label(name: str, kind: str, scope: int, overload: str, module: list[list[str]] | tuple[()] = ()) -> Label:
    return Label(name, kind, scope, overload, tuple(ModulePart(*part) for part in module))


def _check(session: Session) -> None:
    """Columns are of one length and point into their tables."""
    for name, column in _columns(session):
        if "." not in name and len(column) != len(session):
            raise ValueError(f"{len(column)} rows of {name} and {len(session)} of label")
    tables = {"label": session.labels, "track": session.tracks, "inputs": session.input_table, "stack": session.stack_table}
    for name, table in tables.items():
        column = getattr(session, name)
        if column is not None and len(column) and not -1 <= column.min() <= column.max() < len(table):
            raise ValueError(f"{name} points outside of its table of {len(table)}")


# JSON knows neither tuples nor every float; an object with one member says what it stands for.


def _to_json(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if np.isfinite(value) else {"float": str(value)}
        case complex():
            return {"complex": [_to_json(value.real), _to_json(value.imag)]}
        case TensorInput():
            return {"tensor": [list(value.shape), list(value.strides), value.dtype]}
        case list():
            return [_to_json(v) for v in value]
        case tuple():
            return {"tuple": [_to_json(v) for v in value]}
        case Mapping():
            return {"mapping": [[_to_json(k), _to_json(v)] for k, v in value.items()]}
    raise TypeError(f"a session holds numbers, texts, lists and descriptions of tensors, not {type(value).__name__}: {value!r:.80}")


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        return [_from_json(v) for v in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    match kind:
        case "float":
            return float(content)
        case "complex":
            return complex(*map(_from_json, content))
        case "tensor":
            shape, strides, dtype = content
            return TensorInput(tuple(shape), tuple(strides), dtype)
        case "tuple":
            return tuple(_from_json(v) for v in content)
        case "mapping":
            return {_from_json(k): _from_json(v) for k, v in content}
    raise ValueError(f"a value of the kind {kind!r}")
