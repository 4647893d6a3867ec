"""The tables of `schema`, made of sessions: for each column one array of NumPy."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..model import inputs, links, modules, tree
from ..model.grouping import GroupBy, groups, spread
from ..model.module_times import ModuleTimes
from ..model.places import own_frame
from ..model.recording import Recording
from ..model.session import Session
from ..model.steps import Steps
from .schema import SCHEMA

__all__ = ["Table", "table"]

Column = np.ndarray[Any, np.dtype[Any]]
Table = dict[str, Any]  # arrays by the names of columns; masked where a value is NULL


def table(name: str, sessions: Sequence[Session]) -> Table:
    """The rows of all sessions. Made when it is asked for: a question rarely needs all tables."""
    parts = [_MAKERS[name](Recording(session)) for session in sessions]
    columns = [column.name for column in SCHEMA[name]]
    joined: Callable[[list[Any]], Any] = np.ma.concatenate  # which has no types
    return {column: joined([part[column] for part in parts]) for column in columns}


def _events(recording: Recording) -> Table:
    session = recording.session
    count = len(session)
    attribution = recording.attribution if session.info.with_modules else None
    parent = tree.parents(session)
    nodes = links.backward(session)
    self_ns = recording.without_children(np.where(recording.on_cpu, recording.duration_ns, 0))
    tracks = session.tracks
    memory = recording.memory_bytes if session.info.profile_memory else None
    return {
        "process": _same(session.info.pid, count),
        "row": np.arange(count),
        "name": _texts([label.name for label in session.labels], session.label),
        "kind": _texts([label.kind for label in session.labels], session.label),
        "start_ns": session.start_ns,
        "end_ns": session.end_ns,
        "duration_ns": recording.duration_ns,
        "self_ns": np.where(recording.on_cpu, self_ns, recording.duration_ns),
        "step": session.step.astype(np.int64),
        "thread": np.array([track.thread_id for track in tracks], np.int64)[session.track],
        "track": _texts([track.name for track in tracks], session.track),
        "device": _texts([track.device_type for track in tracks], session.track),
        "depth": session.depth.astype(np.int64),
        "parent": _rows(parent),
        "sequence": _rows(session.sequence),
        "backward": nodes | tree.inside(session, nodes, parent),
        "shapes": _inputs(recording, inputs.shapes),
        "dtypes": _inputs(recording, inputs.dtypes),
        "stack": _rows(recording.stack),
        "place": _places(recording),
        "module": _texts([] if attribution is None else list(map(modules.path, attribution.modules)), _numbers(attribution, count)),
        "flops": recording.flops.astype(np.int64),
        "memory_bytes": _rows(np.full(count, -1)) if memory is None else memory.astype(np.int64),
    }


def _operators(recording: Recording) -> Table:
    session = recording.session
    rows = recording.rows[recording.of_labels(lambda label: label.kind == "op")[recording.rows]] if len(session) else recording.rows
    found = groups(recording, rows, GroupBy())
    calls, duration = found.sums["count"], recording.duration_ns[rows]
    total = np.bincount(found.of_rows, duration, minlength=len(calls)).astype(np.int64)
    median, longest = spread(duration, found.of_rows, len(calls))
    shortest = -spread(-duration, found.of_rows, len(calls))[1]
    flops = np.bincount(found.of_rows, recording.flops[rows], minlength=len(calls)).astype(np.int64)
    kept = np.bincount(found.of_rows, recording.memory_bytes[rows], minlength=len(calls)).astype(np.int64)
    return {
        "process": _same(session.info.pid, len(calls)),
        "name": _texts(recording.names, session.label[found.first]),
        "calls": calls,
        "total_ns": total,
        "self_ns": found.sums["self_cpu_time_total"],
        "mean_ns": total / np.maximum(calls, 1),
        "median_ns": median.astype(np.float64),
        "min_ns": shortest,
        "max_ns": longest,
        "flops": flops,
        "memory_bytes": np.ma.masked_array(kept, mask=not session.info.profile_memory),
    }


def _steps(recording: Recording) -> Table:
    steps = Steps.of(recording)
    return {
        "process": _same(recording.session.info.pid, len(steps)),
        "number": np.asarray(steps.number, np.int64),
        "start_ns": steps.start_ns,
        "end_ns": steps.end_ns,
        "duration_ns": steps.end_ns - steps.start_ns,
    }


def _memory(recording: Recording) -> Table:
    log, empty = recording.session.memory, np.empty(0, np.int64)
    return {
        "process": _same(recording.session.info.pid, 0 if log is None else len(log.time_ns)),
        "time_ns": empty if log is None else log.time_ns,
        "address": empty if log is None else log.address,
        "size_bytes": empty if log is None else log.size_bytes,
        "total_bytes": empty if log is None else log.total_bytes,
        "row": empty if log is None else _rows(log.event),
    }


def _stacks(recording: Recording) -> Table:
    session = recording.session
    rows = [
        (number, level, *session.frames[f]) for number, stack in enumerate(session.stack_table) for level, f in enumerate(stack)
    ]
    return {
        "process": _same(session.info.pid, len(rows)),
        "stack": _integers(row[0] for row in rows),
        "level": _integers(row[1] for row in rows),
        "file": _objects(row[2] for row in rows),
        "line": _integers(row[3] for row in rows),
        "function": _objects(row[4] for row in rows),
    }


def _modules(recording: Recording) -> Table:
    times = ModuleTimes.of(recording.session) if recording.session.info.with_modules else ModuleTimes()
    return {
        "process": _same(recording.session.info.pid, len(times)),
        "module": _objects(row.module for row in times),
        "class": _objects(row.class_name for row in times),
        "calls": _integers(row.calls for row in times),
        "forward_ns": _integers(round(row.forward_us * 1000) for row in times),
        "backward_ns": _integers(round(row.backward_us * 1000) for row in times),
        "self_forward_ns": _integers(round(row.self_forward_us * 1000) for row in times),
        "self_backward_ns": _integers(round(row.self_backward_us * 1000) for row in times),
    }


def _kernels(recording: Recording) -> Table:
    session = recording.session
    rows = np.flatnonzero(recording.of_labels(lambda label: label.kind == "kernel")) if len(session) else np.empty(0, np.int64)
    launch = np.full(len(rows), -1) if session.launch is None else session.launch[rows]
    delay = session.start_ns[rows] - session.start_ns[launch] if len(rows) else np.empty(0, np.int64)
    tracks = session.tracks
    return {
        "process": _same(session.info.pid, len(rows)),
        "row": rows.astype(np.int64),
        "name": _texts([label.name for label in session.labels], session.label[rows]),
        "device": _integers(tracks[i].device_index for i in session.track[rows].tolist()),
        "stream": _integers(tracks[i].tid for i in session.track[rows].tolist()),
        "start_ns": session.start_ns[rows],
        "end_ns": session.end_ns[rows],
        "duration_ns": recording.duration_ns[rows],
        "launch": _rows(launch),
        "delay_ns": np.ma.masked_array(delay, mask=launch < 0),
        "operator": _rows(recording.operator[rows]) if len(rows) else np.empty(0, np.int64),
    }


def _processes(recording: Recording) -> Table:
    info = recording.session.info
    return {
        "process": _integers([info.pid]),
        "parent": _integers([info.parent_pid]),
        "command": _objects([shlex.join(info.command)]),
        "started_ns": _integers([info.started_ns]),
        "stopped_ns": _integers([info.stopped_ns]),
        "events": _integers([len(recording.session)]),
    }


_MAKERS: dict[str, Callable[[Recording], Table]] = {
    "events": _events,
    "operators": _operators,
    "steps": _steps,
    "memory": _memory,
    "stacks": _stacks,
    "modules": _modules,
    "kernels": _kernels,
    "processes": _processes,
}


def _same(value: int, count: int) -> Column:
    return np.full(count, value, np.int64)


def _integers(values: Iterable[Any]) -> Column:
    return np.array(list(values), np.int64)


def _objects(values: Iterable[Any]) -> Column:
    return _texts(list(values), None)


def _texts(values: Sequence[Any], numbers: Column | None) -> Column:
    """Texts by their numbers; -1 is NULL. Halves of characters, which DuckDB refuses, are escaped."""
    known = np.array([*(_encodable(str(value)) for value in values), ""], object)
    if numbers is None:
        return known[:-1]
    return np.ma.masked_array(known[numbers], mask=numbers < 0)


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _rows(numbers: Column) -> Column:
    """Numbers of which -1 is NULL."""
    return np.ma.masked_array(numbers.astype(np.int64), mask=numbers < 0)


def _numbers(attribution: modules.Attribution | None, count: int) -> Column:
    return np.full(count, -1) if attribution is None else attribution.module


def _inputs(recording: Recording, fact: Callable[[Sequence[Any]], list[Any]]) -> Column:
    session = recording.session
    if session.inputs is None or not session.info.record_shapes:
        return _texts([], np.full(len(session), -1))
    return _texts([str(fact(call)) for call in session.input_table], session.inputs)


def _places(recording: Recording) -> Column:
    """The line of the program that led to each event."""
    session = recording.session
    if session.stack is None:
        return _texts([], np.full(len(session), -1))
    places = list(map(str, session.frames))
    own = (own_frame(stack, session.frames, recording.places) for stack in session.stack_table)
    found = ["" if frame < 0 else places[frame] for frame in own]
    return _texts(found, recording.stack)
