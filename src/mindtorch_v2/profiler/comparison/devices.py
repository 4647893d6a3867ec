"""What devices did in a step of each run, and the kernels that take longer or shorter there.

Work belongs to the step in which it was launched. The times of a device are its own: a kernel that takes longer makes a step longer only where the
step waits for it, so they are told apart from the changes of the program's places.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..device import Device, DeviceActivity
from ..device.intervals import union
from ..device.work import Work
from . import evidence
from .call_tree import CallTree

__all__ = ["DeviceChange", "KernelChange", "compare_devices"]

Column = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, kw_only=True)
class KernelChange:
    """Kernels of one name whose time changed. Times are nanoseconds in a step."""

    kind: str  # "slower", "faster", "added", "removed"
    name: str
    before_ns: float
    after_ns: float
    calls: tuple[float, float]  # in a step, before and after
    p_value: float | None  # None: it is certain, or there is no way to know

    @property
    def delta_ns(self) -> float:
        return self.after_ns - self.before_ns

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "delta_ns": self.delta_ns}


@dataclass(frozen=True, kw_only=True)
class DeviceChange:
    """One device in both runs; pairs are before and after."""

    names: tuple[str, str]  # "CUDA:0"
    work_ns: tuple[float, float]  # with work of a step on any stream
    busy_share: tuple[float, float]  # of the time from the first work to the last
    idle_causes: dict[str, tuple[float, float]]  # shares of that time
    kernels: tuple[KernelChange, ...]  # that changed, the largest difference first

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "kernels": [kernel.as_dict() for kernel in self.kernels]}


def compare_devices(one: CallTree, other: CallTree, *, least_share: float, least_ratio: float, most_p: float) -> list[DeviceChange]:
    """The devices that both runs have; kernels whose time changed by this share of the device's work, and this ratio of their own."""
    before, after = (DeviceActivity.of(tree.recording.session).devices for tree in (one, other))
    if not before or not after:
        return []
    times = _times_of_steps(one), _times_of_steps(other)
    found = []
    for first, second in _pairs(before, after):
        mine, theirs = times[0][first.index], times[1][second.index]
        kernels = _kernels(mine, theirs, least_ns=least_share * mine.usual_ns, least_ratio=least_ratio, most_p=most_p)
        found.append(
            DeviceChange(
                names=(_name(first), _name(second)),
                work_ns=(mine.usual_ns, theirs.usual_ns),
                busy_share=(first.busy_share, second.busy_share),
                idle_causes={
                    cause: (ns / (first.span_ns or 1), second.idle_causes[cause] / (second.span_ns or 1))
                    for cause, ns in first.idle_causes.items()
                },
                kernels=tuple(kernels),
            )
        )
    return found


def _name(device: Device) -> str:
    return f"{device.type}:{device.index}"


def _pairs(before: tuple[Device, ...], after: tuple[Device, ...]) -> list[tuple[Device, Device]]:
    """Devices of the same number; where each run has one alone, these, whatever their numbers."""
    if len(before) == len(after) == 1:
        return [(before[0], after[0])]
    numbered = {_name(device): device for device in after}
    return [(device, numbered[_name(device)]) for device in before if _name(device) in numbered]


@dataclass(frozen=True, eq=False)
class _Times:
    """The work of one device: how long in each step, in all, and by name."""

    busy_ns: Column
    by_name: dict[str, Column]
    calls: dict[str, float]

    @property
    def usual_ns(self) -> float:
        return float(np.median(evidence.quiet(self.busy_ns)))


def _times_of_steps(tree: CallTree) -> dict[int, _Times]:
    """By the number of a device."""
    session, count = tree.recording.session, len(tree.step_ns)
    found = {}
    for track, work in Work(session).devices():
        launched = np.where(work.launch >= 0, session.start_ns[work.launch], work.start)
        step = np.searchsorted(tree.step_start_ns, launched, side="right") - 1
        step[(step < 0) | (launched >= (tree.step_start_ns + tree.step_ns)[step])] = -1
        busy = [union(work.start[step == at], work.end[step == at]).total for at in range(count)]
        by_name: dict[str, Column] = {}
        calls: dict[str, float] = {}
        for number in np.unique(work.name[step >= 0]).tolist():
            mine = (work.name == number) & (step >= 0)
            name = session.labels[number].name
            spent = np.bincount(step[mine], work.duration[mine], minlength=count)
            by_name[name] = by_name.get(name, 0) + spent
            calls[name] = calls.get(name, 0.0) + int(mine.sum()) / count
        found[track.device_index] = _Times(np.array(busy, np.float64), by_name, calls)
    return found


def _kernels(before: _Times, after: _Times, *, least_ns: float, least_ratio: float, most_p: float) -> list[KernelChange]:
    candidates = []
    for name in {**before.by_name, **after.by_name}:
        runs = [evidence.quiet(times.by_name[name]) if name in times.by_name else np.zeros(1) for times in (before, after)]
        was, now = (float(np.median(run)) for run in runs)
        if abs(now - was) >= max(least_ns, least_ratio * was, 1.0):
            candidates.append((name, runs, was, now))
    is_measured = min(len(before.busy_ns), len(after.busy_ns)) > 1
    both = [name for name, *_ in candidates if name in before.by_name and name in after.by_name]
    p_values: dict[str, float] = {}
    if is_measured:
        raw = [evidence.p_value(*runs) for name, runs, *_ in candidates if name in both]
        p_values = dict(zip(both, evidence.corrected(np.array(raw)).tolist(), strict=True))
    changes = [
        KernelChange(
            kind=_kind(name, before, after, was, now),
            name=name,
            before_ns=was,
            after_ns=now,
            calls=(before.calls.get(name, 0.0), after.calls.get(name, 0.0)),
            p_value=p_values.get(name),
        )
        for name, _, was, now in candidates
        if p_values.get(name, 0.0) < most_p
    ]
    return sorted(changes, key=lambda change: -abs(change.delta_ns))


def _kind(name: str, before: _Times, after: _Times, was: float, now: float) -> str:
    if name not in before.by_name:
        return "added"
    if name not in after.by_name:
        return "removed"
    return "slower" if now > was else "faster"
