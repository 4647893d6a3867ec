"""A session as a trace file: Kineto's JSON, which Perfetto, TensorBoard and HolisticTraceAnalysis read.

Rows are written in chunks. The numbers of a chunk become text at once; what stands around them is the same for all rows of one
label on one track, and arguments and stacks are looked up in tables of text.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..model import flops, links, live_memory, modules
from ..model.session import KINDS, Column, Label, Session, Track
from ..writing.atomic_file import replacing
from ..writing.json_text import json_text
from . import input_text, number_text
from .number_text import Field
from .slice_times import SliceTimes, length_until, slice_times
from .stack_text import StackTexts

__all__ = ["base_time_ns", "render", "write"]

# Kineto's: the Unix clock counted from a recent multiple of a quarter of a year fits a double to the nanosecond
BASE_PERIOD_NS = 7_889_238 * 10**9

CHUNK_ROWS = 4_096  # about a megabyte of text: it stays in the cache, and other threads run while it is written

GZIP_LEVEL = 6  # 2.06 MB of 29 MB in 0.28 s; level 1 takes a third of the time for a fifth more, level 9 twice as long for 5 % less

CATEGORIES = {
    "op": "cpu_op",
    "scope": "user_annotation",
    "python_function": "python_function",
    "gc": "python_function",  # torch: "Python GC" is a row among the functions
    "compile": "overhead",  # Kineto's category of what a profiler adds to a program
    "memory": "cpu_instant_event",
    "runtime": "privateuse1_runtime",
    "kernel": "kernel",
    "overhead": "overhead",
    "sync": "cuda_sync",
}

# Processes of the trace that are none of the system, whose numbers end at 4,194,304. Kineto sorts by the same numbers.
DEVICE_PID = 5_000_000
SPANS_PID = 536_870_912
MARKS_PID = 536_870_913

PRIVATE_USE_1 = 20  # torch: the number of the device type

Progress = Callable[[int, int], None]


def write(sessions: Session | Sequence[Session], path: str | os.PathLike[str], *, progress: Progress | None = None) -> None:
    """Write the trace to `path`, compressed when it ends in `.gz`; several sessions are processes of one trace, on one time base.

    `progress(rows written, rows in all)` is called now and then.
    """
    name = os.fspath(path)
    given = [sessions] if isinstance(sessions, Session) else list(sessions)
    whole = sum(map(len, given))
    with replacing(name, gzip_level=GZIP_LEVEL if name.endswith(".gz") else None) as file:
        for rows, text in render(given, name):
            file.write(text.encode())
            if progress is not None:
                progress(rows, whole)


def render(sessions: Session | Sequence[Session], trace_name: str = "") -> Iterator[tuple[int, str]]:
    """The text of the trace in parts, each with the number of rows up to its end."""
    given = [sessions] if isinstance(sessions, Session) else sessions
    base_ns = min(map(base_time_ns, given))
    stacks = _stack_texts(given)
    yield 0, _header(given[0], base_ns, {number: frame for texts in stacks for number, frame in texts.frames.items()})
    written, before = 0, Before()
    for session, texts in zip(given, stacks):
        yield written, "".join(_metadata_rows(session, base_ns))
        rows = _Rows(session, slice_times(session, base_ns), texts, before)
        for first in range(0, len(session), CHUNK_ROWS):
            last = min(first + CHUNK_ROWS, len(session))
            yield written + last, rows.render(first, last)
        written += len(session)
        yield from ((written, part) for part in _memory_rows(session, base_ns, before))
        before = before.behind(session, rows)
    yield written, "".join(_metadata_of_marks(given[0], base_ns))
    yield written, "".join(_marks(given, base_ns))
    yield written, f'],\n"traceName": {json_text(trace_name)}\n}}\n'


def _stack_texts(sessions: Sequence[Session]) -> list[StackTexts]:
    found: list[StackTexts] = []
    for session in sessions:
        found.append(StackTexts(session, sum(len(texts.frames) for texts in found)))
    return found


class Before(NamedTuple):
    """How many numbers the processes before this one in a trace have used up: numbers tell the rows of a whole file apart."""

    row: int = 0
    event: int = 0
    function: int = 0
    forward: int = 0
    launch: int = 0

    def behind(self, session: Session, rows: _Rows) -> Before:
        changes = 0 if session.memory is None else len(session.memory.time_ns)
        return Before(
            self.row + len(session) + changes,
            max(self.event, int(rows.ids.max(initial=0))),
            self.function + (0 if rows.python_ids is None else int(rows.python_ids.max(initial=0))),
            self.forward + len(links.flows(session)[0]),
            self.launch + len(links.launches(session)[0]),
        )


def base_time_ns(session: Session) -> int:
    """The moment that times in the trace count from."""
    earliest = session.info.started_ns
    if len(session):
        earliest = min(earliest, int(session.start_ns[0]))
    if session.memory is not None and len(session.memory.time_ns):
        earliest = min(earliest, int(session.memory.time_ns[0]))
    return earliest // BASE_PERIOD_NS * BASE_PERIOD_NS


# Before and after the rows -----------------------------------------------------------------------------------------------------


def _header(session: Session, base_ns: int, frames: Mapping[str, Any]) -> str:
    info = session.info
    options = ("with_stack", "profile_memory", "record_shapes", "with_modules", "with_flops")
    metadata: dict[str, Any] = {"trace_id": info.trace_id} if info.trace_id else {}
    metadata |= {option: 1 for option in options if getattr(info, option)}
    metadata |= {"dropped": dict(info.dropped)} if info.dropped else {}
    metadata |= {"unrecorded": list(info.unrecorded)} if info.unrecorded else {}
    metadata |= {"ended": info.ended} if info.ended else {}
    header: dict[str, Any] = {"schemaVersion": 1, "deviceProperties": list(info.device_properties)}
    footer: dict[str, Any] = {"displayTimeUnit": "ms", "baseTimeNanoseconds": base_ns}
    if info.distributed is not None:
        footer = {"distributedInfo": dict(info.distributed), **footer}
    if frames:
        footer = {"stackFrames": frames, **footer}
    own = {*header, *footer, "stackFrames", "traceEvents", "traceName"}
    metadata |= {f"metadata.{key}" if key in own else key: value for key, value in info.metadata.items()}
    lines = [f"{json_text(key)}: {json_text(value)},\n" for key, value in (header | metadata | footer).items()]
    return "{\n" + "".join(lines) + '"traceEvents": [\n'


def _metadata_rows(session: Session, base_ns: int) -> Iterator[str]:
    """Names and order of processes and threads."""
    at = _microseconds(session.info.started_ns - base_ns)
    devices = {t.device_index: t.device_type for t in session.tracks if t.device_type != "CPU"}
    yield from _name_process(at, session.info.pid, session.info.process_name, "CPU", session.info.pid)
    for index, kind in devices.items():
        yield from _name_process(at, DEVICE_PID + index, session.info.process_name, f"{kind} {index}", DEVICE_PID + index)
    for track in session.tracks:
        pid, tid = _pid(session, track), track.tid
        name = f"thread {tid} ({track.name})" if track.device_type == "CPU" else f"stream {tid} {track.name}".rstrip()
        yield _metadata_row(at, "thread_name", pid, tid, name=name)
        yield _metadata_row(at, "thread_sort_index", pid, tid, sort_index=tid)


def _metadata_of_marks(session: Session, base_ns: int) -> Iterator[str]:
    """Names of the lines that the recording itself is on."""
    at = _microseconds(session.info.started_ns - base_ns)
    yield _metadata_row(at, "process_name", SPANS_PID, 0, name="Spans")
    yield _metadata_row(at, "thread_name", SPANS_PID, 0, name="PyTorch Profiler")
    yield from _name_process(at, MARKS_PID, "Traces", "", MARKS_PID)


def _name_process(at: str, pid: int, name: str, labels: str, sort_index: int) -> Iterator[str]:
    yield _metadata_row(at, "process_name", pid, 0, name=name)
    if labels:
        yield _metadata_row(at, "process_labels", pid, 0, labels=labels)
    yield _metadata_row(at, "process_sort_index", pid, 0, sort_index=sort_index)


def _metadata_row(at: str, what: str, pid: int, tid: int, **args: Any) -> str:
    return f'{{"ph":"M","name":"{what}","ts":{at},"pid":{pid},"tid":{tid},"args":{json_text(args, compact=True)}}},\n'


def _marks(sessions: Sequence[Session], base_ns: int) -> Iterator[str]:
    """The span of the recording, its start and its end. The last rows of the trace, in Kineto's order."""
    started = min(session.info.started_ns for session in sessions) - base_ns
    stopped = max(max(session.info.stopped_ns, session.info.started_ns) for session in sessions) - base_ns
    start, stop, length = map(_microseconds, (started, stopped, length_until(started, stopped)))
    yield (
        f'{{"ph":"X","cat":"Trace","name":"PyTorch Profiler (0)","pid":{SPANS_PID},"tid":0,"ts":{start},"dur":{length},'
        f'"args":{{"Op count":{sum(map(len, sessions))}}}}},\n'
    )
    yield _metadata_row(start, "process_sort_index", SPANS_PID, 0, sort_index=SPANS_PID)
    yield f'{{"ph":"i","s":"g","name":"Iteration Start: PyTorch Profiler","pid":{MARKS_PID},"tid":0,"ts":{start}}},\n'
    yield f'{{"ph":"i","s":"g","name":"Record Window End","pid":{MARKS_PID},"tid":0,"ts":{stop}}}\n'


def _microseconds(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def _pid(session: Session, track: Track) -> int:
    return session.info.pid if track.device_type == "CPU" else DEVICE_PID + track.device_index


# Events ------------------------------------------------------------------------------------------------------------------------


class _Rows:
    """Events as lines of JSON, with the flows that start and end at them."""

    def __init__(self, session: Session, times: SliceTimes, stacks: StackTexts, before: Before = Before()) -> None:
        self.session = session
        self.times = times
        self.before = before
        self.frames = _Frames(session)
        self.runtime_label = links.runtime_labels(session)
        self.ids = links.ids(session) + before.event
        self.operator, self.caused_by = links.device_rows(session)
        self.forward_track = _forward_tracks(session)
        self.flow_lines = _FlowLines(session, times, before)
        self.inputs = [_inputs_text(inputs) for inputs in session.input_table]
        self.stacks = stacks
        self.memory = live_memory.around(session)
        self.python_ids, self.python_parents = links.python_ids(session)
        self.flops = flops.counts(session)
        self.modules, self.module = _modules(session)
        self.kinds = np.array([KINDS.index(label.kind) for label in session.labels], np.int8)

    def render(self, first: int, last: int) -> str:
        """The lines of these rows: columns of texts, side by side."""
        rows = slice(first, last)
        frames = list(map(self.frames.__getitem__, self._frame_keys(rows).tolist()))
        heads, tails = [head for head, _ in frames], [tail for _, tail in frames]
        columns = [
            heads,
            number_text.lines(self._fields(first, last), last - first),
            tails,
            _from_table(self.inputs, self.session.inputs, rows),
            _from_table(self.stacks.texts, self.session.stack, rows),
            _from_table(self.modules, self.module, rows),
            self.flow_lines.ends(first, last),
        ]
        given = [column for column in columns if column is not None]
        texts = [""] * (len(given) * (last - first))
        for place, column in enumerate(given):
            texts[place :: len(given)] = column
        # changes of memory come after all events, those that are events among them
        for row in np.flatnonzero(self.kinds[self.session.label[rows]] == MEMORY).tolist():
            texts[row * len(given) : (row + 1) * len(given)] = [""] * len(given)
        return "".join(texts)

    def _frame_keys(self, rows: slice) -> Column:
        keys = self.session.label[rows].astype(np.int64) * len(self.session.tracks) + self.session.track[rows]
        if self.runtime_label is not None:
            keys += (self.runtime_label[rows] + 1) * (len(self.session.tracks) * len(self.session.labels))
        return keys

    def _fields(self, first: int, last: int) -> list[Field]:
        """The numbers of each row, with the names of the arguments that they are."""
        session, rows = self.session, slice(first, last)
        start, end = self.times.start[rows], self.times.end[rows]
        kind = self.kinds[session.label[rows]]
        is_op, is_function = kind == OP, kind == PYTHON_FUNCTION
        on_device = (kind == RUNTIME) | (kind == KERNEL)
        own, joined = self.ids[self.operator[rows]], self.ids[self.caused_by[rows]]
        has_node = session.sequence[rows] >= 0
        fields = [
            Field("", start, thousandths=True),
            Field(',"dur":', end - start, thousandths=True),
            *self._stack_fields(rows),
            Field(',"args":{"Ev Idx":', np.arange(first, last) + self.before.row),
            Field(',"External id":', own, (is_op | (kind == SCOPE) | on_device) & session.info.external_ids),
            Field(',"correlation_id":', joined, is_op),
            Field(',"correlation":', joined, on_device),
            Field(',"step":', session.step[rows]),
            Field(',"Sequence number":', session.sequence[rows], has_node),
            Field(',"Fwd thread id":', self.forward_track[rows], has_node),
        ]
        if session.function_id is not None:
            fields.append(Field(',"Record function id":', session.function_id[rows], is_op | (kind == SCOPE)))
        if session.info.with_flops:
            fields.append(Field(',"flops":', self.flops[rows], is_op & (self.flops[rows] > 0)))
        if self.memory is not None:
            before, after = (column[rows] for column in self.memory)
            fields += [
                Field(',"cpu_memory_allocated_before":', before, is_op),
                Field(',"cpu_memory_allocated_after":', after, is_op),
                Field(',"cpu_memory_allocated_delta":', after - before, is_op),
            ]
        if self.python_ids is not None and self.python_parents is not None:
            parent, others = self.python_parents[rows], self.before.function
            fields += [
                Field(',"Python id":', self.python_ids[rows] + others, is_function),
                Field(',"Python parent id":', parent + others, is_function & (parent > 0)),
                Field(',"Python parent id":null', None, is_function & (parent == 0)),
            ]
        return fields

    def _stack_fields(self, rows: slice) -> list[Field]:
        if self.session.stack is None or not self.stacks.frames:
            return []
        innermost = self.stacks.innermost[self.session.stack[rows]]
        return [Field(',"sf":', innermost, innermost > 0)]


OP, SCOPE, PYTHON_FUNCTION, MEMORY, RUNTIME, KERNEL = map(
    KINDS.index, ("op", "scope", "python_function", "memory", "runtime", "kernel")
)


class _Frames(dict[int, tuple[str, str]]):
    """Return the text before and behind the numbers of a row, by its label, its track and the call that launched it."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def __missing__(self, key: int) -> tuple[str, str]:
        session = self.session
        runtime, rest = divmod(key, len(session.tracks) * len(session.labels))
        label, number = divmod(rest, len(session.tracks))
        runtime_name = session.labels[runtime - 1].name if runtime else "dispatch_kernel"
        self[key] = frame = (
            _head(session, session.labels[label], session.tracks[number]),
            _tail(session, session.labels[label], session.tracks[number], number, runtime_name),
        )
        return frame


def _head(session: Session, label: Label, track: Track) -> str:
    name = json_text(f"{label.name}.{label.overload}" if label.overload and session.info.overload_names else label.name)
    return f'{{"ph":"X","cat":{json_text(label.category or CATEGORIES[label.kind])},"name":{name},"pid":{_pid(session, track)},"tid":{track.tid},"ts":'


def _tail(session: Session, label: Label, track: Track, number: int, runtime_name: str) -> str:
    args: dict[str, Any] = {}
    # torch: a number only while an execution trace is written, too
    unnumbered = {"Record function id": 0} if session.function_id is None else {}
    match label.kind:
        case "op":
            args = unnumbered | {"runtime_name": runtime_name, "runtime_tid": track.thread_id}
        case "scope":
            args = unnumbered
        case "compile":
            args = {"Operator": label.operator}
        case "kernel":
            args = {"device": track.device_index, "stream": track.thread_id}
        case "python_function":
            module = links.module_id(label)
            args = {"Python thread": number} | ({"Python module id": module} if module >= 0 else {})
    if label.overload and session.info.overload_names:
        args["overload_name"] = label.overload
    return "".join(f",{json_text(key)}:{json_text(value)}" for key, value in args.items())


def _from_table(texts: Sequence[str], column: Column | None, rows: slice) -> list[str] | None:
    if column is None:
        return None
    texts = [*texts, ""]  # the last is that of -1: none
    return [texts[number] for number in column[rows].tolist()]


def _forward_tracks(session: Session) -> Column:
    """Thread that made the node which a row ran, counted from 1 as torch does; 0 for rows that ran none."""
    forward = links.first_forward(session)
    return np.where(forward >= 0, session.track[forward] + 1, 0) if len(session) else forward


def _inputs_text(values: tuple[Any, ...]) -> str:
    return "".join(f',"{key}":{json_text(facts, compact=True)}' for key, facts in input_text.in_trace(values).items())


def _modules(session: Session) -> tuple[list[str], Column | None]:
    """Texts about modules, and which of them each row has; -1 for rows of functions, save modules, and for what belongs to none."""
    if not session.info.with_modules:
        return [], None
    module, phase, known = modules.attribute(session)
    shown = np.array([e.kind in ("op", "scope") or e.module != () for e in session.labels], bool)[session.label]
    texts = [
        f',"Module Hierarchy":{json_text(modules.hierarchy(parts))},"module":{json_text(modules.path(parts))},"phase":"{name}"'
        for parts in known
        for name in modules.PHASES
    ]
    return texts, np.where(shown & (module >= 0), module * len(modules.PHASES) + phase, -1)


# Flows -------------------------------------------------------------------------------------------------------------------------


class _FlowLines:
    """The two ends of every arrow, each written right behind its slice and at its start."""

    def __init__(self, session: Session, times: SliceTimes, before: Before) -> None:
        self.session = session
        self.times = times
        self.places = [f'"pid":{_pid(session, track)},"tid":{track.tid}' for track in session.tracks]
        self.shapes: list[str] = []
        row, number, shape = [], [], []
        arrows = ("fwdbwd", before.forward, links.flows(session)), ("ac2g", before.launch, links.launches(session))
        for name, others, (sources, targets) in arrows:
            ids = np.arange(1, len(sources) + 1) + others
            for rows, kind in ((sources, '"ph":"s"'), (targets, '"ph":"f","bp":"e"')):
                row.append(rows)
                number.append(ids)
                shape.append(np.full(len(rows), len(self.shapes)))
                self.shapes.append(f'{kind},"cat":"{name}","name":"{name}"')
        order = np.argsort(np.concatenate(row), kind="stable")
        self.row, self.id, self.shape = (np.concatenate(parts)[order] for parts in (row, number, shape))

    def ends(self, first: int, last: int) -> list[str]:
        """Return the text that closes each row, with the flows at it."""
        session = self.session
        here = slice(*np.searchsorted(self.row, [first, last]).tolist())
        rows = self.row[here]
        numbers = number_text.lines(
            [Field("", self.id[here]), Field(',"ts":', self.times.start[rows], thousandths=True)], len(rows)
        )
        ends = ["}},\n"] * (last - first)
        for row, shape, track, number in zip(rows.tolist(), self.shape[here].tolist(), session.track[rows].tolist(), numbers):
            ends[row - first] += f'{{{self.shapes[shape]},{self.places[track]},"id":{number}}},\n'
        return ends


# Memory ------------------------------------------------------------------------------------------------------------------------


def _memory_rows(session: Session, base_ns: int, before: Before) -> Iterator[str]:
    log = session.memory
    if log is None:
        return
    heads, tails = zip(*(_memory_frame(session, track) for track in session.tracks)) if session.tracks else ((), ())
    operators = [f',"Operator":{json_text(label.name)}}}}},\n' for label in session.labels] + ["}},\n"]
    operator = np.append(session.label, len(session.labels))[live_memory.active_operators(session)]  # -1, for none, is the last
    for first in range(0, len(log.time_ns), CHUNK_ROWS):
        rows = slice(first, first + CHUNK_ROWS)
        count = len(log.time_ns[rows])
        fields = [
            Field("", log.time_ns[rows] - base_ns, thousandths=True),
            Field(',"args":{"Ev Idx":', np.arange(count) + before.row + len(session) + first),
            Field(',"Total Allocated":', log.total_bytes[rows]),
            Field(',"Bytes":', log.size_bytes[rows]),
            Field(',"Addr":', log.address[rows]),
        ]
        lines = zip(number_text.lines(fields, count), log.track[rows].tolist(), operator[rows].tolist(), strict=True)
        yield "".join([f"{heads[track]}{text}{tails[track]}{operators[number]}" for text, track, number in lines])


def _memory_frame(session: Session, track: Track) -> tuple[str, str]:
    device_type, device = (0, -1) if track.device_type == "CPU" else (PRIVATE_USE_1, track.device_index)
    return (
        f'{{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":{session.info.pid},"tid":{track.tid},"ts":',
        f',"Total Reserved":0,"Device Id":{device},"Device Type":{device_type}',
    )
