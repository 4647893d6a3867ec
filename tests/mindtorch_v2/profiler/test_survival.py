"""What a recording lives through: a clock that is set, collections at any moment, stacks that are full, coroutines without a loop, greenlets, children."""

import asyncio
import gc
import os
import sys
import time

import greenlet
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function

from .program_checks import check_session

ALL = dict.fromkeys(("record_shapes", "with_stack", "profile_memory", "with_modules", "with_flops"), True)
MODES = [{}, {"record_shapes": True}, {"with_stack": True}, {"profile_memory": True}, ALL]

x = torch.ones(2)


def names(prof, *kinds):
    labels = prof.session.labels
    return [labels[i].name for i in prof.session.label.tolist() if labels[i].kind in (kinds or ("op", "scope"))]


class TestAClockThatIsSet:
    """Times are of the monotonic clock; that of the day says once where they begin."""

    @pytest.mark.parametrize("jump_s", [-3600, 3600, -(10**9)])
    @pytest.mark.parametrize("options", MODES)
    def test_while_recording(self, jump_s, options, monkeypatch):
        real_ns, real = time.time_ns, time.time
        before_ns = real_ns()
        with profile(**options) as prof:
            x + x
            monkeypatch.setattr(time, "time_ns", lambda: real_ns() + jump_s * 10**9)
            monkeypatch.setattr(time, "time", lambda: real() + jump_s)
            with record_function("after"):
                x + x
        monkeypatch.undo()
        after_ns = real_ns()
        session = prof.session
        assert names(prof) == ["aten::add", "after", "aten::add"]
        assert before_ns <= session.info.started_ns <= session.start_ns.min()
        assert session.end_ns.max() <= session.info.stopped_ns <= after_ns
        check_session(session)

    def test_between_the_cycles_of_a_schedule(self, monkeypatch):
        real_ns, sessions = time.time_ns, []
        monkeypatch.setattr(time, "time_ns", lambda: real_ns() - len(sessions) * 3600 * 10**9)
        with profile(
            schedule=torch.profiler.schedule(wait=0, warmup=1, active=1),
            acc_events=True,
            on_trace_ready=lambda p: sessions.append(p.session),
        ) as prof:
            for _ in range(4):
                x + x
                prof.step()
        assert len(sessions) == 2
        for session in sessions:
            assert (session.start_ns[1:] >= session.start_ns[:-1]).all()
            check_session(session)


@pytest.mark.parametrize("options", MODES)
def test_collections_at_any_moment(options):
    def work():
        cycle = [torch.ones(3)]
        cycle.append(cycle)
        with record_function("scope"):
            (torch.ones(3, requires_grad=True) * 2).sum().backward()

    with profile(**options) as plain:
        work()
    before, ran = gc.get_threshold(), sum(stats["collections"] for stats in gc.get_stats())
    gc.set_threshold(1)
    try:
        with profile(**options) as prof:
            work()
    finally:
        gc.set_threshold(*before)
    assert names(prof) == names(plain)
    assert sum(stats["collections"] for stats in gc.get_stats()) > ran + 3
    check_session(prof.session)


@pytest.mark.parametrize("options", [options for options in MODES if "with_stack" not in options])  # see test_interrupted_tracing
def test_operators_where_the_stack_is_full(options):
    """Each operator that returned is there; what was cut short in the middle leaves no open scope."""
    returned = 0

    def deeper():
        nonlocal returned
        torch.linalg.norm(x)
        returned += 1
        deeper()

    torch.linalg.norm(x)
    with profile(**options) as prof:
        with pytest.raises(RecursionError), record_function("deep"):
            deeper()
        with record_function("after"):
            x + x
    found = names(prof)
    assert returned > 10
    assert found.count("aten::linalg_vector_norm") in (returned, returned + 1)
    assert found[-2:] == ["after", "aten::add"]
    after = next(e for e in prof.events() if e.name == "after")
    assert after.cpu_parent is None or after.cpu_parent["kind"] == "python_function"
    check_session(prof.session)


class TestCoroutines:
    @pytest.mark.parametrize("options", MODES)
    def test_without_a_loop(self, options):
        class Pause:
            def __await__(self):
                yield

        async def work(name):
            with record_function(name):
                x + x
                await Pause()
                x * x

        with profile(**options) as prof:
            coroutines = [work("a"), work("b")]
            for coroutine in coroutines:
                coroutine.send(None)
            for coroutine in coroutines:
                with pytest.raises(StopIteration):
                    coroutine.send(None)
        assert names(prof) == ["a", "aten::add", "b", "aten::add", "aten::mul", "aten::mul"]
        check_session(prof.session)

    @pytest.mark.parametrize("options", MODES)
    def test_on_loops_one_after_the_other(self, options):
        async def work(name):
            with record_function(name):
                await asyncio.sleep(0)
                x + x

        async def both():
            await asyncio.gather(work("a"), work("b"))

        with profile(**options) as prof:
            for _ in range(3):
                asyncio.run(both())
        assert sorted(names(prof)) == ["a"] * 3 + ["aten::add"] * 6 + ["b"] * 3
        assert all(e.cpu_parent is not None for e in prof.events() if e.name == "aten::add")
        check_session(prof.session)

    def test_that_are_never_finished(self):
        async def endless():
            with record_function("endless"):
                while True:
                    x + x
                    await asyncio.sleep(0)

        loop = asyncio.new_event_loop()
        task = loop.create_task(endless())
        with profile() as prof:
            for _ in range(3):
                loop.run_until_complete(asyncio.sleep(0))
        check_session(prof.session)
        assert set(names(prof)) == {"endless", "aten::add"}
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            loop.run_until_complete(task)
        loop.close()


class TestGreenlets:
    """Stacks that take turns inside one thread. Their scopes are on one track, and where they straddle, one is cut."""

    def switch_in_turn(self, *others):
        for other in others:
            other.switch()
        while alive := [other for other in others if not other.dead]:
            for other in alive:
                other.switch()

    @pytest.mark.parametrize("options", MODES)
    def test_that_take_turns(self, options):
        outer = greenlet.getcurrent()

        def work(name):
            with record_function(name):
                for _ in range(4):
                    x + x
                    outer.switch()
                    x * x

        with profile(**options) as prof:
            self.switch_in_turn(*[greenlet.greenlet(lambda name=name: work(name)) for name in "abc"])
            x - x
        check_session(prof.session)
        assert sorted(names(prof)) == ["a", *["aten::add"] * 12, *["aten::mul"] * 12, "aten::sub", "b", "c"]

    @pytest.mark.parametrize("options", MODES)
    def test_that_are_never_finished(self, options):
        outer = greenlet.getcurrent()

        def endless():
            with record_function("endless"):
                while True:
                    x + x
                    outer.switch()

        with profile(**options) as prof:
            other = greenlet.greenlet(endless)
            for _ in range(3):
                other.switch()
            left = greenlet.greenlet(endless)
            left.switch()
            del left  # which ends it by an exception
        check_session(prof.session)
        assert names(prof).count("aten::add") == 4
        other.throw()
        with profile(**options) as after:
            x + x
        assert names(after, "op") == ["aten::add"]


CHILDREN = """
import multiprocessing, os, subprocess, sys
import mindtorch_v2 as torch
from mindtorch_v2.profiler.capture import capture

def child(queue):
    queue.put(not capture.is_clean())

if __name__ == "__main__":
    x = torch.ones(2)
    with torch.profiler.profile(**{options}) as prof:
        x + x
        context = multiprocessing.get_context("spawn")
        queue = context.SimpleQueue()
        process = context.Process(target=child, args=(queue,))
        process.start()
        print("child records:", queue.get())
        process.join()
        pid = os.fork()
        if not pid:
            os.execv(sys.executable, [sys.executable, "-c", "pass"])
        print("exec:", os.waitpid(pid, 0)[1])
        print("subprocess:", subprocess.call([sys.executable, "-c", "pass"]))
        x * x
    print([e.name for e in prof.events() if e["kind"] == "op" and e.name in ("aten::add", "aten::mul")])
"""


@pytest.mark.parametrize("options", [{}, ALL], ids=["plain", "all"])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_children_that_are_spawned_and_programs_that_replace_them(run_python, options):
    done = run_python(CHILDREN.replace("{options}", repr(options)))
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["child records: False", "exec: 0", "subprocess: 0", "['aten::add', 'aten::mul']"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is of Python 3.12")
def test_a_tool_of_somebody_else_gets_its_events():
    monitoring = sys.monitoring
    seen = []
    monitoring.use_tool_id(4, "other")
    try:
        monitoring.register_callback(4, monitoring.events.PY_START, lambda code, at: seen.append(code.co_name))
        monitoring.set_events(4, monitoring.events.PY_START)

        def called():
            x + x

        with profile(with_stack=True) as prof:
            called()
        called()
        assert monitoring.get_events(4) == monitoring.events.PY_START
    finally:
        monitoring.free_tool_id(4)
    assert seen.count("called") == 2
    assert any(name.endswith(": called") for name in names(prof, "python_function"))
