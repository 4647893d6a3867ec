"""Execution traces of programs that a profiler records: the same numbers in both, and the schedule holds for both."""

import json
import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ExecutionTraceObserver, profile, record_function, schedule

from .execution_traces import ONE, PROCESS, THREAD, Trace


class TestWithAProfiler:
    def numbers(self, prof, tmp_path):
        path = tmp_path / "chrome.json"
        prof.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
        return {e["args"]["Record function id"]: e["name"] for e in events if "Record function id" in e.get("args", {})}

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"record_shapes": True},
            {"with_stack": True},
            {"profile_memory": True},
            {"record_shapes": True, "with_stack": True, "profile_memory": True},
        ],
    )
    def test_numbers_are_those_of_the_trace(self, tmp_path, options):
        path = tmp_path / "et.json"
        w = torch.ones(2, 2, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)

        def other():
            with record_function("other thread"):
                (w @ w).sum().backward()

        with profile(execution_trace_observer=ExecutionTraceObserver().register_callback(path), **options) as prof:
            with record_function("mine"):
                (w @ w).sum().backward()
            optimizer.step()
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            with pytest.raises(RuntimeError):
                w @ torch.ones(3)
        trace = Trace(path)
        expected = {node["rf_id"]: node.name for node in trace.nodes if node.name not in (PROCESS, THREAD)}
        assert self.numbers(prof, tmp_path) == expected
        assert len(expected) > 30

    def test_numbers_survive_a_file_and_accumulation(self, tmp_path):
        path = tmp_path / "et.json"
        observer = ExecutionTraceObserver().register_callback(path)
        with profile(schedule=schedule(wait=0, warmup=1, active=1), acc_events=True, execution_trace_observer=observer) as prof:
            for _ in range(6):
                ONE.neg()
                prof.step()
        expected = {node["rf_id"]: node.name for node in Trace(path).nodes if node.name not in (PROCESS, THREAD)}
        assert self.numbers(prof, tmp_path) == expected
        prof.session.save(tmp_path / "session")
        loaded = torch.profiler.Session.load(tmp_path / "session")
        assert loaded.function_id.tolist() == prof.session.function_id.tolist() == sorted(expected)

    def test_without_an_observer_numbers_are_0(self, tmp_path):
        with profile() as prof:
            ONE.neg()
        assert self.numbers(prof, tmp_path) == {0: "aten::neg"}
        assert prof.session.function_id is None

    def test_an_observer_for_a_part_of_a_recording(self, tmp_path):
        observer = ExecutionTraceObserver().register_callback(tmp_path / "et.json")
        with profile() as prof:
            ONE.neg()
            observer.start()
            ONE.cos()
            observer.stop()
            ONE.neg()
        assert observer.is_registered
        observer.unregister_callback()
        trace = Trace(tmp_path / "et.json")
        assert trace.names() == ["aten::cos"]
        names = {label: prof.session.labels[label].name for label in prof.session.label.tolist()}
        found = [(names[label], number) for label, number in zip(prof.session.label.tolist(), prof.session.function_id.tolist())]
        assert found == [("aten::neg", 0), ("aten::cos", trace["aten::cos"]["rf_id"]), ("aten::neg", 0)]

    def test_schedules_pick_what_is_written(self, tmp_path):
        path = tmp_path / "et.json"
        observer = ExecutionTraceObserver().register_callback(path)
        with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2), execution_trace_observer=observer) as prof:
            for step in range(8):
                with record_function(f"s{step}"):
                    ONE.neg()
                prof.step()
        trace = Trace(path)
        steps = [2, 3, 6, 7]
        assert trace.names() == [n for i in steps for n in ("aten::neg", f"s{i}", f"ProfilerStep#{i}")]
        assert [trace.parent_of(trace[f"s{i}"]) for i in steps] == [f"ProfilerStep#{i}" for i in steps]
        assert len(trace.named(THREAD)) == 1

    def test_a_profiler_that_cannot_start_leaves_no_observer_running(self, tmp_path):
        observer = ExecutionTraceObserver().register_callback(tmp_path / "et.json")
        with profile(), pytest.raises(RuntimeError):
            profile(execution_trace_observer=observer).start()
        assert not observer.is_running()
        observer.unregister_callback()

    def test_the_users_exception_comes_through(self, tmp_path):
        path = tmp_path / "t.json"

        def work():
            with profile(execution_trace_observer=ExecutionTraceObserver().register_callback(path)):
                ONE.neg()
                raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            work()
        assert Trace(path).names() == ["aten::neg"]
