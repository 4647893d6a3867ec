"""`compare`: the changes between two sessions, sorted by what they add to a step."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..model.session import Session
from ..writing.html_table import html_text
from . import evidence, page, text
from .call_tree import OUTSIDE, Calls, CallTree
from .devices import DeviceChange, compare_devices
from .matching import ADDED, REMOVED, SAME, Pair, match
from .side_work import SidePair, side_pairs

__all__ = ["Change", "Comparison", "compare"]

Column = np.ndarray[Any, np.dtype[Any]]

P_VALUE = 0.01  # of all comparisons together
LEAST_SHARE = 0.02  # of a step: smaller changes are left out
LEAST_RATIO = 0.15  # of the place's own time: layouts of memory differ between processes
LEAST_RATIO_OF_PYTHON = (
    0.4  # of time that is Python's, which differs by 15 % and more with caches, hashes and the garbage collector
)
LEAST_BYTES = 1024
SHOWN_PLACES = 200
EXPLAINS = (
    0.2  # of the time outside of calls: if other threads changed by so much, it was spent waiting for them, and for their turn
)
WAITED = "it may have waited for what changed on other threads"


@dataclass(frozen=True, kw_only=True)
class Change:
    """A place in the program that takes longer or shorter, was added, removed, renamed or moved. Times are nanoseconds in a step."""

    kind: str  # "slower", "faster", "added", "removed", "renamed", "moved"
    name: str
    was: str = ""  # the name before, of one that was renamed
    path: tuple[str, ...] = ()  # names of the calls around it
    module: str = ""
    place: str = ""  # the line of the program that led to it: "file:line:function"
    thread: str = ""  # the thread or process, if it is not the thread that started the recording
    note: str = ""  # what else is known
    shapes: tuple[str, str] = ("", "")  # of the inputs, before and after, if they differ
    before_ns: float = 0.0
    after_ns: float = 0.0  # at the speed of the first run
    calls: tuple[float, float] = (0.0, 0.0)  # in a step, before and after
    bytes: tuple[float, float] = (0.0, 0.0)  # made and kept in a step
    p_value: float | None = None  # None: it is certain, or there is no way to know

    @property
    def delta_ns(self) -> float:
        return self.after_ns - self.before_ns

    def as_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        facts = {name: value for name, value in vars(self).items() if value not in ("", (), None)}
        return {**facts, "delta_ns": self.delta_ns}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What changed from a first run to a second.

    `changes` are those of time and structure, the largest first; `memory` those of bytes alone; `devices` have kernels of their own. `speed` is how much slower the second run was
    everywhere, as a machine is that has other things to do. `step_ns` are the times of a step without noise: the sums of what its places take in
    their quiet steps.
    """

    steps: tuple[int, int]
    step_ns: tuple[float, float]
    is_measured: bool  # whether both have steps, so that chance can be told from change
    speed: float
    peak_bytes: tuple[int, int] | None
    changes: tuple[Change, ...]
    memory: tuple[Change, ...]
    devices: tuple[DeviceChange, ...]  # that both runs have
    unclear: int  # places whose times differ by a share that counts, and may be noise
    step_times_ns: tuple[tuple[int, ...], tuple[int, ...]]  # of each step, as they were
    places: tuple[Change, ...]  # that both runs have, by the time they take

    @property
    def ratio(self) -> float:
        """How long a step takes in the second run, by the first."""
        return self.step_ns[1] / self.step_ns[0] if self.step_ns[0] else 1.0

    def is_slower_by(self, share: float) -> bool:
        """Whether steps take longer by more than this share, and not by chance."""
        return self.ratio > 1 + share and (bool(self.changes) or self.speed > 1 or not self.is_measured)

    def as_dict(self) -> dict[str, Any]:
        """All of it, for JSON. Times are nanoseconds."""
        return {
            "steps": list(self.steps),
            "step_ns": list(self.step_ns),
            "ratio": self.ratio,
            "is_measured": self.is_measured,
            "speed": self.speed,
            "peak_bytes": None if self.peak_bytes is None else list(self.peak_bytes),
            "changes": [change.as_dict() for change in self.changes],
            "memory": [change.as_dict() for change in self.memory],
            "devices": [device.as_dict() for device in self.devices],
            "unclear": self.unclear,
        }

    def table(self, *, row_limit: int = 20, width: int | None = None) -> str:
        """The changes as a table for a terminal; with a width, columns of least use are left out to fit."""
        return text.table(self, row_limit, width)

    def markdown(self, *, row_limit: int = 20) -> str:
        """The changes in GitHub's Markdown."""
        return text.markdown(self, row_limit)

    def export_page(self, path: str | os.PathLike[str], names: tuple[str, str] = ("before", "after")) -> None:
        """Write a page of HTML that lays both runs over each other, step by step and place by place."""
        page.write(self, path, names)

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        return html_text(self.table())


def compare(
    first: Session | Sequence[Session], second: Session | Sequence[Session], *, least_share: float = LEAST_SHARE
) -> Comparison:
    """The changes from the first run to the second that add or save at least this share of a step.

    A run is a session, or one for each process, of which the first started the others.
    """
    before, after = ([Calls(session) for session in ([run] if isinstance(run, Session) else run)] for run in (first, second))
    one, other = before[0].steps(), after[0].steps()
    step_ns = _step_ns(one), _step_ns(other)
    least_ns = least_share * step_ns[0]
    beside = list(side_pairs(before, after, one, other, least_ns=least_ns))
    found = [_Places(one, other, least_ns)] + [
        _Places(pair.first, pair.second, least_share * _step_ns(pair.first) if pair.has_steps else least_ns, pair.where)
        for pair in beside
        if pair.first is not None and pair.second is not None
    ]
    is_measured = min(len(one.step_ns), len(other.step_ns)) > 1
    speed = _speed(found) if is_measured else 1.0
    for places in found:
        places.slow_down(speed)
    timed, unclear = _timed(found, is_measured=is_measured)
    changes = [*timed, *(change for places in found for change in places.structure()), *_alone(beside, speed)]
    devices = compare_devices(one, other, least_share=least_share, least_ratio=LEAST_RATIO, most_p=P_VALUE)
    return Comparison(
        steps=(len(one.step_ns), len(other.step_ns)),
        step_ns=step_ns,
        is_measured=is_measured,
        speed=speed,
        peak_bytes=_peaks(one.recording.session, other.recording.session),
        changes=tuple(_in_order(changes)),
        memory=tuple(sorted((c for places in found for c in places.memory()), key=lambda c: -abs(c.bytes[1] - c.bytes[0]))),
        devices=tuple(devices),
        unclear=unclear,
        step_times_ns=(tuple(one.step_ns.tolist()), tuple(other.step_ns.tolist())),
        places=tuple(
            sorted((c for places in found for c in places.places()), key=lambda c: -max(c.before_ns, c.after_ns))[:SHOWN_PLACES]
        ),
    )


def _speed(found: Sequence[_Places]) -> float:
    """How much slower the second run is everywhere. The time outside of calls is none of it, where that may be waiting for other threads."""
    least = [(places.before[:, 0], places.after[:, 0]) for places in found]
    before, after = (np.concatenate(side) for side in zip(*least, strict=True))
    may_wait = len(found) > 1
    return evidence.speed_factor(before[may_wait:], after[may_wait:])


def _timed(found: Sequence[_Places], *, is_measured: bool) -> tuple[list[Change], int]:
    """Changes of time that are large and certain enough; and the number of those that are large alone."""
    candidates = [(places, i) for places in found for i in places.candidates()]
    if not is_measured:
        return [places.slower_or_faster(i) for places, i in candidates], 0
    raw = [evidence.p_value(places.before[i], places.after[i]) for places, i in candidates]
    certain = [
        places.slower_or_faster(i, p)
        for (places, i), p in zip(candidates, evidence.corrected(np.array(raw)).tolist(), strict=True)
        if p < P_VALUE
    ]
    return certain, len(candidates) - len(certain)


def _alone(beside: Sequence[SidePair], speed: float) -> list[Change]:
    """What other threads and processes do in one of the runs alone."""
    found = []
    for first, second, where, _ in beside:
        tree = second if first is None else first
        if tree is not None and (first is None or second is None):
            ns = float(np.median(evidence.quiet(tree.total_ns[1])))
            kind, times = (ADDED, (0.0, ns / speed)) if first is None else (REMOVED, (ns, 0.0))
            calls = (0.0, _per_step(tree, 1)) if first is None else (_per_step(tree, 1), 0.0)
            found.append(
                Change(
                    kind=kind,
                    name=tree.name(1),
                    module=tree.module_of(1),
                    place=tree.place(1),
                    thread=where,
                    before_ns=times[0],
                    after_ns=times[1],
                    calls=calls,
                )
            )
    return found


def _in_order(changes: Sequence[Change]) -> list[Change]:
    """By what they add to a step. Time outside of calls that other threads explain comes last: the thread waited for them."""
    beside_ns = sum(change.delta_ns for change in changes if change.thread)

    def is_waiting(change: Change) -> bool:
        is_outside = change.name == OUTSIDE and not change.thread
        return is_outside and beside_ns * change.delta_ns > 0 and abs(beside_ns) >= EXPLAINS * abs(change.delta_ns)

    marked = [replace(c, note=WAITED) if is_waiting(c) else c for c in changes]
    return sorted(marked, key=lambda change: (bool(change.note), -abs(change.delta_ns)))


def _step_ns(tree: CallTree) -> float:
    return float(np.median(evidence.quiet(tree.self_ns), axis=1).sum())


def _times(tree: CallTree, nodes: list[int]) -> Column:
    """The self times of these nodes in each step; zeros for -1."""
    return np.vstack([tree.self_ns, np.zeros(len(tree.step_ns))])[nodes]


def _peaks(first: Session, second: Session) -> tuple[int, int] | None:
    if first.memory is None or second.memory is None or not len(first.memory.total_bytes) or not len(second.memory.total_bytes):
        return None
    return int(first.memory.total_bytes.max()), int(second.memory.total_bytes.max())


class _Places:
    """The places of two trees, with their times in quiet steps."""

    def __init__(self, one: CallTree, other: CallTree, least_ns: float, thread: str = "") -> None:
        self._one, self._other, self._pairs = one, other, match(one, other)
        self.before = evidence.quiet(_times(one, [pair.first for pair in self._pairs]))
        self.after = evidence.quiet(_times(other, [pair.second for pair in self._pairs]))
        self._least_ns, self._thread = least_ns, thread
        self._added = {pair.second for pair in self._pairs if pair.kind == ADDED}
        self._removed = {pair.first for pair in self._pairs if pair.kind == REMOVED}

    def slow_down(self, speed: float) -> None:
        """Count the times of the second run at the speed of the first, which is so many times faster."""
        self.after = self.after / speed

    def structure(self) -> list[Change]:
        """What was added, removed, renamed and moved."""
        return [self._change(i, pair.kind) for i, pair in enumerate(self._pairs) if self._is_top(pair)]

    def candidates(self) -> list[int]:
        """The places whose times differ by a share that counts."""
        before, after = np.median(self.before, axis=1), np.median(self.after, axis=1)
        return [
            i
            for i, pair in enumerate(self._pairs)
            if pair.kind == SAME
            and self._counts(pair, before[i], after[i])
            and self._counts(pair, self.before[i, 0], self.after[i, 0])
        ]

    def slower_or_faster(self, at: int, p_value: float | None = None) -> Change:
        is_slower = np.median(self.after[at]) > np.median(self.before[at])
        return self._change(at, "slower" if is_slower else "faster", p_value)

    def places(self) -> list[Change]:
        """The places that both have, changed or not, by the time they take."""
        before, after = np.median(self.before, axis=1), np.median(self.after, axis=1)
        both = [i for i, pair in enumerate(self._pairs) if pair.kind == SAME and max(before[i], after[i]) > 0]
        return [self._change(i, "") for i in sorted(both, key=lambda i: -max(before[i], after[i]))[:SHOWN_PLACES]]

    def memory(self) -> list[Change]:
        """Places that keep more or fewer bytes in a step."""
        if self._one.recording.session.memory is None or self._other.recording.session.memory is None:
            return []
        changes = [self._change(i, "") for i, pair in enumerate(self._pairs) if pair.kind == SAME]
        return [c for c in changes if abs(c.bytes[1] - c.bytes[0]) >= LEAST_BYTES]

    def _counts(self, pair: Pair, before_ns: float, after_ns: float) -> bool:
        least = LEAST_RATIO_OF_PYTHON if self._one.is_python(pair.first) else LEAST_RATIO
        delta = abs(after_ns - before_ns)
        return bool(delta > 0 and delta >= self._least_ns and delta >= least * before_ns)

    def _is_top(self, pair: Pair) -> bool:
        """Whether this is a change of structure that is not inside another."""
        if pair.kind == SAME:
            return False
        if pair.kind == ADDED:
            return self._other.parent.item(pair.second) not in self._added
        if pair.kind == REMOVED:
            return self._one.parent.item(pair.first) not in self._removed
        return True

    def _change(self, at: int, kind: str, p_value: float | None = None) -> Change:
        _, first, second = self._pairs[at]
        tree, node = (self._other, second) if second >= 0 else (self._one, first)
        shapes = (self._one.shape_of(first) if first >= 0 else "", self._other.shape_of(second) if second >= 0 else "")
        return Change(
            kind=kind,
            name=tree.name(node),
            was=self._one.name(first) if kind == "renamed" else "",
            path=tuple(tree.path(node)[:-1]),
            module=tree.module_of(node),
            place=tree.place(node),
            thread=self._thread,
            shapes=shapes if shapes[0] != shapes[1] else ("", ""),
            before_ns=self._time(self._one, first, self.before[at], kind),
            after_ns=self._time(self._other, second, self.after[at], kind),
            calls=(_per_step(self._one, first), _per_step(self._other, second)),
            bytes=(_bytes(self._one, first), _bytes(self._other, second)),
            p_value=p_value,
        )

    def _time(self, tree: CallTree, node: int, values: Column, kind: str) -> float:
        """The time in a step; of what was added or removed, with all inside of it."""
        if node < 0:
            return 0.0
        if kind in (ADDED, REMOVED):
            return float(np.median(evidence.quiet(tree.total_ns[node])))
        return float(np.median(values))


def _per_step(tree: CallTree, node: int) -> float:
    return 0.0 if node < 0 else tree.per_step * tree.calls.item(node) / len(tree.step_ns)


def _bytes(tree: CallTree, node: int) -> float:
    return 0.0 if node < 0 else float(np.median(tree.bytes[node]))
