"""Time by what called what, merged into trees: operators, Python functions with operators, call sites, modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ....model import modules, tree
from ....model.places import of_libraries
from ....model.session import KINDS
from ..sources import Process, Texts, depths

__all__ = ["WAYS", "flame", "merged"]

Column = np.ndarray[Any, np.dtype[Any]]

NOT_OPERATORS = tuple(kind for kind in KINDS if kind not in ("op", "scope", "compile", "runtime"))
OUTSIDE = "outside of modules"


def flame(process: Process) -> dict[str, Any]:
    """A tree for each way to merge: nodes with their parent, name, and self time and count, outside and inside of backward passes."""
    return {by: merged(process, by) for by in WAYS}


def merged(process: Process, by: str) -> dict[str, Any]:
    """The tree of one way to merge, or what must be recorded for it."""
    needed, make = WAYS[by]
    return make(process) if not needed or getattr(process.session.info, needed) else {"needs": f"{needed}=True"}


def _events(process: Process, left_out: tuple[str, ...]) -> dict[str, Any]:
    """The tree of the events themselves, those at one place with one name merged."""
    session, recording = process.session, process.recording
    shown = np.zeros(len(session), bool)
    shown[recording.rows] = True
    shown &= recording.on_cpu & ~process.of_kinds(*left_out)
    parent = recording.around.copy()
    while (over := (parent >= 0) & ~shown[parent]).any():
        parent[over] = parent[parent[over]]
    names = Texts()
    name = names.numbers(recording.names)[session.label] if len(session) else np.empty(0, np.int64)
    node = np.full(len(session) + 1, -1, np.int64)  # the last stands for no parent
    parents, labels, count = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
    inside = np.flatnonzero(shown)
    for level in tree.groups(depths(session, parent)[inside]):
        rows = inside[level]
        above = node[parent[rows]]
        keys, which = np.unique((above + 1) * len(names.values) + name[rows], return_inverse=True)
        node[rows] = count + which
        parents.append(keys // len(names.values) - 1)
        labels.append(keys % len(names.values))
        count += len(keys)
    return _nodes(process, inside, node[inside], np.concatenate(parents), np.concatenate(labels), names)


def _stacks(process: Process) -> dict[str, Any]:
    """Call sites from the outside in, and below them the operators that were called there."""
    recording, places = process.recording, process.recording.places
    rows = recording.rows[recording.stack[recording.rows] >= 0]
    table = process.session.stack_table
    return _paths(process, rows, recording.stack[rows], [[places[frame] for frame in reversed(stack)] for stack in table])


def _modules(process: Process) -> dict[str, Any]:
    """Modules from the outside in, and below them the operators that they called."""
    recording, found = process.recording, process.recording.attribution
    shown = recording.on_cpu & ~process.of_kinds("python_function", "memory", "kernel")
    rows = recording.rows[shown[recording.rows]]
    paths = [[OUTSIDE], *([part.name for part in parts] for parts in found.modules)]
    return _paths(process, rows, found.module[rows] + 1, paths)


def _paths(process: Process, rows: Column, place: Column, paths: Sequence[Sequence[str]]) -> dict[str, Any]:
    """The tree of some paths, by the numbers that rows have; the name of an event is its leaf."""
    recording, names = process.recording, Texts()
    label = process.session.label[rows]
    keys, which = np.unique(place.astype(np.int64) * (len(recording.names) + 1) + label, return_inverse=True)
    known: dict[tuple[int, int], int] = {}

    def node(path: Iterable[str]) -> int:
        at = -1
        for name in path:
            at = known.setdefault((at, names.number(name)), len(known))
        return at

    leaves = [
        node([*paths[key // (len(recording.names) + 1)], recording.names[key % (len(recording.names) + 1)]])
        for key in keys.tolist()
    ]
    nodes = np.array(list(known), np.int64).reshape(-1, 2)
    return _nodes(process, rows, np.array(leaves, np.int64)[which], nodes[:, 0], nodes[:, 1], names)


def _nodes(process: Process, rows: Column, node: Column, parent: Column, name: Column, names: Texts) -> dict[str, Any]:
    """Columns of nodes; a parent stands before its children."""
    backward = process.phase[rows] == modules.BACKWARD
    self_ns = process.self_ns[rows]

    def sums(amounts: Column, mine: Column) -> Column:
        # whole numbers below 2**53, so that the sums are exact
        return np.bincount(node[mine], amounts[mine], minlength=len(parent)).astype(np.int64)

    ones = np.ones(len(rows), np.int64)
    return {
        "names": names.values,
        "library": np.array(of_libraries(names.values, process.session), np.uint8),
        "name": name,
        "parent": parent,
        "self": sums(self_ns, ~backward),
        "selfBackward": sums(self_ns, backward),
        "count": sums(ones, ~backward),
        "countBackward": sums(ones, backward),
    }


# By name, as addresses of the page have it: what must be recorded, and the tree.
WAYS: dict[str, tuple[str, Callable[[Process], dict[str, Any]]]] = {
    "operators": ("", lambda process: _events(process, NOT_OPERATORS)),
    "calls": ("with_stack", lambda process: _events(process, ("memory", "kernel"))),
    "stack": ("with_stack", _stacks),
    "module": ("with_modules", _modules),
}
