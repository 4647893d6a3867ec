"""The recorder's thread among several threads of a program: when it has its turn, and what it does with it."""

import sys
import threading
import time

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.capture import capture, draining, keeping, log_records, turns
from mindtorch_v2.profiler.capture.operators import recorder
from mindtorch_v2.profiler.opening import open_recording
from mindtorch_v2.profiler.spool import frames
from mindtorch_v2.profiler.spool.writer import Spool

x = torch.ones(2)


@pytest.fixture
def own():
    """The program's switch interval."""
    before = sys.getswitchinterval()
    yield before
    sys.setswitchinterval(before)


def waited(monkeypatch, seconds, **options):
    """Turns of a thread that waited for 0.1 seconds, and so many more."""
    found, times = turns.Turns(**options), iter((1.0, 1.1 + seconds))
    with monkeypatch.context() as patched:
        patched.setattr(turns.time, "monotonic", lambda: next(times))
        with found.waiting(0.1):
            pass
    return found


@pytest.fixture
def late(monkeypatch):
    return waited(monkeypatch, 2 * turns.LATE_S)


def test_the_interval_is_left_alone_while_the_thread_has_its_turn_soon(own, monkeypatch):
    with waited(monkeypatch, turns.LATE_S / 2).waiting():
        assert sys.getswitchinterval() == own


def test_the_interval_is_short_while_a_late_thread_waits_and_long_while_it_writes(own, late):
    found = late
    with found.holding():
        assert sys.getswitchinterval() == pytest.approx(turns.LONG_S)
        with found.waiting():
            assert sys.getswitchinterval() == pytest.approx(turns.SHORT_S)
        assert sys.getswitchinterval() == pytest.approx(turns.LONG_S)
    assert sys.getswitchinterval() == own


def test_what_the_program_sets_meanwhile_stays(own, late):
    with late.waiting():
        sys.setswitchinterval(0.003)
    assert sys.getswitchinterval() == 0.003
    with late.waiting():
        assert sys.getswitchinterval() == 0.003
    late.end()
    assert sys.getswitchinterval() == 0.003


@pytest.mark.parametrize("seconds", [turns.SHORT_S, turns.LONG_S, 15e-6])
def test_the_program_has_back_what_it_had_whatever_that_is(own, seconds, monkeypatch):
    sys.setswitchinterval(seconds + 5e-7)  # fractions of a microsecond are cut off
    before = sys.getswitchinterval()
    found = waited(monkeypatch, 2 * turns.LATE_S)
    with found.holding(), found.waiting():
        assert sys.getswitchinterval() == pytest.approx(turns.SHORT_S)
    assert sys.getswitchinterval() == before
    with found.waiting():
        found.end()
    assert sys.getswitchinterval() == before


def test_a_program_that_sets_the_interval_for_a_while_loses_it_not(own, late):
    with late.waiting():
        read = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        with late.waiting():
            assert sys.getswitchinterval() == pytest.approx(1e-5)
        sys.setswitchinterval(read)
    late.end()
    assert sys.getswitchinterval() == own


def test_what_the_program_sets_while_nothing_is_collected_stays(own, late):
    with late.waiting():
        late.pause()
        assert sys.getswitchinterval() == own
        with late.waiting():
            assert (sys.getswitchinterval(), late.is_on) == (own, False)
    sys.setswitchinterval(0.003)
    late.resume()
    with late.waiting():
        assert sys.getswitchinterval() == 0.003
    late.end()
    assert sys.getswitchinterval() == 0.003


def test_after_a_pause_the_interval_is_short_again(own, late):
    late.pause()
    late.resume()
    with late.waiting():
        assert sys.getswitchinterval() == pytest.approx(turns.SHORT_S)
    assert sys.getswitchinterval() == own


@pytest.mark.parametrize("name", ["waiting", "holding", "pause", "end"])
@pytest.mark.parametrize("is_set", [True, False])
def test_an_interrupt_while_it_is_set_gives_the_interval_back(own, late, name, is_set, monkeypatch):
    real, left = sys.setswitchinterval, [True]

    def interrupted(seconds):
        if not left or is_set:
            real(seconds)
        if left:
            left.clear()
            raise KeyboardInterrupt

    around = late.waiting()
    around.__enter__()
    with monkeypatch.context() as patched:
        patched.setattr(sys, "setswitchinterval", interrupted)
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - some are contexts
            found = getattr(late, name)()
            if found is not None:
                found.__enter__()
    late.end()
    assert not left
    assert sys.getswitchinterval() == own


def test_turns_that_are_not_wanted_leave_the_interval_alone(own, monkeypatch):
    found = waited(monkeypatch, 2 * turns.LATE_S, is_wanted=False)
    with found.waiting(), found.holding():
        assert (sys.getswitchinterval(), found.is_on) == (own, False)


def test_an_exception_gives_the_interval_back(own, late):
    with pytest.raises(OSError, match="no"), late.waiting():
        raise OSError("no")
    assert sys.getswitchinterval() == own


def test_a_recording_that_was_late_gives_the_interval_back_at_its_end(own, tmp_path, monkeypatch):
    monkeypatch.setattr(turns, "LATE_S", -1.0)
    monkeypatch.setattr(draining, "INTERVAL_S", 0.001)
    with profile(spool=tmp_path / "run.spool"):
        while not capture.active._draining._turns.is_on:
            x + x
    assert sys.getswitchinterval() == own


@pytest.fixture
def never_soon(own, monkeypatch):
    """The program's switch interval, where each turn is taken for a late one."""
    monkeypatch.setattr(turns, "LATE_S", -1.0)
    monkeypatch.setattr(draining, "INTERVAL_S", 0.001)
    return own


def set_in(program, monkeypatch):
    """The intervals that are set while a program runs."""
    found, real = [], sys.setswitchinterval
    with monkeypatch.context() as patched:
        patched.setattr(sys, "setswitchinterval", lambda seconds: found.append(seconds) or real(seconds))
        program()
    return found


def test_without_a_spool_the_interval_is_left_alone(never_soon, monkeypatch):
    def run():
        with profile():
            end = time.monotonic() + 0.1
            while time.monotonic() < end:
                x + x

    assert set_in(run, monkeypatch) == []


def test_while_steps_are_not_sampled_the_program_has_its_interval(never_soon, tmp_path, monkeypatch):
    with profile(spool=tmp_path / "run.spool", sample_steps=2) as prof:
        running = capture.active
        while not running._draining._turns.is_on:
            x + x
        while running._collecting:
            prof.step()
        assert sys.getswitchinterval() == never_soon
        assert set_in(lambda: time.sleep(0.1), monkeypatch) == []
        draining._before_fork()
        draining._after_fork()
        assert set_in(lambda: time.sleep(0.1), monkeypatch) == []
        prof.step()
        while not running._draining._turns.is_on:
            x + x
    assert sys.getswitchinterval() == never_soon


def test_the_end_of_a_recording_sets_no_interval_but_the_programs(never_soon, tmp_path, monkeypatch):
    prof = profile(spool=tmp_path / "run.spool")
    prof.start()
    while not capture.active._draining._turns.is_on:
        x + x
    found = []
    monkeypatch.setattr(
        Spool, "take", lambda self, findings, take=Spool.take: found.extend(set_in(lambda: take(self, findings), monkeypatch))
    )
    prof.stop()
    assert {round(1e6 * seconds - 0.5) for seconds in found} <= {round(1e6 * never_soon)}
    assert sys.getswitchinterval() == never_soon


def change_column(path, kind, number, change):
    """Write a spool again with another column in its frames of this kind, under right checksums."""
    with open(path, "rb") as file:
        found = list(frames.read_frames(file))
    for frame in found:
        if frame.kind == kind:
            frame.columns[number] = change(frame.columns[number])
    path.write_bytes(b"".join([frames.MAGIC, *[frames.frame_bytes(frame.kind, frame.facts, frame.columns) for frame in found]]))


class TestPieces:
    """Records are written first, and looked at when there are many."""

    @pytest.mark.parametrize("backlog", [0, 10, 1 << 18])
    def test_what_is_kept_does_not_depend_on_when_it_is_looked_at(self, backlog, tmp_path, monkeypatch):
        monkeypatch.setattr(log_records, "BACKLOG", backlog)
        path = tmp_path / "run.spool"
        with profile(spool=path, max_events=7, keep="last") as prof:
            for _ in range(4):
                for _ in range(5):
                    x + x
                capture.active._draining._work()
                assert capture.active.event_count >= 5
        assert len(prof.events()) == 7
        assert prof.session.info.dropped == (("max_events", 13),)
        assert len(open_recording(path).session) == 20

    def test_filters_hold_for_the_file(self, tmp_path):
        path = tmp_path / "run.spool"
        with profile(spool=path, include=["aten::mul"], profile_memory=True) as prof:
            x + x
            x * x
            capture.active._draining._work()
        assert [event.name for event in prof.events() if event.name != "[memory]"] == ["aten::mul"]
        session = open_recording(path).session
        assert {session.labels[i].name for i in session.label} == {"aten::mul", "[memory]"}

    def test_what_ended_before_the_recording_is_not_read(self, tmp_path):
        path = tmp_path / "run.spool"
        with profile(spool=path):
            x + x
            log = capture.active._log
            before = recorder.clock() - 60
            log.records.extend([*log.records[:1], before, before + 1e-6, *log.records[3 : log.width]])
            capture.active._draining._work()
        assert len(open_recording(path).session) == 1

    @pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -1.0, 1e30])
    def test_a_time_that_is_none_is_refused(self, wrong, tmp_path):
        path = tmp_path / "run.spool"
        with profile(spool=path):
            x + x
            capture.active._draining._work()
        change_column(path, frames.CHUNK, 1, lambda column: np.full(len(column), wrong))
        with pytest.raises(ValueError, match="a time that is no reading of a clock"):
            open_recording(path)

    def test_a_column_of_something_else_is_refused(self, tmp_path):
        path = tmp_path / "run.spool"
        with profile(spool=path, profile_memory=True):
            x + x
            capture.active._draining._work()
        change_column(path, frames.MEMORY, 2, lambda column: column.astype(np.float64))
        with pytest.raises(ValueError, match="a column of numbers that are not whole"):
            open_recording(path)


class TestFaults:
    """What goes wrong in the recorder's thread is counted, and nothing is lost or told twice for it."""

    def failing(self, monkeypatch, owner, name, error):
        """Have a function fail three times."""
        real, left = getattr(owner, name), [error] * 3

        def fail(*arguments, **named):
            if left and threading.current_thread() is not threading.main_thread():
                raise left.pop()
            return real(*arguments, **named)

        monkeypatch.setattr(owner, name, fail)
        return left

    @pytest.mark.parametrize(
        ("owner", "name"),
        [
            (log_records, "_read"),
            (keeping.Kept, "add_raw"),
            (keeping.Kept, "add"),
            (Spool, "write"),
            (draining, "free_bytes"),
        ],
    )
    def test_all_events_are_there_once(self, owner, name, tmp_path, monkeypatch):
        monkeypatch.setattr(draining, "INTERVAL_S", 0.001)
        monkeypatch.setattr(log_records, "BACKLOG", 0)
        path = tmp_path / "run.spool"
        prof = profile(spool=path)
        left, count = self.failing(monkeypatch, owner, name, RuntimeError("no")), 0
        prof.start()
        while left:
            x + x
            count += 1
        assert capture.active.event_count == count
        with pytest.warns(UserWarning, match="the recorder failed 3 times while the program went on, first by RuntimeError: no"):
            prof.stop()
        assert len(prof.events()) == count
        assert len(open_recording(path).session) == count
