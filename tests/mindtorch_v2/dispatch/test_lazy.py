"""Functions that are compiled at their first call: by several threads at once, and cut short by the exception of a signal's handler."""

import itertools
import sys
import threading
from pathlib import Path

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import codegen, dispatcher, lazy
from mindtorch_v2._dispatch.codegen import Source
from mindtorch_v2._dispatch.lazy import lazy_function, rewrite_lazy_functions
from mindtorch_v2._forking import new_lock

WATCHED = {str(Path(module.__file__)) for module in (codegen, lazy)}
SECONDS = 60  # after which a thread is taken to hang


def new_function():
    """A function that was never called: adds three, with a default that its source computes."""
    return lazy_function("add_three", lambda: Source("x, y=two + 1", ["return x + y"], {"two": 2}))


class Interrupt(BaseException):
    """What a signal's handler raises."""


class AtLine:
    """Calls a function before the n-th line that a thread runs of the modules that compile."""

    def __init__(self, n, action):
        self._left = n
        self._action = action

    def __call__(self, frame, event, argument):
        if frame.f_code.co_filename not in WATCHED:
            return None
        if event == "line":
            self._left -= 1
            if self._left == 0:
                self._action()
        return self

    @property
    def came(self):
        return self._left <= 0

    def run(self, function):
        """Call the function; True if it has that many lines."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            function()
        finally:
            sys.settrace(before)
        return self.came


class Blocking:
    """A lock that tells when somebody has to wait for it."""

    def __init__(self):
        self._lock = new_lock()
        self.on_wait = threading.Event()

    def __enter__(self):
        if not self._lock.acquire(blocking=False):
            self.on_wait.set()
            self._lock.acquire()

    def __exit__(self, *error):
        self._lock.release()


class Other:
    """A thread that calls a function, or comes to where it has to wait."""

    def __init__(self, function, lock):
        self.result = self.error = None
        self._function = function
        self._lock = lock
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        try:
            self.result = self._function()
        except BaseException as error:
            self.error = error
        self._lock.on_wait.set()

    def start(self):
        self._thread.start()
        assert self._lock.on_wait.wait(SECONDS)

    def join(self):
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()


def interleaved(monkeypatch, first, second):
    """Run the first function, and the second in another thread before the n-th line of the first, for each n."""
    for n in itertools.count(1):
        lock = Blocking()
        monkeypatch.setattr(lazy, "compile_lock", lock)
        one, two = first(), second()
        other = Other(two, lock)
        if not AtLine(n, other.start).run(one):
            assert n > 10
            return
        other.join()
        yield n, one, other


def test_two_threads_make_the_first_call_at_once(monkeypatch):
    functions = []

    def first():
        functions.append(new_function())
        return lambda: results.append(functions[-1](1))

    results = []
    for n, _, other in interleaved(monkeypatch, first, lambda: lambda: functions[-1](1)):
        assert other.error is None, n
        assert (results.pop(), other.result) == (4, 4), n


NEGATIVE = {"add_three": (lambda x, y: -(x + y)).__code__, "f": (lambda x: -(x + two - 1)).__code__}  # noqa: F821 - of `f`'s globals


def negated(code):
    """The functions of this file with a minus before their result; all others as they are."""
    return NEGATIVE.get(code.co_name, code)


@pytest.fixture
def plain_afterwards():
    yield
    rewrite_lazy_functions(None)


def test_a_first_call_while_another_function_is_compiled_and_all_are_rewritten(monkeypatch, plain_afterwards):
    rewrite_lazy_functions(negated)
    functions = []

    def first():
        functions[:] = new_function(), new_function()
        return lambda: functions[0](1)

    for n, _, other in interleaved(monkeypatch, first, lambda: lambda: functions[1](1)):
        assert other.error is None, n
        assert [f(1) for f in functions] == [-4, -4], n


@pytest.mark.parametrize("rewrite", [negated, None])
def test_a_first_call_while_rewriting_begins_and_ends(monkeypatch, plain_afterwards, rewrite):
    functions = []

    def first():
        rewrite_lazy_functions(None if rewrite else negated)
        functions.append(new_function())
        return lambda: functions[-1](1)

    for n, _, other in interleaved(monkeypatch, first, lambda: lambda: rewrite_lazy_functions(rewrite)):
        assert other.error is None, n
        assert functions[-1](1) == (-4 if rewrite else 4), n


@pytest.mark.parametrize("rewrite", [None, negated])
def test_an_interrupt_at_any_line_leaves_the_function_to_be_compiled_and_the_lock_free(monkeypatch, plain_afterwards, rewrite):
    def interrupt():
        raise Interrupt

    rewrite_lazy_functions(rewrite)
    for n in itertools.count(1):
        lock = Blocking()
        monkeypatch.setattr(lazy, "compile_lock", lock)
        function = new_function()
        trace = AtLine(n, interrupt)
        try:
            trace.run(lambda function=function: function(1))
        except Interrupt:
            pass
        if not trace.came:
            assert n > 10
            return
        other = Other(lambda function=function: function(1), lock)
        other.start()
        other.join()
        assert other.error is None, n
        assert other.result == (-4 if rewrite else 4), n
        rewrite_lazy_functions(None)
        assert function(1) == 4, n
        rewrite_lazy_functions(rewrite)


def test_compiling_may_call_what_is_compiled():
    """As a finaliser does that runs in the middle of it."""
    calls = []

    def build():
        if not calls:
            calls.append(1)
            assert function(1) == 2
        return Source("x", ["return x + two - 1"], {"two": 2})

    function = lazy_function("f", build)
    assert function(1) == 2
    rewrite_lazy_functions(negated)
    assert function(1) == -2
    rewrite_lazy_functions(None)
    assert function(1) == 2


def test_the_entry_points_and_the_dispatcher_wait_for_one_lock():
    """With two, a finaliser that calls an operator while one is compiled could wait for a thread that waits for it."""
    assert dispatcher._lock is lazy.compile_lock


def test_errors_about_arguments_name_the_function():
    with pytest.raises(TypeError, match=r"^eye\(\) got an unexpected keyword argument 'columns'$"):
        torch.eye(2, columns=3)
    assert torch.eye.__qualname__ == "eye"
