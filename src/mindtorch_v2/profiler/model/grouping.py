"""Rows of `key_averages()` straight from the columns of a recording."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np

from . import inputs
from .averages import FunctionEventAvg
from .recording import Recording

__all__ = [
    "GroupBy",
    "Groups",
    "amounts_of",
    "averages",
    "compilation",
    "examples",
    "groups",
    "kernels_us",
    "self_cpu_us",
    "spread",
    "total",
]

Column = np.ndarray[Any, np.dtype[Any]]


class GroupBy(NamedTuple):
    """The values that events of one row have in common, besides their name."""

    shapes: bool = False
    stack_n: int = 0  # this many places in the source, from the innermost
    overloads: bool = False
    modules: bool = False  # the module, and whether in a forward or a backward pass


VALUE_BITS = 42  # an hour of ns, so that the number of a group has room above it
EVERYTHING = GroupBy(shapes=True, stack_n=sys.maxsize, overloads=True, modules=True)


class Groups(NamedTuple):
    """Events in groups, in order of the first event of each."""

    first: Column  # the row of that event
    of_rows: Column  # the group of each of the rows that were asked about
    sums: dict[str, Column]  # of each group, by the attributes of averages; times are in nanoseconds


def groups(
    recording: Recording, rows: Column, by: GroupBy, *, keys: Column | None = None, amounts: dict[str, Column] | None = None
) -> Groups:
    """These events in the groups of `key_averages()`.

    `keys`, one number for each event of the session, part them further. `amounts` are those of the recording, if they are known already.
    """
    numbers = _keys(recording, by)
    if keys is not None:
        numbers = _both(numbers, keys)
    first, group = _distinct(numbers[rows])
    order = np.argsort(first)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    of_rows = place[group]
    # whole numbers below 2**53, so that the sums are exact
    sums = {
        name: np.bincount(of_rows, column[rows], minlength=len(order)).astype(np.int64)
        for name, column in (amounts or amounts_of(recording)).items()
    }
    return Groups(rows[first[order]], of_rows, sums)


def spread(values: Column, group: Column, count: int) -> tuple[Column, Column]:
    """The median of the values of each group, the lower one of two, and the largest. Groups are numbered from 0, none is empty."""
    if len(values) and int(values.min()) >= 0 and int(values.max()) < 1 << VALUE_BITS and count < 1 << (63 - VALUE_BITS):
        in_order = np.sort((group << VALUE_BITS) | values) & ((1 << VALUE_BITS) - 1)  # a sixth of the time of sorting by both
    else:
        in_order = values[np.lexsort((values, group))]
    ends = np.cumsum(np.bincount(group, minlength=count))
    starts = np.concatenate([[0], ends[:-1]]) if count else ends
    return in_order[(starts + ends - 1) // 2], in_order[ends - 1]


def averages(recording: Recording, rows: Column, by: GroupBy) -> list[FunctionEventAvg]:
    """Sums over the events of each group, in order of the first of each."""
    found = groups(recording, rows, by)
    averages = _averages(found.sums, len(found.first))
    for average, row in zip(averages, found.first.tolist(), strict=True):
        average.describe(recording.events[row])
    return averages


def total(recording: Recording, rows: Column) -> FunctionEventAvg:
    """Sums over all of these events."""
    (total,) = _averages({name: column[rows].sum(keepdims=True) for name, column in amounts_of(recording).items()}, 1)
    total.describe(recording.events[rows.item(-1)])  # torch: described by the last event
    return total


def _averages(sums: dict[str, Column], count: int) -> list[FunctionEventAvg]:
    """Rows with these sums, without names."""
    averages = [FunctionEventAvg() for _ in range(count)]
    for name, amounts in sums.items():
        for average, amount in zip(averages, amounts.tolist(), strict=True):
            setattr(average, name, amount / 1000 if "time" in name else amount)
    return averages


def _distinct(keys: Column) -> tuple[Column, Column]:
    """For each distinct key the place where it is first, and for each key its number among them, in their order."""
    most = int(keys.max(initial=0)) + 1
    if most > 4 * len(keys):
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
        return first, group
    # few enough to count, without sorting a million of them
    place = np.full(most, -1, np.int64)
    place[keys[::-1]] = np.arange(len(keys) - 1, -1, -1)
    found = place >= 0
    return place[found], (np.cumsum(found) - 1)[keys]


def examples(recording: Recording, rows: Column) -> list[Any]:
    """An event of each name, device, arguments and stack among these."""
    first, _ = _distinct(_keys(recording, EVERYTHING)[rows])
    return [recording.events[row] for row in rows[np.sort(first)].tolist()]


def kernels_us(recording: Recording, rows: Column) -> float:
    """Sum the time of those of these events that are work of a device; annotations there are around work."""
    is_work = recording.of_labels(lambda label: label.kind != "scope")
    kernels = rows[~recording.on_cpu[rows] & is_work[rows]]
    total: int = recording.self_device_ns[kernels].sum().item()
    return total / 1000


def self_cpu_us(recording: Recording, rows: Column) -> float:
    """Sum the self time of these events."""
    total: int = amounts_of(recording)["self_cpu_time_total"][rows].sum().item()
    return total / 1000


def compilation(recording: Recording, rows: Column) -> tuple[float, int]:
    """The time of compilation among these events, in microseconds, and the number of compiled functions."""
    compiled = rows[recording.of_labels(lambda label: label.kind == "compile")[rows]]
    return self_cpu_us(recording, compiled), len(compiled)


def _keys(recording: Recording, by: GroupBy) -> Column:
    """A number for each event, the same for events of one group."""
    session = recording.session

    def name(i: int) -> Hashable:
        label = session.labels[i]
        return recording.names[i], label.kind == "scope", by.overloads and session.info.overload_names and label.overload

    keys = _numbers(session.label, len(session.labels), name)
    keys = _both(keys, _numbers(session.track, len(session.tracks), lambda i: session.tracks[i].device_type))
    if by.shapes and session.inputs is not None and session.info.record_shapes:
        none = str(inputs.tensor_shapes(()))
        table = session.input_table
        keys = _both(keys, _numbers(session.inputs, len(table), lambda i: str(inputs.tensor_shapes(table[i])), none=none))
    if by.modules and session.info.with_modules:
        found = recording.attribution
        keys = _both(_both(keys, found.module + 1), found.phase)
    if by.stack_n > 0:
        frames = session.stack_table
        # torch: frames that read the same are the same, wherever their stack goes on
        keys = _both(
            keys,
            _numbers(
                recording.stack, len(frames), lambda i: tuple(map(recording.places.__getitem__, frames[i][: by.stack_n])), none=()
            ),
        )
    return keys


def _numbers(column: Column, size: int, fact: Callable[[int], Hashable], *, none: Hashable = None) -> Column:
    """A number for what the table entry of each event says; `none` is what no entry says."""
    facts: Iterable[Hashable] = [*(fact(i) for i in range(size)), none]
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(f, len(numbers)) for f in facts], np.int64)[column]


def _both(one: Column, other: Column) -> Column:
    """A number for each pair of numbers."""
    return np.asarray(one * (other.max(initial=0) + 1) + other)


def amounts_of(recording: Recording) -> dict[str, Column]:
    """The numbers that each event adds to its row. Times are in nanoseconds."""
    duration, memory = recording.cpu_ns, recording.cpu_memory_bytes
    return {
        "count": np.ones(len(duration), np.int64),
        "cpu_time_total": duration,
        "self_cpu_time_total": recording.without_children(duration),
        "device_time_total": recording.device_ns,
        "self_device_time_total": recording.self_device_ns,
        "cpu_memory_usage": memory,
        "self_cpu_memory_usage": recording.without_children(memory),
        "flops": recording.flops,
    }
