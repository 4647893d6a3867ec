"""A session as a trace file: Kineto's JSON, which Perfetto, TensorBoard and HolisticTraceAnalysis read.

Rows are written in chunks. Of each row only the numbers are formatted; all around them is a template that the rows of one
label on one track share.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from . import arguments, flows, tree
from .arguments import json_text
from .atomic_file import replacing
from .session import KINDS, Column, Label, Session, Track

__all__ = ["base_time_ns", "render", "write"]

# Kineto's: the Unix clock counted from a recent multiple of a quarter of a year fits a double to the nanosecond
BASE_PERIOD_NS = 7_889_238 * 10**9

CHUNK_ROWS = 16_384

GZIP_LEVEL = 4

CATEGORIES = {
    "op": "cpu_op",
    "scope": "user_annotation",
    "python_function": "python_function",
    "gc": "python_function",  # torch: "Python GC" is a row among the functions
    "memory": "cpu_instant_event",
    "runtime": "privateuse1_runtime",
    "kernel": "kernel",
}

# Processes of the trace that are none of the system, whose numbers end at 4,194,304. Kineto sorts by the same numbers.
DEVICE_PID = 5_000_000
SPANS_PID = 536_870_912
MARKS_PID = 536_870_913

PRIVATE_USE_1 = 20  # torch: the number of the device type

Progress = Callable[[int, int], None]


def write(session: Session, path: str | os.PathLike[str], *, progress: Progress | None = None) -> None:
    """Write the trace to `path`, compressed when it ends in `.gz`. `progress(rows written, rows in all)` is called now and then."""
    name = os.fspath(path)
    with replacing(name, gzip_level=GZIP_LEVEL if name.endswith(".gz") else None) as file:
        for rows, text in render(session, name):
            file.write(text.encode())
            if progress is not None:
                progress(rows, len(session))
            time.sleep(0)  # other threads get their turn


def render(session: Session, trace_name: str = "") -> Iterator[tuple[int, str]]:
    """The text of the trace in parts, each with the number of rows up to its end."""
    base_ns = base_time_ns(session)
    yield 0, _header(session, base_ns)
    yield 0, "".join(_metadata_rows(session, base_ns))
    rows = _Rows(session, base_ns)
    for first in range(0, len(session), CHUNK_ROWS):
        last = min(first + CHUNK_ROWS, len(session))
        yield last, rows.render(first, last)
    yield from ((len(session), part) for part in _memory_rows(session, base_ns))
    yield len(session), "".join(_marks(session, base_ns))
    yield len(session), f'],\n"traceName": {json_text(trace_name)}\n}}\n'


def base_time_ns(session: Session) -> int:
    """The moment that times in the trace count from."""
    earliest = session.info.started_ns
    if len(session):
        earliest = min(earliest, int(session.start_ns[0]))
    if session.memory is not None and len(session.memory.time_ns):
        earliest = min(earliest, int(session.memory.time_ns[0]))
    return earliest // BASE_PERIOD_NS * BASE_PERIOD_NS


# Before and after the rows -----------------------------------------------------------------------------------------------------


def _header(session: Session, base_ns: int) -> str:
    info = session.info
    options = ("with_stack", "profile_memory", "record_shapes", "with_modules", "with_flops")
    metadata: dict[str, Any] = {"trace_id": info.trace_id} if info.trace_id else {}
    metadata |= {option: 1 for option in options if getattr(info, option)}
    header: dict[str, Any] = {"schemaVersion": 1, "deviceProperties": list(info.device_properties)}
    footer: dict[str, Any] = {"displayTimeUnit": "ms", "baseTimeNanoseconds": base_ns}
    if info.distributed is not None:
        footer = {"distributedInfo": dict(info.distributed), **footer}
    own = {*header, *footer, "traceEvents", "traceName"}
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
    yield from _name_process(at, SPANS_PID, "Spans", "", SPANS_PID)
    yield _metadata_row(at, "thread_name", SPANS_PID, 0, name="PyTorch Profiler")
    yield from _name_process(at, MARKS_PID, "Traces", "", MARKS_PID)


def _name_process(at: str, pid: int, name: str, labels: str, sort_index: int) -> Iterator[str]:
    yield _metadata_row(at, "process_name", pid, 0, name=name)
    if labels:
        yield _metadata_row(at, "process_labels", pid, 0, labels=labels)
    yield _metadata_row(at, "process_sort_index", pid, 0, sort_index=sort_index)


def _metadata_row(at: str, what: str, pid: int, tid: int, **args: Any) -> str:
    return f'{{"ph":"M","name":"{what}","ts":{at},"pid":{pid},"tid":{tid},"args":{json_text(args, compact=True)}}},\n'


def _marks(session: Session, base_ns: int) -> Iterator[str]:
    """The span of the recording, its start and its end. The last rows of the trace."""
    info = session.info
    start, stop = _microseconds(info.started_ns - base_ns), _microseconds(max(info.stopped_ns, info.started_ns) - base_ns)
    length = _microseconds(max(info.stopped_ns - info.started_ns, 0))
    yield (
        f'{{"ph":"X","cat":"Trace","name":"PyTorch Profiler (0)","pid":{SPANS_PID},"tid":0,"ts":{start},"dur":{length},'
        f'"args":{{"Op count":{len(session)}}}}},\n'
    )
    yield f'{{"ph":"i","s":"g","name":"Iteration Start: PyTorch Profiler","pid":{MARKS_PID},"tid":0,"ts":{start}}},\n'
    yield f'{{"ph":"i","s":"g","name":"Record Window End","pid":{MARKS_PID},"tid":0,"ts":{stop}}}\n'


def _microseconds(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def _pid(session: Session, track: Track) -> int:
    return session.info.pid if track.device_type == "CPU" else DEVICE_PID + track.device_index


# Events ------------------------------------------------------------------------------------------------------------------------

# Of the times below a microsecond there are only these: a look-up and no formatting (half the time of a row).
_AFTER_START = [f'.{ns:03d},"dur":' for ns in range(1000)]
_AFTER_DURATION = [f'.{ns:03d},"args":{{' for ns in range(1000)]


class _Rows:
    """Events as lines of JSON, with the flows that start and end at them."""

    def __init__(self, session: Session, base_ns: int) -> None:
        self.session = session
        self.base_ns = base_ns
        self.templates = _Templates(session)
        self.runtime_label = _runtime_labels(session)
        self.device_ids = None if session.launch is None else flows.device_ids(session)
        self.forward_track = flows.forward_tracks(session)
        self.flow_lines = _FlowLines(session, base_ns)
        self.inputs = [_inputs_text(inputs) for inputs in session.input_table]
        self.stacks = _stack_texts(session)
        self.python_ids, self.python_parents = _python_ids(session)

    def render(self, first: int, last: int) -> str:
        session, rows = self.session, slice(first, last)
        start_us, start_ns = np.divmod(session.start_ns[rows] - self.base_ns, 1000)
        us, ns = np.divmod(session.end_ns[rows] - session.start_ns[rows], 1000)
        templates, after_start, after_duration = self.templates, _AFTER_START, _AFTER_DURATION
        own, correlation = self._ids(first, last)
        lines = [
            templates[key] % (a, after_start[b], c, after_duration[d], external, row, joined, step, more)
            for key, a, b, c, d, external, row, joined, step, more in zip(
                self._template_keys(rows).tolist(),
                start_us.tolist(),
                start_ns.tolist(),
                us.tolist(),
                ns.tolist(),
                own,
                range(first, last),
                correlation,
                session.step[rows].tolist(),
                self._more(rows),
            )
        ]
        self.flow_lines.add(lines, first, last)
        return "".join(lines)

    def _template_keys(self, rows: slice) -> Column:
        keys = self.session.label[rows].astype(np.int64) * len(self.session.tracks) + self.session.track[rows]
        if self.runtime_label is not None:
            keys += (self.runtime_label[rows] + 1) * (len(self.session.tracks) * len(self.session.labels))
        return keys

    def _ids(self, first: int, last: int) -> tuple[Iterable[int], Iterable[int]]:
        """Number of the operator that a row belongs to, and the number that joins launches and kernels."""
        if self.device_ids is None:
            return range(first + 1, last + 1), range(first + 1, last + 1)
        operator, joined = self.device_ids
        return operator[first:last].tolist(), joined[first:last].tolist()

    def _more(self, rows: slice) -> Iterable[str]:
        """What only some rows have, one text each."""
        columns = [
            self._sequences(rows),
            self._from_table(self.inputs, self.session.inputs, rows),
            self._from_table(self.stacks, self.session.stack, rows),
            self._python_functions(rows),
        ]
        given = [column for column in columns if column is not None]
        if not given:
            return itertools.repeat("")
        return given[0] if len(given) == 1 else map("".join, zip(*given))

    def _sequences(self, rows: slice) -> list[str] | None:
        numbers = self.session.sequence[rows]
        if not np.any(numbers >= 0):
            return None
        threads = self.forward_track[rows].tolist()
        return [
            "" if number < 0 else f',"Sequence number":{number},"Fwd thread id":{thread}'
            for number, thread in zip(numbers.tolist(), threads)
        ]

    def _from_table(self, texts: Sequence[str], column: Column | None, rows: slice) -> list[str] | None:
        if column is None:
            return None
        return [texts[number] if number >= 0 else "" for number in column[rows].tolist()]

    def _python_functions(self, rows: slice) -> list[str] | None:
        if self.python_ids is None or self.python_parents is None:
            return None
        return [
            "" if not number else f',"Python id":{number},"Python parent id":{parent or "null"}'
            for number, parent in zip(self.python_ids[rows].tolist(), self.python_parents[rows].tolist())
        ]


class _Templates(dict[int, str]):
    """Rows without their numbers, by label, track and the call that launched them.

    Every template takes the same nine values; `%.0s` takes one and shows nothing.
    """

    def __init__(self, session: Session) -> None:
        self.session = session

    def __missing__(self, key: int) -> str:
        session = self.session
        runtime, rest = divmod(key, len(session.tracks) * len(session.labels))
        label, track = divmod(rest, len(session.tracks))
        runtime_name = session.labels[runtime - 1].name if runtime else "dispatch_kernel"
        self[key] = template = _template(session, session.labels[label], session.tracks[track], track, runtime_name)
        return template


def _template(session: Session, label: Label, track: Track, number: int, runtime_name: str) -> str:
    cat, name = CATEGORIES[label.kind], json_text(label.name).replace("%", "%%")
    head = f'{{"ph":"X","cat":"{cat}","name":{name},"pid":{_pid(session, track)},"tid":{track.tid},"ts":'
    own, index, joined, step = '"External id":%d,', '"Ev Idx":%d,', '"correlation_id":%d,', '"step":%d'
    function = '"Record function id":0,'
    match label.kind:
        case "op":
            runtime = f'"runtime_name":{json_text(runtime_name).replace("%", "%%")},"runtime_tid":{track.thread_id},'
            args = own + function + index + joined + runtime + step
        case "scope":
            args = own + function + index + "%.0s" + step
        case "runtime":
            args = own + index + '"correlation":%d,' + step
        case "kernel":
            args = own + f'"device":{track.device_index},"stream":{track.tid},' + index + '"correlation":%d,' + step
        case "python_function":
            args = f'%.0s"Python thread":{number},' + _module_id(label) + index + "%.0s" + step
        case _:
            args = "%.0s" + index + "%.0s" + step
    if label.overload and session.info.overload_names:
        args += f',"overload_name":{json_text(label.overload).replace("%", "%%")}'
    return head + "%d%s%d%s" + args + "%s}},\n"


def _module_id(label: Label) -> str:
    """torch: the row of a module's call, `nn.Module: Linear_0`, says which instance of its class it is."""
    name, _, number = label.name.rpartition("_")
    return f'"Python module id":{int(number)},' if name.startswith("nn.Module: ") and number.isdecimal() else ""


def _inputs_text(inputs: tuple[Any, ...]) -> str:
    facts = {
        "Concrete Inputs": arguments.concrete_inputs(inputs),
        "Input type": arguments.input_types(inputs),
        "Input Strides": arguments.input_strides(inputs),
        "Input Dims": arguments.input_dims(inputs),
        "input_shapes": arguments.input_shapes(inputs),
    }
    return "".join(f',"{key}":{json_text(values, compact=True)}' for key, values in facts.items())


def _stack_texts(session: Session) -> list[str]:
    frames = [json_text(f"{frame.file}:{frame.line}:{frame.function}") for frame in session.frames]
    return [f',"stack":[{",".join(frames[number] for number in stack)}]' for stack in session.stack_table]


def _python_ids(session: Session) -> tuple[Column | None, Column | None]:
    """Numbers of the Python functions, from 1, and of the function around each; 0 where there is none."""
    is_function = np.array([label.kind == "python_function" for label in session.labels], bool)
    if not is_function.any():
        return None, None
    ids = np.cumsum(is_function[session.label], dtype=np.int32) * is_function[session.label]
    parent = tree.parents(session, skip=tuple(kind for kind in KINDS if kind != "python_function"))
    return ids, np.where(parent >= 0, ids[parent], 0)


def _runtime_labels(session: Session) -> Column | None:
    """For each operator that called the device's runtime, the label of the first such call; -1 for the others."""
    is_runtime = np.array([label.kind == "runtime" for label in session.labels], bool)
    if not is_runtime.any():
        return None
    calls = np.flatnonzero(is_runtime[session.label])[::-1]
    operators = tree.parents(session, skip=tuple(kind for kind in KINDS if kind != "op"))[calls]
    labels = np.full(len(session), -1, np.int64)
    inside = operators >= 0
    labels[operators[inside]] = session.label[calls[inside]]
    return labels


# Flows -------------------------------------------------------------------------------------------------------------------------


class _FlowLines:
    """The two ends of every arrow, each written right behind its slice and at its start."""

    def __init__(self, session: Session, base_ns: int) -> None:
        self.session = session
        self.base_ns = base_ns
        arrows = [("fwdbwd", *flows.forward_backward(session)), ("ac2g", *flows.launches(session))]
        self.cat = np.repeat(np.arange(len(arrows)), [2 * len(sources) for _, sources, _ in arrows])
        self.names = [name for name, _, _ in arrows]
        counts = np.cumsum([0] + [len(sources) for _, sources, _ in arrows])
        ids = [np.arange(first + 1, last + 1) for first, last in itertools.pairwise(counts.tolist())]
        rows = np.concatenate([np.concatenate([sources, targets]) for _, sources, targets in arrows])
        ends = np.concatenate([np.repeat([False, True], len(sources)) for _, sources, _ in arrows])
        order = np.argsort(rows, kind="stable")
        self.id = np.concatenate([np.concatenate([i, i]) for i in ids])[order]
        self.cat, self.row, self.is_end = self.cat[order], rows[order], ends[order]

    def add(self, lines: list[str], first: int, last: int) -> None:
        session = self.session
        here = slice(*np.searchsorted(self.row, [first, last]).tolist())
        places = [f'"pid":{_pid(session, track)},"tid":{track.tid}' for track in session.tracks]
        rows = self.row[here]
        start_us, start_ns = np.divmod(session.start_ns[rows] - self.base_ns, 1000)
        for row, number, cat, is_end, track, us, ns in zip(
            rows.tolist(),
            self.id[here].tolist(),
            self.cat[here].tolist(),
            self.is_end[here].tolist(),
            session.track[rows].tolist(),
            start_us.tolist(),
            start_ns.tolist(),
        ):
            kind, name = ('"ph":"f","bp":"e"' if is_end else '"ph":"s"'), self.names[cat]
            lines[row - first] += f'{{{kind},"id":{number},{places[track]},"ts":{us}.{ns:03d},"cat":"{name}","name":"{name}"}},\n'


# Memory ------------------------------------------------------------------------------------------------------------------------


def _memory_rows(session: Session, base_ns: int) -> Iterator[str]:
    log = session.memory
    if log is None:
        return
    heads = [_memory_template(session, track) for track in session.tracks]
    for first in range(0, len(log.time_ns), CHUNK_ROWS):
        rows = slice(first, first + CHUNK_ROWS)
        us, ns = np.divmod(log.time_ns[rows] - base_ns, 1000)
        columns = (us, ns, log.total_bytes[rows], log.size_bytes[rows], log.address[rows])
        yield "".join(
            heads[track] % (*numbers, row)
            for row, track, *numbers in zip(
                itertools.count(len(session) + first), log.track[rows].tolist(), *(column.tolist() for column in columns)
            )
        )


def _memory_template(session: Session, track: Track) -> str:
    device_type, device = (0, -1) if track.device_type == "CPU" else (PRIVATE_USE_1, track.device_index)
    return (
        f'{{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":{session.info.pid},"tid":{track.tid},"ts":%d.%03d,'
        f'"args":{{"Total Reserved":0,"Total Allocated":%d,"Bytes":%d,"Device Id":{device},"Device Type":{device_type},'
        '"Addr":%d,"Ev Idx":%d}},\n'
    )
