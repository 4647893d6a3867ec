"""Recordings with stacks in which something stops the tracing of functions: an exception inside the tracer, or another profiler."""

import contextlib
import cProfile
import gc
import random
import signal
import sys
import threading
import time
import traceback
import weakref

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, validate

x = torch.ones(3)

BEFORE_MONITORING = sys.version_info < (3, 12)


@pytest.fixture(autouse=True)
def no_other_callbacks():
    """Python drops what a handler raises while somebody's callback of the collector runs."""
    others = gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks[:] = others


def gap_expected():
    """Before Python 3.12, a warning says that functions are missing."""
    return pytest.warns(UserWarning, match="functions .* are missing") if BEFORE_MONITORING else contextlib.nullcontext()


def function_rows(prof):
    return [(e["name"].rpartition(": ")[2], e) for e in prof.events() if e["kind"] == "python_function"]


def named(prof, name):
    return [e for found, e in function_rows(prof) if found == name]


def around(prof, event):
    """Names of the functions whose slices are around an event, innermost first."""
    found = [
        name
        for name, e in function_rows(prof)
        if e is not event
        and e["thread_id"] == event["thread_id"]
        and e["start_ns"] <= event["start_ns"]
        and event["end_ns"] <= e["end_ns"]
    ]
    return found[::-1]  # an enclosing event comes first, also where both begin with the recording


class TimedOutError(Exception):
    pass


def leaf(n):
    return n + 1


def middle(n):
    return leaf(n) + leaf(n)


def long_work():
    while True:
        middle(1)


def operators_after():
    return x * x


def after():
    leaf(1)
    operators_after()


@pytest.fixture(autouse=True)
def _no_collections():
    """Python prints and drops an exception that comes inside a callback of the collector, whoever's it is (Hypothesis has one)."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def limited(delay_s, work=long_work):
    """Run until an alarm's handler raises."""

    raised_in = []

    def out_of_time(number, frame):
        raised_in.append(traceback.format_stack(frame))
        raise TimedOutError

    before = signal.signal(signal.SIGALRM, out_of_time)
    try:
        signal.setitimer(signal.ITIMER_REAL, delay_s, 1.0)  # once more, if something takes the exception
        work()
    except TimedOutError:
        assert len(raised_in) == 1, raised_in[0]
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return False


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_functions_end_where_a_signals_exception_ended_them_and_later_ones_are_there(tmp_path):
    moments = random.Random(7)
    wrong = []
    for i in range(150):
        with profile(with_stack=True) as prof:
            assert limited(moments.uniform(2e-5, 2e-3))
            returned_ns = time.time_ns()
            after()
            x + x
        (later,), (mul,) = named(prof, "after"), [e for e in prof.events() if e["name"] == "aten::mul"]
        (add,) = [e for e in prof.events() if e["name"] == "aten::add"]
        if around(prof, mul)[:2] != ["operators_after", "after"] or around(prof, later)[:1] != [sys._getframe().f_code.co_name]:
            wrong.append((i, around(prof, mul)[:4]))
        if around(prof, add)[0] != sys._getframe().f_code.co_name:
            wrong.append((i, around(prof, add)[:4]))
        if len([e for e in named(prof, "leaf") if e["start_ns"] > later["start_ns"]]) != 1:
            wrong.append((i, "leaf"))
        ended = [e for name in ("long_work", "middle", "leaf", "limited") for e in named(prof, name)]
        if any(e["end_ns"] > later["start_ns"] for e in ended if e["start_ns"] < later["start_ns"]):
            wrong.append((i, "open", returned_ns))
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        assert validate(tmp_path / "trace.json") == []
    assert wrong == []


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_generators_that_end_early_drop_no_exception():
    """Python prints and drops what is raised while a generator is freed; `any` frees its own at the first hit."""
    found = [0, 1] * 20

    def search():
        while True:
            any(value == 1 for value in found)

    moments = random.Random(5)
    for _ in range(60):
        with profile(with_stack=True) as prof:
            assert limited(moments.uniform(2e-5, 1e-3), search)
            after()
        (mul,) = [e for e in prof.events() if e["name"] == "aten::mul"]
        assert around(prof, mul)[:2] == ["operators_after", "after"]


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_locks_are_released():
    """The end of a `with lock:` is a built-in function's call, which is reported before it is made."""
    lock = threading.RLock()

    def locking():
        while True:
            with lock:
                pass

    moments = random.Random(3)
    for _ in range(60):
        with profile(with_stack=True):
            assert limited(moments.uniform(2e-5, 1e-3), locking)
        assert not lock._is_owned()


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_operators_may_be_what_is_interrupted():
    def operators():
        while True:
            leaf((x + x).sum())

    moments = random.Random(11)
    for _ in range(60):
        with profile(with_stack=True) as prof:
            assert limited(moments.uniform(2e-5, 1e-3), operators)
            after()
        (mul,) = [e for e in prof.events() if e["name"] == "aten::mul"]
        assert around(prof, mul)[:3] == ["operators_after", "after", sys._getframe().f_code.co_name]
        assert [place.rpartition(":")[2] for place in mul["stack"]][:2] == ["operators_after", "after"]


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_no_variable_outlives_its_function_when_a_signals_exception_ends_it():
    class Local:
        pass

    alive = weakref.WeakSet()

    def holding():
        local = Local()
        alive.add(local)
        long_work()

    with profile(with_stack=True):
        assert limited(1e-3, holding)
        leaf(1)
        assert not alive


@pytest.mark.parametrize("through_c", [False, True])
@pytest.mark.parametrize("in_thread", [False, True])
def test_functions_end_where_a_recursion_ended(through_c, in_thread):
    def deeper():
        return max([1], key=lambda n: deeper()) if through_c else deeper()

    def work():
        for _ in range(3):
            try:
                deeper()
            except RecursionError:
                failed.append(True)
            x + x
        after()

    failed = []
    with gap_expected(), profile(with_stack=True) as prof:
        if in_thread:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        else:
            work()
    assert failed == [True] * 3
    adds = [e for e in prof.events() if e["name"] == "aten::add"]
    (mul,) = [e for e in prof.events() if e["name"] == "aten::mul"]
    assert [around(prof, add)[0] for add in adds] == ["work"] * 3
    assert around(prof, mul)[:3] == ["operators_after", "after", "work"]
    starts = [e["start_ns"] for e in named(prof, "deeper")]
    assert all(any(a < s < b for s in starts) for a, b in zip([adds[0]["start_ns"]], [adds[1]["start_ns"]], strict=True))


def test_the_first_call_of_an_operator_notices_too(run_python):
    """Its entry point is compiled at that moment."""
    result = run_python("""
        import warnings
        import mindtorch_v2 as torch
        from mindtorch_v2.profiler import profile

        def deeper():
            return deeper()

        warnings.simplefilter("ignore")
        x = torch.ones(2)
        with profile(with_stack=True) as prof:
            try:
                deeper()
            except RecursionError:
                pass
            x + x
        (add,) = [e for e in prof.events() if e["name"] == "aten::add"]
        print([e["name"] for e in prof.events() if e["kind"] == "python_function" and e["end_ns"] > add["end_ns"]])
    """)
    assert result.returncode == 0, result.stderr
    assert "deeper" not in result.stdout
    assert "<module>" in result.stdout


def enable(other):
    other.enable()


def disable(other):
    other.disable()


def seen_by_another():
    return x - x


def test_cprofile_may_be_used_inside():
    def work():
        other = cProfile.Profile()
        enable(other)
        x + x
        seen_by_another()
        disable(other)
        x * 2
        leaf(1)
        after()
        return [entry.code.co_name for entry in other.getstats() if not isinstance(entry.code, str)]

    with gap_expected(), profile(with_stack=True) as prof:
        theirs = work()
    assert "seen_by_another" in theirs
    operators = {e["name"]: e for e in prof.events() if e["kind"] == "op"}
    assert around(prof, operators["aten::add"])[0] == "work"
    assert around(prof, operators["aten::mul"])[-len(around(prof, named(prof, "work")[0])) - 1] == "work"
    assert around(prof, named(prof, "after")[0])[0] == "work"
    assert len(named(prof, "leaf")) == 2
    stack = operators["aten::sub"]["stack"]
    assert [place.rpartition(":")[2] for place in stack][:2] == ["seen_by_another", "work"]


COLLECTIONS_IN_A_FULL_STACK = """
import gc, sys, warnings
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile

x = torch.ones(2)
gc.set_threshold(10)

def deeper():
    [[] for _ in range(3)]
    x + x
    return deeper()

warnings.simplefilter("ignore")  # of functions that are missing
with profile(with_stack=True):
    for _ in range(3):
        try:
            deeper()
        except RecursionError:
            pass
"""


def test_collections_where_the_stack_is_full_print_nothing(run_python):
    """Python prints what a callback of the collector raises."""
    done = run_python(COLLECTIONS_IN_A_FULL_STACK)
    assert (done.returncode, done.stderr) == (0, "")
