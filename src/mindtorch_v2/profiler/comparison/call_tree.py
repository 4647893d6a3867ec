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
from ..model.recording import Recording
from ..model.session import Session
from ..model.steps import Steps
from ..model.time_parts import intervals, tracks_of_main_thread

__all__ = ["OUTSIDE", "CallTree"]

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
        """Where in the source the first call was made, if stacks were recorded: `train.py:12:forward`."""
        row, session = self.first_row.item(node), self.recording.session
        stack = self.recording.stack.item(row) if row >= 0 and session.stack is not None else -1
        if stack < 0 or not session.stack_table[stack]:
            return ""
        file, line, function = session.frames[session.stack_table[stack][0]]
        return f"{file}:{line}:{function}"

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
        recording = Recording(session)
        starts, ends = _steps(recording)
        rows, step = _calls(recording, starts, ends)
        parent = tree.parents(session, skip=SKIPPED)
        place = np.full(len(session), -1)  # in `rows`
        place[rows] = np.arange(len(rows))
        caller = np.where(parent[rows] >= 0, place[parent[rows]], -1)
        names, name = np.unique([*recording.names, ""], return_inverse=True)
        label = name[session.label[rows]]
        node, node_parent, node_label = _nodes(caller, label, step, session.depth[rows])
        count = len(node_parent)
        first = np.full(count, -1)
        first[node[::-1]] = rows[::-1]  # the first call of each node is written last
        attribution = modules.attribute(session) if session.info.with_modules and len(session) else None
        shape, shape_texts = _shapes(recording, first)
        self_ns = np.zeros((count, len(starts)))
        duration = (session.end_ns - session.start_ns)[rows]
        inside = np.bincount(caller[caller >= 0], duration[caller >= 0], minlength=len(rows))
        np.add.at(self_ns, (node, step), duration - inside)
        outermost = np.bincount(step[caller < 0], duration[caller < 0], minlength=len(starts))
        self_ns[0] = ends - starts - outermost
        made = np.zeros((count, len(starts)))
        if session.memory is not None:
            changes = np.flatnonzero(session.memory.event >= 0)
            owner = place[session.memory.event[changes]]
            np.add.at(made, (node[owner[owner >= 0]], step[owner[owner >= 0]]), session.memory.size_bytes[changes[owner >= 0]])
        order = np.bincount(node, np.arange(len(rows)) - np.searchsorted(step, step), minlength=count)
        calls = np.bincount(node, minlength=count)
        calls[0] = len(starts)
        return cls(
            recording=recording,
            parent=node_parent,
            label=node_label,
            module=np.full(count, -1) if attribution is None else np.where(first >= 0, attribution.module[first], -1),
            shape=shape,
            position=order / np.maximum(calls, 1),
            calls=calls,
            self_ns=self_ns,
            bytes=made,
            names=names.tolist(),
            module_paths=[] if attribution is None else [modules.path(parts) for parts in attribution.modules],
            shape_texts=shape_texts,
            first_row=first,
            step_ns=ends - starts,
            step_start_ns=starts,
        )


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


def _calls(recording: Recording, starts: Column, ends: Column) -> tuple[Column, Column]:
    """The rows of operators and scopes inside the steps, and the step of each."""
    session = recording.session
    mine = tracks_of_main_thread(session)[session.track] if len(session) else np.zeros(0, bool)
    counts = (
        recording.of_labels(lambda e: e.kind not in SKIPPED and not e.name.startswith("ProfilerStep#")) if len(session) else mine
    )
    at = np.searchsorted(starts, session.start_ns, side="right") - 1
    within = (at >= 0) & (session.end_ns <= ends[np.maximum(at, 0)])
    rows = np.flatnonzero(mine & counts & within)
    return rows, at[rows]


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


def _shapes(recording: Recording, first: Column) -> tuple[Column, list[str]]:
    """The shapes of the inputs of each node's first call, as numbers and texts."""
    column = recording.session.inputs
    if column is None or not recording.session.info.record_shapes:
        return np.full(len(first), -1), []
    number = np.where(first >= 0, column[first], -1)
    table = recording.session.input_table
    texts, which = np.unique([str(inputs.shapes(call)) for call in table] or [""], return_inverse=True)
    return np.where(number >= 0, which[number] if len(table) else -1, -1), texts.tolist()
