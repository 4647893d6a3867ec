"""Times of slices that nest for readers which add `ts` and `dur` in double precision, too.

A trace has microseconds with three decimals, which doubles round: `ts + dur` of an event may come out below the sum of an event inside
it that ends in the same nanosecond. Such an inner event is written a nanosecond shorter.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from ..model import tree
from ..model.session import Column, Session

__all__ = ["SliceTimes", "length_until", "slice_times"]


class SliceTimes(NamedTuple):
    """Starts and ends of all rows, in nanoseconds after the base."""

    start: Column
    end: Column


def slice_times(session: Session, base_ns: int) -> SliceTimes:
    """The session's times, with ends moved to the front where the sums of a reader would not nest or would overlap the next slice.

    An event moves by a nanosecond at a time until its sum is right, and what is inside follows; an event without length moves as a
    whole. No event leaves the one around it, so this comes to an end.
    """
    times = SliceTimes(session.start_ns - base_ns, session.end_ns - base_ns)
    if len(session):
        _Nesting(session, times, max(times.end.max().item(), session.info.stopped_ns - base_ns)).settle()
    return times


class _Nesting:
    """Return the pairs of events that limit each other: the event around, and the next one in it or on its track."""

    def __init__(self, session: Session, times: SliceTimes, last: int) -> None:
        self.start, self.end = times
        self.last = last
        self.parent = tree.parents(session).astype(np.int64)
        self.around = np.where(self.parent >= 0, self.parent, -1 - session.track)  # the event, or else the track
        self.order = np.argsort(self.around, kind="stable")
        siblings = self.around[self.order[:-1]] == self.around[self.order[1:]]
        self.before, self.following = np.full(len(session), -1, np.int64), np.full(len(session), -1, np.int64)
        self.following[self.order[:-1][siblings]] = self.order[1:][siblings]
        self.before[self.order[1:][siblings]] = self.order[:-1][siblings]

    def settle(self) -> None:
        """Move what has to move. Few rows do, and of the others only those that such a row limits are looked at again."""
        rows = self._late()
        heapq.heapify(rows)
        while rows:
            row = heapq.heappop(rows)
            if self._move(row):
                for affected in (self.before.item(row), *self._children(row)):
                    if affected >= 0:
                        heapq.heappush(rows, affected)

    def _late(self) -> list[int]:
        """Rows that end too late, by their own times or by the sums of a reader."""
        sums = self.start / 1000 + (self.end - self.start) / 1000  # dividing rounds to the double that the text is read as
        inside, followed = self.parent >= 0, self.following >= 0
        late = sums > self.last / 1000
        late[inside] |= sums[inside] > sums[self.parent[inside]]
        late[followed] |= sums[followed] > self.start[self.following[followed]] / 1000
        return np.flatnonzero(late).tolist()

    def _children(self, row: int) -> list[int]:
        first, last = np.searchsorted(self.around, [row, row + 1], sorter=self.order).tolist()
        return self.order[first:last].tolist()

    def _move(self, row: int) -> bool:
        """Move a row as far as it has to; whether that was any."""
        start, end = self.start.item(row), self.end.item(row)
        limit, limit_of_sum = self._limits(row)
        new_end = min(end, limit)
        while min(start, new_end) / 1000 + max(new_end - start, 0) / 1000 > limit_of_sum:
            new_end -= 1
        self.start[row], self.end[row] = min(start, new_end), new_end
        return new_end < end

    def _limits(self, row: int) -> tuple[int, float]:
        limits, sums = [self.last], [self.last / 1000]
        around, following = self.parent.item(row), self.following.item(row)
        if around >= 0:
            start, end = self.start.item(around), self.end.item(around)
            limits.append(end)
            sums.append(start / 1000 + (end - start) / 1000)
        if following >= 0:
            limits.append(self.start.item(following))
            sums.append(self.start.item(following) / 1000)
        return min(limits), min(sums)


def length_until(start: int, end: int) -> int:
    """The length of a slice whose sum is not after `end`."""
    length = end - start
    return length - (length > 0 and start / 1000 + length / 1000 > end / 1000)
