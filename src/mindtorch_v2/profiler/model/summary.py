"""Where the wall time of a recording went: parts that add up to it, to the nanosecond.

The parts are of the thread that started the recording. Each moment belongs to the innermost event then open on that thread, and to one part
by what that event is; a moment without any event is the program's own Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..writing import units
from ..writing.text_table import Column as TableColumn
from ..writing.text_table import TextTable, printable
from . import links, tree
from .recording import Recording
from .session import WAITING, Label, Session

__all__ = ["OtherThread", "Summary"]

Column = np.ndarray[Any, np.dtype[Any]]

DATA = "enumerate(DataLoader)"  # scopes in which batches are loaded have names that start with this

# The parts that a moment can belong to. Where tasks of one thread overlap, the first of them that applies.
PARTS = ("compilation", "operators", "data loading", "waiting", "own Python")
COMPILATION, OPERATORS, LOADING, WAITS, PYTHON = range(len(PARTS))


@dataclass(frozen=True)
class OtherThread:
    """A thread that ran operators besides the one that started the recording."""

    name: str
    thread_id: int
    operators_ns: int


@dataclass(frozen=True, kw_only=True)
class Summary:
    """How long was recorded, and what that time was spent on. All times are nanoseconds.

    `python_and_waiting_ns` is the sum of `python_ns` and `waiting_ns`, which are None where they cannot be told apart.
    """

    wall_ns: int
    operators_ns: int
    python_and_waiting_ns: int
    python_ns: int | None  # the program's own Python, the modules' and optimizers' included
    waiting_ns: int | None  # inside of functions that wait: for time to pass, a lock, a file, another process
    data_ns: int  # loading of batches, whatever it consists of
    compilation_ns: int
    recorder_ns: int  # what the recorder itself took, by what an event was measured to cost
    events: int  # on the thread that started the recording
    on_processor_ns: int | None  # how long that thread was on the processor; None if that is not known
    other_threads: tuple[OtherThread, ...] = ()

    @classmethod
    def of(cls, session: Session) -> Summary:
        info = session.info
        recording = Recording(session)
        mine = _tracks_of_main_thread(session)
        times = _times(session, mine, _parts(recording))
        costs = _costs(recording, mine)
        spent = np.minimum(costs, times)  # of each part, on recording the events inside of it
        times -= spent
        apart = info.with_stack
        wall_ns = sum(stopped - started for started, stopped in _intervals(session))
        return cls(
            wall_ns=wall_ns,
            operators_ns=int(times[OPERATORS]),
            python_and_waiting_ns=int(times[PYTHON] + times[WAITS]),
            python_ns=int(times[PYTHON]) if apart else None,
            waiting_ns=int(times[WAITS]) if apart else None,
            data_ns=int(times[LOADING]),
            compilation_ns=int(times[COMPILATION]),
            recorder_ns=int(spent.sum()),
            events=int(mine[session.track].sum()) if len(session) else 0,
            on_processor_ns=None if info.thread_cpu_ns < 0 else min(info.thread_cpu_ns, wall_ns),
            other_threads=tuple(_other_threads(recording, mine)),
        )

    @property
    def parts(self) -> dict[str, int]:
        """The parts by name, in nanoseconds; they add up to `wall_ns`."""
        if self.python_ns is None or self.waiting_ns is None:
            python = {"own Python and waiting": self.python_and_waiting_ns}
        else:
            python = {"own Python": self.python_ns, "waiting": self.waiting_ns}
        return {
            "operators": self.operators_ns,
            **python,
            "data loading": self.data_ns,
            "compilation": self.compilation_ns,
            "recorder": self.recorder_ns,
        }

    def __str__(self) -> str:
        rows = [("Wall time of the recording", self.wall_ns), *((f"  {name}", ns) for name, ns in self.parts.items())]
        rows += [(f"Operators on {printable(thread.name)}", thread.operators_ns) for thread in self.other_threads]
        columns = [
            TableColumn("", lambda row: row[0], width=None, align="<"),
            TableColumn("", lambda row: units.time(row[1] / 1000), width=None),
            TableColumn("", lambda row: _share(row[1], self.wall_ns), width=None),
        ]
        lines = TextTable(columns, rows).rows
        if self.on_processor_ns is not None:
            lines.append(f"The thread of the recording was on the processor for {units.time(self.on_processor_ns / 1000)} of it.")
        if self.python_ns is None:
            lines.append("Own Python and waiting cannot be told apart without with_stack=True.")
        return "\n".join(lines)


def _share(part_ns: int, whole_ns: int) -> str:
    return f"{part_ns / whole_ns:.1%}" if whole_ns else ""


def _intervals(session: Session) -> list[tuple[int, int]]:
    """From when to when events were collected."""
    info = session.info
    return list(info.collected) or [(info.started_ns, info.stopped_ns)]


def _tracks_of_main_thread(session: Session) -> Column:
    """Whether each track is of the thread that started the recording: its own, or that of one of its tasks."""
    on_cpu = [track for track in session.tracks if track.device_type == "CPU"]
    known = {track.thread_id for track in on_cpu}
    thread = session.info.thread_id or session.info.pid  # older sessions: on Linux, the first thread has the number of the process
    if not session.info.thread_id and thread not in known and on_cpu:
        thread = on_cpu[0].thread_id
    return np.array([t.device_type == "CPU" and t.thread_id == thread for t in session.tracks], bool)


def _parts(recording: Recording) -> Column:
    """The part that each event's own time belongs to."""
    session = recording.session
    if not len(session):
        return np.empty(0, np.int8)
    part = np.array([_part(label) for label in session.labels], np.int8)[session.label]
    parent = tree.parents(session)
    part[tree.inside(session, recording.of_labels(links.is_dispatched), parent) & (part == PYTHON)] = OPERATORS
    loads = recording.of_labels(lambda label: label.kind == "scope" and label.name.startswith(DATA))
    part[(loads | tree.inside(session, loads, parent)) & (part != COMPILATION)] = LOADING
    return part


def _part(label: Label) -> int:
    if label.kind in ("op", "runtime"):
        return OPERATORS
    if label.kind == "compile":
        return COMPILATION
    return WAITS if label.kind == "python_function" and label.name.startswith(WAITING) else PYTHON


def _times(session: Session, mine: Column, part: Column) -> Column:
    """How much of the time collected belongs to each part."""
    intervals = np.array(_intervals(session), np.int64).reshape(-1, 2)
    tracks = [rows for rows in tree.groups(session.track) if mine[session.track[rows[0]]]]
    edges = np.unique(
        np.concatenate([intervals.ravel(), *(c[rows] for rows in tracks for c in (session.start_ns, session.end_ns))])
    )
    begins, lengths = edges[:-1], np.diff(edges)
    collected = np.searchsorted(np.sort(intervals[:, 0]), begins, side="right") > np.searchsorted(
        np.sort(intervals[:, 1]), begins, side="right"
    )
    found = np.full(len(begins), PYTHON, np.int8)
    parent = tree.parents(session)
    for rows in tracks:
        found = np.minimum(found, _part_at(begins, session, rows, parent, part))
    return np.bincount(found[collected], lengths[collected], minlength=len(PARTS)).astype(np.int64)


def _part_at(times: Column, session: Session, rows: Column, parent: Column, part: Column) -> Column:
    """The part of the innermost event of a track that is open at each of these times."""
    at = np.searchsorted(session.start_ns[rows], times, side="right") - 1
    row = np.where(at < 0, -1, rows[at])
    while (over := (row >= 0) & (session.end_ns[row] <= times)).any():
        row[over] = parent[row[over]]
    return np.where(row < 0, PYTHON, part[row]).astype(np.int8)


def _costs(recording: Recording, mine: Column) -> Column:
    """The time of recording the thread's events, by the part of the summary that they are inside of."""
    session = recording.session
    costs = np.zeros(len(PARTS), np.int64)
    if not len(session):
        return costs
    per_event = dict(session.info.event_costs_ns)
    cost = np.array([per_event.get(label.kind, 0) for label in session.labels], np.int64)[session.label]
    parent, part = tree.parents(session), _parts(recording)
    rows = np.flatnonzero(mine[session.track])
    around = np.where(parent[rows] < 0, PYTHON, part[parent[rows]])
    np.add.at(costs, around, cost[rows])
    return costs


def _other_threads(recording: Recording, mine: Column) -> list[OtherThread]:
    session = recording.session
    if not len(session):
        return []
    self_ns = recording.without_children(recording.cpu_ns)
    is_op = _parts(recording) == OPERATORS
    threads: dict[int, OtherThread] = {}
    for number, track in enumerate(session.tracks):
        if mine[number] or track.device_type != "CPU":
            continue
        spent = int(self_ns[(session.track == number) & is_op].sum())
        known = threads.get(track.thread_id)
        name = track.name if known is None else known.name
        threads[track.thread_id] = OtherThread(name, track.thread_id, spent + (0 if known is None else known.operators_ns))
    return list(threads.values())
