"""Functions written in C that wait are events of recordings with stacks; other functions written in C are none."""

import os
import queue
import re
import select
import socket
import sys
import threading
import time

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, validate
from mindtorch_v2.profiler.capture.stacks import python_tracer, waiting_calls
from mindtorch_v2.profiler.model import waiting
from mindtorch_v2.profiler.model.recording import Recording

from .by_hand import python_function, record

x = torch.ones(2)


def waits(prof):
    return [event.name for event in prof.events() if event.name.startswith(waiting.BUILT_IN)]


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


WORDS = {
    in_a_sleep: "sleep",
    in_a_lock: "acquire",
    in_a_queue: "acquire",
    in_a_simple_queue: "get",
    in_a_join: "join" if sys.version_info >= (3, 13) else "acquire",
    in_a_pipe: "read",
    in_a_file: "read",
    in_a_socket: "recv",
    in_select: "select",
}


@pytest.mark.parametrize("program", WORDS, ids=lambda f: f.__name__)
def test_a_call_that_waits(program, monkeypatch):
    monkeypatch.setattr(waiting_calls, "SHORTEST_S", 0.0)  # what it waits for may be there already, on a busy machine
    with profile(with_stack=True) as prof:
        program()
    found = [event for event in prof.events() if re.match(rf"{waiting.BUILT_IN}\w+ {WORDS[program]}\b", event.name)]
    assert {event["kind"] for event in found} == {"python_function"}
    assert program.__name__ in {name for event in found for name in functions_around(event)}


def functions_around(event):
    while event.cpu_parent is not None:
        event = event.cpu_parent
        yield event.name.rpartition(": ")[2]


def test_in_the_function_that_starts_the_recording():
    with profile(with_stack=True) as prof:
        time.sleep(0.02)
    assert waits(prof) == [f"{waiting.BUILT_IN}function sleep>"]


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
    assert f"{waiting.BUILT_IN}function sleep>" in waits(prof)
    (add,) = [event for event in prof.events() if event.name == "aten::add"]
    assert not add.cpu_parent.name.startswith(waiting.BUILT_IN)


def test_one_that_waits_when_the_recording_ends(monkeypatch):
    monkeypatch.setattr(waiting_calls, "SHORTEST_S", 0.0)
    over = threading.Event()

    def wait():
        over.wait()

    with profile(with_stack=True) as prof:
        thread = threading.Thread(target=wait)
        thread.start()
        while thread.ident not in python_tracer.waits:
            pass
    over.set()
    thread.join()
    of_thread = [e for e in prof.events() if e.name.startswith(waiting.BUILT_IN) and e["thread_id"] == thread.native_id]
    assert of_thread[-1]["end_ns"] == prof.session.info.stopped_ns


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


def test_a_wait_in_no_function_has_its_own_time():
    """As on a thread whose functions began before the recording."""
    wait = f"{waiting.BUILT_IN}method acquire of _thread.lock object>"
    recording = Recording(record([python_function(wait, 0, 30), python_function("f", 40, 90, python_function(wait, 50, 80))]))
    assert recording.without_children(recording.cpu_ns).tolist() == [30, 50, 0]


def test_names_of_calls_that_wait():
    """Traces of torch have the calls of all functions written in C, with the address of their object."""
    names = [f"{waiting.BUILT_IN}function sleep>", f"{waiting.BUILT_IN}method acquire of _thread.lock object at 0x7f0>"]
    names.append(f"{waiting.BUILT_IN}method recv of socket object at 0x7f0>")
    assert [waiting.waits(name) for name in names] == [True] * 3
    others = ["sleep", f"{waiting.BUILT_IN}function any>", f"{waiting.BUILT_IN}method mean of Tensor object at 0x7f0>"]
    others += [f"{waiting.BUILT_IN}method {method} object at 0x7f0>" for method in ("read of _io.BytesIO", "get of dict")]
    assert [waiting.waits(name) for name in others] == [False] * 5


@pytest.mark.parametrize("owner", sorted(waiting_calls.OWNERS, key=str))
def test_the_names_of_events_are_names_of_waiting(owner):
    for method in waiting.METHODS[owner.__name__]:
        assert waiting.waits(f"{waiting.BUILT_IN}method {method} of {owner.__module__}.{owner.__qualname__} object>")
