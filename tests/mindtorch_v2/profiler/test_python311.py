"""On Python 3.11 tracing is repaired where the interpreter is as expected, and plain where it is not: the same functions are recorded."""

import sys
import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile

if sys.version_info >= (3, 12):
    pytest.skip("sys.monitoring needs no repairs", allow_module_level=True)

from mindtorch_v2.profiler.capture.stacks import python311  # isort: skip - not for later versions


def outer():
    return inner(torch.ones(3, requires_grad=True))


def inner(x):
    x.register_hook(in_a_hook)
    (x * 2).sum().backward()
    return list(counting())


def in_a_hook(grad):
    return grad


def counting():
    yield 1
    yield 2


def recorded():
    def on_a_thread():
        outer()

    with profile(with_stack=True) as prof:
        outer()
        thread = threading.Thread(target=on_a_thread)
        thread.start()
        thread.join()
    mine = [e for e in prof.events() if e["kind"] == "python_function" and "test_python311" in e["name"]]
    functions = [(e["name"], e["duration_ns"] >= 0) for e in mine]
    stacks = [(e["name"], e["stack"]) for e in prof.events() if e["kind"] == "op"]
    return functions, stacks


def test_plain_tracing_records_the_same(monkeypatch):
    assert python311.IS_AS_EXPECTED
    found = []
    for as_expected in (True, False):  # from one line, which is in the stacks
        monkeypatch.setattr(python311, "IS_AS_EXPECTED", as_expected)
        found.append(recorded())
    names = [name.rpartition(": ")[2] for name, _ in found[0][0]]
    assert {"outer", "inner", "in_a_hook", "counting", "on_a_thread"} <= set(names)
    assert found[1] == found[0]
    assert sys.getprofile() is None
    assert threading.getprofile() is None


def test_plain_tracing_after_an_exception_in_the_tracer(monkeypatch):
    """Python takes the function away that raised, and the next operator has the thread traced again."""
    monkeypatch.setattr(python311, "IS_AS_EXPECTED", False)
    on_call, failed = python311.on_call, []

    def failing(frame, code):
        if code is in_a_hook.__code__ and not failed:
            failed.append(True)
            raise KeyboardInterrupt
        return on_call(frame, code)

    monkeypatch.setattr(python311, "on_call", failing)
    prof = profile(with_stack=True)
    prof.start()
    with pytest.raises(KeyboardInterrupt):
        in_a_hook(None)
    torch.ones(2) + 1
    outer()
    with pytest.warns(UserWarning, match="tracing of Python functions was interrupted"):
        prof.stop()
    names = [e["name"].rpartition(": ")[2] for e in prof.events() if e["kind"] == "python_function"]
    assert {"outer", "inner", "counting"} <= set(names)


@pytest.mark.parametrize("implementation", ["cpython", "another"])
def test_where_reports_cannot_be_moved_tracing_is_plain(monkeypatch, implementation):
    if implementation == "another":
        monkeypatch.setattr(sys.implementation, "name", "pypy")
    else:
        monkeypatch.setattr(python311, "reported_later", lambda code, line: next(iter(())))
    assert python311._move_reports() is False


def test_a_gap_is_told_of_by_its_own_recording(monkeypatch):
    """A warning is an error here; what an earlier recording left out is no matter of this one."""
    monkeypatch.setattr(python311, "_gap", True)
    functions, _ = recorded()
    assert functions
