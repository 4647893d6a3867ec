"""Handlers of finished recordings in the background."""

import os
import signal
import threading
import time

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, schedule
from mindtorch_v2.profiler.background import BackgroundHandler

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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_does_not_wait_for_a_thread_that_it_has_not():
    may_end = threading.Event()
    handler = BackgroundHandler()
    handler.start(lambda _: may_end.wait(60), None)
    pid = os.fork()
    if pid == 0:
        handler.wait()
        os._exit(7)
    until = time.monotonic() + 30
    while (ended := os.waitpid(pid, os.WNOHANG))[0] == 0 and time.monotonic() < until:
        time.sleep(0.01)
    if ended[0] == 0:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    may_end.set()
    handler.wait()
    assert os.waitstatus_to_exitcode(ended[1]) == 7
