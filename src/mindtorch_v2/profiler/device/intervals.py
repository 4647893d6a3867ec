"""Intervals of time as two columns, starts and ends: joined and measured."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..model.session import Column

__all__ = ["Intervals", "gaps", "union"]


class Intervals(NamedTuple):
    """Intervals that do not overlap, in order."""

    start: Column
    end: Column

    @property
    def total(self) -> int:
        return int((self.end - self.start).sum())


def union(start: Column, end: Column) -> Intervals:
    """The time that is in any of these intervals, as few intervals as there can be."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    if not len(start):
        return Intervals(start, end)
    latest = np.maximum.accumulate(end)
    first = np.concatenate([[True], start[1:] > latest[:-1]])
    last = np.concatenate([first[1:], [True]])
    return Intervals(start[first], latest[last])


def gaps(which: Intervals) -> Intervals:
    """The time between intervals."""
    return Intervals(which.end[:-1], which.start[1:])
