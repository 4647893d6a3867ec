"""Slices nest for readers that compute in whole nanoseconds and for readers that add `ts` and `dur` as doubles."""

import itertools
import json
import random
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given

import mindtorch_v2 as torch
from mindtorch_v2.profiler.model import tree
from mindtorch_v2.profiler.model.session import Info
from mindtorch_v2.profiler.output import chrome_trace
from mindtorch_v2.profiler.output.slice_times import length_until, slice_times

from .by_hand import op, python_function, record, scope
from .test_chrome_trace import recordings

PERIOD_NS = chrome_trace.BASE_PERIOD_NS


def check(session):
    """What a reader adds up in doubles, and what the digits say."""
    trace = json.loads("".join(text for _, text in chrome_trace.render(session)), parse_float=Decimal)
    rows = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] != "Trace"]
    (window_end,) = [e["ts"] for e in trace["traceEvents"] if e["name"] == "Record Window End"]
    assert len(rows) == len(session)
    as_double = [(float(e["ts"]), float(e["ts"]) + float(e["dur"])) for e in rows]
    in_ns = [(e["ts"], e["ts"] + e["dur"]) for e in rows]
    parent = tree.parents(session).tolist()
    for times, end in ((as_double, float(window_end)), (in_ns, window_end)):
        last = {}
        for row, around in enumerate(parent):
            first, until = times[around] if around >= 0 else (-1, end)
            assert first <= times[row][0] <= times[row][1] <= until, row
            before = last.get((around, session.track[row]), first)
            assert before <= times[row][0], row
            last[around, session.track[row]] = times[row][1]


@given(recordings())
def test_any_recording(session):
    check(session)


def random_events(rng, first, last, depth):
    """Events that begin and end with each other often: few nanoseconds, many events."""
    cuts = sorted(rng.randint(first, last) for _ in range(rng.randint(0, 6)))
    return [
        rng.choice([op, scope, python_function])("e", a, b, *(random_events(rng, a, b, depth - 1) if depth else ()))
        for a, b in itertools.pairwise(cuts)
        if rng.random() < 0.8 and (a < b or not depth)
    ]


# at the start of the base's period, in the middle, and in its last half, where doubles are a nanosecond apart
@pytest.mark.parametrize("after_base_ns", [0, 3_984_474_190_833_321, 4_500_000_000_000_007, 7_889_000_000_000_013])
@pytest.mark.parametrize("span_ns", [3, 20, 1_000, 5_000_000])
def test_events_that_end_together(after_base_ns, span_ns):
    rng = random.Random(span_ns)
    start = 227 * PERIOD_NS + after_base_ns
    for _ in range(60):
        events = random_events(rng, start, start + span_ns, 3)
        check(record(events, info=Info(started_ns=start, stopped_ns=start + span_ns)))


def test_a_deep_stack_that_ends_at_once():
    start = 227 * PERIOD_NS + 3_984_474_190_833_321
    event = op("inner", start + 90, start + 1_000)
    for depth in range(80, 0, -1):
        event = python_function(f"f{depth}", start + depth, start + 1_000, event)
    session = record([event], info=Info(started_ns=start, stopped_ns=start + 1_000))
    check(session)
    moved = session.end_ns - chrome_trace.base_time_ns(session) - slice_times(session, chrome_trace.base_time_ns(session)).end
    assert 0 < moved.max() < 81, "at most a nanosecond for each function around"


def test_what_nests_is_left_alone():
    start = 227 * PERIOD_NS + 3_984_474_190_833_321
    children = [op("a", start + 10 * i, start + 10 * i + 8) for i in range(1, 400)]
    session = record([scope("s", start, start + 5_000, *children)], info=Info(started_ns=start, stopped_ns=start + 9_000))
    base = chrome_trace.base_time_ns(session)
    times = slice_times(session, base)
    assert np.array_equal(times.start + base, session.start_ns)
    assert np.array_equal(times.end + base, session.end_ns)


def test_no_row_moves_further_than_it_must():
    rng = random.Random(7)
    moved = 0
    for _ in range(500):
        start = 227 * PERIOD_NS + rng.randrange(PERIOD_NS - 10**6)
        end = start + rng.randrange(1, 10**5)
        inner = op("inner", rng.randint(start, end), end)
        session = record([op("outer", start, end, inner)], info=Info(started_ns=start, stopped_ns=end + 10**5))
        base = chrome_trace.base_time_ns(session)
        times = slice_times(session, base)
        assert times.end[0] == end - base
        outer_sum, (_, begin) = start_and_sum(times, 0)[1], times.start
        by = end - base - times.end.item(1)
        if by:
            moved += 1
            assert begin / 1000 + (times.end.item(1) + 1 - begin) / 1000 > outer_sum
        assert start_and_sum(times, 1)[1] <= outer_sum
    assert 50 < moved < 400


def start_and_sum(times, row):
    start, end = times.start.item(row), times.end.item(row)
    return start / 1000, start / 1000 + (end - start) / 1000


def test_the_span_of_a_recording_ends_in_it():
    rng = random.Random(3)
    for _ in range(10_000):
        start = rng.randrange(PERIOD_NS)
        end = start + rng.randrange(10**10)
        length = length_until(start, end)
        assert start / 1000 + length / 1000 <= end / 1000
        assert end - start - length in (0, 1)
    assert length_until(5, 5) == 0


@pytest.mark.parametrize("with_stack", [False, True])
def test_a_training_loop_with_steps(with_stack):
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=5, repeat=1)
    with torch.profiler.profile(with_stack=with_stack, schedule=schedule) as prof:
        for _ in range(6):
            optimizer.zero_grad()
            net(torch.ones(2, 4)).sum().backward()
            optimizer.step()
            prof.step()
    check(prof.session)
