"""The chain of work that the length of a step depends on."""

from __future__ import annotations

import pytest

from mindtorch_v2.profiler.device.critical_path import critical_path
from mindtorch_v2.profiler.opening import open_recording

from ..by_hand import op as own_op
from ..by_hand import record
from ..device_traces import annotation, call, kernel, op, write


@pytest.fixture
def path_of(tmp_path):
    def path_of(*rows, step=None):
        path = critical_path(open_recording(write(tmp_path / "t.json", list(rows))).session, step)
        if path is not None:
            for before, after in zip(path.pieces, path.pieces[1:]):
                assert before.end_ns == after.start_ns  # without gaps
        return path

    return path_of


def told(path):
    zero = path.pieces[0].start_ns
    return [(piece.name, (piece.start_ns - zero) / 1000, (piece.end_ns - zero) / 1000) for piece in path.pieces]


def test_a_device_that_is_always_busy(path_of):
    rows = [annotation("ProfilerStep#0", 0, 12), op("aten::mm", 1, 10)]
    rows += [call("cudaLaunchKernel", 2 + i, 0.5, i + 1) for i in range(3)] + [
        kernel(f"k{i}", 5 + 20 * i, 20, i + 1) for i in range(3)
    ]
    path = path_of(*rows)
    assert told(path) == [
        *(("ProfilerStep#0", 0, 1), ("aten::mm", 1, 2), ("cudaLaunchKernel", 2, 2.5), ("from launch to start", 2.5, 5)),
        *(("k0", 5, 25), ("k1", 25, 45), ("k2", 45, 65)),
    ]
    assert path.by_place() == {"host": 2_500, "launch": 2_500, "device": 60_000, "earlier work": 0}
    assert path.total_ns == 65_000


def test_a_host_that_is_late(path_of):
    rows = [annotation("ProfilerStep#0", 0, 100), call("cudaLaunchKernel", 1, 1, 1), kernel("a", 4, 2, 1)]
    rows += [op("aten::slow", 10, 80), call("cudaLaunchKernel", 91, 1, 2), kernel("b", 95, 2, 2)]
    path = path_of(*rows)
    assert "a" not in [piece.name for piece in path.pieces]
    assert {name: end - start for name, start, end in told(path)}["aten::slow"] == 80


def test_a_wait_leads_to_the_device(path_of):
    rows = [annotation("ProfilerStep#0", 0, 60), call("cudaLaunchKernel", 1, 1, 1), kernel("long", 4, 46, 1)]
    rows += [call("cudaDeviceSynchronize", 5, 47, 2), op("aten::after", 53, 5)]
    path = path_of(*rows)
    assert ("long", 4, 50) in told(path)
    assert ("cudaDeviceSynchronize", 50, 52) in told(path)


def test_work_of_an_earlier_step_is_told_apart(path_of):
    rows = [annotation("ProfilerStep#0", 0, 5), call("cudaLaunchKernel", 1, 1, 1), kernel("before", 3, 40, 1)]
    rows += [annotation("ProfilerStep#1", 10, 20), call("cudaLaunchKernel", 12, 1, 2), kernel("mine", 43, 9, 2)]
    path = path_of(*rows, step=1)
    assert told(path) == [("launched before the step", 0, 33), ("mine", 33, 42)]
    assert path.by_place() == {"host": 0, "launch": 0, "device": 9_000, "earlier work": 33_000}


def test_a_backward_pass_on_another_thread(path_of):
    rows = [annotation("ProfilerStep#0", 0, 100), kernel("k", 1, 1, 9), op("aten::mm", 10, 80, tid=7), op("aten::sum", 95, 4)]
    path = path_of(*rows)
    assert ("aten::mm", 10, 90) in told(path)


def test_work_that_waited_for_another_stream(path_of):
    """It was launched early and its stream was free: what ended as it began is what it waited for, and of that the longest."""
    rows = [annotation("ProfilerStep#0", 0, 20)]
    rows += [call("cudaLaunchKernel", at, 1, number) for at, number in ((1, 1), (3, 2), (5, 3), (7, 4))]
    rows += [kernel("first", 4, 6, 1), kernel("allreduce", 10, 60, 2, stream=20), kernel("part", 66, 4, 3, stream=21)]
    rows += [kernel("after", 71, 9, 4)]
    path = path_of(*rows)
    assert told(path)[-3:] == [("allreduce", 10, 70), ("waiting on the stream", 70, 71), ("after", 71, 80)]
    assert "part" not in [piece.name for piece in path.pieces]


def test_work_of_another_stream_that_ended_long_before_was_not_waited_for(path_of):
    rows = [annotation("ProfilerStep#0", 0, 20), call("cudaLaunchKernel", 1, 1, 1), call("cudaLaunchKernel", 3, 1, 2)]
    rows += [kernel("other", 5, 15, 1, stream=20), kernel("late", 70, 9, 2)]
    assert ("from launch to start", 4, 70) in told(path_of(*rows))


def test_work_whose_launch_is_not_recorded_leads_to_the_thread_of_the_step(path_of):
    path = path_of(annotation("ProfilerStep#0", 0, 30), op("aten::mm", 5, 10), kernel("k", 20, 10, 9))
    assert told(path)[:3] == [("ProfilerStep#0", 0, 5), ("aten::mm", 5, 15), ("ProfilerStep#0", 15, 20)]
    assert told(path)[3] == ("k", 20, 30)


def test_an_event_without_length_on_another_thread(path_of):
    """Such a one ends where it starts: the path goes on from there, on the thread it came from."""
    rows = [annotation("ProfilerStep#0", 0, 100), kernel("k", 1, 1, 9), op("aten::empty", 40, 0, tid=7), op("aten::sum", 60, 30)]
    path = path_of(*rows)
    assert told(path) == [("ProfilerStep#0", 0, 60), ("aten::sum", 60, 90), ("ProfilerStep#0", 90, 100)]


def test_the_longest_step_and_one_by_number(path_of):
    rows = [
        annotation("ProfilerStep#3", 0, 10),
        annotation("ProfilerStep#4", 10, 50),
        annotation("ProfilerStep#5", 60, 5),
        kernel("k", 1, 1, 1),
    ]
    assert path_of(*rows).name == "ProfilerStep#4"
    assert path_of(*rows, step=5).name == "ProfilerStep#5"
    assert path_of(*rows, step=9) is None


def test_without_steps_and_without_device(path_of):
    assert path_of(op("aten::mm", 0, 5), kernel("k", 1, 20, 1)).name == "the whole recording"
    assert critical_path(record([own_op("f", 0, 1)])) is None
