"""Processes that are forked while other threads are in the middle of something: no lock stays locked, nothing stays half done."""

import os
import random
import re
import threading
import time
from pathlib import Path

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _forking
from mindtorch_v2._autograd import accumulating
from mindtorch_v2._dispatch import dispatcher, registry
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.capture import event_ids

from .forked import in_child

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")


class Others:
    """Threads that do something over and over while a block runs."""

    def __init__(self, *work):
        self._done = threading.Event()
        self._threads = [threading.Thread(target=self._repeat, args=(each,)) for each in work]
        self.errors = []

    def _repeat(self, work):
        try:
            while not self._done.is_set():
                work()
        except BaseException as error:
            self.errors.append(error)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error):
        self._done.set()
        for thread in self._threads:
            thread.join()


weight = torch.ones(16, 16, requires_grad=True)


def backward():
    (weight @ weight).relu().sum().backward()


def large_randoms():
    torch.randn(200_000)
    torch.rand(200_000, dtype=torch.float64)


def small_randoms():
    torch.rand(7)
    torch.randn(16)


def first_calls():
    x = torch.ones(3)
    for name, call in (("mul", x.mul), ("add", x.add), ("sub", x.sub)):
        op = registry.find(f"aten::{name}", "Tensor")
        dispatcher.invalidate(op)
        call(x)


def recordings():
    with profile(profile_memory=True, with_stack=True, with_modules=True, acc_events=True):
        torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3))


def work_of_a_child():
    own = torch.ones(4, 4, requires_grad=True)
    (own @ own).sum().backward()
    assert own.grad.tolist() == [[8.0] * 4] * 4
    assert torch.isfinite(torch.randn(20_000)).all()
    assert torch.rand(5).max() < 1
    with profile(profile_memory=True, with_stack=True) as prof:
        kept = own * 2
        torch.ones(3).exp()
    names = [e["name"] for e in prof.events() if e["kind"] == "op"]
    assert names[:1] == ["aten::mul"]
    assert "aten::exp" in names
    assert prof.leaks().total_bytes == kept.nbytes


@pytest.mark.parametrize(
    "others",
    [
        [backward, backward],
        [large_randoms, small_randoms],
        [first_calls, first_calls],
        [recordings],
        [backward, small_randoms, first_calls],
    ],
    ids=["backward", "random numbers", "first calls", "recordings", "all of them"],
)
def test_a_fork_at_any_moment_of_other_threads(others):
    work_of_a_child()
    for work in others:
        work()
    moments = random.Random(0)
    with Others(*others) as threads:
        for _ in range(10):
            until = time.perf_counter() + moments.uniform(0, 3e-3)
            while time.perf_counter() < until:
                pass
            assert in_child(work_of_a_child) == 0
    assert threads.errors == []


def locks():
    return [lock for lock in (reference() for reference in list(_forking._locks)) if lock is not None]


def test_locks_that_another_thread_holds_are_unlocked_in_the_child():
    mine, held, release = {_forking.new_lock(), _forking.new_condition()}, threading.Event(), threading.Event()
    assert mine <= set(locks())

    def hold():
        taken = locks()
        for lock in taken:
            lock.acquire()
        held.set()
        release.wait()
        for lock in taken:
            lock.release()

    def child():
        for lock in locks():
            assert lock.acquire(blocking=False)
            lock.release()
        work_of_a_child()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    status = in_child(child)
    release.set()
    thread.join()
    assert status == 0


def test_a_lock_that_the_forking_thread_holds_stays_its_own():
    lock = _forking.new_lock()
    with lock:
        assert in_child(lock.release) == 0


def test_nobody_waits_for_a_condition_in_the_child():
    condition, waiting = _forking.new_condition(), threading.Event()

    def wait():
        with condition:
            waiting.set()
            condition.wait()

    def child():
        with condition:
            assert not condition._waiters

    thread = threading.Thread(target=wait)
    thread.start()
    waiting.wait()
    with condition:  # free again once the thread waits
        pass
    status = in_child(child)
    with condition:
        condition.notify_all()
    thread.join()
    assert status == 0


def test_a_lock_that_is_gone_is_forgotten():
    lock = _forking.new_lock()
    before = len(_forking._locks)
    del lock
    assert len(_forking._locks) == before - 1


def test_all_locks_are_known():
    generator = torch.Generator()
    for lock in (accumulating._leaf_lock, dispatcher._lock, generator._lock, generator._bits.lock, event_ids._lock):
        assert any(lock is known for known in locks())


def test_no_lock_is_made_that_is_not_renewed():
    package = Path(torch.__file__).parent
    makers = re.compile(r"\b(threading|_thread|multiprocessing)\.(Lock|RLock|Condition|Semaphore|BoundedSemaphore|allocate_lock)\(")
    found = [path.relative_to(package) for path in package.rglob("*.py") if makers.search(path.read_text())]
    # a lock of a thread that is gone in the child is asked for there no more, nor is that of a progress bar
    with_threads = ["_thread_pool.py", "cli/console.py", "profiler/background.py", "profiler/capture/draining.py"]
    assert sorted(str(path) for path in found) == ["_forking.py", *with_threads]


class Cut(BaseException):
    pass


class Unfinished(list):
    """A list to which nothing can be added any more."""

    def append(self, value):
        raise Cut


class TestWhatIsCutShort:
    """A thread is gone in the child wherever it was; an exception there comes to the same."""

    def test_an_operator_that_was_just_compiled_is_recorded_later(self, monkeypatch):
        x = torch.ones(2)
        registry.find("aten::mul", "Tensor").table.clear()
        with monkeypatch.context() as patched:
            patched.setattr(dispatcher, "_filled", Unfinished(dispatcher._filled))
            with pytest.raises(Cut):
                x * x
        with profile() as prof:
            x * x
        assert [e["name"] for e in prof.events()] == ["aten::mul"]

    def test_random_numbers(self, monkeypatch):
        generator = torch.Generator().manual_seed(0)
        torch.rand(600, generator=generator)

        def cut(n):
            raise Cut

        with monkeypatch.context() as patched:
            patched.setattr(torch.Generator, "_whole_blocks", lambda self, n: cut(n))
            with pytest.raises(Cut):
                torch.rand(100, generator=generator)
        assert torch.rand(100, generator=generator).shape == (100,)
        again = torch.Generator().manual_seed(0)
        torch.rand(700, generator=again)
        assert torch.equal(torch.rand(100, generator=generator), torch.rand(100, generator=again))
