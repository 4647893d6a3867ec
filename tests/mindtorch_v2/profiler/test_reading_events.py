"""Reading the attributes of many events: from the columns, without an effect on what is asked of the list afterwards."""

import gc
import pickle
import sys

import numpy as np
import pytest

from mindtorch_v2.profiler.model.session import Frame, Info, Label, Session, TensorInput, Track
from mindtorch_v2.profiler.output.event_list import EventList

READINGS = {
    "name": lambda event: event.name,
    "cpu_time_total": lambda event: event.cpu_time_total,
    "self_cpu_time_total": lambda event: event.self_cpu_time_total,
    "self_cpu_memory_usage": lambda event: event.self_cpu_memory_usage,
    "cpu_parent": lambda event: event.cpu_parent,
    "cpu_children": lambda event: event.cpu_children,
    "input_shapes": lambda event: event.input_shapes,
    "stack": lambda event: event.stack,
    "kind": lambda event: event["kind"],
    "thread": lambda event: event.thread,
    "device_index": lambda event: event.device_index,
    "time_range.start": lambda event: event.time_range.start,
    'event["name"]': lambda event: event["name"],
}
GROUPS = 500


def session():
    """`GROUPS` times a scope around `linear` around `t` and `addmm`."""
    rows = np.arange(4 * GROUPS)
    group, kind = rows // 4, rows % 4
    matrix = TensorInput((2, 3), (3, 1), "float32")
    return Session(
        label=kind.astype("i4"),
        track=np.zeros(len(rows), "i4"),
        start_ns=group * 1000 + np.array([0, 100, 200, 400])[kind],
        end_ns=group * 1000 + np.array([990, 900, 300, 800])[kind],
        depth=np.array([0, 1, 2, 2], "i4")[kind],
        step=np.zeros(len(rows), "i4"),
        sequence=np.full(len(rows), -1),
        inputs=np.array([-1, 0, 1, 2], "i4")[kind],
        stack=np.array([0, 1, 1, 2], "i4")[kind],
        labels=(Label("forward", "scope", 7), Label("aten::linear"), Label("aten::t"), Label("aten::addmm")),
        tracks=(Track(1, 1, "main"),),
        input_table=((matrix, matrix, matrix), (matrix,), (matrix, matrix, matrix, 1, 1)),
        frames=(Frame("a.py", 1, "f"), Frame("b.py", 2, "g")),
        stack_table=((0,), (0, 1), (1, 0)),
        info=Info(record_shapes=True, with_stack=True, stopped_ns=1000 * GROUPS),
    )


def calls(function):
    """How many functions written in Python this calls."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def facts(rows):
    return [(row.key, row.count, row.cpu_time_total, row.self_cpu_time_total, row.stack) for row in rows]


@pytest.mark.parametrize("reading", READINGS)
def test_a_reading_costs_a_few_calls(reading):
    events, read = EventList.of(session()), READINGS[reading]
    for event in events[: len(events) // 10]:
        read(event)
    rest = events[len(events) // 10 :]
    assert calls(lambda: list(map(read, rest))) <= 5 * len(rest)


@pytest.mark.parametrize("reading", READINGS)
def test_a_reading_costs_the_same_when_children_were_read(reading):
    before, after = EventList.of(session()), EventList.of(session())
    for event in after:
        event.cpu_children  # noqa: B018
    read = READINGS[reading]
    assert calls(lambda: list(map(read, after))) <= calls(lambda: list(map(read, before))) + GROUPS // 2


@pytest.mark.parametrize("reading", [*READINGS, "all"])
def test_sums_after_reading_cost_what_they_cost_before(reading):
    before = calls(EventList.of(session()).key_averages)
    events = EventList.of(session())
    for read in READINGS.values() if reading == "all" else [READINGS[reading]]:
        for event in events:
            read(event)
    assert calls(events.key_averages) < before + GROUPS // 5
    assert facts(events.key_averages()) == facts(EventList.of(session()).key_averages())


def test_values_are_the_same_from_a_column_and_from_a_row():
    many, events = EventList.of(session()), EventList.of(session())
    names = [name for name in dir(events[0]) if name not in ("cpu_children", "_counted_children", "cpu_parent", "time_range")]
    plain = [name for name in names if not name.startswith("__") and "cuda" not in name and name != "metadata_json"]
    plain = [name for name in plain if not callable(getattr(events[0], name)) and name not in ("_recording", "_row")]
    for name in plain:
        column = [getattr(event, name) for event in many]
        assert [column[i] for i in (0, 1, 2, 3, -1)] == [getattr(EventList.of(session())[i], name) for i in (0, 1, 2, 3, -1)], name


class TestChangesAreStillNoticed:
    @pytest.fixture
    def events(self):
        events = EventList.of(session())
        for read in READINGS.values():
            for event in events:
                read(event)
        return events

    def test_a_time(self, events):
        events[3].time_range.end += 1000
        assert (events[3].cpu_time_total, events[3].time_range.end) == (1000.4, 1000.8)
        assert events[1].self_cpu_time_total == pytest.approx(0.8 - 0.1 - 1000.4)
        (addmm,) = [row for row in events.key_averages() if row.key == "aten::addmm"]
        assert addmm.cpu_time_total == pytest.approx(0.4 * GROUPS + 1000)

    def test_a_child(self, events):
        events[1].cpu_children.pop()
        assert events[1].self_cpu_time_total == pytest.approx(0.8 - 0.1)
        assert events[5].self_cpu_time_total == pytest.approx(0.8 - 0.1 - 0.4)

    def test_a_list(self, events):
        events[3].stack.insert(0, "mine.py(1): f")
        assert events[3].stack[0] == "mine.py(1): f"
        assert events[7].stack[0] != "mine.py(1): f"
        assert len(events.key_averages(group_by_stack_n=1)) == 5

    def test_a_list_in_a_list(self, events):
        events[3].input_shapes[0].append(7)
        assert events[7].input_shapes[0] == [2, 3]
        assert len(events.key_averages(group_by_input_shapes=True)) == 5

    def test_what_a_mapping_gives_is_a_copy(self, events):
        events[3]["stack"].clear()
        events[3]["input_shapes"][0].clear()
        assert (events[3]["stack"], events[3]["input_shapes"][0]) == (["b.py:2:g", "a.py:1:f"], [2, 3])

    def test_a_change_that_was_undone_is_none(self, events):
        events[3].stack.append("x")
        events[3].stack.pop()
        assert calls(events.key_averages) < GROUPS


class TestListsMadeAhead:
    def test_in_the_order_of_rows_collections_are_few(self, monkeypatch):
        """The collector counts the lists that are made while it is paused, and runs at the next one."""
        monkeypatch.setattr(gc, "disable", lambda: pauses.append(1))
        monkeypatch.setattr(gc, "enable", lambda: None)
        pauses = []
        shapes = [event.input_shapes for event in EventList.of(session())]
        assert len(shapes) == 4 * GROUPS
        assert 1 < len(pauses) < 20

    def test_in_another_order_only_those_that_are_read(self):
        events = EventList.of(session())
        for event in events[::-3]:
            event.stack  # noqa: B018
        assert len(events[0]._recording.lists["stack"]) == len(events[::-3])

    def test_each_event_keeps_its_own(self):
        events = EventList.of(session())
        events[2].stack.append("mine")
        lists = [event.stack for event in events]
        assert lists[2][-1] == "mine"
        assert lists[2] is events[2].stack
        assert len({id(each) for each in lists}) == len(events)
        assert len(pickle.loads(pickle.dumps(events))[2].stack) == len(lists[2])
