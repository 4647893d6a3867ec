"""Steps as intervals of time: by `prof.step()`, else by the optimizer."""

import numpy as np

from mindtorch_v2.profiler.model.recording import Recording
from mindtorch_v2.profiler.model.session import Info, Track
from mindtorch_v2.profiler.model.steps import Steps

from .by_hand import op, record, scope

INFO = Info(started_ns=0, stopped_ns=1000, thread_id=7)
TRACKS = [Track(7, 7, "MainThread"), Track(8, 8, "other")]


def steps_of(*events):
    return Steps.of(Recording(record(events, info=INFO, tracks=TRACKS)))


def intervals(steps):
    return list(zip(steps.number.tolist(), steps.start_ns.tolist(), steps.end_ns.tolist(), strict=True))


def test_by_step():
    steps = steps_of(scope("ProfilerStep#3", 100, 300, tid=7), scope("ProfilerStep#4", 310, 400, op("aten::mm", 320, 330), tid=7))
    assert steps.by == "step()"
    assert intervals(steps) == [(3, 100, 300), (4, 310, 400)]
    assert steps.median_ns == 145
    assert steps.of_times(np.array([50, 100, 299, 300, 320, 999])).tolist() == [-1, 0, 0, -1, 1, -1]


def test_by_the_optimizer_that_makes_most_steps():
    steps = steps_of(
        scope("Optimizer.step#SGD.step", 100, 200, tid=7),
        scope("Optimizer.step#Adam.step", 250, 300, tid=7),
        scope("Optimizer.step#SGD.step", 500, 600, tid=7),
    )
    assert steps.by == "optimizer"
    assert intervals(steps) == [(0, 0, 200), (1, 200, 600)]


def test_an_optimizer_inside_of_another_counts_once():
    inner = scope("Optimizer.step#SGD.step", 120, 180)
    assert intervals(steps_of(scope("Optimizer.step#SGD.step", 100, 200, inner, tid=7))) == [(0, 0, 200)]


def test_steps_of_other_threads_are_not_those_of_the_recording():
    assert steps_of(scope("Optimizer.step#SGD.step", 100, 200, tid=8)).by == ""


def test_none():
    steps = steps_of(op("aten::mm", 1, 2, tid=7))
    assert len(steps) == 0
    assert steps.median_ns == 0
    assert steps.of_times(np.array([1])).tolist() == [-1]
