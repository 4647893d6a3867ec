"""Which profiler runs: one that nobody holds ends, an interrupt in `start` or `stop` leaves nothing behind, handlers may start another."""

import gc
import os
import random
import sys
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _record
from mindtorch_v2._dispatch import dispatcher, registry
from mindtorch_v2._storage import UntypedStorage
from mindtorch_v2.profiler import ProfilerActivity, _ExperimentalConfig, profile, schedule
from mindtorch_v2.profiler.capture import capture, claims
from mindtorch_v2.profiler.capture.operators.operators import RECORDING_KEYS

EVERYTHING = {"record_shapes": True, "with_stack": True, "profile_memory": True, "with_modules": True}
PACKAGE = torch.__path__[0]


def names(prof: profile) -> list[str]:
    return [e.name for e in prof.events() if e["kind"] == "op"]


def assert_nothing_records() -> None:
    assert capture.active is None
    assert not dispatcher.active_keys() & RECORDING_KEYS
    assert _record.begin is None
    assert "__del__" not in vars(UntypedStorage)
    assert not [c for c in gc.callbacks if "mindtorch_v2" in getattr(c, "__module__", "")]
    assert threading.getprofile() is None
    assert sys.getprofile() is None


def assert_profilers_work() -> None:
    x = torch.ones(2)
    with profile() as prof:
        x + x
    assert names(prof) == ["aten::add"]


class TestLost:
    @pytest.mark.parametrize("options", [{}, EVERYTHING], ids=["plain", "everything"])
    def test_a_profiler_that_nobody_holds_ends(self, options: dict[str, Any]) -> None:
        with pytest.warns(ResourceWarning, match=r"started at test_claims\.py:\d+ was freed without being stopped"):
            profile(**options).start()
        assert_nothing_records()
        assert_profilers_work()

    def test_a_variable_that_is_bound_again(self) -> None:
        """A notebook cell that failed after `start()` and is run once more."""
        prof = profile()
        prof.start()
        with pytest.warns(ResourceWarning):
            prof = profile()
        prof.start()
        prof.stop()
        assert_nothing_records()

    def test_one_in_a_cycle_ends_when_another_starts(self) -> None:
        """A function that failed after `start()`, and whose error keeps its frame."""

        def fails() -> None:
            prof = profile()
            prof.start()
            try:
                raise ValueError
            except ValueError as caught:
                error = caught  # noqa: F841 - a cycle: its traceback has this frame

        gc.disable()
        try:
            fails()
            with pytest.warns(ResourceWarning, match="was freed without being stopped"):
                assert_profilers_work()
        finally:
            gc.enable()
        assert_nothing_records()

    @pytest.mark.parametrize("options", [{}, EVERYTHING], ids=["plain", "everything"])
    def test_one_that_only_the_traceback_of_an_error_holds(self, options: dict[str, Any]) -> None:
        """A function that failed after `start()` in a notebook, which keeps the last error."""

        def fails() -> None:
            prof = profile(**options)
            prof.start()
            raise ValueError

        with pytest.raises(ValueError) as kept:
            fails()
        with pytest.warns(
            ResourceWarning, match=r"started at test_claims\.py:\d+ was not stopped by its function, which has ended"
        ):
            assert_profilers_work()
        assert_nothing_records()
        kept.value.__traceback__.tb_next.tb_frame.f_locals["prof"].stop()  # type: ignore[union-attr]
        assert_profilers_work()

    def test_one_of_a_generator_that_goes_on_is_held(self) -> None:
        def goes_on() -> Iterator[None]:
            prof = profile()
            prof.start()
            yield
            prof.stop()

        waits = goes_on()
        next(waits)
        with pytest.raises(RuntimeError, match="already running"):
            profile().start()
        list(waits)
        assert_profilers_work()

    def test_one_that_waits_for_its_steps(self) -> None:
        with pytest.warns(ResourceWarning):
            profile(schedule=schedule(wait=0, warmup=1, active=1)).start()
        assert_nothing_records()
        assert_profilers_work()

    def test_a_lower_profiler(self) -> None:
        with pytest.warns(ResourceWarning):
            torch.autograd.profiler.profile().__enter__()
        assert_nothing_records()

    def test_a_cycle_that_the_collector_frees_in_the_middle_of_our_work(self, monkeypatch: pytest.MonkeyPatch) -> None:
        prof = profile()
        prof.start()
        prof.cycle = prof  # type: ignore[attr-defined]
        ended = threading.Event()
        end = claims._end

        def notice(lost: Any) -> None:
            end(lost)
            ended.set()

        monkeypatch.setattr(claims, "_end", notice)
        original = dispatcher._compile

        def collecting(op: Any, full: int) -> Any:
            nonlocal prof
            if prof is not None:
                prof = None  # type: ignore[assignment]
                gc.collect()
            return original(op, full)

        with warnings.catch_warnings(action="ignore"):
            monkeypatch.setattr(dispatcher, "_compile", collecting)
            dispatcher.invalidate(registry.find("aten::frac"))
            torch.frac(torch.ones(2))
            assert ended.wait(60)
        monkeypatch.undo()
        assert_nothing_records()
        torch.frac(torch.ones(2))  # its table must not have kept the recording function
        with profile() as after:
            torch.frac(torch.ones(2))
        assert names(after).count("aten::frac") == 1

    def test_one_that_is_held_refuses_others(self) -> None:
        prof = profile()
        prof.start()
        with pytest.raises(RuntimeError, match=r"already running \(started at test_claims\.py:\d+\)"):
            profile().start()
        prof.stop()
        assert_profilers_work()


class Lines:
    """Notes the lines of the package that run, and raises KeyboardInterrupt when one of them does for the first time."""

    def __init__(self, interrupt_at: str = PACKAGE) -> None:
        self.seen: dict[str, None] = {}
        self._interrupt_at = interrupt_at
        self._below = interrupt_at.partition(":")[0]

    def trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        if not frame.f_code.co_filename.startswith(self._below):
            return None
        if event == "line":
            place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            if place not in self.seen:
                self.seen[place] = None
                if place == self._interrupt_at:
                    raise KeyboardInterrupt
        return self.trace


def record(lines: Lines, options: dict[str, Any], *, at_start: bool) -> bool:
    """Record while the lines of `start` or of `stop` are watched; returns whether an interrupt came."""
    x = torch.ones(2)
    prof = profile(**options)
    try:
        if at_start:
            sys.settrace(lines.trace)
        with prof:
            sys.settrace(None)
            x + x
            if not at_start:
                sys.settrace(lines.trace)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


def lines_of(options: dict[str, Any], *, at_start: bool) -> list[str]:
    """The lines that switch a recording on or off; not those that make a session of what was recorded."""
    for _ in range(2):  # at first, some are run to compile what was never compiled
        lines = Lines()
        record(lines, options, at_start=at_start)
    return [place for place in lines.seen if "columns.py" not in place and f"profiler{os.sep}model" not in place]


@pytest.mark.filterwarnings("ignore:the profiler started at:ResourceWarning")
@pytest.mark.parametrize("at_start", [True, False], ids=["start", "stop"])
@pytest.mark.parametrize("options", [{}, EVERYTHING], ids=["plain", "everything"])
def test_an_interrupt_at_any_line_of_start_and_stop(options: dict[str, Any], at_start: bool) -> None:
    places = lines_of(options, at_start=at_start)
    if options:  # the others are the same as without
        plain = lines_of({}, at_start=at_start)
        places = random.Random(0).sample([place for place in places if place not in plain], 60)
    assert len(places) > 50
    # on a thread of its own: an exception that a tracer raises at the end of an `except` clause leaves the clause's exception current
    with ThreadPoolExecutor(1) as thread:
        interrupts = thread.submit(interrupt_each, places, options, at_start=at_start).result()
    assert interrupts > 0.8 * len(places)  # not all: some lines fill a cache


def interrupt_each(places: list[str], options: dict[str, Any], *, at_start: bool) -> int:
    """Interrupt a recording at each of these lines, and see that nothing is left of it; returns how many interrupts came."""
    interrupts = 0
    for place in places:
        interrupts += record(Lines(place), options, at_start=at_start)
        try:
            assert_nothing_records()
            assert_profilers_work()
        except BaseException as error:
            raise AssertionError(f"after an interrupt at {place}") from error
    return interrupts


def pause_and_resume(lines: Lines, options: dict[str, Any]) -> bool:
    """Record, and watch the lines that pause and resume; returns whether an interrupt came. The program goes on after it."""
    x, cpu = torch.ones(2), [ProfilerActivity.CPU]
    came = False
    with profile(**options) as prof:
        try:
            sys.settrace(lines.trace)
            prof.toggle_collection_dynamic(False, cpu)
            prof.toggle_collection_dynamic(True, cpu)
        except KeyboardInterrupt:
            came = True
        finally:
            sys.settrace(None)
        x + x
    return came


def interrupt_each_pause(places: list[str], options: dict[str, Any]) -> int:
    interrupts = 0
    for place in places:
        interrupts += pause_and_resume(Lines(place), options)
        try:
            assert_nothing_records()
            assert_profilers_work()
        except BaseException as error:
            raise AssertionError(f"after an interrupt at {place}") from error
    return interrupts


@pytest.mark.filterwarnings("ignore:with_stack=True. the tracing of Python functions was interrupted")  # as it was
def test_a_recording_ends_after_an_interrupt_at_any_line_of_pause_and_resume() -> None:
    options = {**EVERYTHING, "experimental_config": _ExperimentalConfig(record_python_gc_info=True)}
    lines = Lines()
    pause_and_resume(Lines(), options)
    pause_and_resume(lines, options)
    places = random.Random(0).sample(list(lines.seen), 80)
    with ThreadPoolExecutor(1) as thread:
        interrupts = thread.submit(interrupt_each_pause, places, options).result()
    assert interrupts > 0.8 * len(places)


class TestHandlers:
    def test_a_handler_starts_a_profiler_of_its_own(self) -> None:
        x, inner = torch.ones(2), []

        def handler(prof: profile) -> None:
            with profile() as own:
                x * x
            inner.append((names(prof), names(own)))

        with profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=2), on_trace_ready=handler) as prof:
            for _ in range(4):
                x + x
                prof.step()
        assert inner == [(["aten::add"], ["aten::mul"])] * 2
        assert_nothing_records()

    def test_only_on_its_own_thread(self) -> None:
        errors: list[BaseException] = []

        def start_another() -> None:
            try:
                profile().start()
            except RuntimeError as error:
                errors.append(error)

        def handler(prof: profile) -> None:
            thread = threading.Thread(target=start_another)
            thread.start()
            thread.join()

        with profile(on_trace_ready=handler):
            pass
        assert [str(e).partition(" (")[0] for e in errors] == ["a profiler is already running"]

    def test_one_that_it_leaves_running_is_the_programs(self) -> None:
        left: list[profile] = []

        def handler(prof: profile) -> None:
            left.append(profile())
            left[0].start()

        x = torch.ones(2)
        with profile(on_trace_ready=handler):
            pass
        x + x
        left[0].stop()
        assert names(left[0]) == ["aten::add"]
        assert_profilers_work()


def test_a_recording_in_the_background_goes_on_when_a_claim_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    claims.set_background(lambda place: told.append("make way"), lambda: told.append("go on"))
    monkeypatch.setattr(claims, "_claim", lambda profiler: 1 / 0)
    try:
        with pytest.raises(ZeroDivisionError):
            profile().start()
    finally:
        claims.set_background(None, None)
    assert told == ["make way", "go on"]
