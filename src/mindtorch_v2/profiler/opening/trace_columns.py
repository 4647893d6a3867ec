"""The rows of a trace as columns, in the order of the file: each block of rows becomes a few arrays, and its objects are freed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..model.session import Column
from . import trace_values

__all__ = ["NO_ROW", "RawLabel", "RawTrack", "TraceColumns"]

UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, OverflowError)  # what a row of another form raises
NO_ARGS: dict[str, Any] = {}
COPIES = ("gpu_memcpy", "gpu_memset", "mtia_ccp_events")
ON_SYNC_TRACKS = "cuda_sync"  # they tell of waiting, and overlap the work of the stream

SLICE = {  # columns of slices: name and type
    "label": "i4", "track": "i4", "ts": "f8", "dur": "f8", "sequence": "i8", "correlation": "i8", "inputs": "i4", "stack": "i4",
    "function_id": "i8", "step": "i8",
}  # fmt: skip
CHANGE = {"ts": "f8", "track": "i4", "address": "i8", "size": "i8", "total": "i8", "device_type": "i8", "device": "i8"}
ARROW = {"id": "i4", "is_end": "i4", "track": "i4", "ts": "f8"}
COPY = {"slice": "i8", "size": "i8", "direction": "i8"}


class RawLabel(NamedTuple):
    """What the file says of slices with one name."""

    name: str
    category: str | None
    pid: Hashable  # of rows without a category, which their process tells
    overload: str
    hierarchy: str
    operator: str


class RawTrack(NamedTuple):
    """A thread or stream of the file."""

    pid: Hashable
    tid: Hashable
    is_sync: bool
    device: int | None  # as its first row has it
    stream: int | None


class TraceColumns:
    """Takes rows of a trace. `names` has what the file says of processes and threads, by pid (and tid) and the kind of name."""

    def __init__(self) -> None:
        import orjson  # costly: for the many programs that read no trace

        self._as_text: Callable[[Any], bytes] = orjson.dumps  # the fastest way to a key of nested lists
        self.labels: list[RawLabel] = []
        self.tracks: list[RawTrack] = []
        self.input_table: list[tuple[Any, ...]] = []
        self.stacks: list[Any] = []  # a text, a list of texts, or the number of a frame of the header
        self.names: dict[Hashable, Any] = {}
        self.span: list[tuple[float, float]] = []  # of the recordings
        self.marks: dict[str, float] = {}
        self.categories: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.origin_us = 0  # times in text are too long for a double; they count from the first
        self._label_numbers: dict[Any, int] = {}
        self._track_numbers: dict[Any, int] = {}
        self._input_numbers: dict[bytes, int] = {}
        self._stack_numbers: dict[Any, int] = {}
        self._arrow_numbers: dict[Any, int] = {}
        self._count = 0
        self._has_correlations = False
        self._pieces: dict[str, list[dict[str, Column]]] = {"slices": [], "changes": [], "arrows": [], "copies": []}
        self._slices: list[tuple[Any, ...]] = []
        self._changes: list[tuple[Any, ...]] = []
        self._arrows: list[tuple[Any, ...]] = []
        self._copies: list[tuple[Any, ...]] = []
        self._others: dict[Any, Callable[[dict[str, Any]], None]] = {
            "M": self._name,
            "i": self._instant,
            "I": self._instant,
            "s": self._arrow,
            "f": self._arrow,
            "t": lambda row: None,  # a station on the way of an arrow
        }

    def add(self, rows: Sequence[Any]) -> None:
        """Take a block of rows."""
        others = self._others
        try:
            self._add_slices([row for row in rows if row["ph"] == "X"])
            rest = [row for row in rows if row["ph"] != "X"]
        except (KeyError, TypeError):  # a row that is no object, or has no phase
            self._add_slices([row for row in rows if type(row) is dict and row.get("ph") == "X"])
            rest = [row for row in rows if type(row) is not dict or row.get("ph") != "X"]
        for row in rest:
            try:
                others[row["ph"]](row)
            except UNREADABLE:
                self.left_out[_why(row)] += 1
        for name, taken, types in (
            ("slices", self._slices, SLICE),
            ("changes", self._changes, CHANGE),
            ("arrows", self._arrows, ARROW),
            ("copies", self._copies, COPY),
        ):
            if taken:
                self._pieces[name].append(_columns(taken, types))
                taken.clear()

    def columns(self, name: str) -> dict[str, Column]:
        """All that was taken of one sort, once."""
        types = {"slices": SLICE, "changes": CHANGE, "arrows": ARROW, "copies": COPY}[name]
        pieces = self._pieces.pop(name)
        joined = {}
        for column, kind in types.items():
            joined[column] = np.concatenate([np.empty(0, kind), *(piece.pop(column) for piece in pieces)])
        return joined

    # Slices --------------------------------------------------------------------------------------------------------------------

    def _add_slices(self, rows: Sequence[dict[str, Any]]) -> None:
        """Take slices. One function with names of its own: each call of another for a row would cost a tenth of reading it."""
        take, label_numbers, track_numbers = self._slices.append, self._label_numbers, self._track_numbers
        for row in rows:
            try:
                args = row.get("args")
                if type(args) is not dict:
                    args = NO_ARGS
                category, name, pid = row.get("cat"), row["name"], row["pid"]
                ts, dur = row["ts"], row.get("dur", 0.0)
                if type(ts) is not float:
                    ts = self._time(ts)
                if type(dur) is not float:
                    dur = float(dur)
                inputs = stack = correlation = -1
                if category == "cpu_op":
                    key: Any = name
                    if "Input Dims" in args:
                        inputs = self._inputs(args)
                elif category == "Trace":
                    self.span.append((ts, ts + dur))
                    continue
                else:
                    key = category, name, pid if category is None else None
                    correlation = args.get("correlation", -1)
                    if category == "kernel" and correlation != -1:
                        self._has_correlations = True
                    if category in COPIES and ("bytes" in args or "size" in args):
                        size = args.get("bytes", args.get("size"))
                        self._copies.append((self._count + len(self._slices), size, trace_values.direction(name, args)))
                    elif correlation == -1 and "connection_id" in args:
                        correlation = args["connection_id"]
                if "Module Hierarchy" in args or "overload_name" in args or "Operator" in args:
                    key = key, args.get("Module Hierarchy"), args.get("overload_name"), args.get("Operator")
                label = label_numbers.get(key)
                if label is None:
                    label = self._new_label(key, name, category, pid, args)
                place = pid, row.get("tid", 0), category == ON_SYNC_TRACKS
                track = track_numbers.get(place)
                if track is None:
                    track = self._new_track(place, args)
                if "stack" in args or "Call stack" in args:
                    stack = self._stack(row, args)
                sequence = args.get("Sequence number", -1)
                take(
                    (
                        label,
                        track,
                        ts,
                        dur,
                        sequence,
                        correlation,
                        inputs,
                        stack,
                        args.get("Record function id", 0),
                        args.get("step", -1),
                    )
                )
            except UNREADABLE:
                self.left_out[_why(row)] += 1
        self._count += len(self._slices)

    def _new_label(self, key: Hashable, name: Any, category: Hashable, pid: Hashable, args: dict[str, Any]) -> int:
        number = self._label_numbers[key] = len(self.labels)
        facts = [_text(args.get(fact)) for fact in ("overload_name", "Module Hierarchy", "Operator")]
        is_told = category is not None
        self.labels.append(RawLabel(_text(name), _text(category) if is_told else None, None if is_told else pid, *facts))
        return number

    def _new_track(self, place: tuple[Any, Any, bool], args: dict[str, Any]) -> int:
        number = self._track_numbers[place] = len(self.tracks)
        device, stream = (
            value if type(value) is int else None for value in (args.get("device"), args.get("stream", args.get("Stream Id")))
        )
        self.tracks.append(RawTrack(*place, device, stream))
        return number

    def _track(self, row: dict[str, Any]) -> int:
        place = row["pid"], row.get("tid", 0), False
        number = self._track_numbers.get(place)
        return self._new_track(place, NO_ARGS) if number is None else number

    def _inputs(self, args: dict[str, Any]) -> int:
        facts = (args["Input Dims"], args.get("Input type"), args.get("Input Strides"), args.get("Concrete Inputs"))
        key = self._as_text(facts)
        number = self._input_numbers.get(key)
        if number is None:
            number = self._input_numbers[key] = len(self.input_table)
            self.input_table.append(trace_values.arguments(*facts))
        return number

    def _stack(self, row: dict[str, Any], args: dict[str, Any]) -> int:
        frames: Any = row.get("sf", args.get("stack", args.get("Call stack")))
        key: Any = tuple(frames) if isinstance(frames, list) else frames
        number = self._stack_numbers.get(key)
        if number is None:
            number = self._stack_numbers[key] = len(self.stacks)
            self.stacks.append(frames)
        return number

    # Other rows ----------------------------------------------------------------------------------------------------------------

    def _name(self, row: dict[str, Any]) -> None:
        what, args = row["name"], row["args"]
        key = (what, row["pid"], row.get("tid", 0)) if what.startswith("thread") else (what, row["pid"])
        self.names[key] = next(iter(args.values()), None)

    def _instant(self, row: dict[str, Any]) -> None:
        name = row["name"]
        if name == "[memory]":
            args, ts = row["args"], row["ts"]
            ts = ts if type(ts) is float else self._time(ts)
            facts = [args[key] for key in ("Addr", "Bytes", "Total Allocated", "Device Type", "Device Id")]
            self._changes.append((ts, self._track(row), *facts))
        elif row.get("s") == "g":  # "Iteration Start: PyTorch Profiler", "Record Window End"
            self.marks[name.partition(":")[0]] = self._time(row["ts"])
        else:
            self.left_out["instants"] += 1

    def _arrow(self, row: dict[str, Any]) -> None:
        category = row.get("cat")
        if category == "fwdbwd" or (category == "ac2g" and self._has_correlations):
            return  # sequence numbers and correlations say the same
        number = self._arrow_numbers.setdefault((category, row["id"]), len(self._arrow_numbers))
        self._arrows.append((number, row["ph"] == "f", self._track(row), self._time(row["ts"])))

    def _time(self, value: Any) -> float:
        """A time in microseconds after the origin."""
        if type(value) is str:
            whole, _, fraction = value.partition(".")
            if not self.origin_us and not self._count:
                self.origin_us = int(whole)
            return int(whole) - self.origin_us + (float(f"0.{fraction}") if fraction else 0.0)
        if type(value) not in (int, float):
            raise TypeError
        return float(value - self.origin_us)


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)[:1000]


def _why(row: object) -> str:
    """The sort of a row that is left out."""
    phase = row.get("ph") if isinstance(row, dict) else None
    return _NOT_READ.get(phase, NO_ROW) if isinstance(phase, str) else NO_ROW


NO_ROW = "unreadable rows"  # the sort of those that are left out and none of the sorts below
_NOT_READ = {"C": "counters", "B": "slices in two rows", "E": "slices in two rows"}


def _columns(taken: list[tuple[Any, ...]], types: dict[str, str]) -> dict[str, Column]:
    found = {}
    for (name, kind), values in zip(types.items(), zip(*taken, strict=True), strict=True):
        try:
            found[name] = np.array(values, kind)
        except (TypeError, ValueError, OverflowError):
            found[name] = np.array([_whole(value) for value in values], kind)
    return found


def _whole(value: object) -> int:
    """A number of a row that fits its column; -1 for what is none."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 18:
        return int(value)
    return value if type(value) is int and -(1 << 63) <= value < 1 << 63 else -1
