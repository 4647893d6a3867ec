"""What the thread of a recording did at each moment: pieces of time, each of one part.

Each moment belongs to the innermost event then open on that thread, and to one part by what that event is; a moment without any
event is the program's own Python, or of the backward pass that another thread runs for it.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from . import links, tree
from .recording import Recording
from .recording_costs import costs_ns
from .session import Label, Session
from .waiting import waits

__all__ = [
    "BACKWARD",
    "COMPILATION",
    "DATA",
    "DEVICE",
    "FORWARD",
    "LOADING",
    "OPERATORS",
    "OPTIMIZER",
    "PARTS",
    "PYTHON",
    "WAITS",
    "TimeParts",
    "intervals",
    "tracks_of_main_thread",
]

Column = np.ndarray[Any, np.dtype[Any]]

DATA = "enumerate(DataLoader)"  # scopes in which batches are loaded have names that start with this
OPTIMIZERS = "Optimizer."  # those of optimizers

# The parts that a moment can belong to. Where tasks of one thread overlap, the first of them that applies.
PARTS = ("compilation", "forward", "backward", "optimizer", "waiting for the device", "data loading", "waiting", "own Python")
COMPILATION, FORWARD, BACKWARD, OPTIMIZER, DEVICE, LOADING, WAITS, PYTHON = range(len(PARTS))
# operators in a backward pass, in an optimizer, and all others
OPERATORS = (FORWARD, BACKWARD, OPTIMIZER)


def intervals(session: Session) -> list[tuple[int, int]]:
    """From when to when events were collected."""
    info = session.info
    return list(info.collected) or [(info.started_ns, info.stopped_ns)]


def tracks_of_main_thread(session: Session) -> Column:
    """Whether each track is of the thread that started the recording: its own, or that of one of its tasks."""
    on_cpu = [track for track in session.tracks if track.device_type == "CPU"]
    known = {track.thread_id for track in on_cpu}
    thread = session.info.thread_id or session.info.pid  # older sessions: on Linux, the first thread has the number of the process
    if not session.info.thread_id and thread not in known and on_cpu:
        thread = on_cpu[0].thread_id
    return np.array([t.device_type == "CPU" and t.thread_id == thread for t in session.tracks], bool)


class TimeParts:
    """The time that a recording collected on the thread that started it, by part."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.session = recording.session
        self.mine = tracks_of_main_thread(self.session)  # whether each track is of that thread
        self._parent = tree.parents(self.session)

    @functools.cached_property
    def of_events(self) -> Column:
        """The part that each event's own time belongs to."""
        session, recording, parent = self.session, self.recording, self._parent
        if not len(session):
            return np.empty(0, np.int8)
        part = np.array([_part(label) for label in session.labels], np.int8)[session.label]
        part[tree.inside(session, recording.of_labels(links.is_dispatched), parent) & (part == PYTHON)] = FORWARD
        nodes, steps = links.backward(session), recording.of_labels(lambda e: e.kind == "scope" and e.name.startswith(OPTIMIZERS))
        part[(part == FORWARD) & (nodes | tree.inside(session, nodes, parent))] = BACKWARD
        part[(part == FORWARD) & tree.inside(session, steps, parent)] = OPTIMIZER
        loads = recording.of_labels(lambda label: label.kind == "scope" and label.name.startswith(DATA))
        part[(loads | tree.inside(session, loads, parent)) & (part != COMPILATION)] = LOADING
        return part

    @functools.cached_property
    def _pieces(self) -> tuple[Column, Column, Column]:
        """The times at which pieces begin, those at which they end, and their parts."""
        session = self.session
        collected = np.array(intervals(session), np.int64).reshape(-1, 2)
        tracks = [rows for rows in tree.groups(session.track) if self.mine[session.track[rows[0]]]]
        engine_starts, engine_ends = self._engine
        edges = _distinct(
            np.concatenate(
                [collected.ravel(), engine_starts, engine_ends]
                + [c[rows] for rows in tracks for c in (session.start_ns, session.end_ns)]
            )
        )
        begins = edges[:-1]
        inside = np.searchsorted(np.sort(collected[:, 0]), begins, side="right") > np.searchsorted(
            np.sort(collected[:, 1]), begins, side="right"
        )
        found = np.full(len(begins), PYTHON, np.int8)
        for rows in tracks:
            found = np.minimum(found, self._part_at(begins, rows))
        runs = np.searchsorted(engine_starts, begins, side="right") > np.searchsorted(engine_ends, begins, side="right")
        found[(found == PYTHON) & runs] = BACKWARD
        return begins[inside], edges[1:][inside], found[inside]

    @property
    def _engine(self) -> tuple[Column, Column]:
        """From when to when threads of torch's engine were busy, in order. It has one for each device, and its caller waits for them."""
        session = self.session
        rows = np.empty(0, np.int64)
        if len(session) and any(track.device_type != "CPU" for track in session.tracks):
            of_engine = np.zeros(len(session.tracks), bool)
            of_engine[session.track[links.backward(session)]] = True
            rows = np.flatnonzero((of_engine & ~self.mine)[session.track] & (self._parent < 0))
        return np.sort(session.start_ns[rows]), np.sort(session.end_ns[rows])

    def _part_at(self, times: Column, rows: Column) -> Column:
        """The part of the innermost event of a track that is open at each of these times."""
        session = self.session
        at = np.searchsorted(session.start_ns[rows], times, side="right") - 1
        row = np.where(at < 0, -1, rows[at])
        while (over := (row >= 0) & (session.end_ns[row] <= times)).any():
            row[over] = self._parent[row[over]]
        return np.where(row < 0, PYTHON, self.of_events[row]).astype(np.int8)

    @functools.cached_property
    def times_ns(self) -> Column:
        """How much of the time collected belongs to each part, the recorder's work included."""
        begins, ends, part = self._pieces
        return np.bincount(part, ends - begins, minlength=len(PARTS)).astype(np.int64)

    @functools.cached_property
    def costs_ns(self) -> Column:
        """The time of recording the thread's events, by the part that they are inside of."""
        _, part, cost = self._costs
        return np.bincount(part, cost, minlength=len(PARTS)).astype(np.int64)

    @functools.cached_property
    def _costs(self) -> tuple[Column, Column, Column]:
        """The rows of the thread's events, the part that each is inside of, and the time of recording it."""
        session = self.session
        rows = np.flatnonzero(self.mine[session.track]) if len(session) else np.empty(0, np.int64)
        cost = costs_ns(session, self._parent)[rows]
        around = self._parent[rows]
        part = np.full(len(rows), PYTHON, np.int8)
        part[around >= 0] = self.of_events[around[around >= 0]]
        return rows, part, cost

    def between(self, starts_ns: Column, ends_ns: Column) -> tuple[Column, Column]:
        """For each interval the time of each part, without the recorder's work, and that work: `(n, len(PARTS))` and `(n,)`."""
        begins, ends, part = self._pieces
        rows, inside_of, cost = self._costs
        times, costs = np.zeros((2, len(starts_ns), len(PARTS)), np.int64)
        for number in range(len(PARTS)):
            mine = part == number
            times[:, number] = _covered(begins[mine], ends[mine], starts_ns, ends_ns)
            mine = inside_of == number
            sums = np.concatenate([[0], np.cumsum(cost[mine])])
            at = self.session.start_ns[rows[mine]]
            costs[:, number] = sums[np.searchsorted(at, ends_ns)] - sums[np.searchsorted(at, starts_ns)]
        spent = np.minimum(times, costs)
        return times - spent, spent.sum(axis=1)


def _part(label: Label) -> int:
    if links.waits_for_device(label):
        return DEVICE
    if label.kind in ("op", "runtime"):
        return FORWARD
    if label.kind == "compile":
        return COMPILATION
    return WAITS if label.kind == "python_function" and waits(label.name) else PYTHON


def _distinct(times_ns: Column) -> Column:
    """Times in order, each once. `np.unique` takes ten times as long for two million that differ: it hashes them first."""
    in_order = np.sort(times_ns)
    return in_order[np.concatenate([[True], in_order[1:] != in_order[:-1]])] if len(in_order) else in_order


def _covered(begins: Column, ends: Column, starts_ns: Column, ends_ns: Column) -> Column:
    """How much of each interval these pieces cover, which do not overlap and are in order."""
    whole = np.concatenate([[0], np.cumsum(ends - begins)])

    def until(time_ns: Column) -> Column:
        at = np.searchsorted(begins, time_ns, side="right") - 1
        open_piece = np.maximum(at, 0)
        part = np.minimum(time_ns, ends[open_piece]) - begins[open_piece] if len(begins) else np.zeros(len(time_ns), np.int64)
        return np.where(at < 0, 0, whole[open_piece] + part)

    return np.asarray(until(ends_ns) - until(starts_ns))
