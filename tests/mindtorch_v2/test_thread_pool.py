"""Threads that compute parts of kernels: every part once, errors and interrupts reach the caller, nobody waits for nothing."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from mindtorch_v2 import _thread_pool
from mindtorch_v2._thread_pool import run

from .forked import in_child


def parts(count):
    return [(i, i + 1) for i in range(count)]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_every_part_is_worked_on_once(threads, count):
    seen = []
    run(lambda begin, end: seen.append(begin), parts(count), threads)
    assert sorted(seen) == list(range(count))


def wait_for_idle():
    """A thread that was woken for a job that others finished is idle again a moment later."""
    while len(_thread_pool._idle) < _thread_pool._started:
        time.sleep(0.001)


def both_at_work(threads=2):
    """The threads that work on two parts, each of which waits for the other to begin."""
    wait_for_idle()
    barrier, seen = threading.Barrier(2), set()

    def work(begin, end):
        barrier.wait(30)
        seen.add(threading.get_ident())

    run(work, parts(2), threads)
    return seen


def test_parts_run_at_the_same_time_beside_the_caller():
    seen = both_at_work()
    assert len(seen) == 2
    assert threading.get_ident() in seen


def test_threads_are_used_again():
    assert both_at_work() | both_at_work() == both_at_work()
    assert _thread_pool._started <= 4


def test_the_pool_is_in_no_list_of_threads():
    before = threading.enumerate()
    both_at_work()
    assert threading.enumerate() == before


def test_an_error_of_another_thread_is_raised_in_the_caller():
    barrier, caller = threading.Barrier(2), threading.get_ident()

    def work(begin, end):
        barrier.wait(30)
        if threading.get_ident() != caller:
            raise ArithmeticError(f"part {begin}")

    wait_for_idle()
    with pytest.raises(ArithmeticError, match=r"part \d"):
        run(work, parts(2), 2)
    assert len(both_at_work()) == 2  # the thread goes on


def test_an_error_of_the_caller_waits_for_the_others():
    begun, may_end, ended, caller = threading.Event(), threading.Event(), [], threading.get_ident()

    def work(begin, end):
        if threading.get_ident() == caller:
            begun.wait(30)
            threading.Timer(0.05, may_end.set).start()
            raise KeyboardInterrupt
        begun.set()
        may_end.wait(30)
        ended.append(begin)

    wait_for_idle()
    with pytest.raises(KeyboardInterrupt):
        run(work, parts(2), 2)
    assert len(ended) == 1


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers")
def test_an_interrupt_while_the_caller_waits_comes_after_the_parts():
    begun, ended, caller = threading.Event(), [], threading.get_ident()

    def interrupt(*_):
        raise KeyboardInterrupt

    def work(begin, end):
        if threading.get_ident() == caller:
            begun.wait(30)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            return
        begun.set()
        threading.Event().wait(0.3)
        ended.append(begin)

    wait_for_idle()
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(work, parts(2), 2)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert len(ended) == 1


def test_short_jobs_of_one_caller():
    """A thread that has finished a job may be given it once more."""
    for _ in range(3000):
        seen = []
        run(lambda begin, end: seen.append(begin), parts(3), 4)  # noqa: B023
        assert len(seen) == 3


def test_a_part_may_split_what_it_does():
    seen = []

    def inner(begin, end):
        seen.append(begin)

    run(lambda begin, end: run(inner, parts(10), 3), parts(10), 3)
    assert sorted(seen) == sorted([*range(10)] * 10)


def test_several_callers_at_once():
    totals = []

    def call():
        for _ in range(200):
            seen = []
            run(lambda begin, end: seen.append(begin), parts(8), 3)  # noqa: B023
            totals.append(len(seen))

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert totals == [8] * 800


def test_nothing_is_kept_of_a_job_that_is_done():
    class Big:
        freed = 0

        def __del__(self):
            Big.freed += 1

    for _ in range(50):
        big = Big()
        run(lambda begin, end, kept=big: None, parts(4), 2)
        del big
    wait_for_idle()
    assert Big.freed == 50


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_forked_process_has_threads_of_its_own():
    both_at_work()
    assert in_child(lambda: check(len(both_at_work()) == 2)) == 0
    assert len(both_at_work()) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_fork_inside_of_a_part():
    statuses = []

    def work(begin, end):
        if begin == 0:
            statuses.append(in_child(lambda: check(len(both_at_work()) == 2)))

    run(work, parts(4), 2)
    assert statuses == [0]


def check(holds):
    assert holds


def test_exit_does_not_wait_for_it():
    program = """
import threading
from mindtorch_v2._thread_pool import run
begun = threading.Event()
caller = threading.get_ident()
def work(begin, end):
    if threading.get_ident() == caller:
        begun.wait(30)
    else:
        begun.set()
run(work, [(0, 1), (1, 2)], 2)
threading.Thread(target=lambda: run(lambda b, e: threading.Event().wait(), [(0, 1), (1, 2)], 2), daemon=True).start()
print("end")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert (done.stdout, done.stderr) == ("end\n", "")
