"""Reading a spool: the session of what it holds, where and why it ends, and what each thread did last."""

from __future__ import annotations

import dataclasses
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np

from ..bounds import Bounds, free_bytes
from ..capture import columns, log_records
from ..capture.keeping import END as END_OF_EVENT
from ..capture.keeping import START, Kept, in_nanoseconds
from ..capture.operators.recorder import FORMS, Log
from ..capture.source import Findings
from ..capture.tasks import Task
from ..capture.threads import Thread
from ..model import dropping
from ..model.session import Frame, Info, Session, empty_session, join
from ..model.session_check import check
from ..model.session_file import from_json, label_of
from ..running import is_running
from ..writing import units
from .frames import CHUNK, END, HEAD, MEMORY, NOW, read_frames
from .frames import Frame as SpoolFrame
from .memory import MemoryFound

__all__ = ["LastOfThread", "Spooled", "read_spool"]

LAST_OPERATORS = 5
# What a file raises that is no spool: numbers, texts and tables that mean nothing together.
_DAMAGE = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError)
LATEST_S = 1 << 32
LONGEST_TEXT = 1 << 16  # of a fault, behind the last frame


@dataclass(frozen=True)
class LastOfThread:
    """What a thread did last, as far as the file tells."""

    name: str
    thread_id: int
    operators: tuple[tuple[str, int], ...]  # the last that ended, latest first: name, and nanoseconds before the end of the file
    scopes: tuple[str, ...]  # that were open when the thread was last looked at, outermost first
    places: tuple[Frame, ...]  # where it was then, innermost first


@dataclass(frozen=True)
class Spooled:
    """The contents of a spool."""

    session: Session
    is_complete: bool  # whether the recording was stopped
    fault: str  # what Python wrote when it crashed
    looked_before_ns: int  # how long before the end of the file threads were last looked at
    threads: tuple[LastOfThread, ...]


def read_spool(path: str | os.PathLike[str], bounds: Bounds | None = None) -> Spooled:
    """The contents of a spool, whether its recording was stopped or not; as many events as the bounds allow, or the memory of this machine."""
    name = os.fspath(path)
    with open(name, "rb") as file:
        try:
            return _spooled(file, bounds or Bounds())
        except _DAMAGE as error:
            raise ValueError(f"{name} is no spool, or is damaged ({type(error).__name__}: {error!s:.300})") from error


def _spooled(file: IO[bytes], bounds: Bounds) -> Spooled:
    recordings: list[_Recording] = []
    for frame in read_frames(file):
        if frame.kind == HEAD:
            recordings.append(_Recording(frame, bounds))
        elif recordings:
            recordings[-1].add(frame)
    behind = file.read(LONGEST_TEXT)
    fault = _fault(behind)
    sessions = [recording.session() for recording in recordings]
    if not recordings:
        return Spooled(empty_session(Info(ended="the recording was ended before anything was written")), False, fault, 0, ())
    last = recordings[-1]
    session = join(sessions) if len(sessions) > 1 else sessions[0]
    if not last.is_complete:
        session = session.replace(info=dataclasses.replace(session.info, ended=_why(session.info, fault, behind)))
    check(session)
    return Spooled(session, last.is_complete, fault, last.looked_before_ns(), last.threads(sessions[-1]))


def _fault(behind: bytes) -> str:
    text = behind.decode("utf-8", "backslashreplace")
    return text if re.match(r"(Fatal Python error|Windows fatal exception)", text) else ""


def _why(info: Info, fault: str, behind: bytes) -> str:
    """Where and why a recording ends that was not stopped."""
    where = f"the recording ends {units.time((info.stopped_ns - info.started_ns) / 1000)} after its start"
    if fault:
        return f"{where}, by a crash: {fault.partition(chr(10))[0]}"
    if is_running(info.pid):
        return f"{where}: process {info.pid}, which made it, may still be running"
    cut = "; the last piece of the file is not whole" if behind else ""
    return f"{where}, and was not stopped: its process was killed, crashed or left by os._exit{cut}"


def _seconds(value: Any) -> float:
    """A reading of the recorder's clock."""
    if not 0 <= float(value) < LATEST_S:
        raise ValueError(f"{value!r:.50} is no reading of a clock")
    return float(value)


def _check_readings(frame: SpoolFrame) -> None:
    """Refuse columns of numbers that are not whole, except of readings of the clock."""
    for i, column in enumerate(frame.columns):
        if column.dtype.kind == "f":
            if frame.kind != CHUNK or i not in (START, END_OF_EVENT):
                raise ValueError("a column of numbers that are not whole")
            if not ((column >= 0) & (column < LATEST_S)).all():  # not a number is neither
                raise ValueError("a time that is no reading of a clock")


@dataclass
class _Recording:
    """One recording of a file, which grows frame by frame."""

    head: SpoolFrame
    bounds: Bounds
    time: float = 0.0
    is_complete: bool = False
    labels: dict[int, Any] = field(default_factory=dict)
    inputs: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    stacks: dict[int, tuple[Frame, ...]] = field(default_factory=dict)
    tasks: dict[int, Task] = field(default_factory=dict)
    known_threads: list[Thread] = field(default_factory=list)
    steps: list[tuple[float, int]] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    present: dict[str, Any] = field(default_factory=dict)
    memory: MemoryFound = field(default_factory=MemoryFound)
    roles_at_end: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        facts = self.head.facts
        if facts["version"] != 1:
            raise ValueError(f"version {facts['version']!r:.20} of spools, and this mindtorch_v2 reads version 1: update it")
        self.info = Info(**{name: from_json(value) for name, value in facts["info"].items()})
        self.log = Log(**{name: bool(facts["form"][name]) for name in FORMS})
        self.kept = Kept(self.log, self.bounds)
        self.kept.began = int(facts.get("began_ns", 0))
        self.time = _seconds(facts["started"])

    def add(self, frame: SpoolFrame) -> None:
        facts = frame.facts
        _check_readings(frame)
        self.time = max(self.time, _seconds(facts["time"]))
        if frame.kind == CHUNK:
            self._add_chunk(frame)
        elif frame.kind == NOW:
            self.known_threads += [Thread(*thread) for thread in facts["threads"]]
            self.steps += [(_seconds(since), int(step)) for since, step in facts["steps"]]
            self.present = facts
        elif frame.kind == MEMORY:
            self._add_places(facts)
            self.memory.add(None if facts["until"] is None else _seconds(facts["until"]), frame.columns)
        elif frame.kind == END:
            self.is_complete = True
            self.time = _seconds(facts["time"])
            self.known_threads = [Thread(*thread) for thread in facts["threads"]]
            self.dropped.update(dict(facts["dropped"]))
            addresses, roles = frame.columns
            self.roles_at_end = dict(zip(addresses.tolist(), roles.tolist(), strict=True))

    def _add_chunk(self, frame: SpoolFrame) -> None:
        self.labels |= {number: label_of(*row) for number, row in frame.facts["labels"]}
        self.inputs |= {number: tuple(map(from_json, row)) for number, row in frame.facts["inputs"]}
        self._add_places(frame.facts)
        columns_of_log = log_records.types(self.log)
        found = [column.astype(kind) for column, kind in zip(in_nanoseconds(frame.columns), columns_of_log, strict=True)]
        if len({len(column) for column in found[: len(found) - self.log.operands]}) > 1:
            raise ValueError("columns of different lengths")
        if self.log.operands and ((found[-2] < 0).any() or found[-2].sum(dtype=np.int64) != len(found[-1])):
            raise ValueError("operands of records that are not those of the file")
        self.kept.mind_memory(free_bytes())
        self.kept.add(found)

    def _add_places(self, facts: dict[str, Any]) -> None:
        self.stacks |= {number: tuple(Frame(*place) for place in row) for number, row in facts.get("stacks", ())}
        self.tasks |= {number: Task(*row) for number, row in facts.get("tasks", ())}

    def session(self) -> Session:
        facts, info = self.head.facts, self.info
        stopped_ns = round(self.time * 1e9) + int(facts["epoch_ns"])
        found = Findings(
            stopped=self.time,
            recorder_threads=frozenset(map(int, self.present.get("recorder", ()))),
            labels=self.labels,
            inputs=self.inputs,
            stacks=self.stacks,
            tasks=self.tasks,
            threads=sorted(self.known_threads),
            roles_at_end=self.roles_at_end,
        )
        found.records = self.memory.put_into(found, log_records.drain(self.log, self.kept, round(self.time * 1e9)))
        self.dropped.update(self.kept.dropped)
        info = dataclasses.replace(
            info,
            stopped_ns=stopped_ns,
            collected=(),
            thread_cpu_ns=-1,
            profile_memory=self.log.heap or found.memory is not None,
            dropped=tuple(self.dropped.items()),
        )
        context = columns.Context(
            info=info,
            epoch_ns=int(facts["epoch_ns"]),
            steps=sorted(self.steps) or [(0.0, 0)],
            thread=int(facts["thread"]),
            only_thread=facts["only_thread"],
            kinds=None if facts["kinds"] is None else set(facts["kinds"]),
            found=found,
        )
        return dropping.to_depth(columns.assemble(context), facts["max_depth"])

    def looked_before_ns(self) -> int:
        return round((self.time - _seconds(self.present.get("time", self.time))) * 1e9)

    def threads(self, session: Session) -> tuple[LastOfThread, ...]:
        """What each thread did last, the one that was at it latest first."""
        present, scopes = self.present.get("present", {}), self.present.get("scopes", {})
        found = []
        for thread in {thread.ident: thread for thread in sorted(self.known_threads)}.values():
            tracks = [i for i, track in enumerate(session.tracks) if track.thread_id == thread.native_id]
            operators = tuple(_last_operators(session, tracks))
            places = tuple(Frame(*place) for place in present.get(str(thread.ident), ()))
            if operators or places:
                named = tuple(map(str, scopes.get(str(thread.ident), ())))
                found.append(LastOfThread(thread.name, thread.native_id, operators, named, places))
        return tuple(sorted(found, key=lambda last: last.operators[0][1] if last.operators else 1 << 62))


def _last_operators(session: Session, tracks: Sequence[int]) -> list[tuple[str, int]]:
    is_op = np.array([label.kind == "op" for label in session.labels], bool)
    rows = np.flatnonzero(np.isin(session.track, tracks) & is_op[session.label]) if len(session) else np.empty(0, np.int64)
    latest = rows[np.argsort(-session.end_ns[rows], kind="stable")[:LAST_OPERATORS]].tolist()
    return [(session.labels[session.label[row]].name, session.info.stopped_ns - int(session.end_ns[row])) for row in latest]
