"""The trace file: what each row says, and that it is written whole or not at all."""

import gzip
import json
import os
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindtorch_v2.profiler import validate
from mindtorch_v2.profiler.model.session import (
    BACKWARD_FUNCTION,
    Frame,
    Info,
    Label,
    MemoryLog,
    Session,
    TensorInput,
    Track,
    empty_session,
)
from mindtorch_v2.profiler.opening.trace_reader import TraceReader
from mindtorch_v2.profiler.output import chrome_trace
from mindtorch_v2.profiler.output.slice_times import slice_times

from .by_hand import Event, kernel, op, python_function, record, runtime, scope

MATRIX = TensorInput((2, 3), (3, 1), "float32")
EVALUATE = "autograd::engine::evaluate_function: "


def node(name, start_ns, end_ns, *children, sequence):
    """A backward node, with the engine's row around it."""
    inner = Event(Label(name, scope=BACKWARD_FUNCTION), start_ns + 1, end_ns - 1, children, sequence=sequence)
    return op(EVALUATE + name, start_ns, end_ns, inner, sequence=sequence)


def text_of(session, name="trace.json") -> str:
    return "".join(text for _, text in chrome_trace.render(session, name))


def trace_of(session) -> dict:
    return json.loads(text_of(session))


def rows(session, **wanted) -> list[dict]:
    return [e for e in trace_of(session)["traceEvents"] if all(e.get(k) == v for k, v in wanted.items())]


def slices(session) -> list[dict]:
    return [e for e in rows(session, ph="X") if e["cat"] != "Trace"]


class TestHeader:
    def test_keys_come_in_kinetos_order(self):
        info = Info(
            trace_id="ABC",
            with_stack=True,
            record_shapes=True,
            metadata={"mine": {"a": [1]}},
            distributed={"rank": 3},
            device_properties=({"id": 0},),
        )
        trace = trace_of(empty_session(info))
        assert list(trace) == [
            *("schemaVersion", "deviceProperties", "trace_id", "with_stack", "record_shapes", "mine", "distributedInfo"),
            *("displayTimeUnit", "baseTimeNanoseconds", "traceEvents", "traceName"),
        ]
        assert trace["schemaVersion"] == 1
        assert trace["deviceProperties"] == [{"id": 0}]
        assert trace["with_stack"] == 1
        assert trace["mine"] == {"a": [1]}
        assert trace["displayTimeUnit"] == "ms"
        assert trace["traceName"] == "trace.json"

    def test_the_rank_reads_as_one_reader_wants_it(self):
        head, _, _ = text_of(empty_session(Info(distributed={"rank": 3}))).partition('"traceEvents"')
        assert '"rank": 3' in head

    def test_metadata_does_not_hide_what_the_format_needs(self):
        trace = trace_of(record([op("a", 0, 1)], info=Info(metadata={"traceEvents": "mine", "displayTimeUnit": "s"})))
        assert trace["displayTimeUnit"] == "ms"
        assert len(trace["traceEvents"]) > 1
        assert trace["metadata.traceEvents"] == "mine"
        assert trace["metadata.displayTimeUnit"] == "s"

    def test_numbers_that_json_lacks_become_text(self):
        trace = trace_of(empty_session(Info(metadata={"loss": [float("nan"), float("-inf")]})))
        assert trace["loss"] == ["nan", "-inf"]

    def test_an_empty_session_is_a_trace(self):
        assert slices(empty_session()) == []


class TestTimes:
    def test_microseconds_with_three_decimals(self):
        text = text_of(record([op("a", 1, 1), op("b", 1_000, 1_002_001), op("c", 123_456_789, 123_456_799)]))
        assert '"ts":0.001,"dur":0.000' in text
        assert '"ts":1.000,"dur":1001.001' in text
        assert '"ts":123456.789,"dur":0.010' in text

    def test_the_base_is_a_quarter_of_a_year(self):
        start = 1_794_788_172_254_987_123
        trace = trace_of(record([op("a", start, start + 5)], info=Info(started_ns=start - 10, stopped_ns=start + 10)))
        base = trace["baseTimeNanoseconds"]
        assert base == 227 * 7_889_238 * 10**9
        (row,) = [e for e in trace["traceEvents"] if e["name"] == "a"]
        assert round(row["ts"] * 1000) + base == start  # a double keeps the nanosecond

    def test_what_began_before_the_start_is_not_negative(self):
        start = 2 * 7_889_238 * 10**9
        session = record([op("a", start - 1, start + 5)], info=Info(started_ns=start, stopped_ns=start + 10))
        assert trace_of(session)["baseTimeNanoseconds"] == start // 2
        assert all(e["ts"] >= 0 for e in trace_of(session)["traceEvents"])


class TestRows:
    def test_an_operator(self):
        (row,) = slices(record([op("aten::add", 1500, 4000, step=7, tid=5)], info=Info(pid=42)))
        assert row == {
            "ph": "X",
            "cat": "cpu_op",
            "name": "aten::add",
            "pid": 42,
            "tid": 5,
            "ts": 1.5,
            "dur": 2.5,
            "args": {
                "External id": 1,
                "Record function id": 0,
                "Ev Idx": 0,
                "correlation_id": 1,
                "runtime_name": "dispatch_kernel",
                "runtime_tid": 5,
                "step": 7,
            },
        }

    def test_the_runtime_tid_is_the_threads(self):
        task = Track(tid=9_000_001, thread_id=55, name="task")
        (row,) = slices(record([op("a", 0, 1, tid=9_000_001)], tracks=[task]))
        assert (row["tid"], row["args"]["runtime_tid"]) == (9_000_001, 55)

    def test_a_scope(self):
        (row,) = slices(record([scope("mine", 0, 10)]))
        assert row["cat"] == "user_annotation"
        assert row["args"] == {"External id": 1, "Record function id": 0, "Ev Idx": 0, "step": 0}

    def test_rows_are_in_order_of_start_and_numbered(self):
        session = record([scope("s", 0, 100, op("a", 10, 50, op("b", 20, 30)), op("c", 60, 70))])
        assert [e["name"] for e in slices(session)] == ["s", "a", "b", "c"]
        assert [e["args"]["Ev Idx"] for e in slices(session)] == [0, 1, 2, 3]
        assert [e["args"]["correlation_id"] for e in slices(session) if e["cat"] == "cpu_op"] == [2, 3, 4]

    def test_python_functions_name_the_function_around_them(self):
        session = record(
            [
                python_function("a.py(1): main", 0, 100, op("aten::add", 10, 60, python_function("b.py(2): f", 20, 30))),
                python_function("nn.Module: Linear_3", 110, 120, tid=2),
            ]
        )
        functions = [(e["name"], e["args"]) for e in rows(session, cat="python_function")]
        assert functions == [
            ("a.py(1): main", {"Python id": 1, "Python parent id": None, "Python thread": 0, "Ev Idx": 0, "step": 0}),
            ("b.py(2): f", {"Python id": 2, "Python parent id": 1, "Python thread": 0, "Ev Idx": 2, "step": 0}),
            (
                "nn.Module: Linear_3",
                {"Python id": 3, "Python parent id": None, "Python thread": 1, "Python module id": 3, "Ev Idx": 3, "step": 0},
            ),
        ]

    def test_processes_and_threads_have_names(self):
        session = record(
            [op("a", 0, 1, tid=7)], info=Info(pid=42, process_name="train"), tracks=[Track(tid=7, thread_id=7, name="loader")]
        )
        named = {(e["name"], e["pid"], e["tid"]): e["args"] for e in rows(session, ph="M")}
        assert named["process_name", 42, 0] == {"name": "train"}
        assert named["process_labels", 42, 0] == {"labels": "CPU"}
        assert named["process_sort_index", 42, 0] == {"sort_index": 42}
        assert named["thread_name", 42, 7] == {"name": "thread 7 (loader)"}
        assert named["thread_sort_index", 42, 7] == {"sort_index": 7}

    def test_the_span_of_the_recording(self):
        session = record([op("a", 5_000, 6_000)], info=Info(started_ns=1_000, stopped_ns=9_500))
        (span,) = rows(session, cat="Trace")
        assert (span["name"], span["ts"], span["dur"]) == ("PyTorch Profiler (0)", 1.0, 8.5)
        (start,) = rows(session, name="Iteration Start: PyTorch Profiler")
        (end,) = rows(session, name="Record Window End")
        assert (start["ts"], end["ts"]) == (1.0, 9.5)

    def test_the_last_rows_come_in_kinetos_order(self):
        last = trace_of(record([op("a", 5_000, 6_000)]))["traceEvents"][-4:]
        assert [e["name"] for e in last] == [
            *("PyTorch Profiler (0)", "process_sort_index", "Iteration Start: PyTorch Profiler", "Record Window End")
        ]
        assert last[1]["pid"] == last[0]["pid"]

    def test_every_process_and_thread_is_a_number(self):
        session = record([op("a", 0, 1), runtime_and_kernel()[0], runtime_and_kernel()[1]], tracks=TRACKS)
        assert all(type(e["pid"]) is int and type(e["tid"]) is int for e in trace_of(session)["traceEvents"])


class TestArguments:
    def test_torchs_four_lists_and_the_shapes(self):
        inputs = (MATRIX, [MATRIX, TensorInput((), (), "int64")], 2, 1.0, True, None, [1, 2], "mean", [])
        (row,) = slices(record([op("aten::f", 0, 1, inputs=inputs)], info=Info(record_shapes=True)))
        assert row["args"]["Input Dims"] == [[2, 3], [[2, 3], []], [], [], [], [], [], [], []]
        assert row["args"]["Input Strides"] == [[3, 1], [[3, 1], []], [], [], [], [], [], [], []]
        assert row["args"]["Input type"] == [
            "float",
            "TensorList",
            "Scalar",
            "Scalar",
            "Scalar",
            "",
            "ScalarList",
            "",
            "ScalarList",
        ]
        assert row["args"]["Concrete Inputs"] == ["", "", "2", "1.", "True", "", "[1, 2]", "", "[]"]
        assert row["args"]["input_shapes"] == row["args"]["Input Dims"]

    def test_nothing_of_them_unless_recorded(self):
        (row,) = slices(record([op("aten::f", 0, 1, inputs=(MATRIX,))]))
        assert not {"Input Dims", "Input Strides", "Input type", "Concrete Inputs", "input_shapes", "stack"} & set(row["args"])

    def test_of_long_lists_only_the_shapes(self):
        inputs = ([MATRIX] * 31, list(range(31)), list(range(30)))
        (row,) = slices(record([op("aten::f", 0, 1, inputs=inputs)], info=Info(record_shapes=True)))
        assert row["args"]["Input Dims"] == [[], [], []]
        assert row["args"]["Input type"] == ["TensorList", "", "ScalarList"]
        assert row["args"]["Concrete Inputs"][:2] == ["", ""]
        assert row["args"]["input_shapes"][0] == [[2, 3]] * 31

    # what torch 2.13 writes for these
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (0.1, "0.10000000000000001"),
            (1e20, "1e+20"),
            (1e-20, "9.9999999999999995e-21"),
            (-0.0, "0."),
            (1e16, "10000000000000000."),
            (9.2e18, "9200000000000000000."),
            (9.3e18, "9.3e+18"),
            (-1e18, "-1000000000000000000."),
            (0.0001, "0.0001"),
            (1e-05, "1.0000000000000001e-05"),
            (float("inf"), "inf"),
            (float("-inf"), "-inf"),
            (float("nan"), "nan"),
            (2**62, "4611686018427387904"),
            (-7, "-7"),
            (False, "False"),
            (1 + 2j, "1.+2.j"),
            (complex(0.1, -1e20), "0.10000000000000001-1e+20j"),
            (complex(float("nan"), float("inf")), "nan+infj"),
            ([1.0, 2.5], "[1., 2.5]"),
            ([True, False], "[True, False]"),
        ],
    )
    def test_numbers_print_as_from_cpp(self, value, text):
        (row,) = slices(record([op("aten::f", 0, 1, inputs=(value,))], info=Info(record_shapes=True)))
        assert row["args"]["Concrete Inputs"] == [text]

    @pytest.mark.parametrize(
        ("dtype", "name"),
        [("float64", "double"), ("bfloat16", "c10::BFloat16"), ("uint16", "short unsigned int"), ("int8", "signed char")]
        + [("complex32", "c10::complex<c10::Half>"), ("float8_e4m3fn", "c10::Float8_e4m3fn"), ("bool", "bool")],
    )
    def test_element_types_have_cpps_names(self, dtype, name):
        inputs = (TensorInput((1,), (1,), dtype),)
        (row,) = slices(record([op("aten::f", 0, 1, inputs=inputs)], info=Info(record_shapes=True)))
        assert row["args"]["Input type"] == [name]

    def test_stacks_on_operators_and_scopes(self):
        stack = (Frame("/a b.py", 3, "inner"), Frame('q"uote.py', 45, "<module>"))
        session = record([scope("s", 0, 9, op("a", 1, 2, stack=stack), stack=stack[1:])], info=Info(with_stack=True))
        outer, inner = slices(session)
        assert inner["args"]["stack"] == ["/a b.py:3:inner", 'q"uote.py:45:<module>']
        assert outer["args"]["stack"] == ['q"uote.py:45:<module>']

    def test_stacks_are_cut_in_rows_and_whole_in_the_header(self, tmp_path):
        def deep(count, innermost="leaf"):
            return (Frame("a.py", 1, innermost), *(Frame("a.py", n, "f") for n in range(2, count)), Frame("a.py", 0, "<module>"))

        stacks = [deep(64), deep(65), deep(500), deep(500), deep(500, "other")]
        events = [op(f"op {i}", 10 * i, 10 * i + 5, stack=stack) for i, stack in enumerate(stacks)]
        session = record(events, info=Info(with_stack=True, verbose=True, metadata={"stackFrames": "mine"}))
        chrome_trace.write(session, tmp_path / "trace.json")
        trace = json.loads((tmp_path / "trace.json").read_text())
        reader = TraceReader(tmp_path / "trace.json")
        rows = [row for row in reader if row.get("cat") == "cpu_op"]
        assert [len(row["args"]["stack"]) for row in rows] == [64, 65, 65, 65, 65]
        assert [row["args"]["stack"][-1] for row in rows[1:]] == ["… 1 more", *["… 436 more"] * 3]
        assert rows[2]["args"]["Call stack"].endswith("a.py(64): f;… 436 more;")
        assert ["sf" in row for row in rows] == [False, True, True, True, True]
        assert rows[2]["sf"] == rows[3]["sf"] != rows[4]["sf"]
        assert [reader.stack(row) for row in rows] == [[f"{f.file}:{f.line}:{f.function}" for f in stack] for stack in stacks]
        assert len(trace["stackFrames"]) == 65 + 499 + 1  # each frame once for each chain of callers; all share <module>
        assert trace["metadata.stackFrames"] == "mine"
        assert list(trace).index("stackFrames") < list(trace).index("traceEvents")
        assert validate(tmp_path / "trace.json") == []

    def test_a_file_without_deep_stacks_has_no_table_of_frames(self):
        session = record([op("a", 1, 2, stack=(Frame("a.py", 1, "f"),))], info=Info(with_stack=True))
        text = text_of(session)
        assert "stackFrames" not in text
        assert '"sf"' not in text

    def test_the_stack_as_torch_has_it_when_asked_for(self):
        stack = (Frame("a.py", 3, "inner"), Frame("b.py", 45, "<module>"))
        (row,) = slices(record([op("a", 1, 2, stack=stack)], info=Info(with_stack=True, verbose=True)))
        assert row["args"]["Call stack"] == "a.py(3): inner;b.py(45): <module>;"

    def test_no_external_ids_when_switched_off(self):
        for row in slices(record([scope("s", 0, 9, op("a", 1, 2))], info=Info(external_ids=False))):
            assert "External id" not in row["args"]


class TestFlows:
    def test_from_a_forward_operator_to_its_backward_node(self):
        session = record(
            [
                op("aten::linear", 0, 100, op("aten::addmm", 10, 90, sequence=5), tid=1),
                op("aten::relu", 110, 120, sequence=6, tid=1),
                node("ReluBackward0", 200, 210, sequence=6)._replace(tid=2),
                node("AddmmBackward0", 220, 230, sequence=5)._replace(tid=2),
            ]
        )
        flows = rows(session, cat="fwdbwd")
        assert [(e["ph"], e["id"], e["tid"], e["ts"]) for e in flows] == [
            ("s", 2, 1, 0.010),
            ("s", 1, 1, 0.110),
            ("f", 1, 2, 0.201),
            ("f", 2, 2, 0.221),
        ]  # torch: numbered in order of the backward pass
        assert all(e.get("bp") == "e" for e in flows if e["ph"] == "f")

    def test_numbers_of_nodes_and_the_thread_that_made_them(self):
        session = record([op("aten::exp", 0, 9, sequence=5, tid=8), node("ExpBackward0", 20, 30, sequence=5)._replace(tid=3)])
        facts = [(e["args"]["Sequence number"], e["args"]["Fwd thread id"]) for e in slices(session)]
        assert facts == [(5, 0), (5, 2), (5, 2)]  # the second of the threads: numbers count from 1

    def test_a_node_that_ran_twice_has_an_arrow_each_time(self):
        session = record([op("aten::exp", 0, 9, sequence=5), *(node("ExpBackward0", t, t + 9, sequence=5) for t in (20, 40))])
        flows = rows(session, cat="fwdbwd")
        assert sorted((e["id"], e["ph"]) for e in flows) == [(1, "f"), (1, "s"), (2, "f"), (2, "s")]

    def test_a_node_from_before_the_recording_has_none(self):
        session = record([op("aten::exp", 0, 9, sequence=7), node("ExpBackward0", 20, 30, sequence=5)])
        assert rows(session, cat="fwdbwd") == []
        assert [e["args"]["Fwd thread id"] for e in slices(session)] == [0, 0, 0]

    def test_of_composites_with_one_number_the_innermost_made_the_node(self):
        session = record(
            [op("aten::t", 0, 9, op("aten::transpose", 2, 8, sequence=5), sequence=5), node("TBackward0", 20, 30, sequence=5)]
        )
        assert rows(session, ph="s")[0]["ts"] == 0.002


TRACKS = [Track(1, 1, "MainThread"), Track(2, 2, "", "NPU", 0)]


def runtime_and_kernel():
    launch = op("aten::add", 0, 50, runtime("aclnnAdd", 10, 20, correlation=77))
    return launch, kernel("AddKernel", 60, 90, stream=2, correlation=77)


class TestDevices:
    def test_a_kernel_is_joined_to_its_launch_and_its_operator(self):
        session = record(runtime_and_kernel(), tracks=TRACKS, info=Info(pid=42))
        operator, call, on_device = slices(session)
        assert operator["args"]["runtime_name"] == "aclnnAdd"
        assert (call["cat"], on_device["cat"]) == ("privateuse1_runtime", "kernel")
        assert call["args"]["correlation"] == on_device["args"]["correlation"]
        assert call["args"]["External id"] == on_device["args"]["External id"] == operator["args"]["External id"]
        assert (on_device["args"]["device"], on_device["args"]["stream"]) == (0, 2)
        assert call["pid"] == 42 != on_device["pid"]
        start, end = rows(session, cat="ac2g")
        assert (start["ph"], start["ts"], start["tid"]) == ("s", 0.010, 1)
        assert (end["ph"], end["ts"], end["tid"], end["pid"]) == ("f", 0.060, 2, on_device["pid"])

    def test_operators_beside_it_stay_on_the_cpu(self):
        session = record([*runtime_and_kernel(), op("aten::mul", 100, 110)], tracks=TRACKS)
        names = {e["name"]: e["args"].get("runtime_name") for e in slices(session)}
        assert names == {"aten::add": "aclnnAdd", "aclnnAdd": None, "AddKernel": None, "aten::mul": "dispatch_kernel"}


def test_memory_is_instants():
    log = MemoryLog(*(np.array(column) for column in ([150, 1_300], [0, 0], [4096, 4096], [64, -64], [64, 0], [0, -1])))
    session = record([op("aten::empty", 100, 200)], info=Info(pid=42, profile_memory=True)).replace(memory=log)
    made, freed = rows(session, name="[memory]")
    assert made == {
        "ph": "i",
        "cat": "cpu_instant_event",
        "s": "t",
        "name": "[memory]",
        "pid": 42,
        "tid": 1,
        "ts": 0.15,
        "args": {
            "Total Reserved": 0,
            "Total Allocated": 64,
            "Bytes": 64,
            "Device Id": -1,
            "Device Type": 0,
            "Addr": 4096,
            "Ev Idx": 1,
            "Operator": "aten::empty",
        },
    }
    assert "Operator" not in freed["args"]
    assert (freed["ts"], freed["args"]["Bytes"], freed["args"]["Total Allocated"]) == (1.3, -64, 0)


def test_operators_know_the_memory_around_them():
    log = MemoryLog(
        *(np.array(column) for column in ([150, 250, 320], [0] * 3, [1, 2, 1], [64, 100, -64], [1064, 1164, 1100], [-1] * 3))
    )
    events = [op("a", 100, 200), scope("s", 210, 400, op("b", 220, 300), op("c", 310, 330)), op("d", 410, 420)]
    memory = {
        e["name"]: [e["args"].get(f"cpu_memory_allocated_{when}") for when in ("before", "after", "delta")]
        for e in slices(record(events, info=Info(live_bytes=((0, 1000),))).replace(memory=log))
    }
    assert memory == {
        "a": [1000, 1064, 64],
        "s": [None, None, None],
        "b": [1064, 1164, 100],
        "c": [1164, 1100, -64],
        "d": [1100, 1100, 0],
    }


def test_nothing_about_memory_unless_recorded():
    assert "memory" not in text_of(record([op("a", 100, 200)]))


class TestWriting:
    session = record([op("aten::add", 10, 20)])

    def test_plain_and_compressed_have_the_same_rows(self, tmp_path):
        plain, packed = tmp_path / "a.json", tmp_path / "a.json.gz"
        chrome_trace.write(self.session, plain)
        chrome_trace.write(self.session, str(packed))
        events = json.loads(plain.read_bytes())["traceEvents"]
        assert events == json.loads(gzip.decompress(packed.read_bytes()))["traceEvents"]
        assert json.loads(plain.read_bytes())["traceName"] == str(plain)

    def test_twice_is_the_same_file(self, tmp_path):
        path = tmp_path / "a.json"
        chrome_trace.write(self.session, path)
        first = path.read_bytes()
        chrome_trace.write(self.session, path)
        assert path.read_bytes() == first
        assert os.listdir(tmp_path) == ["a.json"]

    @pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
    @pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
    def test_an_interruption_leaves_nothing(self, tmp_path, error, name):
        def interrupt(done, total):
            raise error

        with pytest.raises(error):
            chrome_trace.write(self.session, tmp_path / name, progress=interrupt)
        assert os.listdir(tmp_path) == []

    def test_an_interruption_leaves_the_file_of_before(self, tmp_path):
        path = tmp_path / "a.json"
        path.write_text("before")
        with pytest.raises(ZeroDivisionError):
            chrome_trace.write(self.session, path, progress=lambda done, total: 1 // 0)
        assert path.read_text() == "before"
        assert os.listdir(tmp_path) == ["a.json"]

    @pytest.mark.skipif(sys.platform == "win32", reason="the system sets no limit to the size of files")
    @pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
    def test_no_space_for_the_file(self, tmp_path, name):
        import resource

        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
        try:
            with pytest.raises(OSError, match="File too large") as caught:
                chrome_trace.write(self.session, tmp_path / name)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert caught.value.filename == str(tmp_path / name)
        assert os.listdir(tmp_path) == []

    def test_a_full_device(self):
        if not os.path.exists("/dev/full"):
            pytest.skip("the system has no such device")
        with pytest.raises(OSError, match="No space left"):
            chrome_trace.write(self.session, "/dev/full")
        assert os.path.exists("/dev/full")

    def test_errors_name_the_file(self, tmp_path):
        with pytest.raises(FileNotFoundError) as caught:
            chrome_trace.write(self.session, tmp_path / "no" / "a.json")
        assert caught.value.filename == str(tmp_path / "no" / "a.json")
        with pytest.raises(IsADirectoryError):
            chrome_trace.write(self.session, tmp_path)
        assert os.listdir(tmp_path) == []

    def test_through_a_link(self, tmp_path):
        (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
        chrome_trace.write(self.session, tmp_path / "link.json")
        assert (tmp_path / "link.json").is_symlink()
        assert json.loads((tmp_path / "real.json").read_text())

    def test_an_existing_file_keeps_its_permissions(self, tmp_path):
        path = tmp_path / "a.json"
        path.touch(mode=0o600)
        chrome_trace.write(self.session, path)
        assert path.stat().st_mode & 0o777 == 0o600

    def test_progress_counts_rows(self, tmp_path):
        count = 2 * chrome_trace.CHUNK_ROWS + 1
        seen = []
        session = record([op("a", 2 * i, 2 * i + 1) for i in range(count)])
        chrome_trace.write(session, tmp_path / "a.json", progress=lambda done, total: seen.append((done, total)))
        assert {total for _, total in seen} == {count}
        done = [rows for rows, _ in seen]
        assert done == sorted(done)
        assert done[-1] == count
        assert chrome_trace.CHUNK_ROWS in done
        events = json.loads((tmp_path / "a.json").read_bytes())["traceEvents"]
        assert [round(e["ts"] * 1000) for e in events if e.get("cat") == "cpu_op"] == [2 * i for i in range(count)]


@st.composite
def recordings(draw) -> Session:
    """Events nested at random on a few threads, with names of any text."""
    start = draw(st.integers(0, 2**60))
    tids = draw(st.lists(st.integers(1, 4_000_000), min_size=1, max_size=3, unique=True))

    def forest(first: int, last: int, depth: int) -> list[Event]:
        cuts = sorted(draw(st.lists(st.integers(first, last), max_size=6)))
        made = []
        for a, b in zip(cuts[::2], cuts[1::2]):
            make = draw(st.sampled_from([op, scope, python_function]))
            name = draw(st.text(st.characters(), max_size=8))
            made.append(make(name, a, b, *(forest(a, b, depth - 1) if depth and a < b else ())))
        return made

    trees = [e._replace(tid=tid) for tid in tids for e in forest(start, start + 10**7, 2)]
    return record(trees, info=Info(started_ns=start, stopped_ns=start + 10**7, metadata={draw(st.text()): draw(st.text())}))


@given(recordings())
def test_every_slice_is_there_to_the_nanosecond(session):
    trace = json.loads(text_of(session).encode("utf-8"), parse_float=Decimal)
    found = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] != "Trace"]
    times = slice_times(session, trace["baseTimeNanoseconds"])
    assert [e["ts"] * 1000 for e in found] == times.start.tolist()
    assert [e["dur"] * 1000 for e in found] == (times.end - times.start).tolist()
    names = [session.labels[n].name.encode("utf-8", "backslashreplace").decode() for n in session.label]
    assert [e["name"] for e in found] == names
    assert [e["tid"] for e in found] == [session.tracks[n].tid for n in session.track]


@given(st.text(st.characters()))
def test_any_text_is_valid_json(text):
    session = record([op(text, 0, 1, overload=text, stack=(Frame(text, 1, text),), inputs=(text, [text], {text}))])
    session = session.replace(info=Info(overload_names=True, process_name=text, metadata={text: text}))
    json.loads(text_of(session, text).encode("utf-8"))


def test_paths_may_be_paths(tmp_path):
    chrome_trace.write(TestWriting.session, Path(tmp_path) / "a.json")
    assert (tmp_path / "a.json").exists()
