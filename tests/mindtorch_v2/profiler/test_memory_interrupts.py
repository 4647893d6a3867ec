"""Interrupts while memory is recorded: each reaches the program, and what is counted is what lives, whatever the moment."""

import asyncio
import gc
import random
import signal
import sys
import threading

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._storage import UntypedStorage
from mindtorch_v2.profiler import profile, record_function

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers")

x, w = torch.ones(8, 8), torch.ones(8, 8, requires_grad=True)
shared = np.ones(100, np.float32)


class SignalError(Exception):
    pass


class Interrupts:
    """Lets signals come at random moments of a piece of work, and counts those that arrive and those that reach the program."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.arrived = self.caught = 0
        self.lost = []

    def _on_signal(self, number, frame):
        self.arrived += 1
        raise SignalError

    def __enter__(self):
        self._before = signal.signal(signal.SIGALRM, self._on_signal), sys.unraisablehook, gc.callbacks[:]
        sys.unraisablehook = lambda unraisable: self.lost.append(repr(unraisable.object))
        gc.callbacks.clear()  # what they raise is lost, whoever records
        return self

    def __exit__(self, *error):
        signal.setitimer(signal.ITIMER_REAL, 0)
        handler, sys.unraisablehook, gc.callbacks[:] = self._before
        signal.signal(signal.SIGALRM, handler)

    def during(self, work):
        """Do this over and over until a signal has come."""
        try:
            self._until_one_has_come(work)
        except SignalError:
            self.caught += 1

    def _until_one_has_come(self, work):
        before = self.arrived
        signal.setitimer(signal.ITIMER_REAL, self.random.uniform(20e-6, 400e-6))
        while self.arrived == before:
            work()


def live_arrays():
    """The bytes of each array that a storage has."""
    gc.collect()
    storages = [s for s in gc.get_objects() if type(s) is UntypedStorage]
    return {id(array): array.nbytes for array in (getattr(s, "array", None) for s in storages) if array is not None}


def small_operators():
    y = x + x
    y = y * 2.0
    y.sum()


def shared_memory():
    y = x.exp()
    data, view = y.data, y[2:]
    del y, view
    torch.from_numpy(shared).data.add_(1)
    data.resize_(100)


def training():
    torch.tensor([1.0, 2.0])
    (w * x).relu().max(dim=0).values.sum().backward()
    w.grad = None


@pytest.mark.parametrize("options", [{}, {"with_stack": True}, {"record_shapes": True}], ids=["memory", "stacks", "shapes"])
@pytest.mark.parametrize("work", [small_operators, shared_memory, training])
def test_each_interrupt_reaches_the_program_and_the_memory_is_exact(work, options):
    work()
    state = np.geterr()
    for seed in range(4):
        w.grad = None
        before = live_arrays()
        with Interrupts(seed) as interrupts, profile(profile_memory=True, **options) as prof:
            work()  # operators are compiled at their first call
            callbacks, gc.callbacks[:] = gc.callbacks[:], []
            for _ in range(100):
                interrupts.during(work)
            gc.callbacks[:] = callbacks
            w.grad = None
            kept = torch.ones(50)
        assert interrupts.lost == []
        assert (interrupts.arrived, interrupts.caught) == (100, 100)
        assert np.geterr() == state
        after = live_arrays()
        assert prof.session.memory.total_bytes[-1] == sum(after.values())
        assert prof.leaks(collect=True).total_bytes == sum(after.values()) - sum(before.values()) == kept.nbytes
        del kept


def test_interrupts_while_other_threads_make_and_free_memory():
    before = live_arrays()
    done = threading.Event()

    def others():
        while not done.is_set():
            small_operators()
            shared_memory()

    with Interrupts(7) as interrupts, profile(profile_memory=True) as prof:
        threads = [threading.Thread(target=others, name=f"thread {i}") for i in range(2)]
        for thread in threads:
            thread.start()
        small_operators()
        for _ in range(200):
            interrupts.during(small_operators)
        done.set()
        for thread in threads:
            thread.join()
        del thread, threads
    assert interrupts.lost == []
    assert (interrupts.arrived, interrupts.caught) == (200, 200)
    assert prof.session.memory.total_bytes[-1] == sum(live_arrays().values()) == sum(before.values())
    tracks = {prof.session.tracks[i].name for i in prof.session.memory.track[prof.session.memory.size_bytes < 0].tolist()}
    assert tracks == {"MainThread", "thread 0", "thread 1"}


def test_interrupts_in_tasks():
    before = live_arrays()

    async def task(interrupts):
        with record_function("task"):
            small_operators()  # operators are compiled for tasks at their first call
            for _ in range(50):
                interrupts.during(small_operators)
                await asyncio.sleep(0)

    async def main(interrupts):
        await asyncio.gather(task(interrupts), task(interrupts))

    with Interrupts(3) as interrupts, profile(profile_memory=True) as prof:
        asyncio.run(main(interrupts))
    assert interrupts.lost == []
    assert (interrupts.arrived, interrupts.caught) == (100, 100)
    assert prof.session.memory.total_bytes[-1] == sum(live_arrays().values()) == sum(before.values())
    inside = [e for e in prof.events() if e.name == "task"]
    assert [e.cpu_memory_usage for e in inside] == [0, 0]
