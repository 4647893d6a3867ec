"""torch.monitor: windows of numbers, and events."""

from datetime import datetime, timedelta

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import monitor
from mindtorch_v2.monitor import Aggregation

LONG = timedelta(days=1000)


@pytest.fixture
def events():
    seen = []
    handle = monitor.register_event_handler(lambda event: seen.append((event.name, event.data)))
    yield seen
    monitor.unregister_event_handler(handle)


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(monitor.time, "time", lambda: now[0])
    return now


def test_a_window_that_ends_is_an_event(events, clock):
    stat = monitor.Stat("s", list(Aggregation), timedelta(seconds=10))
    assert set(stat.get().values()) == {0.0}
    stat.add(2)
    stat.add(5)
    assert (stat.count, stat.get()[Aggregation.SUM], events) == (2, 0.0, [])
    clock[0] = 10.0
    stat.add(1)
    values = {"s.mean": 3.5, "s.count": 2.0, "s.sum": 7.0, "s.max": 5.0, "s.min": 2.0}
    assert events == [("torch.monitor.Stat", values)]
    assert (stat.count, stat.get()[Aggregation.MEAN]) == (1, 3.5)
    del stat
    assert events[1][1]["s.sum"] == 1.0


def test_many_numbers_end_a_window_early(events, clock):
    stat = monitor.Stat("t", [Aggregation.SUM], LONG, 2)
    for number in (1, 2, 3):
        stat.add(number)
    assert events == [("torch.monitor.Stat", {"t.sum": 3.0})]
    assert (stat.count, stat.get()) == (0, {Aggregation.SUM: 3.0})


def test_events_of_the_program(events):
    event = monitor.Event("x", datetime.now(), {"a": 1, "b": 2.5, "c": True, "d": "s"})
    torch.monitor.log_event(event)
    assert events == [("x", {"a": 1, "b": 2.5, "c": 1.0, "d": "s"})]


def test_values_are_written_as_scalars(clock):
    class Writer:
        def __init__(self):
            self.written = []

        def add_scalar(self, name, value, walltime):
            self.written.append((name, value, type(walltime)))

    writer = Writer()
    handle = monitor.register_event_handler(monitor.TensorboardEventHandler(writer))
    monitor.Stat("q", [Aggregation.MEAN], LONG, 1).add(3)
    monitor.log_event(monitor.Event("other", datetime.now(), {"a": 1}))
    monitor.unregister_event_handler(handle)
    assert writer.written == [("q.mean", 3.0, float)]


@pytest.mark.parametrize(
    "call",
    [
        lambda: monitor.Event("x", 3, {}),
        lambda: monitor.Event("x", datetime.now(), {"a": [1]}),
        lambda: monitor.Stat("a", [3], LONG),
        lambda: monitor.Stat("a", [Aggregation.SUM], LONG).add("x"),
    ],
)
def test_what_is_refused(call):
    with pytest.raises(TypeError):
        call()
