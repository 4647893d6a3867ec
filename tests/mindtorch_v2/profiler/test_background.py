"""Handlers of finished recordings in the background."""

import contextlib
import gc
import itertools
import os
import signal
import threading
import time
import weakref

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ProfilerAction, profile, schedule
from mindtorch_v2.profiler.background import BackgroundHandler
from mindtorch_v2.profiler.capture import columns
from mindtorch_v2.profiler.capture.operators import call_inputs
from mindtorch_v2.profiler.once import Once

from ..forked import in_child

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


class TestSessions:
    """With a handler in the background, the session is made there, and not by the thread that trains."""

    @pytest.fixture
    def made_by(self, monkeypatch):
        threads = []

        def assemble(context, of=columns.assemble):
            threads.append(threading.get_ident())
            return of(context)

        monkeypatch.setattr(columns, "assemble", assemble)
        return threads

    def record(self, handle, **options):
        with profile(schedule=schedule(wait=0, warmup=1, active=1), on_trace_ready=handle, background=True, **options) as prof:
            steps(prof, 4)
        return prof

    def test_by_the_handlers_thread(self, made_by):
        handlers = []
        self.record(lambda p: handlers.append((threading.get_ident(), len(p.events()))))
        assert made_by == [ident for ident, _ in handlers]
        assert threading.get_ident() not in made_by
        assert [count for _, count in handlers] == [3, 5]  # with the steps

    def test_by_whoever_asks_for_what_no_handler_asked_for(self, made_by):
        prof = self.record(lambda p: None)
        assert made_by == []
        assert len(prof.events()) == len(prof.events()) == 5
        assert made_by == [threading.get_ident()]

    def test_at_the_stop_without_a_handler(self, made_by):
        with profile(background=True):
            x + x
        assert made_by == [threading.get_ident()]

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"acc_events": True}, [["step", "add", "add"], ["step", "add", "add", "step", "add", "add", "add", "add"]]),
            ({"exclude": ["aten::add"]}, [["step"], ["step"]]),
            ({"threads": ["nobody"]}, [[], []]),
            ({"max_events": 2}, [["step", "add", "add"], ["step", "add", "add"]]),
            ({"record_shapes": True}, [["step", "add", "add"], ["step", "add", "add", "add", "add"]]),
        ],
    )
    def test_are_those_of_a_handler_that_the_program_waits_for(self, options, expected):
        def named(finished):
            return [event.name.removeprefix("aten::").replace("ProfilerStep*", "step") for event in finished.events()]

        apart, waited_for = [], []
        self.record(lambda p: apart.append((named(p), p.session.info.dropped)), **options)
        with profile(schedule=schedule(wait=0, warmup=1, active=1), **options) as prof:
            prof.on_trace_ready = lambda p: waited_for.append((named(p), p.session.info.dropped))
            steps(prof, 4)
        assert apart == waited_for
        assert [names for names, _ in apart] == expected

    def test_inputs_stay_known_when_their_table_begins_anew(self, monkeypatch):
        monkeypatch.setattr(call_inputs, "LIMIT", 0)
        may_go_on, shapes = threading.Event(), []

        def handle(finished):
            assert may_go_on.wait(60)
            shapes.append([event.input_shapes for event in finished.events() if event.name == "aten::add"])

        always = lambda step: ProfilerAction.RECORD_AND_SAVE
        with profile(schedule=always, on_trace_ready=handle, record_shapes=True, background=True) as prof:
            torch.ones(3) + 1
            prof.step()  # the next recording begins
            may_go_on.set()
        assert shapes[0] == [[[3], [], []]]


def test_once_gives_everyone_what_the_first_thread_made():
    began, may_end, made = threading.Event(), threading.Event(), []

    def make():
        began.set()
        assert may_end.wait(60)
        made.append(threading.get_ident())
        return len(made)

    once, found = Once(make), []
    first = threading.Thread(target=lambda: found.append(once()))
    first.start()
    assert began.wait(60)
    second = threading.Thread(target=lambda: found.append(once()))
    second.start()
    may_end.set()
    first.join()
    second.join()
    assert (found, once(), len(made)) == ([1, 1], 1, 1)


def test_once_raises_what_making_it_raised_each_time():
    def fail():
        raise KeyError("mine")

    once = Once(fail)
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            once()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_process_forked_while_another_thread_makes_it_is_told():
    began, may_end = threading.Event(), threading.Event()

    def make():
        began.set()
        assert may_end.wait(60)
        return 1

    once = Once(make)
    thread = threading.Thread(target=once)
    thread.start()
    assert began.wait(60)

    def child():
        with pytest.raises(RuntimeError, match="the process that recorded has it"):
            once()

    status = in_child(child)
    may_end.set()
    thread.join()
    assert (status, once()) == (0, 1)


def test_many_cycles_that_nobody_reads_are_joined_at_the_end():
    cycles = schedule(wait=0, warmup=1, active=1)
    with profile(acc_events=True, background=True, schedule=cycles, on_trace_ready=lambda prof: None) as prof:
        for _ in range(1200):
            x + x
            prof.step()
    assert sum(event.name == "aten::add" for event in prof.events()) == 600


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_recording_that_fails_at_its_stop_leaves_the_others(error, monkeypatch):
    assemble, calls = columns.assemble, itertools.count()

    def failing(*arguments):
        if next(calls) == 1:
            raise error
        return assemble(*arguments)

    monkeypatch.setattr(columns, "assemble", failing)
    prof = profile(acc_events=True)
    for number in range(4):
        with pytest.raises(error) if number == 1 else contextlib.nullcontext():
            prof.start()
            x + x
            prof.stop()
    assert sum(event.name == "aten::add" for event in prof.events()) == 3


def fails_at_its_stop(prof, error, monkeypatch):
    """Record an addition of which no session is made for this error."""

    def failing(*arguments):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(columns, "assemble", failing)
        prof.start()
        x + x
        with pytest.raises(type(error)) as told:
            prof.stop()
    assert told.value is error
    assert any(frame.name == "failing" for frame in told.traceback)


@pytest.mark.parametrize("acc_events", [False, True])
def test_an_interrupted_stop_is_told_as_an_error_later(acc_events, monkeypatch):
    prof = profile(acc_events=acc_events)
    fails_at_its_stop(prof, KeyboardInterrupt(), monkeypatch)
    for ask in (prof.events, prof.key_averages, lambda: prof.session):
        with pytest.raises(
            RuntimeError, match="the end of the recording was interrupted by KeyboardInterrupt, so it has no events; record again"
        ):
            ask()


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, ZeroDivisionError])
def test_a_failed_stop_keeps_nothing_of_the_recording(error, monkeypatch):
    made, asking = [], []

    def failing(context):
        made.append(weakref.ref(context.found.records.label))
        raise error("text")

    def ask():
        value = torch.ones(1)
        asking.append(weakref.ref(value))
        prof.events()

    monkeypatch.setattr(columns, "assemble", failing)
    prof = profile()
    with pytest.raises(error, match="text"), prof:
        x + x
    assert made
    gc.collect()
    assert [each() for each in made] == [None] * len(made)
    for _ in range(2):
        with pytest.raises(RuntimeError if error is KeyboardInterrupt else error, match="text"):
            ask()
        gc.collect()
        assert asking.pop()() is None


def test_an_error_that_cannot_be_copied_is_told_later():
    class OddError(ValueError):
        def __init__(self, place, *, why):
            super().__init__(f"{place}: {why}")

    def make():
        raise OddError("here", why="odd")

    once = Once(make)
    with pytest.raises(OddError):
        once()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="OddError: here: odd"):
            once()
