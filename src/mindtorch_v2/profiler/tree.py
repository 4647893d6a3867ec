"""Who is whose parent, and what each event took for itself: vectorised over the columns of a session."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from .session import Session

__all__ = ["children_ns", "depths", "parents", "self_ns"]

Column = np.ndarray[Any, np.dtype[Any]]


def depths(start_ns: Column, end_ns: Column) -> Column:
    """How many events are around each, on one track. Rows are in order of start, enclosing ones first; ends nest."""
    if np.any(start_ns == end_ns):
        return _depths_one_by_one(start_ns, end_ns)
    # of the rows before this one, those that have not ended yet are around it
    ended = np.searchsorted(np.sort(end_ns), start_ns, side="right")
    return (np.arange(len(start_ns)) - ended).astype(np.int16)


def _depths_one_by_one(start_ns: Column, end_ns: Column) -> Column:
    """As above, for a clock that stood still: an event without length is inside what began before it."""
    depth = np.empty(len(start_ns), np.int16)
    open_until: list[tuple[int, int]] = []
    for i, (start, end) in enumerate(zip(start_ns.tolist(), end_ns.tolist(), strict=True)):
        while open_until and (open_until[-1][1] < start or (open_until[-1][1] == start and end > start)):
            open_until.pop()
        depth[i] = len(open_until)
        open_until.append((start, end))
    return depth


def parents(session: Session, *, skip: tuple[str, ...] = ()) -> Column:
    """Row of the event around each, -1 for none, passing over events of the kinds to skip."""
    parent = np.full(len(session), -1, np.int32)
    for rows in _groups(session.track):
        for above, here in itertools.pairwise(_groups(session.depth[rows])):
            parent[rows[here]] = rows[above[np.searchsorted(above, here) - 1]]
    if skip:
        skipped = np.array([label.kind in skip for label in session.labels], bool)[session.label]
        while (over := (parent >= 0) & skipped[parent]).any():
            parent[over] = parent[parent[over]]
    return parent


def _groups(values: Column) -> list[Column]:
    """Positions of each distinct value, in order of the values; positions rise in each."""
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.diff(values[order])) + 1
    return np.split(order, starts) if len(order) else []


def children_ns(duration_ns: Column, parent: Column) -> Column:
    """What the direct children of each event took together."""
    inside = parent >= 0
    # bincount sums in float64, exact up to 2**53 ns (104 days)
    return np.bincount(parent[inside], weights=duration_ns[inside], minlength=len(parent)).astype(np.int64)


def self_ns(session: Session, parent: Column) -> Column:
    """Time of each event without its children's."""
    duration: Column = session.end_ns - session.start_ns
    return duration - children_ns(duration, parent)
