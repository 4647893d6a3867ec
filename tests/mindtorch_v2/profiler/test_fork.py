"""Forked processes: the recording is the parent's."""

import multiprocessing
import os
import sys
import threading
import warnings

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import dispatcher, keys
from mindtorch_v2.profiler import ProfilerAction, profile, record_function, schedule

from ..forked import in_child

x = torch.ones(2)
RECORDING = keys.PROFILER | keys.RECORD_SHAPES | keys.RECORD_STACKS | keys.RECORD_TASKS

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")


def names(prof):
    return [e["name"] for e in prof.events() if e["kind"] != "python_function"]


@pytest.mark.parametrize("options", [{}, {"record_shapes": True, "with_stack": True}])
def test_the_child_does_not_inherit_the_recording_and_the_parents_is_intact(options):
    with profile(**options) as prof, record_function("outer"):
        x + x

        def child():
            assert not dispatcher.active_keys() & RECORDING
            assert sys.getprofile() is None
            assert threading.getprofile() is None
            x * x
            with record_function("child's"):
                pass

        assert in_child(child) == 0
        x - x
    assert names(prof) == ["outer", "aten::add", "aten::sub"]
    # functions of other threads of this process may have been recorded, too
    assert {e["thread_id"] for e in prof.events() if e["kind"] != "python_function"} == {threading.get_native_id()}


def test_the_child_can_record_on_its_own():
    with profile() as prof:
        x + x

        def child():
            with profile(record_shapes=True) as own:
                x * x
            assert names(own) == ["aten::mul"]
            assert {e["thread_id"] for e in own.events()} == {os.getpid()}
            assert own.session.info.pid == os.getpid()

        assert in_child(child) == 0
    assert names(prof) == ["aten::add"]


def test_the_child_leaves_the_inherited_block_without_harm():
    ready = []
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        prof = profile(schedule=schedule(wait=0, warmup=1, active=2), on_trace_ready=ready.append)
        with prof, record_function("open"):
            prof.step()
            x + x
            pid = os.fork()
        # both processes come here; the child's handler was not called, since nothing of it was recorded
    if pid == 0:
        os.write(write, b"handler called" if ready else b"left in peace")
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(read, 100) == b"left in peace"
    os.close(read)
    os.close(write)
    assert ready == [prof]
    assert "aten::add" in names(prof)


def test_the_inherited_profiler_says_that_it_does_not_run_and_can_be_started():
    with profile() as prof:

        def child():
            with pytest.raises(RuntimeError, match="not running"):
                prof.step()
            prof.toggle_collection_dynamic(False, [torch.profiler.ProfilerActivity.CPU])
            prof.stop()
            prof.start()
            x * x
            prof.stop()
            assert names(prof) == ["aten::mul"]
            assert not dispatcher.active_keys() & RECORDING

        assert in_child(child) == 0
        x + x
    assert names(prof) == ["aten::add"]


def test_a_fork_during_the_warmup_takes_no_key_along():
    with profile(schedule=lambda step: ProfilerAction.WARMUP if step == 0 else ProfilerAction.RECORD) as prof:

        def child():
            assert not dispatcher.active_keys() & RECORDING
            prof.stop()
            with profile() as own:
                x * x
            assert names(own) == ["aten::mul"]
            assert not dispatcher.active_keys() & RECORDING

        assert in_child(child) == 0
        prof.step()
        x + x
    assert names(prof) == ["ProfilerStep#1", "aten::add"]


def test_a_fork_while_other_threads_hold_the_dispatchers_lock():
    held, release = threading.Event(), threading.Event()

    def hold():
        with dispatcher._lock:
            held.set()
            release.wait()

    thread = threading.Thread(target=hold)
    with profile() as prof:
        x + x
        thread.start()
        held.wait()

        def child():
            with profile() as own:
                x * x
            assert names(own) == ["aten::mul"]

        assert in_child(child) == 0
        release.set()
        thread.join()
    assert names(prof) == ["aten::add"]


def square(n):
    with profile() as own:
        result = (x * n).sum().item()
    assert names(own) == ["aten::mul", "aten::sum", "aten::item", "aten::_local_scalar_dense"][: len(names(own))]
    return result


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_pool_of_forked_processes():
    with profile() as prof:
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(square, [1, 2, 3]) == [2.0, 4.0, 6.0]
        x + x
    assert names(prof) == ["aten::add"]
