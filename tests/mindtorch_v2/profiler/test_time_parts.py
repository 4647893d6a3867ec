"""Pieces of time by part: for a whole recording, and for intervals of it."""

import numpy as np

from mindtorch_v2.profiler.model import time_parts
from mindtorch_v2.profiler.model.recording import Recording
from mindtorch_v2.profiler.model.session import BACKWARD_FUNCTION, Info, Label, Track
from mindtorch_v2.profiler.model.summary import Summary
from mindtorch_v2.profiler.model.time_parts import TimeParts

from .by_hand import Event, op, python_function, record, scope


def node(name, start, end, *children, **facts):
    return Event(Label(name, "op", BACKWARD_FUNCTION), start, end, children, **facts)


def session(**facts):
    events = [
        op("aten::mm", 100, 200, tid=7),
        node("MmBackward0", 300, 500, op("aten::mm", 320, 480), tid=7),
        scope("Optimizer.step#SGD.step", 600, 800, op("aten::add_", 650, 700), tid=7),
    ]
    return record(events, info=Info(**({"stopped_ns": 1000, "thread_id": 7} | facts)), tracks=[Track(7, 7, "MainThread")])


def named(times):
    return {name: int(ns) for name, ns in zip(time_parts.PARTS, times, strict=True) if ns}


def test_operators_are_told_apart_by_phase():
    parts = TimeParts(Recording(session()))
    assert named(parts.times_ns) == {"forward": 100, "backward": 200, "optimizer": 50, "own Python": 650}
    summary = Summary.of(session())
    assert (summary.forward_ns, summary.backward_ns, summary.optimizer_ns) == (100, 200, 50)
    assert summary.operators_ns == 350


def test_intervals_cut_pieces_where_they_end():
    parts = TimeParts(Recording(session()))
    times, recorder = parts.between(np.array([0, 150, 400]), np.array([150, 400, 1000]))
    assert [named(row) for row in times] == [
        {"forward": 50, "own Python": 100},
        {"forward": 50, "backward": 100, "own Python": 100},
        {"backward": 100, "optimizer": 50, "own Python": 450},
    ]
    assert recorder.tolist() == [0, 0, 0]


def test_intervals_and_the_recorder_add_up():
    parts = TimeParts(Recording(session(event_costs_ns=(("op", 20), ("scope", 5)))))
    times, recorder = parts.between(np.array([0, 500]), np.array([500, 1000]))
    assert (times.sum(axis=1) + recorder).tolist() == [500, 500]
    assert recorder.tolist() == [60, 25]


def test_operators_inside_of_others_and_backward_nodes_have_costs_of_their_own():
    costs = (("op", 20), ("scope", 5), ("nested op", 30), ("backward node", 10))
    events = [
        op("aten::linear", 100, 200, op("aten::mm", 120, 180), tid=7),
        node("MmBackward0", 300, 500, op("aten::mm", 320, 480), tid=7),
    ]
    found = record(events, info=Info(stopped_ns=1000, thread_id=7, event_costs_ns=costs), tracks=[Track(7, 7, "MainThread")])
    assert named(TimeParts(Recording(found)).costs_ns) == {"forward": 30, "backward": 30, "own Python": 30}


def test_what_was_not_collected_is_in_no_interval():
    parts = TimeParts(Recording(session(collected=((0, 250), (550, 1000)))))
    times, _ = parts.between(np.array([0]), np.array([1000]))
    assert named(times[0]) == {"forward": 100, "optimizer": 50, "own Python": 550}


def with_engine(*devices):
    """A backward pass on a thread of torch's engine, while the main thread is in no operator from 200 to 900."""
    events = [
        op("aten::mm", 100, 200, tid=7),
        node("MmBackward0", 300, 500, op("aten::mm", 320, 480), tid=8),
        op("c10d::allreduce_", 500, 600, tid=8),
        op("aten::add_", 900, 950, tid=7),
    ]
    tracks = [Track(7, 7, "MainThread"), Track(8, 8, "pt_autograd_0"), *devices]
    return record(events, info=Info(stopped_ns=1000, thread_id=7), tracks=tracks)


def test_the_backward_pass_of_a_device_is_on_another_thread():
    """torch's engine has a thread for each device; the one that called it waits."""
    parts = TimeParts(Recording(with_engine(Track(9, 7, "stream 7", device_type="CUDA"))))
    assert named(parts.times_ns) == {"forward": 150, "backward": 300, "own Python": 550}
    times, _ = parts.between(np.array([400]), np.array([1000]))
    assert named(times[0]) == {"forward": 50, "backward": 200, "own Python": 350}


def test_a_backward_pass_of_another_thread_of_the_program():
    assert named(TimeParts(Recording(with_engine())).times_ns) == {"forward": 150, "own Python": 850}


def test_functions_written_in_c_that_do_not_wait():
    calls = [
        python_function("<built-in method mean of Tensor object at 0x7f0>", 100, 300, tid=7),
        python_function("<built-in function sleep>", 500, 600, tid=7),
    ]
    found = record(calls, info=Info(stopped_ns=1000, thread_id=7), tracks=[Track(7, 7, "MainThread")])
    assert named(TimeParts(Recording(found)).times_ns) == {"own Python": 900, "waiting": 100}


def test_nothing_recorded():
    empty = record([], info=Info(stopped_ns=10))
    times, recorder = TimeParts(Recording(empty)).between(np.array([0]), np.array([10]))
    assert named(times[0]) == {"own Python": 10}
    assert recorder.tolist() == [0]
