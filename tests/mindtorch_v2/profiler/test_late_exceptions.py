"""What a signal's handler raises inside of the recorder's own callbacks reaches the program, though Python drops it there."""

import gc
import signal
import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import _ExperimentalConfig, profile
from mindtorch_v2.profiler.capture import late_exceptions
from mindtorch_v2.profiler.capture.collector_runs import CollectorRuns
from mindtorch_v2.profiler.capture.memory import roles, storage_hooks
from mindtorch_v2.profiler.capture.memory.storage_hooks import array_slot
from mindtorch_v2.profiler.capture.scopes import module_calls
from mindtorch_v2.profiler.capture.stacks import python_functions

tracer = python_functions.mechanism


class SignalError(Exception):
    pass


@pytest.fixture
def raising_once():
    """A function that makes another one receive a signal, whose handler raises, after its first call."""

    def on_signal(number, frame):
        raise SignalError

    def raising(function, when=lambda *args: True):
        def once(*args):
            result = function(*args)
            if raised or not when(*args):
                return result
            raised.append(True)
            signal.raise_signal(signal.SIGTERM)
            return result

        return once

    raised = []
    before = signal.signal(signal.SIGTERM, on_signal)
    yield raising
    signal.signal(signal.SIGTERM, before)
    assert raised == [True]


def go_on():
    """The exception comes in here."""
    for _ in range(100):
        pass


@pytest.fixture
def collections_by_call():
    """The collector runs when it is called, and tells nobody but the recorder."""
    gc.disable()
    others = gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks[:] = others
    gc.enable()


@pytest.mark.parametrize("with_stack", [False, True])
@pytest.mark.usefixtures("collections_by_call")
def test_in_a_callback_of_the_collector(monkeypatch, raising_once, with_stack):
    monkeypatch.setattr(CollectorRuns, "_write", raising_once(CollectorRuns._write))
    config = _ExperimentalConfig(record_python_gc_info=True)
    with profile(with_stack=with_stack, experimental_config=config) as prof:
        with pytest.raises(SignalError):
            gc.collect()
        gc.collect()
    assert len([e for e in prof.events() if e.name == "Python GC"]) >= 1


EVERYTHING = {"profile_memory": True, "record_shapes": True, "with_stack": True, "with_modules": True}


def test_in_the_finaliser_of_a_parameter(monkeypatch, raising_once):
    monkeypatch.setattr(roles, "_note_made", raising_once(roles._note_made))

    def made():
        torch.nn.Parameter(torch.ones(2))
        go_on()

    with profile(**EVERYTHING), pytest.raises(SignalError):
        made()


@pytest.mark.parametrize("options", [EVERYTHING, {"with_modules": True}])
def test_where_a_module_is_freed(monkeypatch, raising_once, options):
    monkeypatch.setattr(module_calls, "_forget", raising_once(module_calls._forget))

    def called():
        torch.nn.Identity()(1)
        go_on()

    with profile(**options) as prof:
        with pytest.raises(SignalError):
            called()
        torch.nn.Identity()(1)  # its number is free again
    assert {e.name for e in prof.events() if e.name.startswith("nn.Module")} == {"nn.Module: Identity_0"}


def test_in_the_finaliser_of_a_storage(raising_once):
    freed = []
    hooks = storage_hooks.Hooks(array_slot.__set__, raising_once(lambda storage: freed.append(storage.nbytes())))

    def made():
        torch.ones(5)
        go_on()

    storage_hooks.add(hooks)
    try:
        with pytest.raises(SignalError):
            made()
    finally:
        storage_hooks.remove(hooks)
    assert 20 in freed


def test_where_the_call_of_a_built_in_function_is_noted(monkeypatch, raising_once):
    """The end of a `with lock:` is such a call, which would not be made."""
    lock = threading.RLock()

    def locked():
        with lock:
            pass
        go_on()

    monkeypatch.setattr(tracer, "on_c_call", raising_once(tracer.on_c_call, lambda function: function.__name__ == "__exit__"))
    with profile(with_stack=True), pytest.raises(SignalError):
        locked()
    assert not lock._is_owned()


def test_where_a_freed_generator_is_noted(monkeypatch, raising_once):
    def counting():
        try:
            yield 1
        finally:
            torch.ones(1)

    def ended_early():
        numbers = counting()
        next(numbers)
        freed.append(True)
        del numbers
        go_on()

    def is_freed(frame):
        return frame.f_code is counting.__code__ and bool(freed)

    freed = []
    monkeypatch.setattr(tracer, "on_return", raising_once(tracer.on_return, is_freed))
    with profile(with_stack=True), pytest.raises(SignalError):
        ended_early()


def test_other_threads_raise_at_once():
    """A handler runs in the main thread alone; what is raised elsewhere, as by `PyThreadState_SetAsyncExc`, stays there."""
    found = []

    def ask():
        found.append(late_exceptions.can_wait(SystemExit()))
        with pytest.raises(SystemExit):
            late_exceptions.kept(SystemExit())

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert found == [False]
    assert late_exceptions.can_wait(SystemExit())
