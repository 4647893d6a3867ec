"""A finished recording: columns of events and the tables they point into. Frozen; everything that reads a profile starts here.

Rows are in order of start, an enclosing event before what it encloses. Times are nanoseconds of the Unix clock. Of each event
only facts are kept: who is whose parent, self times and correlation follow from them (see `tree`).
"""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "BUFFER",
    "CALL_IN_C",
    "COLUMNS",
    "COMPILE",
    "COSTS",
    "DIRECTIONS",
    "GRADIENT",
    "KINDS",
    "NESTED",
    "NODE",
    "OPTIMIZER_STATE",
    "PARAMETER",
    "ROLE_NAMES",
    "Copies",
    "DataFlow",
    "Distinct",
    "Frame",
    "Info",
    "Label",
    "MemoryLog",
    "ModulePart",
    "Roles",
    "Session",
    "TensorInput",
    "Track",
    "empty_session",
    "join",
]

Column = np.ndarray[Any, np.dtype[Any]]

# Not an event: the call of a function written in C, which the tracer of Python 3.11 is told of and does not record.
CALL_IN_C = "call in C"
# Kinds of events that cost something else than others of their kind: operators that operators or backward nodes call, and backward nodes, of
# which each has two events.
NESTED, NODE = "nested op", "backward node"
COSTS = (CALL_IN_C, NESTED, NODE)
KINDS = ("op", "scope", "python_function", "memory", "runtime", "kernel", "gc", "compile", "overhead", "sync")

COMPILE = "mindtorch_v2::compile"  # the name of events of compilation

# From where to where a device copies. The last fills memory with a value.
DIRECTIONS = ("unknown", "host to device", "device to host", "device to device", "peer to peer", "host to host", "memset")

# What torch calls the scope of a record function.
FUNCTION, BACKWARD_FUNCTION, USER_SCOPE = 0, 1, 7

# What the runtime knows a storage to be.
PARAMETER, GRADIENT, OPTIMIZER_STATE, BUFFER = 0, 1, 2, 3
ROLE_NAMES = ("parameter", "gradient", "optimizer state", "buffer")


class ModulePart(NamedTuple):
    """A step on the way from a network to one of its modules: the name there, which has dots where containers are passed."""

    name: str
    class_name: str


class Label(NamedTuple):
    """The name of an event, with its kind. Events of one operator share a label."""

    name: str
    kind: str = "op"
    scope: int = FUNCTION
    overload: str = ""
    module: tuple[ModulePart, ...] = ()  # the module that is called, or has what the event works on
    operator: str = ""  # what a compilation is for
    category: str = ""  # of a trace that was read, where the kind does not say it: "gpu_memcpy"


class Track(NamedTuple):
    """A line of events that follow or enclose each other: a thread, one asyncio task of it, or a device stream.

    Where work of one stream overlaps, as a trace tells it, the stream has more than one track.
    """

    tid: int  # unique among the threads, and among the streams of a device; that of the system for a thread
    thread_id: int  # of the system; of a device, the stream
    name: str = ""
    device_type: str = "CPU"
    device_index: int = 0


class TensorInput(NamedTuple):
    """A tensor among the arguments of an operator."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    dtype: str  # "float32"


class Frame(NamedTuple):
    """A place in Python code; as text `train.py:12:forward`. Without a file, as traces have functions of C and modules, its name alone."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.function}" if self.file else self.function


class MemoryLog(NamedTuple):
    """Storage made and freed, in order of time."""

    time_ns: Column
    track: Column
    address: Column
    size_bytes: Column  # negative for a free
    total_bytes: Column  # live after it
    event: Column  # row of the innermost event then open on that track, or else of the change's own; -1 if that is not kept
    stack: Column | None = None  # into stack_table, of storage that no operator made; -1 for others


class Roles(NamedTuple):
    """Roles of storages that were made in a recording and lived at its end, as the runtime knew them."""

    time_ns: Column  # of the end
    address: Column
    role: Column


class Copies(NamedTuple):
    """What a device copied or filled."""

    row: Column  # of the kernel, rising
    size_bytes: Column
    direction: Column  # into DIRECTIONS


class DataFlow(NamedTuple):
    """Uses of memory. Addresses are those of the memory log: they tell storages apart that live at one time."""

    operand_row: Column  # rows of operators, once for each tensor among the arguments, rising
    operand_address: Column  # of that tensor's storage; negative if the operator writes to it, 0 for a number
    role_time_ns: Column
    role_address: Column
    role: Column  # what the runtime knew this storage to be then
    held_time_ns: Column  # the start of a recording; one entry for each storage that lived then
    held_address: Column
    held_bytes: Column
    began_ns: Column  # the starts of the recordings


@dataclass(frozen=True, kw_only=True)
class Info:
    """Facts about the whole recording."""

    started_ns: int = 0
    stopped_ns: int = 0
    collected: tuple[tuple[int, int], ...] = ()  # from when to when; () if from start to stop
    thread_id: int = 0  # of the system, of the thread that started the recording; 0 if that is not known
    thread_cpu_ns: int = -1  # how long that thread was on the processor while events were collected; -1 if that is not known
    event_costs_ns: tuple[
        tuple[str, int], ...
    ] = ()  # kind of event, or one of `COSTS`, and what recording one took on this machine
    first_ids: tuple[tuple[int, int], ...] = (
        (0, 1),
    )  # of each recording in the session, the first row and the number of its event
    pid: int = 0
    parent_pid: int = 0  # the process that started this one; 0 if that is not known
    process_name: str = "python"
    command: tuple[str, ...] = ()  # the program and its arguments, as `sys.argv` has them
    environment: Mapping[str, Any] = field(default_factory=dict)  # versions, threads and machine: names for people, and values
    source_roots: tuple[str, ...] = ()  # directories that modules were imported from, longest first
    record_shapes: bool = False
    with_stack: bool = False
    profile_memory: bool = False
    live_bytes: tuple[tuple[int, int], ...] = ()  # when each recording of memory began, and the bytes of storage on the CPU then
    with_modules: bool = False
    with_flops: bool = False
    overload_names: bool = False
    verbose: bool = False  # traces show the stack as `Call stack` too
    external_ids: bool = True  # traces show `External id`
    expose_metadata: bool = False  # events show what the trace tells of them
    use_device: str | None = None
    trace_id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)  # values as JSON knows them
    device_properties: tuple[Mapping[str, Any], ...] = ()
    distributed: Mapping[str, Any] | None = None
    unrecorded: tuple[
        str, ...
    ] = ()  # what was not recorded by the program's wish, and so not counted, in sentences without their full stops
    dropped: tuple[tuple[str, int], ...] = ()  # options that left events out (`memory`: none was given), and how many
    ended: str = ""  # where and why a recording ends that was not stopped
    adjusted: tuple[tuple[str, int], ...] = ()  # what was changed in a trace to read it, and in how many rows


@dataclass(frozen=True, kw_only=True, eq=False)
class Session:
    """One recording. `None` for a column means that it was not asked for."""

    label: Column  # int32, into labels
    track: Column  # int32, into tracks
    start_ns: Column  # int64
    end_ns: Column  # int64
    depth: Column  # int32: how many events of its track are around it
    step: Column  # int32
    sequence: Column  # int64: number of the autograd node that the event made or ran, -1 for none
    inputs: Column | None = None  # int32, into input_table; -1 for an event that has none
    stack: Column | None = None  # int32, into stack_table; -1 for none
    function_id: Column | None = None  # int64: the `rf_id` of the event's node in an execution trace, 0 for none
    launch: Column | None = None  # int32: for a kernel, row of the runtime's call that started it; -1 for other rows
    memory: MemoryLog | None = None
    roles: Roles | None = None
    flow: DataFlow | None = None
    copies: Copies | None = None
    # int64: bytes of Python's heap, where memory is counted by it; 0 for Python functions
    heap_before: Column | None = None
    heap_after: Column | None = None

    labels: Sequence[Label] = ()
    tracks: Sequence[Track] = ()
    # For each distinct call: one entry an argument. A TensorInput, a list of them, or the value itself (None, a number, a
    # string, a list of these); `arg(…)` of record_function is a single string.
    input_table: Sequence[tuple[Any, ...]] = ()
    frames: Sequence[Frame] = ()
    stack_table: Sequence[tuple[int, ...]] = ()  # into frames, innermost first
    info: Info = field(default_factory=Info)

    def __len__(self) -> int:
        return len(self.label)

    def replace(self, **changes: Any) -> Session:
        return dataclasses.replace(self, **changes)

    def head(self, count: int) -> Session:
        """The events that began first; with each, all that are around it."""
        flow, memory, copies = self.flow, self.memory, self.copies
        if copies is not None:
            copies = Copies(*(column[copies.row < count] for column in copies))
        if flow is not None:
            kept = flow.operand_row < count
            flow = flow._replace(operand_row=flow.operand_row[kept], operand_address=flow.operand_address[kept])
        if memory is not None:
            memory = memory._replace(event=np.where(memory.event < count, memory.event, -1))
        columns = {name: None if (c := getattr(self, name)) is None else c[:count] for name in COLUMNS}
        return self.replace(**columns, flow=flow, memory=memory, copies=copies)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the session to a file that `Session.load` reads."""
        from . import session_file  # cycle with profiler.model.session_file

        session_file.save(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Session:
        """The session that was saved to this file."""
        from . import session_file  # cycle with profiler.model.session_file

        return session_file.load(path)


# Of which each event has a value.
COLUMNS = ("label", "track", "start_ns", "end_ns", "depth", "step", "sequence", "inputs", "stack", "function_id", "launch") + (
    "heap_before",
    "heap_after",
)


def empty_session(info: Info | None = None) -> Session:
    def column(dtype: str) -> Column:
        return np.empty(0, dtype)

    return Session(
        label=column("i4"),
        track=column("i4"),
        start_ns=column("i8"),
        end_ns=column("i8"),
        depth=column("i4"),
        step=column("i4"),
        sequence=column("i8"),
        info=info or Info(),
    )


def join(sessions: Sequence[Session]) -> Session:
    """One session of several recordings, made one after the other. Events of a thread stay on one track."""
    labels, tracks, inputs, frames = Distinct(), Distinct(), Distinct(), Distinct()
    stacks = Distinct()
    on_device, numbered = any(s.launch is not None for s in sessions), any(s.function_id is not None for s in sessions)
    parts, memories, roles, flows, copies, first_ids, before = [], [], [], [], [], [], 0
    for s in sessions:
        frame_numbers = frames.numbers(s.frames)
        stack_table = stacks.numbers([tuple(frame_numbers[list(t)].tolist()) for t in s.stack_table])
        part = {
            "label": labels.numbers(s.labels)[s.label],
            "track": tracks.numbers(s.tracks)[s.track],
            "inputs": None if s.inputs is None else _point(inputs.numbers(s.input_table), s.inputs),
            "stack": None if s.stack is None else _point(stack_table, s.stack),
            "launch": _shifted(s.launch, len(s), before) if on_device else None,
            "function_id": (np.zeros(len(s), np.int64) if s.function_id is None else s.function_id) if numbered else None,
        }
        part |= {
            name: getattr(s, name) for name in ("start_ns", "end_ns", "depth", "step", "sequence", "heap_before", "heap_after")
        }
        parts.append(part)
        if s.memory is not None:
            track, event = _point(tracks.numbers(s.tracks), s.memory.track), _shifted(s.memory.event, 0, before)
            stack = s.memory.stack
            if stack is not None:
                stack = _point(stack_table, stack)
            memories.append(s.memory._replace(track=track, event=event, stack=stack))
        if s.roles is not None:
            roles.append(s.roles)
        if s.flow is not None:
            flows.append(s.flow._replace(operand_row=s.flow.operand_row + before))
        if s.copies is not None:
            copies.append(s.copies._replace(row=s.copies.row + before))
        first_ids += [(row + before, number) for row, number in s.info.first_ids]
        before += len(s)
    joined: dict[str, Any] = {
        name: None if parts[0][name] is None else np.concatenate([p[name] for p in parts]) for name in parts[0]
    }
    first, last = sessions[0].info, sessions[-1].info
    return Session(
        **joined,
        memory=MemoryLog(*map(_joined, zip(*memories, strict=True))) if memories else None,
        roles=Roles(*map(np.concatenate, zip(*roles, strict=True))) if roles else None,
        flow=DataFlow(*map(np.concatenate, zip(*flows, strict=True))) if flows else None,
        copies=Copies(*map(np.concatenate, zip(*copies, strict=True))) if copies else None,
        labels=tuple(labels),
        tracks=tuple(tracks),
        input_table=tuple(inputs),
        frames=tuple(frames),
        stack_table=tuple(stacks),
        info=dataclasses.replace(
            last,
            started_ns=first.started_ns,
            collected=tuple(
                interval for s in sessions for interval in s.info.collected or ((s.info.started_ns, s.info.stopped_ns),)
            ),
            thread_cpu_ns=_sum_if_known([s.info.thread_cpu_ns for s in sessions]),
            dropped=tuple(sum((Counter(dict(s.info.dropped)) for s in sessions), Counter[str]()).items()),
            first_ids=tuple(first_ids),
            live_bytes=tuple(began for s in sessions for began in s.info.live_bytes),
            metadata={**first.metadata, **last.metadata},
        ),
    )


def _sum_if_known(values: Sequence[int]) -> int:
    """The sum, or -1 if one of the values is -1, which says that it is not known."""
    return -1 if min(values) < 0 else sum(values)


def _joined(columns: Sequence[Any]) -> Any:
    """The columns one after the other; None if they were not asked for."""
    return None if columns[0] is None else np.concatenate(columns)


def _point(numbers: Column, column: Column) -> Column:
    """A column that points into the joined table; -1 stays."""
    return np.where(column < 0, -1, numbers[column] if len(numbers) else -1).astype(np.int32)


def _shifted(rows: Column | None, count: int, before: int) -> Column:
    """A column of rows, with so many rows before them; -1 stays."""
    return np.full(count, -1, np.int32) if rows is None else np.where(rows < 0, -1, rows + before).astype(np.int32)


class Distinct:
    """The distinct values that were seen, numbered as they came."""

    def __init__(self) -> None:
        self._values: list[Any] = []
        self._found: dict[str, int] = {}

    def number(self, value: Hashable) -> int:
        key = repr(value)  # arguments may be lists, and 1 is not True here
        if key not in self._found:
            self._found[key] = len(self._values)
            self._values.append(value)
        return self._found[key]

    def numbers(self, table: Sequence[Any]) -> Column:
        """The numbers of the values of a table."""
        return np.array([self.number(value) for value in table], np.int32)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)
