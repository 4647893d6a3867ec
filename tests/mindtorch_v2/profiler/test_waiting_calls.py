"""Functions written in C that wait are events of recordings with stacks; other functions written in C are none."""

import os
import queue
import select
import socket
import threading
import time

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, validate
from mindtorch_v2.profiler.capture.stacks import waiting_calls
from mindtorch_v2.profiler.model.session import WAITING

x = torch.ones(2)


def waits(prof):
    return [event.name for event in prof.events() if event.name.startswith(WAITING)]


def later(function):
    """Call a function 20 ms from now, on a thread."""
    threading.Timer(0.02, function).start()


def in_a_sleep():
    time.sleep(0.02)


def in_a_lock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=0.02)


def in_a_queue():
    with pytest.raises(queue.Empty):
        queue.Queue().get(timeout=0.02)


def in_a_simple_queue():
    with pytest.raises(queue.Empty):
        queue.SimpleQueue().get(timeout=0.02)


def in_a_join():
    thread = threading.Thread(target=time.sleep, args=(0.02,))
    thread.start()
    thread.join()


def in_a_pipe():
    reading, writing = os.pipe()
    later(lambda: os.write(writing, b"x"))
    os.read(reading, 1)
    os.close(reading)
    os.close(writing)


def in_a_file():
    reading, writing = os.pipe()
    later(lambda: os.close(writing))
    with open(reading, "rb") as file:
        file.read()


def in_a_socket():
    one, other = socket.socketpair()
    later(lambda: other.send(b"x"))
    one.recv(1)
    one.close()
    other.close()


def in_select():
    select.select([], [], [], 0.02)


PROGRAMS = [in_a_sleep, in_a_lock, in_a_queue, in_a_simple_queue, in_a_join, in_a_pipe, in_a_file, in_a_socket, in_select]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_call_that_waits(program):
    with profile(with_stack=True) as prof:
        program()
    me = prof.session.info.thread_id
    mine = [event for event in prof.events() if event.name.startswith(WAITING) and event["thread_id"] == me]
    longest = max(mine, key=lambda event: event["duration_ns"])
    assert longest["duration_ns"] > 15_000_000
    assert longest["kind"] == "python_function"
    parents = []
    while longest.cpu_parent is not None:
        longest = longest.cpu_parent
        parents.append(longest.name.rpartition(": ")[2])
    assert program.__name__ in parents


def test_in_the_function_that_starts_the_recording():
    with profile(with_stack=True) as prof:
        time.sleep(0.02)
    assert waits(prof) == [f"{WAITING}function sleep>"]


def test_others_are_none(monkeypatch):
    monkeypatch.setattr(waiting_calls, "SHORTEST_S", 0.0)
    with profile(with_stack=True) as prof:
        numbers = [3, 1]
        numbers.append(len(numbers))
        numbers.sort()
        time.perf_counter()
        x + x
    assert waits(prof) == []


def test_a_lock_that_is_free():
    lock = threading.Lock()
    with profile(with_stack=True) as prof:
        for _ in range(100):
            lock.acquire()
            lock.release()
    assert len(waits(prof)) < 10  # some, if the machine was busy elsewhere


def test_one_that_raises():
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    with profile(with_stack=True) as prof:
        time.sleep(0.001)
        with pytest.raises(BlockingIOError):
            os.read(reading, 1)
        x + x
    os.close(reading)
    os.close(writing)
    assert f"{WAITING}function sleep>" in waits(prof)
    (add,) = [event for event in prof.events() if event.name == "aten::add"]
    assert not add.cpu_parent.name.startswith(WAITING)


def test_one_that_waits_when_the_recording_ends():
    waiting, over = threading.Event(), threading.Event()

    def wait():
        x + x  # from here on, Python 3.11 traces a thread that ran before
        waiting.set()
        over.wait()

    with profile(with_stack=True) as prof:
        thread = threading.Thread(target=wait)
        thread.start()
        waiting.wait()
        time.sleep(0.02)
    over.set()
    thread.join()
    (longest,) = [
        e
        for e in prof.events()
        if e.name.startswith(WAITING) and e["thread_id"] == thread.native_id and e["duration_ns"] > 10_000_000
    ]
    assert longest["end_ns"] == prof.session.info.stopped_ns


def test_without_stacks_there_are_none():
    with profile() as prof:
        time.sleep(0.001)
    assert waits(prof) == []


def test_the_trace(tmp_path):
    with profile(with_stack=True) as prof:
        in_a_queue()
        in_a_join()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    assert validate(tmp_path / "trace.json") == []
