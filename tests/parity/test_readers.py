"""Traces as the programs see them that people open traces with: what these find is what the session holds."""

import asyncio
import contextlib
import json
import logging
import os
import runpy
import subprocess
import sys
import threading
from collections import Counter
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.mindtorch_v2.profiler.by_hand import Event, kernel, op, python_function, record, runtime, scope

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function, schedule, tensorboard_trace_handler, validate
from mindtorch_v2.profiler.model.session import BACKWARD_FUNCTION, Frame, Info, Label, MemoryLog, TensorInput, Track
from mindtorch_v2.profiler.output.chrome_trace import write
from mindtorch_v2.profiler.output.slice_times import slice_times

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]  # the readers' own warnings

FOLDER = Path(__file__).parent.parent.parent / "examples"
EXAMPLES = [FOLDER / f"{name}.py" for name in ("cnn", "gpt", "mlp")]
EVALUATE = "autograd::engine::evaluate_function: "


# Sessions ----------------------------------------------------------------------------------------------------------------------


def training_by_hand(steps: int = 3):
    """Steps of forward, backward and an optimizer, with Python functions around, a device below, and memory."""
    matrix = TensorInput((8, 8), (8, 1), "float32")
    stack = (Frame("net.py", 12, "forward"), Frame("train.py", 30, "<module>"))
    events = []
    for step in range(steps):
        t = 1_794_788_172_254_987_123 + step * 100_000
        sequence = step + 1
        linear = op(
            "aten::linear", t + 120, t + 20_001, op("aten::addmm", t + 150, t + 19_000, sequence=sequence, inputs=(matrix, 1))
        )
        node = Event(Label("AddmmBackward0", scope=BACKWARD_FUNCTION), t + 30_001, t + 39_999, sequence=sequence)
        launch = op("aten::mul_", t + 60_100, t + 61_000, runtime("aclnnMul", t + 60_200, t + 60_900, correlation=step))
        inside = [
            python_function("net.py(10): forward", t + 110, t + 20_001, linear),
            op(EVALUATE + "AddmmBackward0", t + 30_000, t + 40_000, node, sequence=sequence),
            scope("Optimizer.step#SGD.step", t + 60_000, t + 70_000, launch, stack=stack),
        ]
        events.append(scope(f"ProfilerStep#{step}", t + 100, t + 90_000, *inside, step=step))
        events.append(kernel("MulKernel", t + 61_500, t + 80_000, stream=7, correlation=step, step=step))
    tracks = [Track(1, 1, "MainThread"), Track(7, 7, "", "NPU", 0)]
    start = events[0].start_ns
    info = Info(started_ns=start - 100, stopped_ns=start + steps * 100_000, pid=4242, record_shapes=True, with_stack=True)
    log = [start + 500, start + 600], [0, 0], [4096, 4096], [64, -64], [64, 0], [-1, -1]
    return record(events, info=info, tracks=tracks).replace(memory=MemoryLog(*map(np.array, log)))


def training_recorded(**options):
    """Steps of a real network, on the main thread."""
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters())
    batch = torch.randn(4, 8)
    with profile(schedule=schedule(wait=0, warmup=1, active=3), **options) as prof:
        for _ in range(4):
            with record_function("forward"):
                loss = model(batch).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            prof.step()
    return prof.profiler.session


def threads_recorded():
    """Work on several threads at once, scopes that are left by exceptions, and tasks that take turns on one thread."""

    def work(number):
        with record_function(f"thread {number}"):
            x = torch.ones(4, 4, requires_grad=True)
            for _ in range(5):
                (x @ x).sum().backward()

    async def task(number):
        with record_function(f"task {number}"):
            torch.ones(2) + 1
            await asyncio.sleep(0)
            torch.ones(2) * 2

    async def tasks():
        await asyncio.gather(*(task(number) for number in range(3)))

    with profile(with_stack=True) as prof:
        threads = [threading.Thread(target=work, args=[number]) for number in range(3)]
        for thread in threads:
            thread.start()
        with contextlib.suppress(RuntimeError), record_function("fails"):
            torch.ones(2) @ torch.ones(3)
        asyncio.run(tasks())
        for thread in threads:
            thread.join()
    return prof.profiler.session


def deep_recorded():
    """Stacks that are cut in rows, and whole in the header."""

    def descend(n):
        return training_recorded(with_stack=True, record_shapes=True) if n == 0 else descend(n - 1)

    return descend(200)


def example_recorded(example, **options):
    with pytest.MonkeyPatch.context() as patch, profile(**options) as prof:
        patch.setattr("sys.argv", [str(example), "--steps", "2"])
        runpy.run_path(str(example), run_name="__main__")
    return prof.profiler.session


SESSIONS = {
    "by hand": training_by_hand,
    "plain": training_recorded,
    "shapes": partial(training_recorded, record_shapes=True),
    "stacks": partial(training_recorded, with_stack=True, record_shapes=True),
    "deep stacks": deep_recorded,
    "modules": partial(training_recorded, with_modules=True),
    "threads": threads_recorded,
    **{example.stem: partial(example_recorded, example, with_stack=True, record_shapes=True) for example in EXAMPLES},
}


@pytest.fixture(params=SESSIONS, scope="module")
def session(request):
    return SESSIONS[request.param]()


@pytest.fixture(scope="module")
def path(session, tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "trace.json"
    write(session, path)
    return path


def names(session, *kinds) -> Counter:
    """How many events of these kinds have which name."""
    return Counter(session.labels[n].name for n in session.label if session.labels[n].kind in kinds)


def steps(session) -> list[str]:
    return [name.removeprefix("ProfilerStep#") for name in names(session, "scope") if name.startswith("ProfilerStep#")]


# Readers -----------------------------------------------------------------------------------------------------------------------


def test_our_own_check(path):
    assert validate(path) == []


def test_torchs_check(path):
    from torch.profiler._trace_validator import validate_trace

    assert validate_trace(str(path)) == (True, [])


def test_perfetto(session, path):
    from perfetto_reader import Perfetto

    with Perfetto(path) as perfetto:
        assert perfetto.import_errors() == []
        slices = perfetto.query("select name, ts, dur, depth, category from slice where category is not null")
        flows = perfetto.query("select count(*) as number from flow")[0]["number"]
    slices = [row for row in slices if row["category"] not in ("Trace", "cpu_instant_event")]
    assert Counter(row["name"] for row in slices) == names(
        session, "op", "scope", "python_function", "runtime", "kernel", "compile"
    )
    base = json.loads(path.read_text())["baseTimeNanoseconds"]
    times = sorted((row["ts"], row["dur"], row["depth"]) for row in slices)
    start, end = slice_times(session, base)  # what ends in one nanosecond is a nanosecond apart in the file
    assert times == sorted(zip(start.tolist(), (end - start).tolist(), session.depth.tolist()))
    assert flows == path.read_text().count('"ph":"s"') > 0


class TestTensorBoard:
    def check(self, session, run, step_names):
        calls = {row["name"]: row["calls"] for row in run.operation_table_by_name["data"]}
        assert calls == names(session, "op")
        assert step_names == (steps(session) or ["0"])  # what it calls a recording without steps

    def test_a_file(self, session, path, tmp_path):
        from torch_tb_profiler.profiler.data import RunProfileData
        from torch_tb_profiler.profiler.run_generator import RunGenerator

        data = RunProfileData.parse("worker", 0, str(path), str(tmp_path / "cache"))
        data.process()
        self.check(session, RunGenerator("worker", 0, data).generate_run_profile(), data.steps_names)

    @pytest.mark.parametrize("use_gzip", [False, True])
    def test_a_folder_of_cycles(self, tmp_path, caplog, use_gzip):
        from torch_tb_profiler.io import Cache
        from torch_tb_profiler.profiler.loader import RunLoader

        handler, sessions = tensorboard_trace_handler(str(tmp_path / "run"), "worker", use_gzip=use_gzip), []

        def keep(prof):
            handler(prof)
            sessions.append(prof.profiler.session)

        x = torch.ones(4, 4, requires_grad=True)
        with profile(schedule=schedule(wait=1, warmup=0, active=2, repeat=2), on_trace_ready=keep) as prof:
            for step in range(6):
                for _ in range(step):  # every cycle has counts of its own
                    (x @ x).sum().backward()
                prof.step()
        run = RunLoader("run", str(tmp_path / "run"), Cache(str(tmp_path))).load()
        assert not [record for record in caplog.records if record.levelno >= logging.WARNING]  # it logs what it cannot read
        assert len(run.profiles) == len(sessions) == 2
        for (worker, span), loaded in run.profiles.items():
            assert worker == "worker"
            calls = {row["name"]: row["calls"] for row in loaded.operation_table_by_name["data"]}
            assert calls == names(sessions[int(span) - 1], "op")

    @pytest.mark.parametrize("options", [{"with_modules": True}, {"with_stack": True}])
    def test_the_view_of_modules(self, tmp_path, options):
        from torch_tb_profiler.profiler.data import RunProfileData
        from torch_tb_profiler.profiler.run_generator import RunGenerator

        block = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
        net = torch.nn.Sequential(block, block, torch.nn.Linear(8, 2))
        with profile(schedule=schedule(wait=0, warmup=1, active=2), **options) as prof:
            for _ in range(3):
                net(torch.randn(4, 8)).sum().backward()
                prof.step()
        path = tmp_path / "trace.json"
        prof.export_chrome_trace(str(path))
        data = RunProfileData.parse("worker", 0, str(path), str(tmp_path / "cache"))
        data.process()
        run = RunGenerator("worker", 0, data).generate_run_profile()
        assert "Module" in [view.display_name for view in run.views]

        def tree(rows):
            return [(row["name"], row["occurences"], row["operators"], tree(row["children"])) for row in rows]

        # each module by name, how often it was called, operators directly in it, modules in it: once for each call
        shared = ("Sequential_1", 4, 0, [("Linear_0", 4, 4, []), ("ReLU_0", 4, 4, [])])
        assert tree(run.get_module_view()["data"]) == [("Sequential_0", 2, 0, [shared, shared, ("Linear_1", 2, 2, [])])]


class TestHolisticTraceAnalysis:
    @pytest.fixture(autouse=True)
    def nanoseconds(self, monkeypatch):
        monkeypatch.setenv("HTA_DISABLE_NS_ROUNDING", "1")

    def analysis(self, path):
        from hta.trace_analysis import TraceAnalysis

        return TraceAnalysis(trace_files={0: str(path)}, trace_dir=str(path.parent), include_last_profiler_step=True)

    def test_rows_and_steps(self, session, path):
        analysis = self.analysis(path)
        frame = analysis.t.get_trace(0)
        symbols = analysis.t.symbol_table.get_sym_table()
        found = Counter(symbols[n] for n in frame["name"])
        wanted = names(session, "op", "scope", "python_function", "runtime", "kernel")
        assert {name: count for name, count in found.items() if name in wanted} == wanted
        if steps(session):
            assert [str(n) for n in analysis.get_profiler_steps()] == steps(session)

    def test_a_call_graph_has_the_true_depth(self, session, path):
        from hta.common.trace_call_graph import CallGraph

        analysis = self.analysis(path)
        CallGraph(analysis.t)
        frame = analysis.t.get_trace(0)
        on_device = np.array([track.device_type != "CPU" for track in session.tracks])[session.track]
        assert frame["depth"][frame["stream"] < 0].max() == session.depth[~on_device].max()
        # it hangs kernels below their launches
        launches = [] if session.launch is None else session.depth[session.launch[on_device]].tolist()
        assert frame["depth"][frame["stream"] > 0].tolist() == [depth + 1 for depth in launches]

    @pytest.mark.parametrize("session", ["by hand", "plain", "stacks"], indirect=True)
    def test_a_difference_with_itself_is_none(self, path):
        from hta.trace_diff import LabeledTrace, TraceDiff

        traces = [LabeledTrace(label=label, t=self.analysis(path).t) for label in ("one", "two")]
        difference = TraceDiff.compare_traces(*traces)
        assert len(difference) > 0
        assert (difference["diff_counts"] == 0).all()

    def test_execution_traces_correlate(self, tmp_path):
        """It finds the node of each row by number. It compares `rf_id` with `External id`: these are equal in a program's first recording.

        The class that it reads execution traces with is not on PyPI; what it needs of a node is taken from the file here.
        """
        from hta.common.execution_trace import add_et_column, correlate_execution_trace

        (tmp_path / "script.py").write_text(EXECUTION_TRACE_SCRIPT)
        environment = os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(torch.__file__))}
        subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env=environment, check=True)
        nodes = {}
        for entry in json.loads((tmp_path / "et.json").read_text())["nodes"]:
            attributes = {a["name"]: a["value"] for a in entry["attrs"]}
            sides = {"input_shapes": entry["inputs"]["shapes"], "output_shapes": entry["outputs"]["shapes"]}
            nodes[entry["id"]] = SimpleNamespace(name=entry["name"], **sides, **attributes)
        analysis = self.analysis(tmp_path / "trace.json")
        correlate_execution_trace(analysis.t, 0, SimpleNamespace(nodes=nodes))
        frame = analysis.t.get_trace(0)
        for column in ("et_node_name", "op_schema", "input_shapes"):
            add_et_column(frame, SimpleNamespace(nodes=nodes), column)
        symbols = analysis.t.symbol_table.get_sym_table()
        found = frame[frame["et_node"].notna()]
        assert len(found) == len(nodes) - 2  # the nodes of the process and of the thread
        assert [symbols[n] for n in found["name"]] == found["et_node_name"].tolist()
        (addmm,) = found[found["et_node_name"] == "aten::addmm"].to_dict("records")
        assert addmm["input_shapes"] == [[2], [4, 3], [3, 2], [], []]
        assert addmm["op_schema"].startswith("aten::addmm(Tensor self, Tensor mat1, Tensor mat2, ")


EXECUTION_TRACE_SCRIPT = """
import mindtorch_v2 as torch
from mindtorch_v2.profiler import ExecutionTraceObserver, profile, record_function

layer, x = torch.nn.Linear(3, 2), torch.ones(4, 3)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
layer(x).sum().backward()  # what is compiled inside a recording has numbers among the events, and no node
optimizer.step()
optimizer.zero_grad()
with profile(execution_trace_observer=ExecutionTraceObserver().register_callback("et.json")) as prof:
    with record_function("step"):
        layer(x).sum().backward()
        optimizer.step()
prof.export_chrome_trace("trace.json")
"""


class TestTorchsOwnTraces:
    """Our check tells what is known to be wrong with them, and goes through them all."""

    def trace(self, path, **options) -> Path:
        import torch as oracle
        from torch.profiler import profile as oracle_profile
        from torch.profiler import record_function as oracle_record_function

        x = oracle.ones(3, 3, requires_grad=True)
        with oracle_profile(**options) as prof, oracle_record_function("mine"):
            (x @ x).sum().backward()
        prof.export_chrome_trace(str(path))
        return path

    def test_nothing_is_wrong_with_operators(self, tmp_path):
        """Texts as processes of the recording itself are Kineto's format."""
        path = self.trace(tmp_path / "trace.json")
        assert '"pid": "Spans"' in path.read_text()
        assert validate(path) == []

    def test_scopes_that_straddle_functions(self, tmp_path):
        path = self.trace(tmp_path / "trace.json.gz", with_stack=True, record_shapes=True, profile_memory=True)
        problems = validate(path)
        assert any(problem.rule == "nesting" and "'mine'" in problem.message for problem in problems)
        assert {problem.rule for problem in problems} == {"nesting"}
