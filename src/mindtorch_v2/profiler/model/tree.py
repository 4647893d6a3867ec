"""Parents and self times of events, vectorised over the columns of a session."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from .session import Session

__all__ = ["children_ns", "depths", "groups", "inside", "levels", "nested", "parents"]

Column = np.ndarray[Any, np.dtype[Any]]


def depths(start_ns: Column, end_ns: Column) -> Column:
    """Count the events around each one, on one track. Rows are in order of start, enclosing ones first; ends nest."""
    if np.any(start_ns == end_ns):
        return _depths_one_by_one(start_ns, end_ns)
    # of the rows before this one, those that have not ended yet are around it
    ended = np.searchsorted(np.sort(end_ns), start_ns, side="right")
    return (np.arange(len(start_ns)) - ended).astype(np.int32)


def _depths_one_by_one(start_ns: Column, end_ns: Column) -> Column:
    """The same for a clock that stood still: an event without length is inside those that began before it."""
    depth = np.empty(len(start_ns), np.int32)
    open_until: list[tuple[int, int]] = []
    for i, (start, end) in enumerate(zip(start_ns.tolist(), end_ns.tolist(), strict=True)):
        while open_until and (open_until[-1][1] < start or (open_until[-1][1] == start and end > start)):
            open_until.pop()
        depth[i] = len(open_until)
        open_until.append((start, end))
    return depth


def nested(start_ns: Column, end_ns: Column, weight: Column) -> tuple[Column, Column, Column]:
    """Starts, ends and depths of one track's events, such that they nest.

    They do, unless a scope was entered in one function and left in another, or closed from another thread. Where two events
    straddle, the one of less weight is cut where the other begins or ends; of equal weight, the one that began later.
    """
    depth = depths(start_ns, end_ns)
    parent = _parents_of(depth)
    inside = parent >= 0
    if (depth >= 0).all() and (end_ns[inside] <= end_ns[parent[inside]]).all():
        return start_ns, end_ns, depth
    start, end = _cut(start_ns.tolist(), end_ns.tolist(), weight.tolist())
    return start, end, _depths_one_by_one(start, end)


def _cut(starts: list[int], ends: list[int], weight: list[int]) -> tuple[Column, Column]:
    open_rows: list[int] = []
    for i, start in enumerate(starts):
        while open_rows and ends[open_rows[-1]] <= start:
            open_rows.pop()
        # from the inside out: whatever ends before this event does, but began before it, straddles
        for at in range(len(open_rows) - 1, -1, -1):
            around = open_rows[at]
            if ends[i] <= ends[around]:
                continue
            if weight[around] < weight[i]:
                ends[around] = start
                del open_rows[at]
            else:
                ends[i] = ends[around]
        open_rows.append(i)
    return np.array(starts, np.int64), np.array(ends, np.int64)


def _parents_of(depth: Column) -> Column:
    """Row of the event around each on one track, -1 for none."""
    parent = np.full(len(depth), -1, np.int64)
    for above, here in itertools.pairwise(groups(depth)):
        parent[here] = above[np.searchsorted(above, here) - 1]
    return parent


def parents(session: Session, *, skip: tuple[str, ...] = ()) -> Column:
    """Row of the event around each, -1 for none, passing over events of the kinds to skip."""
    parent = np.full(len(session), -1, np.int32)
    for rows in groups(session.track):
        found = _parents_of(session.depth[rows])
        parent[rows] = np.where(found < 0, -1, rows[found])
    if skip:
        skipped = np.array([label.kind in skip for label in session.labels], bool)[session.label]
        while (over := (parent >= 0) & skipped[parent]).any():
            parent[over] = parent[parent[over]]
    return parent


def groups(values: Column) -> list[Column]:
    """Positions of each distinct value, in order of the values; positions rise in each."""
    if len(values) and values.min() >= -(1 << 15) and values.max() < 1 << 15:
        values = values.astype(np.int16)  # of which NumPy sorts a million by their digits, in a tenth of the time
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.diff(values[order])) + 1
    return np.split(order, starts) if len(order) else []


def levels(session: Session) -> list[Column]:
    """Rows by depth; everything around a row is in a list before its own."""
    return groups(session.depth)


def inside(session: Session, mark: Column, parent: Column) -> Column:
    """Whether each event is inside one that is marked."""
    found = np.zeros(len(mark), bool)
    for rows in levels(session)[1:]:
        around = parent[rows]
        found[rows] = (around >= 0) & (mark[around] | found[around])
    return found


def children_ns(duration_ns: Column, parent: Column) -> Column:
    """Sum the time of the direct children of each event."""
    inside = parent >= 0
    # bincount sums in float64, exact up to 2**53 ns (104 days)
    return np.bincount(parent[inside], weights=duration_ns[inside], minlength=len(parent)).astype(np.int64)
