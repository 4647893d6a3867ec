"""The time of a recording is the program's: starting and stopping take none of it, and are in nobody's frame."""

import functools
import operator
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ProfilerActivity, profile, record_function
from mindtorch_v2.profiler.capture import capture
from mindtorch_v2.profiler.capture.operators import recorder
from mindtorch_v2.profiler.capture.source import Source

x = torch.ones(2, 3)
x + x

EVERYTHING = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_modules": True}
MODES = [{}, {"record_shapes": True}, {"profile_memory": True}, {"profile_memory": "tracemalloc"}, {"with_stack": True}, EVERYTHING]


class Clock:
    """Stands still until it is put forward."""

    def __init__(self):
        self._reading = [1.0]
        self.read = functools.partial(operator.getitem, self._reading, 0)  # no function of Python's, which would be an event

    def forward(self, seconds):
        self._reading[0] += seconds


class Slow(Source):
    """Takes ten seconds for whatever it does."""

    def __init__(self, clock):
        self._clock = clock

    def _take_long(self, *arguments):
        self._clock.forward(10)

    begin = resume = pause = end = take = _take_long


@pytest.fixture
def clock():
    made = Clock()
    recorder.set_clock(made.read)
    yield made
    recorder.set_clock(time.perf_counter)


@pytest.fixture
def slow_sources(clock, monkeypatch):
    """Recordings whose starts and stops take long, before and after each of their own sources."""
    make = capture._sources

    def with_slow_ones(*arguments):
        return tuple(source for made in make(*arguments) for source in (Slow(clock), made, Slow(clock)))

    monkeypatch.setattr(capture, "_sources", with_slow_ones)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_starting_and_stopping_take_no_time_of_the_recording(clock, slow_sources, mode):
    with profile(**mode) as prof:
        clock.forward(3)
        x + x
        clock.forward(4)
    info = prof.session.info
    assert info.stopped_ns - info.started_ns == 7e9


def test_nobodys_frame_has_them(clock, slow_sources):
    def program():
        with profile(with_stack=True) as prof:
            clock.forward(3)
            x + x
        clock.forward(5)  # after the recording
        return prof

    prof = program()
    (frame,) = [event for event in prof.events() if event.name.endswith(": program")]
    info = prof.session.info
    assert (frame["start_ns"], frame["end_ns"]) == (info.started_ns, info.stopped_ns)
    assert frame.cpu_time_total == 3e6


def test_frames_around_a_pause(clock):
    with profile(with_stack=True) as prof:
        clock.forward(3)
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        clock.forward(100)
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        clock.forward(4)
    mine = [event for event in prof.events() if event.name.endswith(": test_frames_around_a_pause")]
    assert [event.cpu_time_total for event in mine] == [3e6, 4e6]


def test_scopes_that_are_left_open_end_with_the_recording(clock, slow_sources):
    scope = record_function("open")
    with profile() as prof:
        scope.__enter__()
        clock.forward(3)
    assert [(e.name, e["end_ns"]) for e in prof.events()] == [("open", prof.session.info.stopped_ns)]


def test_an_execution_trace_ends_after_the_recording(clock, tmp_path):
    class Observer:
        def start(self):
            clock.forward(10)

        stop = cleanup = start

    with profile(execution_trace_observer=Observer()) as prof:
        clock.forward(3)
    info = prof.session.info
    assert info.stopped_ns - info.started_ns == 3e9


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_no_event_is_outside(mode):
    """Other threads call operators and functions all the time, while recordings start and stop."""
    over = threading.Event()

    def work():
        while not over.is_set():
            with record_function("work"):
                inner()

    def inner():
        torch.ones(4) + 1

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            with profile(**mode) as prof:
                x + x
            session, info = prof.session, prof.session.info
            assert info.started_ns <= session.start_ns.min()
            assert session.end_ns.max() <= info.stopped_ns
            if session.memory is not None and len(session.memory.time_ns):
                assert info.started_ns <= session.memory.time_ns.min() <= session.memory.time_ns.max() <= info.stopped_ns
    finally:
        over.set()
        for thread in threads:
            thread.join()


@pytest.mark.skipif(
    sys.version_info < (3, 12), reason="before 3.12 a thread that runs already is traced from its first operator on"
)
def test_functions_of_other_threads_begin_with_the_recording():
    running, over = threading.Event(), threading.Event()

    def waiting():
        running.set()
        over.wait()

    thread = threading.Thread(target=waiting)
    thread.start()
    running.wait()
    with profile(with_stack=True) as prof:
        x + x
    over.set()
    thread.join()
    (event,) = [event for event in prof.events() if event.name.endswith(": waiting")]
    info = prof.session.info
    assert (event["start_ns"], event["end_ns"]) == (info.started_ns, info.stopped_ns)


class TestThreadsOfPython:
    """What Python runs before and after the functions of threads is no row; what threads run is."""

    @staticmethod
    def functions(prof):
        return {event.name.rpartition(": ")[2] for event in prof.events() if event["kind"] == "python_function"}

    def test_a_thread(self):
        def target():
            x + x

        with profile(with_stack=True) as prof:
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
        on_thread = [e for e in prof.events() if e["thread_id"] == thread.native_id and e["kind"] == "python_function"]
        assert [e.name.rpartition(": ")[2] for e in on_thread] == ["target"]
        assert "join" in self.functions(prof)

    def test_a_pool(self):
        def target():
            x + x

        with profile(with_stack=True) as prof, ThreadPoolExecutor(1) as pool:
            pool.submit(target).result()
        found = self.functions(prof)
        assert {"target", "_worker"} <= found
        assert not found & {"_bootstrap", "_bootstrap_inner"}

    def test_a_thread_with_a_run_of_its_own(self):
        class Worker(threading.Thread):
            def run(self):
                x + x

        with profile(with_stack=True) as prof:
            worker = Worker()
            worker.start()
            worker.join()
        assert "run" in self.functions(prof)

    def test_the_end_of_a_program(self, tmp_path, run_python):
        (tmp_path / "program.py").write_text(
            "import mindtorch_v2 as torch, threading\n"
            "from concurrent.futures import ThreadPoolExecutor\n"
            "def last():\n"
            "    torch.ones(2) + 1\n"
            "pool = ThreadPoolExecutor(1)\n"
            "pool.submit(last)\n"
            "threading.Thread(target=last).start()\n"
        )
        done = run_python(
            """
            import subprocess, sys
            from mindtorch_v2.profiler import Results
            command = [sys.executable, "-m", "mindtorch_v2.profiler", "--with-stack", "--session", "session.npz", "program.py"]
            subprocess.run(command, check=True, capture_output=True)
            print({row.key.rpartition(": ")[2] for row in Results.load("session.npz").key_averages()})
            """
        )
        assert done.returncode == 0, done.stderr
        found = eval(done.stdout)
        assert {"last", "aten::add"} <= found
        assert not found & {"_shutdown", "_python_exit", "_bootstrap", "_bootstrap_inner", "_delete", "_stop"}
