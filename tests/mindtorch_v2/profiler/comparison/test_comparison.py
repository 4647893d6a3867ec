"""What changed between two runs, from sessions written by hand: times are given, so every answer is known."""

import numpy as np
import pytest

from mindtorch_v2.profiler.comparison import compare, text
from mindtorch_v2.profiler.comparison.call_tree import OUTSIDE, CallTree
from mindtorch_v2.profiler.comparison.evidence import corrected, p_value, quiet, speed_factor
from mindtorch_v2.profiler.model.session import Info, MemoryLog, TensorInput, Track, empty_session

from ..by_hand import op, record, scope

OWN = 4_000_000  # nanoseconds of the steps below that are outside of calls


def steps(calls, *, count=24, noise=0.02, seed=0, own_ns=OWN, speed=1.0, **facts):
    """A session of steps in which these calls follow each other: (name, nanoseconds, calls inside). Noise only adds."""
    rng = np.random.default_rng(seed)
    events, start = [], 0

    def made(call, at):
        name, ns, *rest = call
        inside = rest[0] if rest else []
        began, children = at, []
        at += 10
        for child in inside:
            event = made(child, at)
            children.append(event)
            at = event.end_ns + 10
        taken = int(ns * speed * (1 + noise * abs(rng.normal())))
        return op(name, began, max(at, began + taken), *children, inputs=rest[1] if len(rest) > 1 else None)

    for number in range(count):
        at, calls_of_step = start + 100, []
        for call in calls:
            event = made(call, at)
            calls_of_step.append(event)
            at = event.end_ns + 100
        end = at + int(own_ns * speed)
        events.append(scope(f"ProfilerStep#{number}", start, end, *calls_of_step, step=number))
        start = end
    return record(events, info=Info(started_ns=0, stopped_ns=start, **facts))


MODEL = [
    ("aten::linear", 2_000_000, [("aten::addmm", 1_500_000)]),
    ("aten::relu", 500_000),
    ("aten::linear", 3_000_000, [("aten::addmm", 2_000_000)]),
]


def test_a_tree_has_a_node_for_each_place_and_its_times_add_up():
    tree = CallTree.of(steps(MODEL, noise=0.0))
    assert [tree.name(i) for i in range(len(tree))] == [
        OUTSIDE,
        "aten::linear",
        "aten::linear",
        "aten::relu",
        "aten::addmm",
        "aten::addmm",
    ]
    assert tree.path(5) == ["aten::linear", "aten::addmm"]
    assert (tree.total_ns[0] == tree.step_ns).all()
    assert tree.self_ns[1].tolist() == [500_000.0] * len(tree.step_ns)


def test_two_runs_of_the_same_program_have_no_change():
    for seed in range(10):
        found = compare(steps(MODEL, seed=seed), steps(MODEL, seed=seed + 100))
        assert found.changes == ()
        assert "No place in the program changed." in str(found)


def test_a_slower_place_is_found_and_the_time_it_adds():
    slower = [MODEL[0], MODEL[1], ("aten::linear", 3_500_000, [("aten::addmm", 2_500_000)])]
    found = compare(steps(MODEL), steps(slower, seed=1))
    (change,) = found.changes
    assert (change.kind, change.name, change.path) == ("slower", "aten::addmm", ("aten::linear",))
    assert change.delta_ns == pytest.approx(500_000, rel=0.1)
    assert change.p_value < 0.01


def test_a_busy_machine_is_no_change_and_is_told():
    found = compare(steps(MODEL), steps(MODEL, seed=1, speed=1.6))
    assert found.changes == ()
    assert found.speed == pytest.approx(1.6, rel=0.05)
    assert f"{found.speed:.2f} times slower" in str(found)
    assert found.is_slower_by(0.05)  # steps do take longer, whatever the reason


def test_a_slower_place_on_a_busy_machine():
    slower = [("aten::linear", 3_000_000, [("aten::addmm", 2_500_000)]), *MODEL[1:]]
    found = compare(steps(MODEL), steps(slower, seed=1, speed=1.5))
    assert [change.name for change in found.changes] == ["aten::addmm"]
    assert found.changes[0].delta_ns == pytest.approx(1_000_000, rel=0.1)


def test_an_added_call_is_told_however_short_it_is():
    found = compare(steps(MODEL), steps([*MODEL, ("aten::item", 2_000, [("aten::_local_scalar_dense", 1_000)])], seed=1))
    (change,) = found.changes  # with what is inside of it
    assert (change.kind, change.name, change.calls) == ("added", "aten::item", (0.0, 1.0))
    (change,) = compare(steps([*MODEL, ("aten::item", 2_000)]), steps(MODEL, seed=1)).changes
    assert (change.kind, change.name) == ("removed", "aten::item")


def test_a_call_that_was_put_in_between_does_not_shift_the_others():
    def linear(ns, width):
        return ("aten::linear", ns, [("aten::addmm", ns // 2)], (TensorInput((8, width), (width, 1), "float32"),))

    first, last = linear(2_000_000, 64), linear(3_000_000, 128)
    between = [first, linear(900_000, 32), MODEL[1], last]
    found = compare(steps([first, MODEL[1], last], record_shapes=True), steps(between, seed=1, record_shapes=True))
    assert {(change.kind, change.name) for change in found.changes} == {("added", "aten::linear")}


def test_renamed_and_moved_calls_are_found():
    renamed = [MODEL[0], ("aten::gelu", 500_000), MODEL[2]]
    (change,) = compare(steps(MODEL), steps(renamed, seed=1)).changes
    assert (change.kind, change.was, change.name) == ("renamed", "aten::relu", "aten::gelu")
    inputs = (TensorInput((2, 2), (2, 1), "float32"),)
    outside = [("aten::linear", 2_000_000), ("aten::relu", 500_000, [], inputs)]
    inside = [("aten::linear", 2_500_000, [("aten::relu", 500_000, [], inputs)])]
    (change,) = compare(steps(outside, record_shapes=True), steps(inside, seed=1, record_shapes=True)).changes
    assert (change.kind, change.name, change.path) == ("moved", "aten::relu", ("aten::linear",))


def test_other_shapes_are_told():
    def model(width):
        return [("aten::mm", width * 10_000, [], (TensorInput((8, width), (width, 1), "float32"),))]

    (change,) = compare(steps(model(64), record_shapes=True), steps(model(128), record_shapes=True)).changes
    assert change.shapes == ("[[8, 64]]", "[[8, 128]]")
    assert "inputs [[8, 64]] before, [[8, 128]] after" in str(
        compare(steps(model(64), record_shapes=True), steps(model(128), record_shapes=True))
    )


def test_the_shapes_of_what_was_added_are_told():
    added = ("aten::neg", 500_000, [], (TensorInput((2, 2), (2, 1), "float32"),))
    (change,) = compare(steps(MODEL, record_shapes=True), steps([*MODEL, added], record_shapes=True)).changes
    assert (change.kind, text.detail(change)) == ("added", "inputs [[2, 2]]")


def test_own_python_is_a_place_too():
    found = compare(steps(MODEL), steps(MODEL, seed=1, own_ns=OWN + 2_000_000))
    assert [(change.kind, change.name) for change in found.changes] == [("slower", OUTSIDE)]


def test_without_steps_nothing_is_called_certain():
    def once(ns):
        return record([op("aten::mm", 0, ns)], info=Info(started_ns=0, stopped_ns=1_000_000))

    found = compare(once(300_000), once(600_000))
    assert not found.is_measured
    assert "chance cannot be told from change" in str(found)
    assert {change.name for change in found.changes} == {"aten::mm", OUTSIDE}


def test_memory_that_a_place_keeps():
    def keeps(size):
        session = steps([("aten::cat", 100_000)], noise=0.0)
        rows = np.flatnonzero(np.array([session.labels[i].name == "aten::cat" for i in session.label]))
        count = len(rows)
        log = MemoryLog(
            session.end_ns[rows],
            np.zeros(count, int),
            np.arange(count) + 1,
            np.full(count, size),
            size * np.arange(1, count + 1),
            rows,
        )
        return session.replace(memory=log)

    found = compare(keeps(4_096), keeps(16_384))
    (change,) = found.memory
    assert (change.name, change.bytes) == ("aten::cat", (4_096.0, 16_384.0))
    assert found.peak_bytes == (4_096 * 24, 16_384 * 24)


def test_text_for_people_and_for_github():
    found = compare(steps(MODEL), steps([*MODEL, ("a|b`c", 2_000_000)], seed=1))
    assert "| added | `a\\|b'c` |" in found.markdown()
    assert found.as_dict()["changes"][0]["name"] == "a|b`c"
    assert "a|b`c" in found.table()


def test_a_page_of_both(tmp_path):
    found = compare(steps(MODEL), steps([*MODEL, ("<script>alert(1)</script>", 2_000_000)], seed=1))
    found.export_page(tmp_path / "diff.html", ("yesterday", "<b>today</b>"))
    text = (tmp_path / "diff.html").read_text()
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "&lt;b&gt;today&lt;/b&gt;" in text
    assert text.count("<circle") == len(found.step_times_ns[0]) + len(found.step_times_ns[1])
    assert "default-src 'none'" in text


def test_an_empty_session_can_be_compared():
    empty = record([], info=Info(started_ns=0, stopped_ns=1_000))
    assert compare(empty, empty).changes == ()
    (change,) = compare(empty, record([op("aten::mm", 0, 1_000)], info=Info(started_ns=0, stopped_ns=1_000))).changes[:1]
    assert (change.kind, change.name) in {("added", "aten::mm"), ("faster", OUTSIDE)}


def test_the_quiet_steps_are_those_that_took_least():
    assert quiet(np.arange(30)[::-1]).tolist() == list(range(10))
    assert quiet(np.arange(9)[::-1]).tolist() == list(range(8))
    assert quiet(np.array([3.0])).tolist() == [3.0]


def test_probabilities():
    assert p_value(np.arange(8), np.arange(8) + 100) < 0.001
    assert p_value(np.arange(8), np.arange(8)) == 1.0
    assert corrected(np.array([0.01, 0.04, 0.03])).tolist() == pytest.approx([0.03, 0.06, 0.06])


def test_the_speed_of_a_machine_is_that_of_all_places():
    ones = np.ones(8)
    assert speed_factor(ones, np.array([2.0] * 7 + [90.0])) == 2.0
    assert speed_factor(ones, np.array([1.0] * 3 + [2.0] * 5)) == 1.0  # most places changed, and not all
    assert speed_factor(ones, ones * 0.5) == 0.5
    assert speed_factor(ones, np.array([0.9] * 4 + [1.1] * 4)) == 1.0
    assert speed_factor(np.zeros(0), np.zeros(0)) == 1.0


def test_recordings_without_events():
    log = MemoryLog(*(np.array([number]) for number in (5, 0, 64, 8, 8, -1)))
    empty = empty_session(Info(with_modules=True, profile_memory=True, stopped_ns=10))
    empty = empty.replace(memory=log, tracks=(Track(1, 1),))
    assert compare(empty, empty).changes == ()


def test_recordings_of_shapes_without_any_event_are_compared():
    nothing = empty_session(Info(record_shapes=True)).replace(inputs=np.empty(0, np.int32))
    assert compare(nothing, nothing).table()
