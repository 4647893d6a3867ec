"""Where the time went, for one recording or several together: sums, medians and largest times of events that have something in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import grouping, inputs, modules
from .grouping import GroupBy
from .recorded_events import recording_of
from .recording import Recording
from .session import Column, Session

__all__ = ["GROUPINGS", "SORT_KEYS", "TopRow", "top_rows"]

# What events of one row have in common, besides their name.
GROUPINGS = ("name", "shape", "stack", "module", "step", "overload")
STACK_FRAMES = 5  # innermost, that tell rows apart


@dataclass(frozen=True, kw_only=True)
class TopRow:
    """Sums over events. Times are nanoseconds; mean, median and largest are of the whole events, with what is inside."""

    name: str
    kind: str
    count: int
    self_ns: int
    total_ns: int
    mean_ns: float
    median_ns: int  # the lower one of two
    max_ns: int
    self_device_ns: int  # of the kernels that these events started
    device_ns: int  # with those that were started inside
    self_memory_bytes: int
    memory_bytes: int
    flops: int
    shapes: str = ""
    stack: tuple[str, ...] = ()
    module: str = ""
    phase: str = ""
    step: int | None = None
    overload: str = ""


SORT_KEYS = {
    "self": "self_ns", "total": "total_ns", "mean": "mean_ns", "median": "median_ns", "max": "max_ns", "count": "count",
    "device": "device_ns", "self-device": "self_device_ns", "memory": "memory_bytes", "self-memory": "self_memory_bytes",
    "flops": "flops", "name": "name",
}  # fmt: skip

_SUMS = {
    "self_ns": "self_cpu_time_total",
    "total_ns": "cpu_time_total",
    "self_device_ns": "self_device_time_total",
    "device_ns": "device_time_total",
    "self_memory_bytes": "self_cpu_memory_usage",
    "memory_bytes": "cpu_memory_usage",
    "flops": "flops",
}


@dataclass
class _Sums:
    facts: dict[str, Any]
    sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_SUMS, 0))
    durations: list[Column] = field(default_factory=list)


def top_rows(sessions: Sequence[Session], by: str = "name", *, where: Callable[[str], bool] | None = None) -> list[TopRow]:
    """Rows of these sessions together, in order of the first event of each; kernels are not among them. `where` says which names count."""
    found: dict[Any, _Sums] = {}
    for session in sessions:
        _add(recording_of(session), by, where, found)
    return [_row(sums) for sums in found.values()]


def _add(recording: Recording, by: str, where: Callable[[str], bool] | None, found: dict[Any, _Sums]) -> None:
    session = recording.session
    wanted = np.array([where is None or where(name) for name in recording.names] or [False], bool)
    rows = recording.rows[recording.on_cpu[recording.rows] & wanted[session.label[recording.rows]]]
    if not len(rows):
        return
    of = GroupBy(shapes=by == "shape", stack_n=STACK_FRAMES if by == "stack" else 0, modules=by == "module")
    groups = grouping.groups(recording, rows, of, keys=_further(recording, by))
    order = np.argsort(groups.of_rows, kind="stable")
    durations = np.split(recording.cpu_ns[rows][order], np.cumsum(np.bincount(groups.of_rows))[:-1])
    for number, row in enumerate(groups.first.tolist()):
        facts = _facts(recording, row, by)
        sums = found.setdefault(tuple(facts.values()), _Sums(facts))
        for name, key in _SUMS.items():
            sums.sums[name] += groups.sums[key].item(number)
        sums.durations.append(durations[number])


def _further(recording: Recording, by: str) -> Column | None:
    """What parts rows beside the groupings of torch."""
    if by == "step":
        return recording.session.step.astype(np.int64)
    if by == "overload":  # torch parts rows by it only where it was recorded for that
        numbers: dict[str, int] = {}
        of_labels = [numbers.setdefault(label.overload, len(numbers)) for label in recording.session.labels]
        return np.array(of_labels, np.int64)[recording.session.label]
    return None


def _facts(recording: Recording, row: int, by: str) -> dict[str, Any]:
    """What tells the row apart."""
    label = recording.label(row)
    facts: dict[str, Any] = {"name": recording.names[recording.session.label.item(row)], "kind": label.kind}
    match by:
        case "shape":
            facts["shapes"] = str(inputs.tensor_shapes(recording.inputs(row)))
        case "stack":
            stack = recording.stack.item(row)
            frames = recording.session.stack_table[stack] if stack >= 0 else ()
            facts["stack"] = tuple(recording.places[frame] for frame in frames[:STACK_FRAMES])
        case "module" if recording.session.info.with_modules:
            found = recording.attribution
            module = found.module.item(row)
            facts["module"] = modules.path(found.modules[module]) if module >= 0 else ""
            facts["phase"] = modules.PHASES[found.phase.item(row)]
        case "step":
            facts["step"] = recording.session.step.item(row)
        case "overload":
            facts["overload"] = label.overload
    return facts


def _row(sums: _Sums) -> TopRow:
    durations = np.sort(np.concatenate(sums.durations))
    facts: dict[str, Any] = {**sums.facts, **sums.sums}
    return TopRow(
        **facts,
        count=len(durations),
        mean_ns=float(durations.mean()),
        median_ns=durations[(len(durations) - 1) // 2].item(),
        max_ns=durations[-1].item(),
    )
