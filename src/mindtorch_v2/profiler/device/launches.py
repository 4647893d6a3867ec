"""Launches of work: how long it took from the call to the start, and how many were waiting in a stream."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..model.session import Column
from .work import Work

__all__ = ["Launches", "Queue"]


@dataclass(frozen=True)
class Launches:
    """The calls that launched work. A delay is the time from the end of the call to the start of the work, or nothing."""

    count: int
    unknown: int  # work whose launch is not in the recording
    call_total_ns: int
    call_median_ns: float
    delay_total_ns: int
    delay_median_ns: float
    delay_max_ns: int
    shorter_than_call: int  # work that took less time than the call that launched it

    @classmethod
    def of(cls, work: Work) -> Launches:
        told = work.launch >= 0
        session, launch = work.session, work.launch[told]
        call = session.end_ns[launch] - session.start_ns[launch]
        delay = np.maximum(work.start[told] - session.end_ns[launch], 0)
        return cls(
            count=len(launch),
            unknown=int((~told).sum()),
            call_total_ns=int(call.sum()),
            call_median_ns=_median(call),
            delay_total_ns=int(delay.sum()),
            delay_median_ns=_median(delay),
            delay_max_ns=int(delay.max(initial=0)),
            shorter_than_call=int((work.duration[told] < call).sum()),
        )


@dataclass(frozen=True, eq=False)
class Queue:
    """How much launched work a stream had not begun, over time: `length` from each `time_ns` to the next."""

    time_ns: Column
    length: Column
    maximum: int
    mean: float  # over time

    @classmethod
    def of(cls, work: Work) -> Queue:
        """Launched work waits from the start of the call to its own start."""
        told = work.launch >= 0
        launched, began = work.session.start_ns[work.launch[told]], work.start[told]
        time = np.concatenate([launched, began])
        change = np.concatenate([np.ones(len(launched), np.int64), np.full(len(began), -1)])
        order = np.lexsort((-change, time))  # of one moment, launches first: the queue is not shorter than nothing
        time, length = time[order], np.cumsum(change[order])
        span = int(time[-1] - time[0]) if len(time) else 0
        mean = float((length[:-1] * np.diff(time)).sum() / span) if span else 0.0
        return cls(time, length, int(length.max(initial=0)), mean)


def _median(values: Column) -> float:
    return float(np.median(values)) if len(values) else 0.0
