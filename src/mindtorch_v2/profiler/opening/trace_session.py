"""The columns of a trace file as sessions, one for each process: order, nesting, launches, steps, stacks and what the header says."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ..model import links, live_memory, tree
from ..model.session import (
    BACKWARD_FUNCTION,
    COMPILE,
    USER_SCOPE,
    Column,
    Copies,
    Info,
    Label,
    MemoryLog,
    Session,
    Track,
    empty_session,
)
from ..output.chrome_trace import CATEGORIES
from ..output.stack_text import whole_stack
from . import ascend, derived, trace_values
from .trace_columns import RawLabel, RawTrack, TraceColumns
from .trace_kinds import DEVICES, KIND_OF, ON_DEVICE, USE_DEVICE

__all__ = ["sessions"]

WEIGHTS = {"python_function": 0, "scope": 1}  # which of two events that straddle is cut: the times of operators are left alone
MOST_US = 1 << 52  # of all durations; in nanoseconds sums of them fit 64 bits
LATEST_US = 1 << 51  # of the Unix clock, the year 73,000; in nanoseconds it fits 64 bits
OPTIONS = ("with_stack", "profile_memory", "record_shapes", "with_modules", "with_flops")
GARBAGE_COLLECTION = "Python GC"
DEEPEST = 5_000  # slices of a thread around or across each other; what is computed of them takes time by rows and depth
MOST_LINES = 1_000  # slices of a stream that overlap
NOT_METADATA = {"schemaVersion", "deviceProperties", "distributedInfo", "displayTimeUnit", "baseTimeNanoseconds", "traceEvents"} | {
    *OPTIONS, "traceName", "trace_id", "stackFrames"
}  # fmt: skip


def sessions(columns: TraceColumns, header: Mapping[str, Any]) -> list[Session]:
    """The sessions of a trace: one for each process with operators, scopes or functions, in order of appearance."""
    return _Trace(columns, header).sessions()


class _Trace:
    def __init__(self, columns: TraceColumns, header: Mapping[str, Any]) -> None:
        self.columns = columns
        self.header = header
        self.changed: Counter[str] = Counter({f"{what} left out": count for what, count in columns.left_out.items()})
        self.slices = columns.columns("slices")
        self.changes, self.arrows, self.copies = map(columns.columns, ("changes", "arrows", "copies"))
        self.ascend_host = ascend.host_of(columns.names)  # of torch_npu's traces
        if self.ascend_host is not None:
            into = ascend.joined(columns.tracks, columns.names)
            for rows in (self.slices, self.arrows):
                rows["track"] = into[rows["track"]]
        self.kinds = [self._kind(label) for label in columns.labels]
        base = header.get("baseTimeNanoseconds", 0)
        self.base_ns = (base if type(base) is int and 0 <= base < 1 << 61 else 0) + columns.origin_us * 1000
        self._times()
        told = np.abs(self.changes["ts"]) < LATEST_US
        self.changed["times that no clock tells"] += int((~told).sum())
        self.changes = {name: column[told] for name, column in self.changes.items()}
        on_device = np.array([self._is_on_device(label, kind) for label, kind in zip(columns.labels, self.kinds)], bool)
        rows_on_device = np.bincount(self.slices["track"], on_device[self.slices["label"]], minlength=len(columns.tracks))
        self.is_device = rows_on_device > 0  # by track

    def _kind(self, label: RawLabel) -> str | None:
        """None for what is not an event."""
        if label.category is None:
            return ascend.kind(self.process_name(label.pid), label.name)
        if label.category == "overhead" and label.name == COMPILE:
            return "compile"
        if label.category == "python_function" and label.name == GARBAGE_COLLECTION:
            return "gc"
        return KIND_OF.get(label.category.lower(), "scope")

    def process_name(self, pid: Hashable) -> str:
        return str(self.columns.names.get(("process_name", pid)))

    def category(self, label: RawLabel, kind: str) -> str:
        """What the kind of a label does not say."""
        if label.category is None:
            return ascend.category(self.process_name(label.pid))
        return "" if label.category == CATEGORIES[kind] else label.category

    def _is_on_device(self, label: RawLabel, kind: str | None) -> bool:
        return kind in ("kernel", "sync") or label.category in ON_DEVICE

    def _times(self) -> None:
        """Turn times into nanoseconds, and leave out rows that are no events or have no time that a clock tells."""
        ts, dur = self.slices.pop("ts"), self.slices.pop("dur")
        short = dur < 0
        self.changed["negative durations"] = int(short.sum())
        dur = np.maximum(dur, 0)
        is_event = np.array([kind is not None for kind in self.kinds], bool)[self.slices["label"]]
        told = (np.abs(ts) < LATEST_US) & (dur < LATEST_US)
        self.changed["rows of summaries left out"] = int((~is_event).sum())
        self.changed["times that no clock tells"] = int((is_event & ~told).sum())
        kept = is_event & told
        self.slice_number = np.flatnonzero(kept)  # by row: its place among the slices of the file
        if not kept.all():
            self.slices = {name: column[kept] for name, column in self.slices.items()}
            ts, dur = ts[kept], dur[kept]
        if dur.sum() >= MOST_US:
            raise ValueError("its durations add up to more than a clock tells")
        # of two doubles this far from zero, the next is this far away
        self.resolution_ns = int(np.spacing(np.abs(ts).max(initial=0)) * 1000)
        self.start = _nanoseconds(ts) + self.base_ns
        self.end = self.start + _nanoseconds(dur)

    def sessions(self) -> list[Session]:
        process = self._processes()
        found = []
        for pid, rows in process:
            found.append(_Process(self, pid, rows).session())
        return found

    def _processes(self) -> list[tuple[Any, Column | slice]]:
        """The processes that have a session, and the rows of each."""
        tracks = self.columns.tracks
        told = np.array([kind in ("op", "scope", "python_function") for kind in self.kinds], bool)[self.slices["label"]]
        seen = np.unique(self.slices["track"][told & ~self.is_device[self.slices["track"]]]).tolist()
        pids = list(dict.fromkeys(tracks[i].pid for i in seen))
        if len(pids) < 2:
            others = [t.pid for t, is_device in zip(tracks, self.is_device.tolist()) if not is_device]
            return [((pids or others or [0])[0], slice(None))]
        # what belongs to no process that has a session belongs to the one that it was launched by, or else to the first
        number = {pid: i for i, pid in enumerate(pids)}
        of_track = np.array([number.get(t.pid, -1) for t in tracks], np.int64)
        of_row = of_track[self.slices["track"]]
        correlation = self.slices["correlation"]
        launched = np.flatnonzero((of_row < 0) & (correlation >= 0))
        callers = np.flatnonzero((of_row >= 0) & (correlation >= 0))
        at = _find(correlation[callers], correlation[launched])
        of_row[launched[at >= 0]] = of_row[callers[at[at >= 0]]]
        return [(pid, np.flatnonzero(np.maximum(of_row, 0) == i)) for i, pid in enumerate(pids)]

    @functools.cached_property
    def device_type(self) -> str:
        seen = {label.category for label in self.columns.labels}
        if self.ascend_host is not None:
            return "NPU"
        return next((device for category, device in DEVICES.items() if category in seen), "CUDA")


class _Process:
    """The rows of one process, on the way to a session."""

    def __init__(self, trace: _Trace, pid: Hashable, rows: Column | slice) -> None:
        self.trace = trace
        self.pid = pid
        self.changed = Counter(trace.changed)
        self.columns = {name: column[rows] for name, column in trace.slices.items()}
        self.start, self.end = trace.start[rows], trace.end[rows]
        self.slice_number = trace.slice_number[rows]
        self.tracks: list[Track] = []

    def session(self) -> Session:
        label, labels = self._labels()
        weight = np.array([WEIGHTS.get(known.kind, 2) for known in labels], np.int8)[label]
        order, track, end, depth = self._arranged(weight)
        columns = {name: column[order] for name, column in self.columns.items()}
        start = self.start[order]
        place = np.empty(len(order), np.int64)  # of each slice among the rows
        place[order] = np.arange(len(order))
        if not len(order):
            session = self._with_memory(empty_session())
            return session.replace(info=self._info(start, end, labels, session))
        session = Session(
            label=label[order],
            track=track,
            start_ns=start,
            end_ns=end,
            depth=depth,
            step=np.zeros(len(order), np.int32),
            sequence=columns["sequence"],
            function_id=columns["function_id"] if columns["function_id"].any() else None,
            launch=self._launches(columns, labels, label[order], track, start),
            copies=self._copies(order),
            labels=tuple(labels),
            tracks=tuple(self.tracks),
        )
        session = self._with_inputs(session, columns["inputs"])
        session = self._with_stacks(session, columns["stack"])
        session = derived.with_modules(session)
        session = session.replace(step=derived.steps(session, columns["step"]))
        session = self._with_memory(session)
        return session.replace(info=self._info(start, end, labels, session))

    # Labels --------------------------------------------------------------------------------------------------------------------

    def _labels(self) -> tuple[Column, list[Label]]:
        """The labels of the rows, and those in use."""
        raw, kinds = self.trace.columns.labels, self.trace.kinds
        used, label = np.unique(self.columns["label"], return_inverse=True)
        names = {raw[i].name for i in used.tolist()}
        return label.astype(np.int32), [
            _label(raw[i], kind := kinds[i] or "scope", names, self.trace.category(raw[i], kind)) for i in used.tolist()
        ]

    # Order ---------------------------------------------------------------------------------------------------------------------

    def _arranged(self, weight: Column) -> tuple[Column, Column, Column, Column]:
        """Rows in order of start, and of each its track, its end and its depth, such that the events of a track nest."""
        orders, tracks, ends, depths = [], [], [], []
        for rows in tree.groups(self.columns["track"]):
            number = int(self.columns["track"][rows[0]])
            raw = self.trace.columns.tracks[number]
            rows = self._outer_first(rows)
            _check_depth(self.start[rows], self.end[rows], MOST_LINES if self.trace.is_device[number] else DEEPEST)
            lines = self._lines(rows) if self.trace.is_device[number] else [rows]
            for at, line in enumerate(lines):
                _, end, depth = tree.nested(self.start[line], self.end[line], weight[line])
                self.changed["slices cut, so that they nest"] += int((end != self.end[line]).sum())
                orders.append(line)
                tracks.append(np.full(len(line), len(self.tracks), np.int32))
                ends.append(end)
                depths.append(depth)
                self.tracks.append(self._track(raw, self.trace.is_device[number].item(), at))
        if not orders:
            return (np.empty(0, np.int64),) * 4
        order = np.concatenate(orders)
        by_start = np.argsort(self.start[order], kind="stable")
        return order[by_start], *(np.concatenate(c)[by_start] for c in (tracks, ends, depths))  # type: ignore[return-value]

    def _outer_first(self, rows: Column) -> Column:
        """Rows of a track in order of start. Of those that start together, the order is the file's, unless the longer come later."""
        in_file = rows[np.argsort(self.start[rows], kind="stable")]
        start, end = self.start[in_file], self.end[in_file]
        if np.any((start[1:] == start[:-1]) & (end[1:] > end[:-1]) & (end[:-1] > start[:-1])):
            return rows[np.lexsort((-self.end[rows], self.start[rows]))]
        return in_file

    def _lines(self, rows: Column) -> list[Column]:
        """Work of a stream that overlaps is on lines of its own: cutting it would change how long the device was busy."""
        start, end = self.start[rows], self.end[rows]
        slack = 2 * self.trace.resolution_ns  # by so much times are not known, and neighbours may seem to overlap
        latest = np.maximum.accumulate(end)
        if (end[1:] <= latest[:-1]).all() or (start[1:] + slack >= latest[:-1]).all():
            return [rows]
        lines: list[list[int]] = []
        open_ends: list[list[int]] = []
        for row, began, ended in zip(rows.tolist(), start.tolist(), end.tolist()):
            at = next((i for i, opened in enumerate(open_ends) if _has_room(opened, began + slack, ended)), len(lines))
            if at == len(lines):
                lines.append([])
                open_ends.append([])
            lines[at].append(row)
            open_ends[at].append(ended)
        self.changed["slices of streams that overlap, on lines of their own"] += sum(map(len, lines[1:]))
        return [np.array(line, np.int64) for line in lines]

    def _track(self, raw: RawTrack, is_device: bool, line: int) -> Track:
        tid, names = trace_values.number(raw.tid), self.trace.columns.names
        name = str(names.get(("thread_name", raw.pid, raw.tid)) or "")
        used = {t.tid for t in self.tracks if (t.device_type != "CPU") == is_device}
        if not is_device:
            prefix, _, inner = name.partition(" (")
            name = inner.removesuffix(")") if prefix == f"thread {tid}" and inner else name
            return Track(_free(tid, used), tid, name)
        device = self._device(raw)
        stream = raw.stream if raw.stream is not None else tid
        if self.trace.ascend_host is not None:
            stream = ascend.stream(self.trace.process_name(raw.pid), tid)
        used = {t.tid for t in self.tracks if t.device_type != "CPU" and t.device_index == device}
        name = name.removeprefix(f"stream {tid}").strip()
        if raw.is_sync:
            name = f"{name} (waiting)".strip()
        if line:
            name = f"{name} ({line + 1})".strip()
        return Track(_free(tid, used), stream, name, self.trace.device_type, device)

    def _device(self, raw: RawTrack) -> int:
        """The number of the device that a stream is of."""
        if self.trace.ascend_host is not None:
            return ascend.device_index(raw.pid, self.trace.ascend_host)
        number = trace_values.number(raw.pid)
        return raw.device if raw.device is not None else number if number < 1 << 16 else 0

    # Links ---------------------------------------------------------------------------------------------------------------------

    def _launches(
        self, columns: dict[str, Column], labels: Sequence[Label], label: Column, track: Column, start: Column
    ) -> Column | None:
        is_call = np.array([known.kind in ("runtime", "op") for known in labels], bool)[label]
        on_device = np.array([t.device_type != "CPU" for t in self.tracks], bool)[track]
        is_work = np.array([known.kind in ("kernel", "sync") for known in labels], bool)[label] & on_device
        if not is_work.any():
            return None
        launch = np.full(len(label), -1, np.int32)
        correlation = columns["correlation"]
        callers = np.flatnonzero(is_call & ~on_device & (correlation >= 0))
        started = np.flatnonzero(is_work & (correlation >= 0))
        at = _find(correlation[callers], correlation[started])
        launch[started[at >= 0]] = callers[at[at >= 0]]
        if (launch[is_work] < 0).all():
            self._follow_arrows(launch, is_work, is_call & ~on_device, track, start)
        return launch

    def _follow_arrows(self, launch: Column, is_work: Column, is_call: Column, track: Column, start: Column) -> None:
        """Find launches by the arrows of the file, whose ends are where slices start."""
        arrows = self.trace.arrows
        names = {(t.device_type != "CPU", t.device_index, t.tid): i for i, t in enumerate(self.tracks)}
        of_track = np.array([names.get(self._place_of(raw), -1) for raw in self.trace.columns.tracks] or [-1], np.int64)[
            arrows["track"]
        ]
        time = _nanoseconds(arrows["ts"]) + self.trace.base_ns
        ends: dict[int, tuple[int, int]] = {}
        for number, is_end, on, at in zip(*(c.tolist() for c in (arrows["id"], arrows["is_end"], of_track, time))):
            if is_end:
                ends[number] = on, at
        works = {(int(track[i]), int(start[i])): i for i in np.flatnonzero(is_work).tolist()}
        calls_of: dict[int, Column] = {}
        for number, is_end, on, at in zip(*(c.tolist() for c in (arrows["id"], arrows["is_end"], of_track, time))):
            target = works.get(ends.get(number, (-1, -1))) if not is_end else None
            if target is None:
                continue
            calls = calls_of.setdefault(on, np.flatnonzero(is_call & (track == on)))
            before = int(np.searchsorted(start[calls], at, side="right")) - 1
            if before >= 0:
                launch[target] = calls[before]

    def _place_of(self, raw: RawTrack) -> tuple[bool, int, int]:
        is_device = self.trace.is_device[self.trace.columns.tracks.index(raw)].item()
        return is_device, self._device(raw) if is_device else 0, trace_values.number(raw.tid)

    def _copies(self, order: Column) -> Copies | None:
        copies = self.trace.copies
        number = self.slice_number[order]
        by_number = np.argsort(number)
        at = _find(number[by_number], copies["slice"])
        kept = (at >= 0) & (copies["size"] >= 0)
        if not kept.any():
            return None
        rows = by_number[at[kept]]
        rising = np.argsort(rows)
        return Copies(rows[rising], copies["size"][kept][rising], copies["direction"][kept][rising].astype(np.int8))

    # Arguments and stacks ------------------------------------------------------------------------------------------------------

    def _with_inputs(self, session: Session, inputs: Column) -> Session:
        if not (inputs >= 0).any():
            return session
        used, numbers = np.unique(inputs, return_inverse=True)
        table = [self.trace.columns.input_table[i] for i in used.tolist() if i >= 0]
        return session.replace(inputs=(numbers - (used[0] < 0)).astype(np.int32), input_table=tuple(table))

    def _with_stacks(self, session: Session, stack: Column) -> Session:
        if not (stack >= 0).any():
            return derived.with_stacks_of_functions(session)
        used, numbers = np.unique(stack, return_inverse=True)
        frames = self.trace.header.get("stackFrames", {})
        numbering: dict[str, int] = {}
        table, budget = [], derived.MOST_FRAMES
        for i in used.tolist():
            if i >= 0:
                texts = _frame_texts(self.trace.columns.stacks[i], frames)
                budget = derived.spend(budget, len(texts))
                table.append(tuple(numbering.setdefault(text, len(numbering)) for text in texts))
        return session.replace(
            stack=(numbers - (used[0] < 0)).astype(np.int32),
            stack_table=tuple(table),
            frames=tuple(map(trace_values.frame, numbering)),
        )

    # Memory --------------------------------------------------------------------------------------------------------------------

    def _with_memory(self, session: Session) -> Session:
        changes = self.trace.changes
        if not len(changes["ts"]):
            return session
        track = self._host_tracks(np.unique(changes["track"]))[changes["track"]]
        here = np.flatnonzero(track >= 0)
        if not len(here):
            return session
        here = here[np.argsort(changes["ts"][here], kind="stable")]
        time = _nanoseconds(changes["ts"][here]) + self.trace.base_ns
        event = derived.open_events(session, track[here], time)
        tracks, of_device = list(self.tracks), changes["device_type"][here] != 0
        line = track[here]
        for device in np.unique(changes["device"][here][of_device]).tolist():
            mine = of_device & (changes["device"][here] == device)
            line[mine] = len(tracks)  # the allocations of a device are counted apart from the CPU's
            tracks.append(Track(1 << 20, 1 << 20, "allocations", self.trace.device_type, max(device, 0)))
        log = MemoryLog(time, line.astype(np.int32), changes["address"][here], changes["size"][here], changes["total"][here], event)
        session = session.replace(memory=log, tracks=tuple(tracks))
        step = np.maximum.accumulate(session.step) if len(session) else np.zeros(1, np.int32)
        return live_memory.with_rows_of_changes(session, session.start_ns, step)

    def _host_tracks(self, wanted: Column) -> Column:
        """The track of each thread of the file, -1 for those of others; a thread that only made and freed memory gets one here."""
        raw, places = self.trace.columns.tracks, {t.thread_id: i for i, t in enumerate(self.tracks) if t.device_type == "CPU"}
        found = np.full(len(raw), -1, np.int64)
        for number in wanted.tolist():
            if raw[number].pid != self.pid or self.trace.is_device[number]:
                continue
            tid = trace_values.number(raw[number].tid)
            if tid not in places:
                places[tid] = len(self.tracks)
                self.tracks.append(self._track(raw[number], False, 0))
            found[number] = places[tid]
        return found

    # The whole -----------------------------------------------------------------------------------------------------------------

    def _info(self, start: Column, end: Column, labels: Sequence[Label], session: Any) -> Info:
        header, columns = self.trace.header, self.trace.columns
        began, ended = self._span(start, end)
        options: dict[str, Any] = {option: header.get(option) in (1, True) for option in OPTIONS}
        if isinstance(session, Session):
            options["record_shapes"] |= session.inputs is not None
            options["with_stack"] |= session.stack is not None
            options["with_modules"] |= any(label.module for label in session.labels)
            options["profile_memory"] |= session.memory is not None
        properties = header.get("deviceProperties")
        distributed = header.get("distributedInfo")
        on_device = any(t.device_type != "CPU" for t in self.tracks)
        return Info(
            started_ns=began,
            stopped_ns=ended,
            pid=trace_values.number(self.pid),
            process_name=str(columns.names.get(("process_name", self.pid)) or "python"),
            overload_names=any(label.overload for label in labels),
            use_device=USE_DEVICE.get(self.trace.device_type) if on_device else None,
            trace_id=str(header.get("trace_id", "")),
            metadata={key: value for key, value in header.items() if key not in NOT_METADATA},
            device_properties=tuple(p for p in properties if isinstance(p, dict)) if isinstance(properties, list) else (),
            distributed=distributed if isinstance(distributed, dict) else None,
            adjusted=tuple((what, count) for what, count in self.changed.items() if count),
            **options,
        )

    def _span(self, start: Column, end: Column) -> tuple[int, int]:
        """When the recording began and ended: as the file says, and not later or earlier than what is in it."""
        columns = self.trace.columns
        times = [t for span in columns.span for t in span] + list(columns.marks.values())
        told = (_nanoseconds(np.array([t for t in times if abs(t) < LATEST_US])) + self.trace.base_ns).tolist()
        return min([*start[:1].tolist(), *told], default=0), max([*([end.max().item()] if len(end) else []), *told], default=0)


def _label(raw: RawLabel, kind: str, names: set[str], category: str) -> Label:
    name = raw.name.removesuffix(f".{raw.overload}") if raw.overload else raw.name
    is_node = kind == "op" and f"{links.EVALUATE}{name}" in names
    scope = BACKWARD_FUNCTION if is_node else USER_SCOPE if kind == "scope" else 0
    return Label(name, kind, scope, raw.overload, trace_values.hierarchy(raw.hierarchy), raw.operator, category)


def _nanoseconds(microseconds: Column) -> Column:
    """Whole nanoseconds. The fraction is multiplied alone: the product of the whole would be rounded to the nanosecond beside it."""
    whole = np.floor(microseconds)
    return whole.astype(np.int64) * 1000 + np.rint((microseconds - whole) * 1000).astype(np.int64)


def _find(among: Column, values: Column) -> Column:
    """Where each value first stands in the other column; -1 for none."""
    if not len(among) or not len(values):
        return np.full(len(values), -1, np.int64)
    order = np.argsort(among, kind="stable")
    at = np.minimum(np.searchsorted(among[order], values), len(among) - 1)
    return np.where(among[order][at] == values, order[at], -1)


def _free(tid: int, used: set[int]) -> int:
    """This number, or if it is in use, one that is not."""
    while tid in used:
        tid += 1 << 20
    return tid


def _check_depth(start: Column, end: Column, limit: int) -> None:
    """Raise if more slices than this are open at one time; they are in order of start."""
    deepest = int((np.arange(1, len(start) + 1) - np.searchsorted(np.sort(end), start, side="right")).max(initial=0))
    if deepest > limit:
        raise ValueError(f"{deepest:,} slices of one thread or stream are open at a time, and at most {limit:,} are read")


def _has_room(open_ends: list[int], began: int, ended: int) -> bool:
    """Whether a slice is inside of all that are open on a line when it begins; what has ended by then is taken away."""
    while open_ends and open_ends[-1] <= began:
        open_ends.pop()
    return not open_ends or ended <= open_ends[-1]


def _frame_texts(stack: object, frames: Any) -> list[str]:
    """The places of a stack, innermost first; what the file says of none is empty."""
    if isinstance(stack, str) and ("(" in stack or ";" in stack):
        return trace_values.frames_of_text(stack)
    if isinstance(stack, list):
        return [str(text) for text in stack]
    try:
        return [str(text) for text in whole_stack({"sf": stack}, frames)]
    except (KeyError, TypeError):
        return []
