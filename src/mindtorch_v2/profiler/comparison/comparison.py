"""`compare`: the changes between two sessions, sorted by what they add to a step."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..model.session import Session
from ..writing.html_table import html_text
from . import evidence, page, text
from .call_tree import CallTree
from .devices import DeviceChange, compare_devices
from .matching import ADDED, REMOVED, SAME, Pair, match

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


@dataclass(frozen=True, kw_only=True)
class Change:
    """A place in the program that takes longer or shorter, was added, removed, renamed or moved. Times are nanoseconds in a step."""

    kind: str  # "slower", "faster", "added", "removed", "renamed", "moved"
    name: str
    was: str = ""  # the name before, of one that was renamed
    path: tuple[str, ...] = ()  # names of the calls around it
    module: str = ""
    place: str = ""  # in the source: "file:line:function"
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


def compare(first: Session, second: Session, *, least_share: float = LEAST_SHARE) -> Comparison:
    """The changes from the first session to the second that add or save at least this share of a step."""
    one, other = CallTree.of(first), CallTree.of(second)
    pairs = match(one, other)
    before = evidence.quiet(_times(one, [pair.first for pair in pairs]))
    after = evidence.quiet(_times(other, [pair.second for pair in pairs]))
    is_measured = min(len(one.step_ns), len(other.step_ns)) > 1
    speed = evidence.speed_factor(before[:, 0], after[:, 0]) if is_measured else 1.0
    after = after / speed
    step_ns = _step_ns(one), _step_ns(other)
    found = _Places(one, other, pairs, before, after, least_share * step_ns[0])
    return Comparison(
        steps=(len(one.step_ns), len(other.step_ns)),
        step_ns=step_ns,
        is_measured=is_measured,
        speed=speed,
        peak_bytes=_peaks(first, second),
        changes=tuple(found.changes(is_measured=is_measured)),
        memory=tuple(found.memory()),
        devices=tuple(compare_devices(one, other, least_share=least_share, least_ratio=LEAST_RATIO, most_p=P_VALUE)),
        unclear=found.unclear,
        step_times_ns=(tuple(one.step_ns.tolist()), tuple(other.step_ns.tolist())),
        places=tuple(found.places()),
    )


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
    """The places of both trees, with their times in quiet steps."""

    def __init__(self, one: CallTree, other: CallTree, pairs: list[Pair], before: Column, after: Column, least_ns: float) -> None:
        self._one, self._other, self._pairs = one, other, pairs
        self._before, self._after = before, after
        self._least_ns = least_ns
        self._added = {pair.second for pair in pairs if pair.kind == ADDED}
        self._removed = {pair.first for pair in pairs if pair.kind == REMOVED}
        self.unclear = 0

    def changes(self, *, is_measured: bool) -> list[Change]:
        """Changes of structure, and those of time that are large and certain enough, by what they add to a step."""
        structure = [self._change(i, pair.kind) for i, pair in enumerate(self._pairs) if self._is_top(pair)]
        before, after = np.median(self._before, axis=1), np.median(self._after, axis=1)
        candidates = [
            i
            for i, pair in enumerate(self._pairs)
            if pair.kind == SAME
            and self._counts(pair, before[i], after[i])
            and self._counts(pair, self._before[i, 0], self._after[i, 0])
        ]
        timed = []
        if is_measured:
            p_values = evidence.corrected(np.array([evidence.p_value(self._before[i], self._after[i]) for i in candidates]))
            certain = [(i, p) for i, p in zip(candidates, p_values.tolist(), strict=True) if p < P_VALUE]
            self.unclear = len(candidates) - len(certain)
            timed = [self._change(i, "slower" if after[i] > before[i] else "faster", p) for i, p in certain]
        else:
            timed = [self._change(i, "slower" if after[i] > before[i] else "faster") for i in candidates]
        return sorted(structure + timed, key=lambda change: -abs(change.delta_ns))

    def places(self) -> list[Change]:
        """The places that both have, changed or not, by the time they take."""
        before, after = np.median(self._before, axis=1), np.median(self._after, axis=1)
        both = [i for i, pair in enumerate(self._pairs) if pair.kind == SAME]
        return [self._change(i, "") for i in sorted(both, key=lambda i: -max(before[i], after[i]))[:SHOWN_PLACES]]

    def memory(self) -> list[Change]:
        """Places that keep more or fewer bytes in a step, the largest difference first."""
        if self._one.recording.session.memory is None or self._other.recording.session.memory is None:
            return []
        changes = [self._change(i, "") for i, pair in enumerate(self._pairs) if pair.kind == SAME]
        changed = [c for c in changes if abs(c.bytes[1] - c.bytes[0]) >= LEAST_BYTES]
        return sorted(changed, key=lambda change: -abs(change.bytes[1] - change.bytes[0]))

    def _counts(self, pair: Pair, before_ns: float, after_ns: float) -> bool:
        least = LEAST_RATIO_OF_PYTHON if self._one.is_python(pair.first) else LEAST_RATIO
        delta = abs(after_ns - before_ns)
        return bool(delta >= self._least_ns and delta >= least * before_ns)

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
            shapes=shapes if shapes[0] != shapes[1] else ("", ""),
            before_ns=self._time(self._one, first, self._before[at], kind),
            after_ns=self._time(self._other, second, self._after[at], kind),
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
    return 0.0 if node < 0 else tree.calls.item(node) / len(tree.step_ns)


def _bytes(tree: CallTree, node: int) -> float:
    return 0.0 if node < 0 else float(np.median(tree.bytes[node]))
