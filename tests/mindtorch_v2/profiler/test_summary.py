"""Where the wall time of a recording went: parts that add up to it."""

import dataclasses
import itertools
import random
import sys
import threading
import time
from types import SimpleNamespace

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ProfilerActivity, Results, profile, record_function
from mindtorch_v2.profiler.capture import event_costs
from mindtorch_v2.profiler.capture.operators import recorder
from mindtorch_v2.profiler.model.session import BACKWARD_FUNCTION, COMPILE, Info, Label, Track, join
from mindtorch_v2.profiler.model.summary import OtherThread, Summary

from .by_hand import Event, op, python_function, record, runtime, scope

MAIN = Track(7, 7, "MainThread")
SLEEP = "<built-in function sleep>"


def info(stopped_ns=1000, **facts):
    return Info(**({"stopped_ns": stopped_ns, "thread_id": 7, "with_stack": True} | facts))


def summary_of(*events, tracks=(MAIN,), **facts):
    summary = Summary.of(record(events, info=info(**facts), tracks=tracks))
    assert sum(summary.parts.values()) == summary.wall_ns
    return summary


def nonzero(summary):
    return {name: ns for name, ns in summary.parts.items() if ns}


class TestParts:
    """By hand; in the events, each moment is the innermost one's."""

    def test_operators_and_what_is_left(self):
        found = summary_of(op("aten::mm", 100, 300, op("aten::t", 150, 200), tid=7), op("aten::add", 400, 500, tid=7))
        assert nonzero(found) == {"operators": 300, "own Python": 700}
        assert found.wall_ns == 1000

    def test_nothing_recorded(self):
        assert nonzero(summary_of()) == {"own Python": 1000}

    def test_backward_is_operators(self):
        node = Event(Label("MulBackward0", "op", BACKWARD_FUNCTION), 100, 300, (op("aten::mul", 150, 200),), tid=7)
        assert nonzero(summary_of(node)) == {"operators": 200, "own Python": 800}

    def test_scopes_and_functions_are_own_python(self):
        inner = python_function("f", 200, 900, op("aten::mul", 300, 400))
        assert nonzero(summary_of(scope("forward", 100, 950, inner, tid=7))) == {"operators": 100, "own Python": 900}

    @pytest.mark.parametrize(
        "name", ["cudaStreamSynchronize", "hipDeviceSynchronize", "AscendCL@aclrtSynchronizeStream", "urQueueFinish"]
    )
    def test_waiting_for_a_device_is_no_work(self, name):
        """Not even inside of an operator, as in `item()`; the calls around it are the operator's."""
        inner = (runtime("cudaMemcpyAsync", 120, 150, correlation=1), runtime(name, 160, 380, correlation=2))
        found = summary_of(op("aten::item", 100, 400, *inner, tid=7))
        assert nonzero(found) == {"operators": 80, "waiting for the device": 220, "own Python": 700}
        assert (found.device_ns, found.forward_ns, found.waiting_ns) == (220, 80, 0)

    @pytest.mark.parametrize("name", ["cudaStreamWaitEvent", "cudaEventQuery", "urEnqueueEventsWait"])
    def test_calls_that_return_at_once_are_no_waits(self, name):
        assert nonzero(summary_of(runtime(name, 100, 300, correlation=1, tid=7))) == {"operators": 200, "own Python": 800}

    def test_a_recording_without_device_has_no_such_part(self):
        assert "waiting for the device" not in summary_of(op("aten::mm", 0, 10, tid=7)).parts

    def test_functions_inside_of_operators(self):
        """A kernel's is the operator's, one that a Function calls is the program's own."""
        kernel = op("mylib::twice", 0, 100, python_function("kernel", 10, 90), tid=7)
        function = op("Double", 200, 300, python_function("forward", 210, 290), tid=7)
        assert nonzero(summary_of(kernel, function)) == {"operators": 120, "own Python": 880}

    def test_compilation(self):
        compiled = Event(Label(COMPILE, "compile", operator="aten::t"), 150, 250)
        assert nonzero(summary_of(op("aten::mm", 100, 300, compiled, tid=7))) == {
            "operators": 100,
            "own Python": 800,
            "compilation": 100,
        }

    def test_loading_of_data_with_all_that_it_consists_of(self):
        loading = scope(
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
            100,
            600,
            op("aten::stack", 200, 300),
            python_function("collate", 300, 500, python_function(SLEEP, 400, 450)),
            tid=7,
        )
        assert nonzero(summary_of(loading)) == {"own Python": 500, "data loading": 500}

    def test_waiting(self):
        waits = python_function("wait", 100, 600, python_function(SLEEP, 200, 500), tid=7)
        assert nonzero(summary_of(waits)) == {"own Python": 700, "waiting": 300}

    def test_without_stacks_waiting_is_not_told_apart(self):
        found = summary_of(op("aten::mm", 100, 300, tid=7), with_stack=False)
        assert nonzero(found) == {"operators": 200, "own Python and waiting": 800}
        assert (found.python_ns, found.waiting_ns, found.python_and_waiting_ns) == (None, None, 800)
        assert str(found).endswith("Own Python and waiting cannot be told apart without with_stack=True.")

    def test_the_recorder(self):
        """An event's cost is taken from what is around it."""
        events = op("aten::mm", 100, 300, op("aten::t", 150, 200), tid=7), op("aten::add", 400, 500, tid=7)
        found = summary_of(*events, event_costs_ns=(("op", 10),))
        assert nonzero(found) == {"operators": 290, "own Python": 680, "recorder": 30}

    def test_the_recorder_takes_no_more_than_there_is(self):
        found = summary_of(op("aten::mm", 0, 1000, tid=7), event_costs_ns=(("op", 500),))
        assert nonzero(found) == {"operators": 1000}

    def test_pauses_and_what_is_between_cycles_do_not_count(self):
        events = op("aten::mm", 100, 300, tid=7), op("aten::add", 700, 800, tid=7)
        found = summary_of(*events, collected=((0, 400), (600, 1000)))
        assert (found.wall_ns, nonzero(found)) == (800, {"operators": 300, "own Python": 500})

    def test_tasks_of_the_thread_overlap(self):
        tracks = MAIN, Track(8, 7, "Task-1"), Track(9, 7, "Task-2")
        first = scope("first", 100, 900, op("aten::sin", 200, 300), tid=8)
        second = scope("second", 150, 950, op("aten::cos", 400, 500), tid=9)
        found = summary_of(first, second, tracks=tracks)
        assert nonzero(found) == {"operators": 200, "own Python": 800}
        assert found.events == 4

    def test_other_threads(self):
        tracks = MAIN, Track(8, 8, "loader"), Track(9, 8, "Task-1"), Track(1, 1, "stream", "NPU")
        events = (
            op("aten::mm", 100, 200, tid=7),
            op("aten::stack", 0, 900, op("aten::cat", 100, 200), tid=8),
            op("x::y", 0, 5, tid=9),
        )
        found = summary_of(*events, tracks=tracks)
        assert found.other_threads == (OtherThread("loader", 8, 905),)
        assert nonzero(found) == {"operators": 100, "own Python": 900}
        assert "\nOperators on loader " in str(found)

    def test_of_an_older_file(self):
        """It does not say which thread recorded: the one with the number of the process, or else the first."""
        events = op("aten::mm", 100, 200, tid=7), op("aten::add", 100, 400, tid=8)
        tracks = Track(8, 8, "other"), MAIN
        for pid, operators_ns in ((7, 100), (8, 300), (99, 300)):
            assert summary_of(*events, tracks=tracks, thread_id=0, pid=pid).operators_ns == operators_ns

    def test_random_recordings_add_up(self):
        numbers = random.Random(0)
        kinds = [op, scope, python_function, lambda name, *rest, **facts: python_function(SLEEP, *rest, **facts)]

        def events(start, end, depth, **facts):
            made = []
            while start < end and len(made) < 5:
                began = numbers.randint(start, end)
                start = numbers.randint(began, end)
                inner = events(began, start, depth - 1) if depth else []
                name = numbers.choice(["aten::mm", "f", "enumerate(DataLoader)#1"])
                made.append(numbers.choice(kinds)(name, began, start, *inner, **facts))
            return made

        tracks = MAIN, Track(8, 7, "Task-1"), Track(9, 9, "other")
        for _ in range(300):
            found = [event for track in tracks for event in events(0, 1000, 3, tid=track.tid)]
            collected = numbers.choice([(), ((0, 300), (300, 900)), ((100, 500), (700, 800))])
            summary_of(*found, tracks=tracks, collected=collected, event_costs_ns=(("op", 3), ("scope", 50)))


def test_the_text():
    compiled = Event(Label(COMPILE, "compile", operator="aten::t"), 150_000_000, 250_000_000)
    session = record(
        [op("aten::mm", 100_000_000, 300_000_000, compiled, tid=7)],
        info=info(stopped_ns=10**9, thread_cpu_ns=900_000_000, event_costs_ns=(("op", 1000),)),
        tracks=(MAIN,),
    )
    assert str(Results(session).summary()) == (
        "Wall time of the recording     1.000s  100.0%\n"
        "  operators                 100.000ms   10.0%\n"
        "  own Python                799.999ms   80.0%\n"
        "  waiting                     0.000us    0.0%\n"
        "  data loading                0.000us    0.0%\n"
        "  compilation               100.000ms   10.0%\n"
        "  recorder                    1.000us    0.0%\n"
        "The thread of the recording was on the processor for 900.000ms of it."
    )


class TestRecordings:
    @pytest.mark.parametrize("mode", [{}, {"record_shapes": True}, {"profile_memory": True}, {"with_stack": True}], ids=str)
    def test_the_parts_add_up_and_survive_saving(self, mode, tmp_path):
        x = torch.ones(4, requires_grad=True)
        with profile(**mode) as prof:
            for _ in range(5):
                (x * x).sum().backward()
        found = prof.summary()
        assert sum(found.parts.values()) == found.wall_ns == prof.session.info.stopped_ns - prof.session.info.started_ns
        assert found.operators_ns > 0
        assert found.events == sum(event["thread_id"] == threading.get_native_id() for event in prof.events())
        prof.session.save(tmp_path / "session.npz")
        assert Results.load(tmp_path / "session.npz").summary() == found

    def test_a_sleep_is_waiting_with_stacks(self):
        x = torch.ones(4)
        with profile(with_stack=True) as prof:
            time.sleep(0.05)
            x + x
        found = prof.summary()
        assert found.waiting_ns >= 50_000_000
        (row,) = [row for row in prof.key_averages() if row.key == SLEEP]
        assert (row.count, row.self_cpu_time_total) == (1, 0)  # the time is that of the function that calls it
        assert row.cpu_time_total >= 50_000

    def test_a_sleep_without_stacks(self):
        x = torch.ones(4)
        x + x
        with profile() as prof:
            time.sleep(0.05)
            x + x
        found = prof.summary()
        assert found.python_and_waiting_ns >= 50_000_000
        assert found.on_processor_ns < found.wall_ns - 40_000_000

    def test_a_helper_of_a_data_loader(self):
        with profile(with_stack=True) as prof, record_function("enumerate(DataLoader)#Own.__next__"):
            time.sleep(0.05)
        found = prof.summary()
        assert found.data_ns >= 50_000_000
        assert found.data_ns > found.waiting_ns + found.python_ns

    def test_cycles_are_joined(self):
        x = torch.ones(4)
        prof = profile(acc_events=True)
        for _ in range(2):
            prof.start()
            x + x
            prof.stop()
            time.sleep(0.03)
        (began, paused), (resumed, ended) = prof.session.info.collected
        assert resumed - paused >= 30_000_000
        assert prof.summary().wall_ns == paused - began + ended - resumed

    def test_a_pause(self):
        with profile() as prof:
            prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
            time.sleep(0.05)
            prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        session = prof.session
        assert prof.summary().wall_ns == sum(end - start for start, end in session.info.collected)
        assert prof.summary().wall_ns <= session.info.stopped_ns - session.info.started_ns - 50_000_000

    def test_the_thread_that_started_it(self):
        x, found = torch.ones(4), []

        def program():
            with profile() as prof:
                x + x
            found.append(prof)

        thread = threading.Thread(target=program)
        thread.start()
        thread.join()
        assert found[0].session.info.thread_id == thread.native_id
        assert found[0].summary().operators_ns > 0

    def test_stopped_on_another_thread(self):
        prof = profile()
        prof.start()
        thread = threading.Thread(target=prof.stop)
        thread.start()
        thread.join()
        assert prof.summary().on_processor_ns is None

    def test_before_the_end_of_the_first(self):
        with pytest.raises(AssertionError, match="summing up the wall time"):
            profile().summary()

    def test_the_command_line_shows_it(self, tmp_path, run_python):
        (tmp_path / "program.py").write_text("import mindtorch_v2 as torch\ntorch.ones(2) + 1\n")
        done = run_python(
            """
            import subprocess, sys
            command = [sys.executable, "-m", "mindtorch_v2.profiler", "--no-trace", "program.py"]
            print(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            """
        )
        assert "\nWall time of the recording " in done.stdout, done.stderr
        assert "\n  own Python and waiting " in done.stdout


BY_SETPROFILE = sys.version_info < (3, 12)


class TestCosts:
    """What an event costs is measured once for each form of records in a process."""

    @pytest.fixture(autouse=True)
    def forget(self, monkeypatch):
        monkeypatch.setattr(event_costs, "_known", {})

    def test_once_for_each_form(self, monkeypatch):
        measured = []
        measure = event_costs._operator_ns

        def counted(key_set, **facts):
            measured.append((key_set, *facts))
            return measure(key_set, **facts)

        monkeypatch.setattr(event_costs, "_operator_ns", counted)
        for mode in ({}, {}, {"record_shapes": True}, {"record_shapes": True}, {"with_stack": True}, {"with_stack": True}):
            with profile(**mode):
                pass
        assert len([keys for keys, *facts in measured if not facts]) == 3
        assert (
            len(measured) == len(set(measured)) == 6
        )  # nodes with shapes and with stacks, and operators inside of others with stacks

    @pytest.mark.parametrize(
        ("mode", "kinds"),
        [
            ({}, ["op", "scope", "backward node"]),
            ({"profile_memory": True}, ["op", "scope", "backward node"]),
            (
                {"with_stack": True},
                ["op", "scope", "nested op", "backward node", "python_function", *["call in C"] * BY_SETPROFILE],
            ),
        ],
        ids=str,
    )
    def test_it_leaves_nothing_in_the_recording(self, mode, kinds):
        x = torch.ones(4)
        x + x
        with profile(**mode) as prof:
            x + x
        costs = dict(prof.session.info.event_costs_ns)
        assert list(costs) == kinds
        assert all(type(cost) is int and cost >= 0 for cost in costs.values())
        assert [e.name for e in prof.events() if e["kind"] == "op"] == ["aten::add"]
        assert not [e.name for e in prof.events() if "cost" in e.name and "test" not in e.name]
        if prof.session.memory is not None:
            assert len(prof.session.memory.time_ns) == 2

    def test_the_difference_counts(self, monkeypatch):
        operators = [1e-3, 1e-3 + 40e-6]  # plain, recorded
        nested = [1e-3, 1e-3 + 60e-6, *[20e-6] * BY_SETPROFILE]  # and looking for the tracer
        nodes = [1e-3, 1e-3 + 20e-6]
        untraced, traced = (
            [2e-3, 5e-4, 1e-4],
            [2e-3 + 120e-6, 5e-4 + 8e-6, 1e-4 + 12e-6],
        )  # in Python, in C, of a function that is not reported
        loops = 3 if BY_SETPROFILE else 1
        seconds = iter([*operators, 40e-6, *nested, *nodes, *untraced[:loops], *traced[:loops]])
        monkeypatch.setattr(event_costs, "_least", lambda loops, running=None: [next(seconds) for _ in loops])
        with profile(with_stack=True) as prof:
            pass
        costs = {"op": 1000, "scope": 1000, "nested op": 1500, "backward node": 500, "python_function": 3000}
        if BY_SETPROFILE:  # which operators turn off, and which is told of calls in C
            costs |= {"op": 1300, "nested op": 2000, "call in C": 200}
        assert dict(prof.session.info.event_costs_ns) == costs

    def test_loops_take_turns_so_that_a_machine_that_gets_slower_makes_none_longer(self, monkeypatch):
        now, runs = [0.0], itertools.count()

        def loop(seconds):
            now[0] += seconds * (1 if next(runs) < event_costs.ROUNDS else 3)  # from the half of all runs on

        monkeypatch.setattr(event_costs, "time", SimpleNamespace(perf_counter=lambda: now[0]))
        found = event_costs._least([lambda: loop(1.0), lambda: loop(1.25)])
        assert found == pytest.approx([1.0, 1.25])

    def test_not_on_another_clock(self):
        ticks = iter(range(1, 10**9))
        recorder.set_clock(lambda: next(ticks) * 1e-6)
        try:
            with profile() as prof:
                torch.ones(2)
        finally:
            recorder.set_clock(time.perf_counter)
        assert prof.session.info.event_costs_ns == ()
        assert prof.summary().recorder_ns == 0


class TestFiles:
    @pytest.mark.parametrize(
        "facts",
        [
            {"collected": ((5, 3),)},
            {"collected": ((0, 5), (3, 8))},
            {"collected": ((0, 1 << 63),)},
            {"collected": [(0, 5)]},
            {"collected": ((0, 5, 6),)},
            {"event_costs_ns": (("op", -1),)},
            {"event_costs_ns": (("nothing", 1),)},
            {"event_costs_ns": (("op", 0.5),)},
            {"event_costs_ns": (("op", 1 << 60),)},
            {"thread_id": "7"},
            {"thread_cpu_ns": None},
        ],
        ids=str,
    )
    def test_what_cannot_be_is_refused(self, facts, tmp_path):
        session = record([op("aten::mm", 0, 10, tid=7)], info=dataclasses.replace(info(), **facts), tracks=(MAIN,))
        session.save(tmp_path / "session.npz")
        with pytest.raises(ValueError, match=r"session\.npz is no session file, or is damaged"):
            Results.load(tmp_path / "session.npz")

    def test_joined_sessions_know_what_is_known_of_all(self):
        sessions = [
            record(
                [op("aten::mm", 0, 10, tid=7)],
                info=info(started_ns=start, stopped_ns=start + 10, thread_cpu_ns=cpu),
                tracks=(MAIN,),
            )
            for start, cpu in ((0, 5), (20, 6))
        ]
        joined = join(sessions).info
        assert (joined.collected, joined.thread_cpu_ns) == (((0, 10), (20, 30)), 11)
        unknown = sessions[0].replace(info=dataclasses.replace(sessions[0].info, thread_cpu_ns=-1))
        assert join([unknown, sessions[1]]).info.thread_cpu_ns == -1


def delayed(cpu_ns, *, with_stack=False, events=(op("aten::mm", 0, 600),)):
    info = Info(started_ns=0, stopped_ns=1_000, thread_cpu_ns=cpu_ns, with_stack=with_stack)
    return Summary.of(record(list(events), info=info))


def test_a_thread_that_did_not_get_the_processor_is_told():
    found = delayed(100)  # 400 may have been waiting, outside of operators
    assert found.delayed_ns == 500
    assert "For 50.0% of the wall time, the thread had work to do and was not on the processor" in str(found)


def test_time_on_the_processor_and_waiting_are_no_delay():
    assert delayed(600).delay == delayed(1_000).delay == delayed(-1).delay == ""
    assert delayed(-1).delayed_ns == 0


def test_functions_that_wait_are_no_delay():
    waits = python_function("<built-in function sleep>", 600, 1_000)
    found = delayed(600, with_stack=True, events=[op("aten::mm", 0, 600), waits])
    assert (found.waiting_ns, found.delayed_ns) == (400, 0)
