"""First numbers are true numbers: what has run is compiled before a recording, and what is compiled inside is an event of its own."""

import json
import threading
import time

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import codegen, dispatcher, lazy, registry
from mindtorch_v2._dispatch.op import Table
from mindtorch_v2.profiler import ExecutionTraceObserver, ProfilerActivity, Results, profile, record_function, schedule, validate
from mindtorch_v2.profiler.capture.operators import compile_events, recorder
from mindtorch_v2.profiler.model.session import COMPILE, Label

from .by_hand import Event, op, record

pytestmark = pytest.mark.usefixtures("compile_rows")

MODES = [
    {},
    {"record_shapes": True},
    {"profile_memory": True},
    {"profile_memory": "tracemalloc"},
    {"with_stack": True},
    {"with_modules": True},
    {"record_shapes": True, "profile_memory": True, "with_stack": True},
]


@pytest.fixture
def x():
    return torch.ones(4, 4)


@pytest.fixture
def forgotten():
    """A function that has operators forget what was compiled for them."""

    def forget(*names):
        for name in names:
            for overload in registry.overloads(name).values():
                dispatcher.invalidate(overload)

    return forget


def compilations(prof):
    return [event for event in prof.events() if event["kind"] == "compile"]


def training_step():
    """A step with operators, backward, optimizer and a composite, as a function without arguments."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    data, target = torch.randn(16, 8), torch.randint(0, 4, (16,))

    def step():
        loss = torch.nn.functional.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


class TestWhatHasRun:
    """It is ready to be recorded before the clock starts."""

    @pytest.mark.parametrize("mode", MODES, ids=str)
    def test_no_step_that_ran_before_is_compiled_in_a_recording(self, mode):
        recorder.set_clock(recorder.clock)  # forgets all functions that record
        step = training_step()
        for _ in range(3):
            step()
        with profile(**mode) as prof:
            step()
        assert compilations(prof) == []
        assert "aten::addmm" in [event.name for event in prof.events()]

    @pytest.mark.parametrize("mode", MODES, ids=str)
    def test_no_function_is_looked_up_in_a_recording(self, mode, monkeypatch):
        """The tables lead to functions that record from the first call on, and to the others after the end."""
        step = training_step()
        for _ in range(3):
            step()
        resolved = []

        def resolve(op, argument_keys):
            resolved.append(op)
            return dispatcher.resolve(op, argument_keys)

        with monkeypatch.context() as patch:
            patch.setattr(Table, "resolve", staticmethod(resolve))
            with profile(**mode):
                step()
            step()
        assert resolved == []

    def test_with_an_execution_trace(self, tmp_path):
        recorder.set_clock(recorder.clock)
        step = training_step()
        for _ in range(3):
            step()
        observer = ExecutionTraceObserver().register_callback(str(tmp_path / "trace.json"))
        with profile(execution_trace_observer=observer) as prof:
            step()
        assert compilations(prof) == []

    def test_what_ran_in_a_recording_of_another_mode(self, x, forgotten):
        x.sinh()
        forgotten("aten::sinh")
        with profile() as first:
            x.sinh()
        with profile(record_shapes=True) as second:
            x.sinh()
        assert [event["operator"] for event in compilations(first)] == ["aten::sinh"]
        assert compilations(second) == []

    def test_a_mode_that_is_entered_still_empties_the_tables(self, x):
        x.sinh()
        table = registry.find("aten::sinh").table
        assert table
        with torch.inference_mode():
            assert not table


class TestWhatIsCompiledInARecording:
    def test_it_is_an_event_before_its_operator(self, x, forgotten):
        x.sinh()
        forgotten("aten::sinh")
        with profile() as prof:
            x.sinh()
            x.sinh()
        compiled, *operators = prof.events()
        assert (compiled.name, compiled["kind"], compiled["operator"]) == (COMPILE, "compile", "aten::sinh")
        assert [event.name for event in operators] == ["aten::sinh"] * 2
        assert compiled["end_ns"] <= operators[0]["start_ns"]
        assert "operator" not in operators[0]

    def test_an_entry_point(self, x):
        called = lazy.lazy_function("sample", lambda: codegen.Source("x", ["return x.sinh()"], {}))
        x.sinh()
        with profile() as prof:
            assert called(x).shape == (4, 4)
        assert [(event.name, event.get("operator")) for event in prof.events()] == [(COMPILE, "torch.sample"), ("aten::sinh", None)]

    @pytest.mark.parametrize("mode", MODES, ids=str)
    def test_it_is_inside_of_what_ran_and_in_nobodys_self_time(self, x, forgotten, monkeypatch, mode):
        """Compilation of `mm` takes 30 ms here, and all else together less."""
        weight = torch.ones(4, 4)
        torch.nn.functional.linear(x, weight)
        forgotten("aten::mm")
        made = dispatcher._compile

        def slow(op, full):
            if op.name == "mm":
                time.sleep(0.03)
            return made(op, full)

        monkeypatch.setattr(dispatcher, "_compile", slow)
        with profile(**mode) as prof, record_function("outer"):
            torch.nn.functional.linear(x, weight)
        (compiled,) = compilations(prof)
        assert compiled.cpu_parent.name == "aten::matmul"
        mine = [event for event in prof.events() if event["thread_id"] == compiled["thread_id"]]  # others of the process may wait
        assert compiled.self_cpu_time_total >= 30_000
        assert sum(event.self_cpu_time_total for event in mine if event is not compiled) < compiled.self_cpu_time_total

    def test_the_row_and_the_line_below_the_table(self, x, forgotten):
        x.sinh(), x.cosh()
        forgotten("aten::sinh", "aten::cosh")
        with profile() as prof:
            x.sinh(), x.cosh()
        (row,) = [row for row in prof.key_averages() if row.key == COMPILE]
        assert row.count == 2
        for table in (prof.key_averages().table(), prof.table(), prof.events().table()):
            (line,) = [line for line in table.splitlines() if line.startswith("Compilation: ")]
            assert line == f"Compilation: {row.self_cpu_time_total_str} in 2 functions"

    def test_where_it_happened(self, x, forgotten):
        x.sinh()
        forgotten("aten::sinh")
        with profile(with_stack=True) as prof:
            x.sinh()
        (compiled,) = compilations(prof)
        assert compiled["stack"][0].endswith(":test_where_it_happened")

    def test_on_another_thread(self, x, forgotten):
        x.sinh()
        forgotten("aten::sinh")
        with profile() as prof:
            thread = threading.Thread(target=x.sinh)
            thread.start()
            thread.join()
        assert {event["thread_id"] for event in prof.events()} == {thread.native_id}
        assert len(compilations(prof)) == 1

    def test_the_trace(self, x, forgotten, tmp_path):
        x.sinh()
        forgotten("aten::sinh")
        with profile() as prof:
            x.sinh()
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        assert validate(tmp_path / "trace.json") == []
        rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        (row,) = [row for row in rows if row.get("name") == COMPILE]
        assert (row["cat"], row["args"]["Operator"]) == ("overhead", "aten::sinh")

    def test_a_saved_session(self, x, forgotten, tmp_path):
        x.sinh()
        forgotten("aten::sinh")
        with profile() as prof:
            x.sinh()
        prof.session.save(tmp_path / "session.npz")
        (compiled,) = compilations(Results.load(tmp_path / "session.npz"))
        assert compiled["operator"] == "aten::sinh"

    def test_a_compilation_that_fails_is_an_event_too(self, x, forgotten, monkeypatch):
        forgotten("aten::sinh")

        def fail(op, full):
            raise ZeroDivisionError

        with monkeypatch.context() as patch, profile() as prof:
            patch.setattr(dispatcher, "_compile", fail)
            with pytest.raises(ZeroDivisionError):
                x.sinh()
        assert [event.name for event in prof.events()] == [COMPILE]

    def test_nothing_is_written_outside_of_a_recording(self, x, forgotten):
        for stop in (lambda prof: prof.stop(), lambda prof: prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])):
            prof = profile()
            prof.start()
            stop(prof)
            forgotten("aten::sinh")
            x.sinh()
            prof.stop()
            assert compilations(prof) == []

    def test_a_warm_up_step_leaves_it_behind(self, x, forgotten):
        forgotten("aten::sinh")
        with profile(schedule=schedule(wait=0, warmup=1, active=1)) as prof:
            for _ in range(2):
                x.sinh()
                prof.step()
        assert compilations(prof) == []

    def test_a_filter_for_operators_keeps_it(self, x, forgotten):
        x.sinh()
        forgotten("aten::sinh")
        with profile(activities=[{ProfilerActivity.CPU: ["CPU_OP"]}]) as prof:
            x.sinh()
        assert [event["kind"] for event in prof.events()] == ["compile", "op"]


def compilation(operator, start_ns, end_ns):
    return Event(Label(COMPILE, "compile", operator=operator), start_ns, end_ns)


class TestByHand:
    def test_an_operator_that_is_all_there_is_in_one_of_its_name(self):
        """Beside a compilation, it still is."""
        inner = op("aten::sum", 20, 90)
        session = record([op("aten::sum", 0, 100, compilation("aten::sum", 5, 15), inner)])
        rows = {row.key: (row.count, row.self_cpu_time_total) for row in Results(session).key_averages()}
        assert rows == {"aten::sum": (1, 0.09), COMPILE: (1, 0.01)}

    def test_one_function(self):
        table = Results(record([compilation("aten::sum", 0, 12_300_000)])).key_averages().table()
        assert "Compilation: 12.300ms in 1 function\n" in table

    def test_without_any_nothing_is_said(self):
        assert "Compilation" not in Results(record([op("aten::sum", 0, 100)])).key_averages().table()


def test_the_observer_is_gone_after_a_recording(x):
    with profile():
        x.sinh()
    assert compile_events.compiling._observer is None
