"""The work of other threads and processes, beside the steps of the thread that started the recording.

It has no steps of its own: a thread that loads data runs ahead, and one of a pool takes what comes. So what is compared is what it does again and
again: its outermost calls of one name, module, line and shapes, each with a tree of all that is inside. Threads that differ by a number in their names
are one, since a pool deals its work out differently in each run.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..model import tree
from ..model.steps import Steps
from .call_tree import Calls, CallTree, line_of

__all__ = ["SidePair", "side_pairs"]

Column = np.ndarray[Any, np.dtype[Any]]
T = TypeVar("T")

NUMBER = re.compile(r"\d+")
NAMED = 2  # threads that are named; others are counted


class SidePair(NamedTuple):
    """A tree of the first run and one of the second, of which either may be missing; and the thread or process."""

    first: CallTree | None
    second: CallTree | None
    where: str
    has_steps: bool = False  # of its own


class _Kind(NamedTuple):
    """The facts by which calls are grouped."""

    name: str
    module: str
    line: str
    shapes: str


@dataclass(frozen=True, eq=False)
class _Work:
    """The outermost calls of one kind on the threads of one name."""

    calls: Calls
    lane: str  # their name, without numbers
    kind: _Kind
    top: Column  # places among the calls of the session, in order of time
    steps: int  # of the program, meanwhile
    threads: str

    @property
    def step_ns(self) -> float:
        """The time of these calls for each step of the program."""
        rows = self.calls.rows[self.top]
        return float((self.calls.session.end_ns - self.calls.session.start_ns)[rows].sum()) / self.steps

    def tree(self) -> CallTree:
        calls, session = self.calls, self.calls.session
        number = np.full(len(calls.rows), -1)
        number[self.top] = np.arange(len(self.top))
        for level in tree.groups(session.depth[calls.rows]):
            inner = level[calls.caller[level] >= 0]
            number[inner] = number[calls.caller[inner]]
        chosen = np.flatnonzero(number >= 0)
        chosen = chosen[np.argsort(number[chosen], kind="stable")]
        rows = calls.rows[self.top]
        return calls.tree(chosen, number[chosen], session.start_ns[rows], session.end_ns[rows], len(self.top) / self.steps)


@dataclass(frozen=True, eq=False)
class _Process:
    """The calls of a process outside of the program's steps; its name is empty for the process that makes the steps."""

    calls: Calls
    name: str
    program: CallTree

    @property
    def has_steps(self) -> bool:
        return bool(self.name) and len(Steps.of(self.calls.recording)) > 0

    def steps(self) -> CallTree:
        """The tree of its own steps, with times in a step of the program."""
        found = self.calls.steps()
        per_step = len(found.step_ns) / len(self.program.step_ns)
        return replace(found, self_ns=found.self_ns * per_step, bytes=found.bytes * per_step, per_step=per_step)

    def works(self, *, with_main: bool) -> list[_Work]:
        """What its threads do while the program makes steps, with or without the thread that started the recording."""
        calls, session = self.calls, self.calls.session
        began, ended = self.program.step_start_ns[0], self.program.step_start_ns[-1] + self.program.step_ns[-1]
        start_ns = session.start_ns[calls.rows]
        is_here = (calls.caller < 0)[: len(calls.rows)] & (start_ns >= began) & (start_ns < ended)
        on_cpu = np.array([track.device_type == "CPU" for track in session.tracks], bool)
        is_wanted = with_main | ~calls.is_main
        tops: Column = np.flatnonzero(is_here & is_wanted & on_cpu[session.track[calls.rows]]) if len(calls.rows) else calls.rows
        found: defaultdict[tuple[str, _Kind], list[int]] = defaultdict(list)
        names = [NUMBER.sub("", track.name) for track in session.tracks]
        for top in tops.tolist():
            found[names[session.track.item(calls.rows.item(top))], self._kind(top)].append(top)
        return [
            _Work(calls, lane, kind, np.array(of_kind), len(self.program.step_ns), self._threads(of_kind))
            for (lane, kind), of_kind in found.items()
        ]

    def _kind(self, top: int) -> _Kind:
        calls, row = self.calls, self.calls.rows.item(top)
        module, shape = calls.module.item(row), calls.shape.item(row)
        return _Kind(
            calls.names[calls.label.item(top)],
            calls.module_paths[module] if module >= 0 else "",
            line_of(calls.recording, row),
            calls.shape_texts[shape] if shape >= 0 else "",
        )

    def _threads(self, tops: list[int]) -> str:
        """The names of the threads on which these calls are."""
        session = self.calls.session
        names = [session.tracks[i].name for i in np.unique(session.track[self.calls.rows[tops]]).tolist()]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        text = f"{'thread' if len(names) == 1 else 'threads'} {', '.join(names[:NAMED])}{more}"
        return f"{self.name}, {text}" if self.name else text


def side_pairs(
    first: Sequence[Calls], second: Sequence[Calls], one: CallTree, other: CallTree, *, least_ns: float
) -> Iterator[SidePair]:
    """Return the work of other threads and processes in either run that takes at least this time for each step; `one` and `other` are the steps."""
    for mine, theirs in _matched(_processes(first, one), _processes(second, other), lambda process: NUMBER.sub("", process.name)):
        is_stepping = mine is not None and theirs is not None and mine.has_steps and theirs.has_steps
        if mine is not None and theirs is not None and is_stepping:
            yield SidePair(mine.steps(), theirs.steps(), theirs.name, has_steps=True)
        before, after = (
            [] if process is None else process.works(with_main=bool(process.name) and not is_stepping) for process in (mine, theirs)
        )
        for was, now in _matched(
            before,
            after,
            lambda work: (work.lane, work.kind),
            lambda work: (work.lane, work.kind[:3]),
            lambda work: (work.lane, work.kind[:2]),
            lambda work: work.kind,
            lambda work: work.kind[:2],
        ):
            present = [work for work in (now, was) if work is not None]
            if max(work.step_ns for work in present) >= least_ns:
                trees = [None if work is None else work.tree() for work in (was, now)]
                yield SidePair(trees[0], trees[1], present[0].threads)


def _processes(sessions: Sequence[Calls], program: CallTree) -> list[_Process]:
    return [
        _Process(calls, f"process {calls.session.info.process_name} {number}" if number else "", program)
        for number, calls in enumerate(sessions)
    ]


def _matched(left: Sequence[T], right: Sequence[T], *keys: Callable[[T], Hashable]) -> list[tuple[T | None, T | None]]:
    """Pair items whose keys are equal, trying these keys in turn; items without a partner are returned alone."""
    found: list[tuple[T | None, T | None]] = []
    mine, theirs = list(left), list(right)
    for key in keys:
        waiting: defaultdict[Hashable, list[T]] = defaultdict(list)
        for each in theirs:
            waiting[key(each)].append(each)
        alone = []
        for each in mine:
            if others := waiting[key(each)]:
                found.append((each, others.pop(0)))
            else:
                alone.append(each)
        mine, theirs = alone, [each for others in waiting.values() for each in others]
    return [*found, *((each, None) for each in mine), *((None, each) for each in theirs)]
