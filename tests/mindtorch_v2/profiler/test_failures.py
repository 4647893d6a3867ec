"""What raises while a profiler runs: the exception reaches the user, and the profiler and the runtime are as they should be."""

import contextlib
import cProfile
import functools
import gc
import itertools
import signal
import sys
import threading
import time
from dataclasses import replace

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _record
from mindtorch_v2._autograd import observing
from mindtorch_v2._dispatch import dispatcher, keys
from mindtorch_v2.profiler import ProfilerAction, _ExperimentalConfig, _KinetoProfile, profile, record_function, schedule, validate
from mindtorch_v2.profiler.capture import columns
from mindtorch_v2.profiler.capture.operators import recorder
from mindtorch_v2.profiler.capture.scopes import node_scopes
from mindtorch_v2.profiler.capture.stacks import stack_walk
from mindtorch_v2.profiler.capture.threads import Threads
from mindtorch_v2.profiler.output.event_list import EventList
from mindtorch_v2.profiler.spool.reader import read_spool

NONE, WARMUP, RECORD, SAVE, _ = ProfilerAction
x = torch.ones(2)
ALL = {"record_shapes": True, "with_stack": True, "experimental_config": _ExperimentalConfig(record_python_gc_info=True)}


def names(prof):
    return [e["name"] for e in prof.events() if e["kind"] in ("op", "scope")]


def hooks():
    """Everything outside of the profiler that it changes while it runs."""
    monitoring = [sys.monitoring.get_tool(i) for i in range(6)] if sys.version_info >= (3, 12) else None
    return (
        dispatcher.active_keys(),
        sys.getprofile(),
        threading.getprofile(),
        list(gc.callbacks),
        _record.begin,
        observing.observer,
        monitoring,
    )


@pytest.fixture(autouse=True)
def nothing_stays():
    before = hooks()
    yield
    assert hooks() == before
    with profile() as prof:
        x + x
    assert names(prof) == ["aten::add"]


class TestUsersCode:
    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, ZeroDivisionError])
    @pytest.mark.parametrize("options", [{}, ALL])
    def test_any_exception_reaches_the_user(self, error, options):
        def fail():
            with record_function("fails"):
                x + x
                raise error

        with pytest.raises(error), profile(**options) as prof:
            fail()
        assert names(prof) == ["fails", "aten::add"]

    @pytest.mark.parametrize("options", [{}, ALL])
    def test_an_interrupt_inside_an_operator(self, options):
        class Interrupted(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                raise KeyboardInterrupt

        with profile(**options) as prof:
            with pytest.raises(KeyboardInterrupt), record_function("outer"):
                torch.ones(2).as_subclass(Interrupted) + 1
            x * x
        assert names(prof)[0] == "outer"
        assert names(prof)[-1] == "aten::mul"
        assert prof.events()[-1].cpu_parent is None or prof.events()[-1].cpu_parent["kind"] == "python_function"

    def test_operators_that_raise_inside_a_composite(self):
        a, b = torch.ones(2, 3), torch.ones(2, 4)
        with profile() as prof:
            with pytest.raises(RuntimeError):
                torch.nn.functional.linear(a, b)
            x + x
        assert names(prof)[0] == "aten::linear"
        assert prof.events()[-1].cpu_parent is None

    @pytest.mark.parametrize("where", ["tensor hook", "leaf hook", "node hook", "node prehook", "post accumulate", "function"])
    def test_a_backward_that_raises_ends_the_scopes_of_its_nodes(self, where):
        def fail(*args):
            raise ZeroDivisionError

        class Failing(torch.autograd.Function):
            @staticmethod
            def forward(ctx, t):
                return t.clone()

            @staticmethod
            def backward(ctx, grad):
                grad * 2
                fail()

        w = torch.ones(2, requires_grad=True)
        y = Failing.apply(w * 2) if where == "function" else w * 2
        if where == "tensor hook":
            y.register_hook(fail)
        elif where == "leaf hook":
            w.register_hook(fail)
        elif where == "node hook":
            y.grad_fn.register_hook(fail)
        elif where == "node prehook":
            y.grad_fn.register_prehook(fail)
        elif where == "post accumulate":
            w.register_post_accumulate_grad_hook(fail)
        with profile() as prof:
            with record_function("backward"), pytest.raises(ZeroDivisionError):
                y.sum().backward()
            x - x
        after = prof.events()[-1]
        assert (after["name"], after.cpu_parent) == ("aten::sub", None)
        outer = next(e for e in prof.events() if e["name"] == "backward")
        for e in prof.events():
            if "Backward" in e["name"] or "Accumulate" in e["name"]:
                assert outer["start_ns"] <= e["start_ns"] <= e["end_ns"] <= outer["end_ns"]
        evaluated = [
            e["name"].removeprefix("autograd::engine::evaluate_function: ") for e in prof.events() if "evaluate" in e["name"]
        ]
        last = {"function": "FailingBackward", "leaf hook": "torch::autograd::AccumulateGrad"}
        assert evaluated[-1] == last.get(where, "torch::autograd::AccumulateGrad" if where == "post accumulate" else "MulBackward0")


class TestHandlers:
    def test_a_handler_that_raises_in_step_leaves_a_profiler_that_goes_on(self):
        seen = []

        def handler(prof):
            seen.append([e["step"] for e in prof.events() if e["name"] == "aten::add"])
            if len(seen) == 1:
                raise OSError("disk full")

        with profile(schedule=schedule(wait=0, warmup=1, active=1), on_trace_ready=handler) as prof:
            for step in range(5):
                x + x
                if step == 1:
                    with pytest.raises(OSError, match="disk full"):
                        prof.step()
                else:
                    prof.step()
        assert seen == [[1], [3], []]
        assert prof.step_num == 5

    def test_a_handler_that_raises_at_the_end_raises(self):
        def handler(prof):
            raise OSError("disk full")

        with pytest.raises(OSError, match="disk full"), profile(on_trace_ready=handler) as prof:
            x + x
        assert names(prof) == ["aten::add"]

    def test_a_handler_that_raises_does_not_hide_the_users_interrupt(self):
        def handler(prof):
            raise OSError("disk full")

        with (
            pytest.warns(UserWarning, match="stopping the profiler failed: OSError: disk full"),
            pytest.raises(KeyboardInterrupt),
            profile(on_trace_ready=handler),
        ):
            raise KeyboardInterrupt

    def test_a_handler_may_stop_the_profiler(self):
        called = []

        def handler(prof):
            called.append(names(prof))
            prof.stop()

        with profile(on_trace_ready=handler):
            x + x
        assert called == [["aten::add"]]

    @pytest.mark.parametrize("following", [NONE, WARMUP, RECORD, SAVE])
    def test_a_handler_may_stop_the_profiler_in_a_step(self, following):
        def handler(prof):
            prof.stop()

        with profile(schedule=lambda step: following if step else SAVE, on_trace_ready=handler) as prof:
            x + x
            prof.step()
            assert not dispatcher.active_keys() & keys.PROFILER
            x * x
            with pytest.raises(RuntimeError, match="not running"):
                prof.step()
        assert names(prof) == ["ProfilerStep#0", "aten::add"]

    @pytest.mark.parametrize("wrong", [3, "path"])
    def test_what_is_no_function_is_refused(self, wrong):
        with pytest.raises(TypeError, match="on_trace_ready must be a function"):
            profile(on_trace_ready=wrong)

    def test_an_id_callback_that_raises_at_the_start(self):
        def fail():
            raise KeyError("id")

        with pytest.raises(KeyError, match="id"):
            profile(custom_trace_id_callback=fail).start()


class TestStartingAndStopping:
    def test_starting_twice_is_refused_and_the_recording_goes_on(self):
        prof = profile()
        prof.start()
        with pytest.raises(RuntimeError, match="already running; stop it"):
            prof.start()
        x + x
        prof.stop()
        assert names(prof) == ["aten::add"]

    @pytest.mark.filterwarnings("ignore:nothing was recorded")
    @pytest.mark.parametrize("action", [NONE, WARMUP, RECORD, SAVE])
    @pytest.mark.parametrize("second", [profile, _KinetoProfile, torch.autograd.profiler.profile])
    def test_a_second_profiler_is_refused_while_the_first_waits_too(self, action, second):
        with profile(schedule=lambda step: action) as prof:
            other = second()
            with pytest.raises(RuntimeError, match=r"already running \(started at test_failures.py:\d+\)"):
                other.__enter__() if second is torch.autograd.profiler.profile else other.start()
            x + x
        assert names(prof) == (["ProfilerStep#0", "aten::add"] if action in (RECORD, SAVE) else []) if prof.profiler else True

    def test_the_small_profiler_starts_and_stops_too(self):
        prof = _KinetoProfile(record_shapes=True)
        with pytest.raises(AssertionError, match="initialized"):
            prof.stop()
        prof.start()
        with pytest.raises(RuntimeError, match="already running"):
            prof.start()
        x + x
        prof.stop()
        prof.stop()
        assert names(prof) == ["aten::add"]

    def test_results_before_the_start_are_refused(self):
        prof = profile()
        for ask in (prof.events, prof.key_averages, lambda: prof.export_chrome_trace("x"), lambda: prof.export_stacks("x")):
            with pytest.raises(AssertionError, match="Profiler must be initialized"):
                ask()
        prof.stop()  # harmless

    def test_a_profiler_that_was_never_stopped_gives_its_place_up_when_stopped(self):
        prof = profile(**ALL)
        prof.__enter__()
        x + x
        prof.__exit__(None, None, None)
        prof.__exit__(None, None, None)
        assert names(prof) == ["aten::add"]


class Interrupting:
    """A clock whose nth reading is a Ctrl-C."""

    def __init__(self):
        self.left = -1

    def __call__(self):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return time.perf_counter()


class TestInterrupts:
    @pytest.fixture
    def clock(self):
        clock = Interrupting()
        gc.collect()
        gc.disable()  # the clock is read for a tensor that dies, too, and what __del__ raises is lost
        recorder.set_clock(clock)
        yield clock
        recorder.set_clock(time.perf_counter)
        gc.enable()

    @pytest.mark.parametrize("reading", range(1, 6))
    @pytest.mark.parametrize("options", [{}, ALL])
    def test_while_starting(self, clock, reading, options):
        prof = profile(**options)
        clock.left = reading
        try:
            prof.start()
        except KeyboardInterrupt:
            with pytest.raises(RuntimeError, match="not running"):
                prof.step()
        clock.left = -1
        prof.stop()

    @pytest.mark.parametrize("reading", range(1, 4))
    @pytest.mark.parametrize("options", [{}, ALL])
    def test_while_stopping(self, clock, reading, options):
        prof = profile(**options)
        prof.start()
        record_function("open").__enter__()
        x + x
        clock.left = reading
        try:
            prof.stop()
        except KeyboardInterrupt:
            pass
        clock.left = -1
        prof.stop()

    @pytest.mark.parametrize("reading", range(1, 12))
    def test_while_recording(self, clock, reading, tmp_path):
        w = torch.ones(2, requires_grad=True)
        with profile() as prof:
            clock.left = reading
            try:
                with record_function("scope"):
                    (w * w).sum().backward()
            except KeyboardInterrupt:
                pass
            clock.left = -1
            x - x
        assert names(prof)[-1] == "aten::sub"
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        assert validate(tmp_path / "trace.json") == []

    @pytest.mark.parametrize(("called", "nth"), [("clock", 1), ("clock", 2), ("get_ident", 1), ("frame", 1), ("frame", 2)])
    def test_the_frame_of_an_interrupted_backward_is_kept_nowhere(self, called, nth, monkeypatch):
        """A signal's handler runs, and may raise, when a call returns."""
        calls = itertools.count(1)
        w = torch.ones(2, requires_grad=True)

        def interrupted(function):
            def call(*arguments):
                is_loops = sys._getframe(1).f_code.co_name == "run_nodes"
                found = function(*(depth + 1 for depth in arguments))
                if is_loops and next(calls) == nth:
                    raise KeyboardInterrupt
                return found

            return call

        def compiled(watch):
            return compile_loop(replace(watch, names={**watch.names, called: interrupted(watch.names[called])}))

        compile_loop = node_scopes.compile_loop
        monkeypatch.setattr(node_scopes, "compile_loop", compiled)
        with profile(with_stack=True) as prof:
            with contextlib.suppress(KeyboardInterrupt):
                (w * w).sum().backward()
            assert "run_nodes" not in [frame.f_code.co_name for frame in list(stack_walk.running)]
            x - x
        assert names(prof)[-1] == "aten::sub"


class TestOtherProfilers:
    def test_cprofile_is_left_alone(self):
        other = cProfile.Profile()

        def work():
            return x + x

        other.enable()
        try:
            mine = sys.getprofile()
            if sys.version_info < (3, 12):
                with (
                    pytest.warns(UserWarning, match="sys.setprofile is used by another profiler"),
                    profile(with_stack=True) as prof,
                ):
                    work()
            else:
                with profile(with_stack=True) as prof:
                    work()
            assert sys.getprofile() is mine
        finally:
            other.disable()
        assert names(prof) == ["aten::add"]
        stack = next(e for e in prof.events() if e["name"] == "aten::add")["stack"]
        assert stack[0].endswith(":work")
        assert "work" in [entry.code.co_name for entry in other.getstats() if not isinstance(entry.code, str)]

    def test_stacks_are_right_when_another_profiler_comes_meanwhile(self):
        def after():
            return x + x

        unseen = pytest.warns(UserWarning, match="are missing") if sys.version_info < (3, 12) else contextlib.nullcontext()
        with unseen, profile(with_stack=True) as prof:
            after()
            before = sys.getprofile()
            sys.setprofile(lambda frame, event, arg: None)
            after()
            sys.setprofile(before)
        stacks = [e["stack"] for e in prof.events() if e["name"] == "aten::add"]
        lines = [[int(place.split(":")[1]) for place in stack[:2]] for stack in stacks]
        assert [stack[0].endswith(":after") for stack in stacks] == [True, True]
        assert lines[0][0] == lines[1][0]
        assert lines[0][1] + 3 == lines[1][1]

    def test_a_profiler_of_new_threads_is_left_alone_and_still_called(self):
        seen = []

        def theirs(frame, event, arg):
            seen.append(frame.f_code.co_name)

        def work():
            x + x

        threading.setprofile(theirs)
        try:
            with profile() as prof:
                thread = threading.Thread(target=work, name="watched")
                thread.start()
                thread.join()
            assert threading.getprofile() is theirs
        finally:
            threading.setprofile(None)
        assert "work" in seen
        assert names(prof) == ["aten::add"]
        assert [prof.session.tracks[i].name for i in set(prof.session.track.tolist())] == ["watched"]

    @pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python functions are seen through sys.monitoring")
    def test_stacks_beside_a_profiler_of_new_threads_warn(self):
        def theirs(frame, event, arg):
            pass

        threading.setprofile(theirs)
        try:
            with (
                pytest.warns(UserWarning, match="threading.setprofile is used by another profiler"),
                profile(with_stack=True) as prof,
            ):
                x + x
        finally:
            threading.setprofile(None)
        assert names(prof) == ["aten::add"]

    def test_tracers_are_left_alone(self):
        lines = []

        def tracer(frame, event, arg):
            lines.append(frame.f_code.co_name)
            return tracer

        def work():
            return x + x

        before = sys.gettrace()
        sys.settrace(tracer)
        try:
            with profile(with_stack=True) as prof:
                work()
            assert sys.gettrace() is tracer
        finally:
            sys.settrace(before)
        assert "work" in lines
        assert names(prof) == ["aten::add"]

    def test_gc_callbacks_of_others_stay_and_ours_may_be_gone(self):
        def theirs(phase, info):
            pass

        before = list(gc.callbacks)
        gc.callbacks.append(theirs)
        try:
            with profile(**ALL):
                assert theirs in gc.callbacks
                gc.callbacks[:] = [theirs]
            assert gc.callbacks == [theirs]
        finally:
            gc.callbacks[:] = before


class TestErrorsOfTheRecorder:
    """What goes wrong in it at the end of a recording is told once, and the program goes on."""

    FAULTS = {"while records are read": (Threads, "take"), "while the session is made": (columns, "_session")}

    @pytest.fixture(params=FAULTS)
    def fault(self, request, monkeypatch):
        """The function that mends it."""
        monkeypatch.setattr(
            *self.FAULTS[request.param], staticmethod(functools.partial(int, "x"))
        )  # which raises without a frame of this file
        yield monkeypatch.undo
        monkeypatch.undo()

    def test_it_is_told_and_the_program_goes_on(self, fault):
        prof = profile(record_shapes=True)
        prof.start()
        x + x
        x * x
        with pytest.warns(
            UserWarning, match="the recorder failed at the end of the recording, and 2 events are lost: TypeError"
        ) as told:
            prof.stop()
        assert len(told) == 1
        assert list(prof.events()) == []
        assert "The recorder failed at the end of the recording, and 2 events are lost" in prof.key_averages().table()
        assert "The recorder failed" in str(prof.summary())

    def test_the_spool_has_the_events(self, fault, tmp_path):
        path = tmp_path / "run.spool"
        with pytest.warns(UserWarning, match=r"; the spool '.*run\.spool' has them"), profile(spool=path):
            x + x
        fault()
        assert "aten::add" in {e.name for e in EventList.of(read_spool(str(path)).session)}

    def test_the_programs_own_error_comes_through(self, fault):
        with pytest.raises(ZeroDivisionError), pytest.warns(UserWarning, match="the recorder failed"), profile():
            raise ZeroDivisionError

    def test_the_error_of_a_signals_handler_is_the_programs(self, monkeypatch):
        def out_of_time(number, frame):
            raise TimeoutError

        monkeypatch.setattr(
            columns, "_session", lambda *given, of=columns._session: (signal.raise_signal(signal.SIGALRM), of(*given))[1]
        )
        before = signal.signal(signal.SIGALRM, out_of_time)
        try:
            with pytest.raises(TimeoutError), profile():
                x + x
        finally:
            signal.signal(signal.SIGALRM, before)
            monkeypatch.undo()
