"""The calls of a session's steps, laid on top of each other: one node for each place in a step.

A place is the way from the beginning of a step to a call: the names of the calls around it, and which call of that name it is among those of the
same caller. `aten::linear` twice in a step are two nodes, and a hundred steps have the same two.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..model import inputs, modules, tree
from ..model.places import own_frame
from ..model.recording import Recording
from ..model.session import Session
from ..model.steps import Steps
from ..model.time_parts import intervals, tracks_of_main_thread

__all__ = ["OUTSIDE", "CallTree", "Calls", "line_of"]

Column = np.ndarray[Any, np.dtype[Any]]

OUTSIDE = "own Python"  # the name of the root: the time of a step that no call has
SKIPPED = ("python_function", "memory", "gc", "compile")
WARMUP = 2  # steps that are left out at the beginning, if there are many
ENOUGH = 6


@dataclass(frozen=True, eq=False)
class CallTree:
    """Nodes by number: 0 is the step itself, and a parent comes before its children. Columns have an entry for each node.

    `self_ns[node, step]` is the time at a place that is in no call inside of it, `bytes` the memory that was made there and not freed. `calls` says
    how often the place was reached in all steps.
    """

    recording: Recording
    parent: Column
    label: Column  # into names
    module: Column  # into module_paths, -1 for none
    shape: Column  # into shape_texts, -1 if that is not recorded; of the first call
    position: Column  # mean order among its siblings
    calls: Column
    self_ns: Column
    bytes: Column
    names: list[str]
    module_paths: list[str]
    shape_texts: list[str]
    first_row: Column  # of the session; -1 for the step
    step_ns: Column  # how long each step took
    step_start_ns: Column
    per_step: float = 1.0  # how often the tree is in a step of the program, if its steps are not those

    def __len__(self) -> int:
        return len(self.parent)

    def name(self, node: int) -> str:
        return OUTSIDE if node == 0 else self.names[self.label.item(node)]

    def is_python(self, node: int) -> bool:
        """Whether the time of the place itself is Python's: that of the step, and of scopes."""
        row = self.first_row.item(node)
        return row < 0 or self.recording.label(row).kind == "scope"

    def module_of(self, node: int) -> str:
        number = self.module.item(node)
        return self.module_paths[number] if number >= 0 else ""

    def shape_of(self, node: int) -> str:
        number = self.shape.item(node)
        return self.shape_texts[number] if number >= 0 else ""

    def place(self, node: int) -> str:
        """The line of the program that led to the first call, if stacks were recorded: `train.py:12:forward`."""
        row = self.first_row.item(node)
        return line_of(self.recording, row) if row >= 0 else ""

    def path(self, node: int) -> list[str]:
        """The names from the outermost call to this one."""
        found: list[str] = []
        while node > 0:
            found.append(self.name(node))
            node = self.parent.item(node)
        return found[::-1]

    @functools.cached_property
    def children(self) -> list[list[int]]:
        """The nodes inside each, in order."""
        found: list[list[int]] = [[] for _ in range(len(self))]
        for node in np.lexsort((np.arange(len(self)), self.position)).tolist():
            if node:
                found[self.parent.item(node)].append(node)
        return found

    @functools.cached_property
    def total_ns(self) -> Column:
        """`self_ns` with that of all nodes inside."""
        total = self.self_ns.copy()
        for node in range(len(self) - 1, 0, -1):
            total[self.parent[node]] += total[node]
        return total

    @classmethod
    def of(cls, session: Session) -> CallTree:
        """The tree of the steps on the thread that started the recording; without steps, all of it is one."""
        return Calls(session).steps()


def line_of(recording: Recording, row: int) -> str:
    """The line of the program that led to an event; empty if stacks were not recorded."""
    session = recording.session
    stack = recording.stack.item(row) if session.stack is not None else -1
    own = own_frame(session.stack_table[stack], session.frames, recording.places) if stack >= 0 else -1
    return str(session.frames[own]) if own >= 0 else ""


class Calls:
    """The operators and scopes of a session, of which trees are made. `caller` is the place of each call's caller among them, -1 for none."""

    def __init__(self, session: Session) -> None:
        self.recording = recording = Recording(session)
        self.session = session
        counts = (
            recording.of_labels(lambda e: e.kind not in SKIPPED and not e.name.startswith("ProfilerStep#"))
            if len(session)
            else np.zeros(0, bool)
        )
        self.rows = np.flatnonzero(counts)
        parent = tree.parents(session, skip=SKIPPED)[self.rows]
        place = np.full(len(session), -1)
        place[self.rows] = np.arange(len(self.rows))
        self.caller = np.where(parent >= 0, place[parent], -1) if len(self.rows) else place
        names, name = np.unique([*recording.names, ""], return_inverse=True)
        self.names, self.label = names.tolist(), name[session.label[self.rows]]
        attribution = modules.attribute(session) if session.info.with_modules and len(session) else None
        self.module = np.full(len(session), -1) if attribution is None else attribution.module
        self.module_paths = [] if attribution is None else [modules.path(parts) for parts in attribution.modules]
        self.shape, self.shape_texts = _shapes(recording)

    @property
    def is_main(self) -> Column:
        """Whether each call is of the thread that started the recording."""
        session = self.session
        return tracks_of_main_thread(session)[session.track[self.rows]] if len(self.rows) else np.zeros(0, bool)

    def steps(self) -> CallTree:
        """The tree of the steps on the thread that started the recording; without steps, all of it is one."""
        starts, ends = _steps(self.recording)
        at = np.searchsorted(starts, self.session.start_ns[self.rows], side="right") - 1
        within = (at >= 0) & (self.session.end_ns[self.rows] <= ends[np.maximum(at, 0)])
        chosen = np.flatnonzero(self.is_main & within)
        return self.tree(chosen, at[chosen], starts, ends)

    def tree(self, chosen: Column, step: Column, starts: Column, ends: Column, per_step: float = 1.0) -> CallTree:
        """The tree of some calls, with all that they are inside of; `step` is that of each, from `starts` to `ends`.

        Where these are no steps but happen so many times in one, times and bytes are those of a step.
        """
        session, rows = self.session, self.rows[chosen]
        place = np.full(len(self.rows) + 1, -1)
        place[chosen] = np.arange(len(chosen))
        caller = place[self.caller[chosen]]
        node, node_parent, node_label = _nodes(caller, self.label[chosen], step, session.depth[rows])
        count = len(node_parent)
        first = np.full(count, -1)
        first[node[::-1]] = rows[::-1]  # the first call of each node is written last
        self_ns = np.zeros((count, len(starts)))
        duration = (session.end_ns - session.start_ns)[rows]
        inside = np.bincount(caller[caller >= 0], duration[caller >= 0], minlength=len(rows))
        np.add.at(self_ns, (node, step), duration - inside)
        outermost = np.bincount(step[caller < 0], duration[caller < 0], minlength=len(starts))
        self_ns[0] = ends - starts - outermost
        order = np.bincount(node, np.arange(len(rows)) - np.searchsorted(step, step), minlength=count)
        calls = np.bincount(node, minlength=count)
        calls[0] = len(starts)
        return CallTree(
            recording=self.recording,
            parent=node_parent,
            label=node_label,
            module=np.where(first >= 0, self.module[first], -1) if len(session) else first,
            shape=np.where(first >= 0, self.shape[first], -1) if len(session) else first,
            position=order / np.maximum(calls, 1),
            calls=calls,
            self_ns=self_ns * per_step,
            bytes=self._bytes(rows, node, step, self_ns.shape) * per_step,
            names=self.names,
            module_paths=self.module_paths,
            shape_texts=self.shape_texts,
            first_row=first,
            step_ns=ends - starts,
            step_start_ns=starts,
            per_step=per_step,
        )

    def _bytes(self, rows: Column, node: Column, step: Column, shape: tuple[int, ...]) -> Column:
        """The memory that was made at each node in each step, and not freed there."""
        made, memory = np.zeros(shape), self.session.memory
        if memory is not None:
            place = np.full(len(self.session) + 1, -1)
            place[rows] = np.arange(len(rows))
            owner = place[memory.event]
            is_owned = owner >= 0
            np.add.at(made, (node[owner[is_owned]], step[owner[is_owned]]), memory.size_bytes[is_owned])
        return made


def _steps(recording: Recording) -> tuple[Column, Column]:
    """When the steps begin and end. Those that warm up are left out: they compile and fill caches."""
    steps = Steps.of(recording)
    starts, ends = np.asarray(steps.start_ns), np.asarray(steps.end_ns)
    if not len(starts):
        began, ended = intervals(recording.session)[0][0], intervals(recording.session)[-1][1]
        return np.array([began]), np.array([ended])
    if steps.by == "step()" and len(starts) > 1:
        starts, ends = starts[:-1], ends[:-1]  # the last is what follows the last call of `step`, or was cut off by the end
    skipped = WARMUP if len(starts) >= ENOUGH else 0
    return starts[skipped:], ends[skipped:]


def _nodes(caller: Column, label: Column, step: Column, depth: Column) -> tuple[Column, Column, Column]:
    """The node of each call; the parent and the label of each node."""
    node = np.zeros(len(caller), np.int64)
    parents, labels = [np.array([-1])], [np.array([-1])]
    count = 1
    which = _occurrence(np.where(caller >= 0, caller, -1 - step), label)
    for rows in tree.groups(_levels(caller, depth)):
        around = np.where(caller[rows] >= 0, node[caller[rows]], 0)
        keys = np.stack([around, label[rows], which[rows]])
        distinct, number = np.unique(keys, axis=1, return_inverse=True)
        node[rows] = count + number.ravel()
        parents.append(distinct[0])
        labels.append(distinct[1])
        count += distinct.shape[1]
    return node, np.concatenate(parents), np.concatenate(labels)


def _levels(caller: Column, depth: Column) -> Column:
    """How many calls are around each. The depth counts other events, too."""
    level = np.zeros(len(caller), np.int64)
    for rows in tree.groups(depth):
        level[rows] = np.where(caller[rows] >= 0, level[caller[rows]] + 1, 0)
    return level


def _occurrence(caller: Column, label: Column) -> Column:
    """Of each call, how many calls of the same name the same caller made before."""
    order = np.lexsort((np.arange(len(caller)), label, caller))
    ordered = np.stack([caller[order], label[order]])
    new = np.concatenate([[True], (np.diff(ordered) != 0).any(axis=0)]) if len(order) else np.zeros(0, bool)
    starts = np.flatnonzero(new)
    which = np.empty(len(caller), np.int64)
    which[order] = np.arange(len(order)) - starts[np.cumsum(new) - 1] if len(order) else 0
    return which


def _shapes(recording: Recording) -> tuple[Column, list[str]]:
    """The shapes of the inputs of each event, as numbers and texts."""
    session = recording.session
    if session.inputs is None or not session.info.record_shapes:
        return np.full(len(session), -1), []
    texts, which = np.unique([str(inputs.shapes(call)) for call in session.input_table] or [""], return_inverse=True)
    return np.where(session.inputs >= 0, which[session.inputs] if len(session.input_table) else -1, -1), texts.tolist()
