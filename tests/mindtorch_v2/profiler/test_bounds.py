"""Bounds of a recording: which events are kept, and what is said of the others."""

import contextlib
import json
import sys
import threading
import time

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.cli.frame import main
from mindtorch_v2.profiler import Results, _ExperimentalConfig, profile, record_function
from mindtorch_v2.profiler.bounds import Bounds
from mindtorch_v2.profiler.capture import capture, draining, log_records
from mindtorch_v2.profiler.capture.keeping import Kept
from mindtorch_v2.profiler.capture.operators.recorder import FUNCTION_ID, Log
from mindtorch_v2.profiler.capture.source import Source

x = torch.ones(2)


def names(prof):
    return [e.name for e in prof.events()]


def drain():
    """Take all records out of the log, as the recorder's thread does when there are many."""
    capture.active._records.take_meanwhile(backlog=0)


def adds_and_products(drains=True, **bounds):
    """A recording of ten additions and ten products, each taken out of the log on its own."""
    with profile(**bounds) as prof:
        for _ in range(10):
            x + x
            if drains:
                drain()
        for _ in range(10):
            x * x
            if drains:
                drain()
    return prof


ADD, MUL = "aten::add", "aten::mul"


@pytest.mark.parametrize("drains", [True, False])
class TestKeptEvents:
    def test_all_without_a_bound(self, drains):
        prof = adds_and_products(drains)
        assert names(prof) == [ADD] * 10 + [MUL] * 10
        assert prof.session.info.dropped == ()

    def test_the_first(self, drains):
        prof = adds_and_products(drains, max_events=7)
        assert names(prof) == [ADD] * 7
        assert prof.session.info.dropped == (("max_events", 13),)

    def test_the_last(self, drains):
        prof = adds_and_products(drains, max_events=12, keep="last")
        assert names(prof) == [ADD] * 2 + [MUL] * 10
        assert prof.session.info.dropped == (("max_events", 8),)

    def test_bytes(self, drains):
        prof = adds_and_products(drains, max_bytes=40 * 6)
        assert names(prof) == [ADD] * 6
        assert prof.session.info.dropped == (("max_bytes", 14),)

    def test_names(self, drains):
        assert names(adds_and_products(drains, include=["aten::a*"])) == [ADD] * 10
        prof = adds_and_products(drains, exclude=["*add", "*sub"], max_events=4)
        assert names(prof) == [MUL] * 4
        assert dict(prof.session.info.dropped) == {"max_events": 6}
        assert prof.session.info.unrecorded == ("Operators left out by name are not recorded: exclude=['*add', '*sub']",)

    @pytest.mark.parametrize("wish", ["with_stack", "profile_memory"])
    def test_names_of_operators_that_matter_to_others(self, drains, wish):
        """The memory that operators make and the functions inside them count, whatever their names are."""
        prof = adds_and_products(drains, exclude=["*mul"], **{wish: True})
        assert [name for name in names(prof) if name.startswith("aten::")] == [ADD] * 10
        assert dict(prof.session.info.dropped) == {"names": 10}
        assert prof.session.info.unrecorded == ()

    def test_what_is_open_around_the_first_is_kept(self, drains):
        with profile(max_events=3) as prof, record_function("outer"):
            with record_function("inner"):
                for _ in range(5):
                    x + x
                    if drains:
                        drain()
            with record_function("later"):
                x * x
        assert names(prof) == ["outer", "inner", ADD, ADD, ADD]
        assert prof.session.info.dropped == (("max_events", 4),)

    def test_depth(self, drains):
        with profile(max_depth=2) as prof, record_function("outer"), record_function("inner"):
            x + x
        assert names(prof) == ["outer", "inner"]
        assert prof.session.info.dropped == (("max_depth", 1),)


def test_seconds_are_counted_back_from_the_stop(monkeypatch):
    now = [1.0]

    def tick():
        now[0] += 1.0
        return now[0]

    from mindtorch_v2.profiler.capture.operators import recorder

    before = recorder.clock
    recorder.set_clock(tick)
    try:
        with profile(last_seconds=8.5) as prof:
            for _ in range(6):
                x + x
                drain()
            now[0] += 4
    finally:
        recorder.set_clock(before)
    # an event begins and ends a second later; the clock is read once more at the stop
    assert names(prof) == [ADD] * 2
    assert prof.session.info.dropped == (("last_seconds", 4),)


def test_short_events_are_left_out_and_counted():
    with profile(min_duration_us=1e9) as prof:
        x + x
    assert names(prof) == []
    assert prof.session.info.dropped == (("min_duration_us", 1),)


def test_threads_by_name_and_number():
    def run():
        numbers.append(threading.get_native_id())
        x * x

    for choose in (lambda: ["worker"], lambda: [threading.get_native_id()]):
        numbers = []
        with profile(threads=choose()) as prof:
            x + x
            worker = threading.Thread(target=run, name="worker")
            worker.start()
            worker.join()
        assert names(prof) == ([MUL] if choose() == ["worker"] else [ADD])
        assert prof.session.info.dropped == (("threads", 1),)


def test_memory_adds_up_whatever_is_kept():
    kept = []
    with profile(profile_memory=True, max_events=2) as prof:
        for _ in range(6):
            kept.append(x + x)
            drain()
        del kept[0]
    assert [n for n in names(prof) if n == ADD] == [ADD] * 2
    memory = prof.session.memory
    assert memory.size_bytes.tolist() == [8] * 6 + [-8]
    assert memory.total_bytes[-1] == prof.session.info.live_bytes[0][1] + 40


@pytest.mark.parametrize("keep", ["first", "last"])
def test_operands_stay_with_their_events(keep):
    with profile(record_shapes=True, with_stack=True, profile_memory=True, max_events=100, keep=keep, include=[ADD, MUL]) as prof:
        y = torch.ones(3)
        x + x
        drain()
        y * y
        drain()
    session = prof.session
    is_op = np.array([label.kind == "op" for label in session.labels])[session.label]
    rows, counts = np.unique(session.flow.operand_row, return_counts=True)
    assert [session.labels[session.label[row]].name for row in rows.tolist()] == [ADD, MUL]
    assert counts.tolist() == [2, 2]
    assert set(np.flatnonzero(is_op).tolist()) == set(rows.tolist())


@pytest.mark.parametrize("cut", range(1, 8))
def test_the_number_of_an_event_is_kept_with_it(cut):
    log = Log(shapes=False, stacks=False, storages=False, heap=False, operands=False)
    rows = []
    for i in range(4):
        rows += [(1, i * 1e-6, i * 1e-6 + 1e-7, 5, i), (FUNCTION_ID, 0.0, 0.0, 0, 100 + i)]
    for keep, expected in {"first": [0, 1], "last": [2, 3]}.items():
        kept = Kept(log, Bounds(max_events=2, keep=keep))
        for part in (rows[:cut], rows[cut:]):
            kept.add(log_records._converted([value for row in part for value in row], log))
        found = log_records.drain(log, kept)
        assert found.sequence.tolist() == expected
        assert found.function_id.tolist() == [100 + i for i in expected]
        assert kept.dropped == {"max_events": 2}


class TestShown:
    @pytest.fixture
    def prof(self):
        return adds_and_products(max_events=7, exclude=["*mul"])

    TEXTS = (
        "Operators left out by name are not recorded: exclude=['*mul']",
        "3 recorded events are not kept: 3 beyond max_events",
    )

    def test_in_tables(self, prof):
        assert prof.key_averages().table().splitlines()[-2:] == list(self.TEXTS)
        assert prof.table().splitlines()[-2:] == list(self.TEXTS)

    def test_in_the_summary(self, prof):
        assert str(prof.summary()).splitlines()[-2:] == [f"{text}." for text in self.TEXTS]

    def test_in_the_trace(self, prof, tmp_path):
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        trace = json.loads((tmp_path / "trace.json").read_text())
        assert (trace["unrecorded"], trace["dropped"]) == ([self.TEXTS[0]], {"max_events": 3})

    def test_in_the_report(self, prof, tmp_path):
        from mindtorch_v2.profiler.output.report.sections.environment import environment
        from mindtorch_v2.profiler.output.report.sources import Process

        groups = dict(environment(Process(prof.session))["groups"])
        assert ["not in the recording", "; ".join(self.TEXTS)] in groups["Program"]

    def test_in_a_saved_session(self, prof, tmp_path):
        prof._finished("").save(tmp_path / "run.session")
        found = Results.load(tmp_path / "run.session").session.info
        assert (found.unrecorded, found.dropped) == (self.TEXTS[:1], (("max_events", 3),))

    def test_in_what_the_command_line_says(self, prof, tmp_path, capsys):
        prof._finished("").save(tmp_path / "run.session")
        main(["info", "--json", str(tmp_path / "run.session")])
        (process,) = json.loads(capsys.readouterr().out)["processes"]
        assert (process["unrecorded"], process["dropped"]) == ([self.TEXTS[0]], {"max_events": 3})
        main(["info", str(tmp_path / "run.session")])
        assert self.TEXTS[0] in capsys.readouterr().out

    def test_cycles_add_up(self):
        prof = profile(acc_events=True, max_events=2)
        for _ in range(2):
            prof.start()
            for _ in range(5):
                x + x
            prof.stop()
        assert names(prof) == [ADD] * 4
        assert prof.session.info.dropped == (("max_events", 6),)


class TestRefused:
    @pytest.mark.parametrize(
        ("bounds", "error", "message"),
        [
            ({"max_events": 0}, ValueError, "max_events must be a whole number above 0, got 0"),
            ({"max_events": 1.5}, ValueError, "max_events must be a whole number above 0, got 1.5"),
            ({"max_depth": True}, ValueError, "max_depth must be a whole number above 0, got True"),
            ({"keep": "middle"}, ValueError, "keep must be 'first' or 'last', got 'middle'"),
            ({"keep": "last"}, ValueError, "give max_events, max_bytes or last_seconds"),
            ({"last_seconds": 0}, ValueError, "last_seconds must be a number of seconds above 0"),
            ({"min_duration_us": float("nan")}, ValueError, "min_duration_us must be a number of microseconds"),
            ({"include": "aten::add"}, TypeError, "include must be a list of names"),
            ({"include": [3]}, TypeError, "include must be a list of names, and 3 is none"),
            ({"exclude": None}, TypeError, "exclude must be a list of names"),
            ({"threads": [None]}, TypeError, "threads must be a list of names"),
            ({"last_seconds": float("inf")}, ValueError, "last_seconds must be a number of seconds"),
            ({"last_seconds": "1"}, ValueError, "last_seconds must be a number of seconds"),
            ({"min_duration_us": "1"}, ValueError, "min_duration_us must be a number of microseconds"),
            ({"spool": 3}, TypeError, "expected str, bytes or os.PathLike"),
            ({"ends_recording": True}, TypeError, r"profile\(\) got an unexpected keyword argument 'ends_recording'"),
            ({"record_shape": True}, TypeError, r"profile\(\) got an unexpected keyword argument 'record_shape'"),
        ],
    )
    def test_nonsense(self, bounds, error, message):
        with pytest.raises(error, match=message):
            profile(**bounds)


class TestThread:
    """The thread that takes records out of the log."""

    @pytest.fixture(autouse=True)
    def often(self, monkeypatch):
        monkeypatch.setattr(draining, "INTERVAL_S", 0.001)
        monkeypatch.setattr(log_records, "BACKLOG", 0)

    def test_nothing_is_lost_or_invented(self):
        with profile() as prof:
            threads = [threading.Thread(target=lambda: [x + x for _ in range(20_000)]) for _ in range(3)]
            for thread in threads:
                thread.start()
            for _ in range(20_000):
                x * x
            for thread in threads:
                thread.join()
            until = time.monotonic() + 60
            while not capture.active._records.kept.seen:
                assert time.monotonic() < until
                time.sleep(0.001)
            assert capture.active.event_count == 80_000
        counts = {row.key: row.count for row in prof.key_averages()}
        assert counts == {ADD: 60_000, MUL: 20_000}
        assert len(prof.session.tracks) == 4

    def test_it_is_nobody_elses_thread(self):
        before = set(threading.enumerate())  # of which some may end meanwhile
        # of pytest's workers: it waits in a function that sys.monitoring sees end, and is unknown to `threading`
        others = {f"thread {number}" for number in sys._current_frames()}
        config = _ExperimentalConfig(record_python_gc_info=True)
        with profile(with_stack=True, profile_memory=True, experimental_config=config) as prof:
            for _ in range(3_000):
                cycle = [x + x]
                cycle.append(cycle)
            assert set(threading.enumerate()) <= before
        assert [track.name for track in prof.session.tracks if track.name not in others] == ["MainThread"]

    def test_it_ends_with_the_recording(self):
        before = set(sys._current_frames())
        with profile():
            x + x
        until = time.monotonic() + 60
        while new := set(sys._current_frames()) - before:  # it has done its work, and may need a moment to go
            assert time.monotonic() < until, new
            time.sleep(0.001)

    def test_what_goes_wrong_in_it_is_told_once(self, monkeypatch):
        def fail(self, free_bytes):
            raise OSError("no")

        monkeypatch.setattr(log_records.LogRecords, "meanwhile", fail)
        prof = profile()
        prof.start()
        while not capture.active._draining.errors:
            x + x
        count = capture.active.event_count
        with pytest.warns(UserWarning, match=r"the recorder failed \d+ times while the program went on, first by OSError: no"):
            prof.stop()
        assert len(prof.events()) == count


class TestMemoryThatRunsShort:
    """The program outruns the recorder's thread: what is in the log is dropped and counted before memory is full."""

    def record(self, free_bytes, **bounds):
        prof = profile(**bounds)
        prof.start()
        x + x
        drain()
        for _ in range(20):
            x + x
        for free in free_bytes:
            capture.active._records.meanwhile(free)
        x * x
        return prof

    def test_a_log_that_takes_more_than_two_thirds_of_what_is_left(self):
        prof = self.record([4_000])
        with pytest.warns(UserWarning, match="21 events were not kept"):
            prof.stop()
        assert names(prof) == [ADD]
        assert prof.session.info.dropped == (("memory", 21),)

    def test_a_shorter_one_is_kept(self):
        prof = self.record([1 << 20])
        prof.stop()
        assert names(prof) == [ADD] * 21 + [MUL]

    def test_the_first_ones_that_were_asked_for_are_kept(self):
        prof = self.record([4_000], max_events=10)
        prof.stop()
        assert names(prof) == [ADD] * 10
        assert prof.session.info.dropped == (("max_events", 12),)

    @pytest.mark.parametrize(("most", "dropped"), [(10, ("max_events", 21)), (100, ("memory", 1))])
    def test_those_that_are_in_the_spool_and_not_yet_looked_at_come_first(self, tmp_path, most, dropped):
        prof = profile(spool=tmp_path / "run.spool", max_events=most)
        prof.start()
        for _ in range(15):
            x + x
        capture.active._records.spool_meanwhile()
        for _ in range(15):
            x - x
        capture.active._records.drop_all()
        x * x
        short_of_memory = pytest.warns(UserWarning, match=r"^1 events were not kept: memory was short; .*schedule\)$")
        with short_of_memory if dropped[0] == "memory" else contextlib.nullcontext():
            prof.stop()
        assert names(prof) == ([ADD] * 15 + ["aten::sub"] * 15)[:most]
        assert prof.session.info.dropped == (dropped,)

    @pytest.mark.parametrize(
        ("bounds", "advice"),
        [
            ({}, "without max_events, .* allows; .*schedule\\), or give max_events or spool$"),
            ({"max_bytes": 1 << 20}, "memory was short; .*schedule\\), or give spool$"),
        ],
    )
    def test_what_is_given_is_not_advised(self, bounds, advice):
        prof = self.record([4_000], **bounds)
        with pytest.warns(UserWarning, match=advice):
            prof.stop()

    def test_of_the_last_ones_those_that_follow_are_kept(self):
        prof = self.record([4_000], max_events=100, keep="last")
        with pytest.warns(UserWarning, match="21 events were not kept"):
            prof.stop()
        assert names(prof) == [MUL]

    def test_results_of_operators_whose_records_were_dropped_are_not_known(self):
        prof = self.record([4_000], profile_memory=True)
        with (
            pytest.warns(UserWarning, match="memory ran out: live memory leaves out the results of 20 events;"),
            pytest.warns(UserWarning, match="21 events were not kept"),
        ):
            prof.stop()

    def test_numbers_of_an_execution_trace_go_with_their_events(self):
        log = Log(shapes=False, stacks=False, storages=False, heap=False, operands=False)
        records = log_records.LogRecords(log)
        records.begin()
        for i in range(10):
            log.write(7, float(i), i + 0.5, 1, function_id=i + 1)
        records.drop_all()
        assert (log.records, records.kept.dropped) == ([], {"memory": 10})

    @pytest.mark.parametrize(
        ("taken", "seconds", "expected"),
        [
            (0, 1.0, 0.25),  # nothing was taken
            (400, 1.0, 0.25),  # a quarter of what is left is taken in 0.375 s
            (900, 0.1, draining.SHORTEST_S),
            (500, 1.0, 0.25),
            (500, 0.5, 0.125),  # a quarter of 500 at 1,000 a second
        ],
    )
    def test_the_thread_comes_more_often(self, taken, seconds, expected, monkeypatch):
        monkeypatch.setattr(draining, "free_bytes", lambda: 1000 - taken)
        monkeypatch.setattr(draining.time, "monotonic", lambda: 100.0 + seconds)
        thread = draining.Draining(
            (), log_records.LogRecords(Log(shapes=False, stacks=False, storages=False, heap=False, operands=False))
        )
        thread._free_at = 1000, 100.0
        assert thread._work() == pytest.approx(expected)

    @pytest.mark.parametrize(("took", "expected"), [(0.0, 0.25), (0.1, 0.15), (3.0, draining.PAUSE_S)])
    def test_work_that_takes_long_is_followed_by_a_shorter_wait(self, took, expected, monkeypatch):
        now = [100.0]

        class Slow(Source):
            def meanwhile(self, free_bytes):
                now[0] += took

        monkeypatch.setattr(draining, "free_bytes", lambda: 1 << 40)
        monkeypatch.setattr(draining.time, "monotonic", lambda: now[0])
        thread = draining.Draining(
            (Slow(),), log_records.LogRecords(Log(shapes=False, stacks=False, storages=False, heap=False, operands=False))
        )
        thread._free_at = 1 << 40, 99.75
        assert thread._work() == pytest.approx(expected)

    def test_memory_that_runs_out_in_the_thread_makes_room(self, monkeypatch):
        def fail(self, free_bytes):
            raise MemoryError

        monkeypatch.setattr(draining, "INTERVAL_S", 1e6)
        monkeypatch.setattr(log_records.LogRecords, "meanwhile", fail)
        prof = profile()
        prof.start()
        for _ in range(9):
            x + x
        capture.active._draining._work()
        x * x
        with pytest.warns(UserWarning, match="10 events were not kept"):
            prof.stop()
        assert names(prof) == []


def test_names_that_can_be_read_only_once():
    with profile(include=iter(["aten::add"]), threads=iter(["MainThread"])) as prof:
        for _ in range(3):
            x + x
            x * x
    assert names(prof) == [ADD] * 3
