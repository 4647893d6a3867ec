"""Handlers of finished recordings in the background."""

import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, schedule

x = torch.ones(2)


def steps(prof, count):
    for number in range(count):
        for _ in range(number + 1):
            x + x
        prof.step()


def test_the_program_goes_on_while_a_handler_runs():
    may_end, seen, threads = threading.Event(), [], set()

    def handle(finished):
        threads.add(threading.get_ident())
        assert may_end.wait(60)
        seen.append((finished.step_num, len([e for e in finished.events() if e.name == "aten::add"])))

    with profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=1), on_trace_ready=handle, background=True) as prof:
        steps(prof, 3)
        assert seen == []  # three steps have passed
        may_end.set()
    assert seen == [(2, 2)]
    assert threading.get_ident() not in threads


def test_each_handler_has_its_own_cycle():
    seen = []

    def handle(finished):
        seen.append([e.name for e in finished.events()].count("aten::add"))

    with profile(schedule=schedule(wait=0, warmup=1, active=1), on_trace_ready=handle, background=True) as prof:
        steps(prof, 4)
    assert seen == [2, 4]


def test_what_a_handler_raises_is_raised():
    def fail(finished):
        raise KeyError("mine")

    prof = profile(on_trace_ready=fail, background=True)
    prof.start()
    x + x
    with pytest.raises(KeyError, match="mine"):
        prof.stop()
    with profile() as after:
        x + x
    assert len(after.events()) == 1
