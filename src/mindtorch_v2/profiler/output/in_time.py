"""The events that can be made of a session in a given time."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

from ..model.dropping import TIMEOUT
from ..model.session import Session
from .event_list import EventList

__all__ = ["events_in_time"]

FIRST_PIECE = 4_096  # events, some 5 ms
GROWTH = 8  # from one attempt to the next: those before the last take a seventh of its time


def events_in_time(
    session: Session,
    timeout_s: float,
    *,
    make: Callable[[Session], EventList] = EventList.of,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[EventList, int]:
    """The events of a session that began first, as many as can be made in this time, and how many they are.

    A list has a tree of its own, which is made for all of its events at once. So lists are made of more and more events, each as long as the
    speed of the one before lets it be in time.
    """
    began = clock()
    events, count, following = make(_first(session, 0)), 0, FIRST_PIECE
    while count < len(session) and clock() - began < timeout_s and following > count:
        count = min(following, len(session))
        before = clock()
        events = make(_first(session, count))
        now = clock()
        in_time = (began + timeout_s - now) / max(now - before, 1e-9) * count
        following = min(GROWTH * count, int(in_time))
    return events, count


def _first(session: Session, count: int) -> Session:
    if count == len(session):
        return session
    dropped = (*session.info.dropped, (TIMEOUT, len(session) - count))
    return session.head(count).replace(info=dataclasses.replace(session.info, dropped=dropped))
