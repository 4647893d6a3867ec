"""What changed on other threads and in other processes, from sessions written by hand."""

import dataclasses

import pytest

from mindtorch_v2.profiler.comparison import compare
from mindtorch_v2.profiler.comparison.call_tree import OUTSIDE
from mindtorch_v2.profiler.model.session import Frame, Info, TensorInput, Track

from ..by_hand import op, record, scope

STEP, STEPS = 1_000_000, 24


def run(*work, threads=("preparer",), own_ns=0, alike=0, **facts):
    """A session whose steps are one product each, while other threads take turns with this work: (name, nanoseconds, facts of the event).

    `alike` tells apart runs of the same program: times differ by as many nanoseconds.
    """
    events, step_ns = [], STEP + own_ns
    for number in range(STEPS):
        at = number * step_ns
        product = op("aten::mm", at + 100, at + 600_000 + alike * (number % 3))
        events.append(scope(f"ProfilerStep#{number}", at, at + step_ns, product, step=number))
        at += 150_000  # it runs ahead of the steps
        for name, ns, *known in work:
            ns += alike * (number % 5)
            events.append(op(name, at, at + ns, tid=2 + number % len(threads), **(known[0] if known else {})))
            at += ns + 1_000
    tracks = [Track(1, 1, "MainThread"), *(Track(2 + i, 2 + i, name) for i, name in enumerate(threads))]
    info = Info(started_ns=0, stopped_ns=STEPS * step_ns, thread_id=1, **facts)
    return record(events, info=info, tracks=tracks)


SAME = [("aten::add", 100_000), ("aten::relu", 200_000)]
SLOWER = [("aten::add", 100_000), ("aten::relu", 300_000)]


def told(found):
    return [(change.kind, change.name, change.thread) for change in found.changes]


def test_a_slower_call_of_another_thread_is_found_and_named():
    found = compare(run(*SAME), run(*SLOWER, alike=7))
    assert told(found) == [("slower", "aten::relu", "thread preparer")]
    assert found.changes[0].delta_ns == pytest.approx(100_000, rel=0.01)
    assert found.changes[0].p_value < 0.01
    assert "aten::relu on thread preparer" in found.table()
    assert "aten::relu on thread preparer" in found.markdown()


def test_the_same_work_has_no_change():
    assert compare(run(*SAME), run(*SAME, alike=7)).changes == ()


def test_time_that_the_program_waits_for_a_thread_comes_after_its_cause():
    found = compare(run(*SAME), run(*SLOWER, alike=7, own_ns=180_000))
    assert told(found) == [("slower", "aten::relu", "thread preparer"), ("slower", OUTSIDE, "")]
    assert "waited for what changed on other threads" in found.table()


def test_more_own_python_without_a_cause_elsewhere_is_no_waiting():
    (change,) = compare(run(*SAME), run(*SAME, alike=7, own_ns=500_000)).changes
    assert (change.name, change.note) == (OUTSIDE, "")


def test_threads_of_a_pool_are_one():
    pool = ("Pool-1_0", "Pool-1_1", "Pool-1_2")
    found = compare(run(*SAME, threads=pool[:2]), run(*SLOWER, threads=pool, alike=7))
    assert told(found) == [("slower", "aten::relu", "threads Pool-1_0, Pool-1_1 and 1 more")]
    assert found.changes[0].calls == (pytest.approx(1.0, abs=0.1), pytest.approx(1.0, abs=0.1))


def test_a_thread_of_another_name_is_found_by_what_it_does():
    assert compare(run(*SAME), run(*SAME, threads=("loader",), alike=7)).changes == ()


def test_calls_that_a_thread_makes_in_one_run_alone():
    more = [*SAME, ("aten::sort", 150_000)]
    assert told(compare(run(*SAME), run(*more, alike=7))) == [("added", "aten::sort", "thread preparer")]
    assert told(compare(run(*more), run(*SAME, alike=7))) == [("removed", "aten::sort", "thread preparer")]


def test_calls_with_other_shapes_are_told_apart_and_found_again():
    def product(width, ns):
        return ("aten::mm", ns, {"inputs": (TensorInput((8, width), (width, 1), "float32"),)})

    first = run(product(16, 100_000), product(64, 200_000), record_shapes=True)
    second = run(product(16, 100_000), product(128, 300_000), record_shapes=True, alike=7)
    (change,) = compare(first, second).changes
    assert (change.kind, change.name, change.shapes) == ("slower", "aten::mm", ("[[8, 64]]", "[[8, 128]]"))


def test_other_processes_are_compared():
    first, second = run(*SAME), run(*SAME, alike=7)
    loads = [
        dataclasses.replace(session, info=dataclasses.replace(session.info, pid=7, process_name="loader"))
        for session in (run(("aten::stack", 300_000), threads=("a",)), run(("aten::stack", 420_000), threads=("a",), alike=7))
    ]
    loads = [session.replace(tracks=tuple(track._replace(name="MainThread") for track in session.tracks)) for session in loads]
    found = compare([first, loads[0]], [second, loads[1]])
    assert told(found)[0] == ("slower", "aten::stack", "process loader 1, thread MainThread")
    assert compare([first, loads[0]], [second, loads[0]]).changes == ()


def test_a_place_is_the_line_of_the_program():
    stack = (
        Frame("/lib/mindtorch_v2/nn/modules/linear.py", 30, "forward"),
        Frame("/env/lib/python3.11/site-packages/blocks/layers.py", 8, "forward"),
        Frame("/home/me/train.py", 12, "prepare"),
        Frame("/home/me/train.py", 40, "<module>"),
    )

    def session(ns, alike):
        return run(("aten::relu", ns, {"stack": stack}), with_stack=True, source_roots=("/lib/",), alike=alike)

    found = compare(session(200_000, 0), session(300_000, 7))
    assert [change.place for change in found.changes] == ["/home/me/train.py:12:prepare"]
    assert "called at /home/me/train.py:12:prepare" in found.table()
    assert "called at /home/me/train.py:12:prepare" in found.markdown()
    assert found.as_dict()["changes"][0]["place"] == "/home/me/train.py:12:prepare"
