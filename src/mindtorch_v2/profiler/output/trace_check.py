"""Whether a trace file keeps what its format promises: `for problem in validate("trace.json"): print(problem)`."""

from __future__ import annotations

import os
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..opening.trace_reader import NotATraceError, Row, TraceReader

__all__ = ["Problem", "validate"]

HEADER = ("schemaVersion", "deviceProperties", "displayTimeUnit", "baseTimeNanoseconds", "traceEvents", "traceName")


@dataclass(frozen=True)
class Problem:
    """A promise that the file breaks, and where."""

    rule: str
    message: str
    count: int = 1  # how many rows break it; the message is about the first

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}" + (f" (and {self.count - 1} more)" if self.count > 1 else "")


class Finding(NamedTuple):
    """A defect of a row. Findings about rows of one sort become one problem."""

    rule: str
    sort: str
    message: str


def validate(path: str | os.PathLike[str]) -> list[Problem]:
    """Return what is wrong with the trace, one problem for each rule and sort of rows; nothing for a good one.

    A file that is no trace, or only a part of one, is one problem; a file that cannot be opened is the system's error.
    """
    trace = TraceReader(path)
    try:
        problems = _summed(_findings(trace))
    except NotATraceError as error:
        return [Problem("readable", str(error))]
    except RecursionError:
        return [Problem("readable", f"{trace.name} is no trace: a row nests too deep. Export it again.")]
    return [*_header_problems(trace.header), *problems]


def _findings(rows: Iterable[Row]) -> Iterator[Finding]:
    memories: list[_Memory] = [_Nesting(), _Flows(), _UniqueIds(), _PythonParents()]
    checks: list[Callable[[Row], Iterator[Finding]]] = [_needed_keys, _numbers, _kernels, *(m.see for m in memories)]
    for row in rows:
        if isinstance(row, dict):
            for check in checks:
                yield from check(row)
        else:
            yield Finding("keys", "rows", f"a row is {row!r:.50}, no object")
    for memory in memories:
        yield from memory.judge()


def _summed(findings: Iterable[Finding]) -> list[Problem]:
    first: dict[tuple[str, str], Finding] = {}
    count: Counter[tuple[str, str]] = Counter()
    for finding in findings:
        key = finding.rule, finding.sort
        first.setdefault(key, finding)
        count[key] += 1
    return [Problem(finding.rule, finding.message, count[key]) for key, finding in first.items()]


# What the header and single rows promise ---------------------------------------------------------------------------------------


def _header_problems(header: dict[str, Any]) -> Iterator[Problem]:
    missing = [key for key in HEADER if key not in header]
    if missing:
        yield Problem("header", f"{', '.join(missing)} missing")
    keys = list(header)
    order = [key for key in keys if key in HEADER]
    if order != [key for key in HEADER if key in order]:
        yield Problem("header", f"keys come in the order {', '.join(order)}")
    late = [key for key in keys[keys.index("traceEvents") + 1 :] if key != "traceName"]
    if late:
        yield Problem("header", f"{', '.join(late)} stand behind traceEvents, where readers of the first part miss them")
    if header.get("schemaVersion", 1) != 1:
        yield Problem("header", f"schemaVersion is {header['schemaVersion']!r}, not 1")
    if type(header.get("baseTimeNanoseconds", 0)) is not int:
        yield Problem("header", f"baseTimeNanoseconds is {header['baseTimeNanoseconds']!r}, no integer")


NEEDED_KEYS = {
    "X": ("cat", "name", "ts", "dur", "pid", "tid"),
    "M": ("name", "pid", "args"),
    "i": ("name", "ts", "pid", "tid", "s"),
    "s": ("id", "cat", "name", "ts", "pid", "tid"),
    "f": ("id", "cat", "name", "ts", "pid", "tid"),
}


def _needed_keys(row: Row) -> Iterator[Finding]:
    phase = row.get("ph")
    needed = NEEDED_KEYS.get(phase) if isinstance(phase, str) else None
    if needed is None:
        yield Finding("keys", f"phase {phase}", f"{_name(row)} has the phase {phase!r}")
    elif missing := [key for key in needed if key not in row]:
        yield Finding("keys", str(phase), f"{_name(row)} has no {', '.join(missing)}")


def _numbers(row: Row) -> Iterator[Finding]:
    sort = row.get("cat", row.get("name"))
    for key in ("ts", "dur"):
        if key in row:
            if not _is_time(row[key]):
                yield Finding("numbers", f"{key} {sort}", f"{key} of {_name(row)} is {row[key]!r}, no number")
            elif row[key] < 0:
                yield Finding("numbers", f"{key} {sort}", f"{key} of {_name(row)} is negative: {row[key]}")
    # Kineto has texts on the lines that tell of the recording itself: "Spans", "Traces"
    named = row.get("cat") == "Trace" or row.get("ph") in ("M", "i")
    for key in ("pid", "tid"):
        if key in row and type(row[key]) is not int and not (named and type(row[key]) is str):
            yield Finding("numbers", f"{key} {sort}", f"{key} of {_name(row)} is {row[key]!r}, no number")


def _kernels(row: Row) -> Iterator[Finding]:
    """Kernels are on numbered streams, and know the call that launched them."""
    if row.get("cat") != "kernel":
        return
    stream, correlation = _args(row).get("stream"), _args(row).get("correlation")
    if type(stream) is not int or stream < 1:
        yield Finding("kernels", "stream", f"{_name(row)} is on the stream {stream!r}; they count from 1")
    if type(correlation) is not int:
        yield Finding("kernels", "correlation", f"{_name(row)} has no correlation")


# What rows promise together ----------------------------------------------------------------------------------------------------


class _Memory(Protocol):
    """Sees every row, and judges when it has seen all."""

    def see(self, row: Row) -> Iterator[Finding]: ...

    def judge(self) -> Iterator[Finding]: ...


class _Nesting:
    """On one thread, slices are inside each other or apart."""

    def __init__(self) -> None:
        self.threads: defaultdict[tuple[Any, Any], list[tuple[int, int, str, str]]] = defaultdict(list)

    def see(self, row: Row) -> Iterator[Finding]:
        if row.get("ph") == "X" and _is_placed(row) and _is_time(row.get("dur")):
            start = _ns(row["ts"])
            self.threads[row["pid"], row["tid"]].append(
                (start, -start - _ns(row["dur"]), str(row.get("cat")), str(row.get("name")))
            )
        return iter(())

    def judge(self) -> Iterator[Finding]:
        for slices in self.threads.values():
            slices.sort(key=lambda row: row[:2])  # of those that begin together, the longest first
            around: list[tuple[int, str, str]] = []
            for start, minus_end, category, name in slices:
                while around and around[-1][0] <= start:
                    around.pop()
                if around and around[-1][0] < -minus_end:
                    end, outer_category, outer = around[-1]
                    message = f"{name!r} begins inside {outer!r} and ends {-minus_end - end} ns behind it"
                    yield Finding("nesting", f"{category} {outer_category}", message)
                around.append((-minus_end, category, name))


class _Flows:
    """Each arrow has one start and one end, both at the start of a slice of their thread, in order of time."""

    def __init__(self) -> None:
        self.slices: set[tuple[Any, Any, int]] = set()
        self.arrows: defaultdict[tuple[str, str], list[tuple[str, tuple[Any, Any, int]]]] = defaultdict(list)

    def see(self, row: Row) -> Iterator[Finding]:
        if _is_placed(row):
            place = row["pid"], row["tid"], _ns(row["ts"])
            if row.get("ph") == "X":
                self.slices.add(place)
            elif row.get("ph") in ("s", "f"):
                self.arrows[str(row.get("cat")), str(row.get("id"))].append((row["ph"], place))
        return iter(())

    def judge(self) -> Iterator[Finding]:
        for (category, number), ends in self.arrows.items():
            name = f"flow {category} {number}"
            if any(place not in self.slices for _, place in ends):
                yield Finding("flows", f"slice {category}", f"no slice begins where {name} is")
            if sorted(phase for phase, _ in ends) != ["f", "s"]:
                starts = sum(phase == "s" for phase, _ in ends)
                yield Finding("flows", f"ends {category}", f"{name} has {starts} starts and {len(ends) - starts} ends")
                continue
            (_, (_, _, end)), (_, (_, _, start)) = sorted(ends, key=lambda end: end[0])
            if start > end:
                yield Finding("flows", f"time {category}", f"{name} ends before it starts")


class _UniqueIds:
    """Numbers that tell rows apart do."""

    KEYS = ("Ev Idx", "External id", "correlation_id", "Python id")
    OF_OPERATORS = ("cpu_op", "user_annotation")  # others name the operator that they belong to

    def __init__(self) -> None:
        self.seen = {key: array("q") for key in self.KEYS}

    def see(self, row: Row) -> Iterator[Finding]:
        args = _args(row)
        for key, seen in self.seen.items():
            if key in args and (key != "External id" or row.get("cat") in self.OF_OPERATORS):
                if type(args[key]) is int and abs(args[key]) < 2**63:
                    seen.append(args[key])
                else:
                    yield Finding("ids", f"number {key}", f"{key} of {_name(row)} is {args[key]!r}, no number")

    def judge(self) -> Iterator[Finding]:
        for key, seen in self.seen.items():
            numbers, counts = np.unique(np.array(seen, np.int64), return_counts=True)
            for number, count in zip(numbers[counts > 1].tolist(), counts[counts > 1].tolist()):
                yield Finding("ids", key, f"{count} rows have {key} {number}")


class _PythonParents:
    """The function around a function is a row of the trace."""

    def __init__(self) -> None:
        self.ids: set[Any] = set()
        self.parents: dict[Any, str] = {}

    def see(self, row: Row) -> Iterator[Finding]:
        if row.get("cat") == "python_function":
            number, parent = _args(row).get("Python id"), _args(row).get("Python parent id")
            if type(number) is int:
                self.ids.add(number)
            if type(parent) is int:
                self.parents.setdefault(parent, _name(row))
        return iter(())

    def judge(self) -> Iterator[Finding]:
        for parent, name in self.parents.items():
            if parent not in self.ids:
                yield Finding("python parents", "", f"Python parent id {parent} of {name} is that of no row")


def _name(row: Row) -> str:
    return f"{row.get('name')!r} at {row.get('ts')}"


def _args(row: Row) -> Row:
    args = row.get("args")
    return args if isinstance(args, dict) else {}


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 2**63


def _ns(microseconds: float) -> int:
    """The nanosecond that a double stands for; multiplying may round to the one beside it."""
    ns = round(microseconds * 1000)
    return next((n for n in (ns, ns - 1, ns + 1) if n / 1000 == microseconds), ns)


def _is_placed(row: Row) -> bool:
    return type(row.get("pid")) in (int, str) and type(row.get("tid")) in (int, str) and _is_time(row.get("ts"))
