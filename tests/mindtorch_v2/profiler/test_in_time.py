"""`post_processing_timeout_s`: the events that can be made in time, with a clock that the test advances."""

import pytest

from mindtorch_v2.profiler.output.event_list import EventList
from mindtorch_v2.profiler.output.in_time import FIRST_PIECE, events_in_time

from .by_hand import op, record

COUNT = 3 * FIRST_PIECE


@pytest.fixture(scope="module")
def session():
    return record([op("aten::add", 10 * i, 10 * i + 5) for i in range(COUNT)])


class Worker:
    """Makes lists of events, at so many seconds an event."""

    def __init__(self, seconds_an_event: float) -> None:
        self.now = 100.0
        self.seconds_an_event = seconds_an_event

    def make(self, session):
        self.now += len(session) * self.seconds_an_event
        return EventList.of(session)

    def events(self, session, timeout_s):
        return events_in_time(session, timeout_s, make=self.make, clock=lambda: self.now)


def test_all_when_there_is_time(session):
    events, count = Worker(0.001).events(session, 1000.0)
    assert len(events) == count == COUNT
    assert "not kept" not in events.table(row_limit=1)


def test_no_time_makes_none(session):
    worker = Worker(0.001)
    events, count = worker.events(session, 0.0)
    assert (len(events), count, worker.now) == (0, 0, 100.0)


@pytest.mark.parametrize("share", [0.4, 0.7, 0.9])
def test_a_part_in_time(session, share):
    worker = Worker(0.001)
    timeout_s = (COUNT * share + FIRST_PIECE) * 0.001  # the first attempt takes time, too
    events, count = worker.events(session, timeout_s)
    assert len(events) == count
    assert COUNT * share - 2 <= count < COUNT
    assert worker.now - 100.0 <= timeout_s
    assert [event.time_range.start for event in events[:2]] == [0.0, 0.01]


def test_a_part_says_so_in_its_tables(session):
    events, count = Worker(0.001).events(session, 8.0)
    sentence = f"{COUNT - count:,} recorded events are not kept: {COUNT - count:,} made after post_processing_timeout_s"
    assert sentence in events.table(row_limit=1)
    assert sentence in events.key_averages().table()
    assert session.info.dropped == ()


def test_a_first_attempt_that_takes_all_the_time_is_the_last(session):
    worker = Worker(1.0)
    events, count = worker.events(session, 1.0)
    assert len(events) == count == FIRST_PIECE
    assert worker.now == 100.0 + FIRST_PIECE
