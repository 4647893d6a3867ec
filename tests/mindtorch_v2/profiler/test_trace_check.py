"""Our check of trace files finds what is wrong, and nothing in what is right."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindtorch_v2.profiler.model.session import Info, Track
from mindtorch_v2.profiler.output import chrome_trace, trace_check
from mindtorch_v2.profiler.output.trace_check import Problem, validate

from .by_hand import kernel, op, python_function, record, runtime, scope
from .test_chrome_trace import node, recordings

TRACKS = [Track(1, 1, "MainThread"), Track(2, 2, "", "NPU")]


def good_session():
    return record(
        [
            scope("ProfilerStep#0", 0, 900, op("aten::exp", 10, 50, python_function("a.py(1): f", 20, 30), sequence=5)),
            op("aten::add", 1_000, 1_050, runtime("aclnnAdd", 1_010, 1_020, correlation=1)),
            kernel("Add", 1_060, 1_090, stream=2, correlation=1),
            node("ExpBackward0", 2_000, 2_100, sequence=5),
        ],
        tracks=TRACKS,
        info=Info(pid=42),
    )


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "trace.json"
    chrome_trace.write(good_session(), path)
    return path


def problems_after(path, change) -> list[str]:
    """What is found when the trace was changed like this."""
    trace = json.loads(path.read_text())
    trace = change(trace) or trace
    path.write_text(json.dumps(trace))
    return [str(problem) for problem in validate(path)]


def row(trace, name) -> dict:
    return next(e for e in trace["traceEvents"] if e["name"] == name)


def test_nothing_in_a_good_trace(good, tmp_path):
    assert validate(good) == []
    chrome_trace.write(good_session(), tmp_path / "trace.json.gz")
    assert validate(str(tmp_path / "trace.json.gz")) == []


@given(recordings())
def test_nothing_in_what_we_write(tmp_path_factory, session):
    path = tmp_path_factory.mktemp("traces") / "trace.json"
    chrome_trace.write(session, path)
    assert validate(path) == []


class TestRows:
    def test_a_slice_that_straddles_another(self, good):
        def change(trace):
            row(trace, "aten::exp")["dur"] = 0.895  # 10 + 895 is past 900

        assert problems_after(good, change) == ["nesting: 'aten::exp' begins inside 'ProfilerStep#0' and ends 5 ns behind it"]

    def test_a_function_that_straddles_an_operator_by_a_nanosecond(self, good):
        def change(trace):
            row(trace, "a.py(1): f")["dur"] = 0.031

        assert problems_after(good, change) == ["nesting: 'a.py(1): f' begins inside 'aten::exp' and ends 1 ns behind it"]

    @pytest.mark.parametrize(("key", "value"), [("pid", "Spans"), ("tid", ""), ("tid", 1.5), ("ts", "1.0"), ("dur", None)])
    def test_what_should_be_a_number(self, good, key, value):
        def change(trace):
            row(trace, "aten::add")[key] = value

        assert any(p.startswith(f"numbers: {key} of 'aten::add'") for p in problems_after(good, change))

    def test_a_negative_time(self, good):
        def change(trace):
            row(trace, "aten::add")["ts"] = -1.0

        assert any("negative" in p for p in problems_after(good, change))

    @pytest.mark.parametrize("key", ["cat", "name", "ts", "dur", "pid", "tid"])
    def test_a_missing_key(self, good, key):
        def change(trace):
            del row(trace, "aten::add")[key]

        assert any(p.startswith("keys: ") and p.endswith(f"has no {key}") for p in problems_after(good, change))

    def test_an_unknown_phase(self, good):
        def change(trace):
            row(trace, "aten::add")["ph"] = "B"

        assert any("has the phase 'B'" in p for p in problems_after(good, change))

    def test_an_id_twice(self, good):
        def change(trace):
            row(trace, "aten::add")["args"]["Ev Idx"] = 0

        assert "ids: 2 rows have Ev Idx 0" in problems_after(good, change)

    def test_a_parent_that_is_not_there(self, good):
        def change(trace):
            row(trace, "a.py(1): f")["args"]["Python parent id"] = 77

        (problem,) = problems_after(good, change)
        assert problem.startswith("python parents: Python parent id 77 of 'a.py(1): f'")

    def test_a_kernel_on_stream_zero_without_correlation(self, good):
        def change(trace):
            row(trace, "Add")["args"] = {"stream": 0, "Ev Idx": 99}

        first, second = problems_after(good, change)
        assert "stream 0" in first
        assert "no correlation" in second

    def test_rows_that_are_none(self, good):
        def change(trace):
            trace["traceEvents"] += [None, 5]

        assert problems_after(good, change) == ["keys: a row is None, no object (and 1 more)"]

    def test_strange_values_do_not_stop_it(self, good):
        def change(trace):
            trace["traceEvents"] += [
                {"ph": ["X"], "pid": [], "tid": {}, "ts": {}, "args": 5},
                {"ph": "X", "cat": "kernel", "name": 5, "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {"Ev Idx": [1]}},
                {"ph": "s", "id": [], "cat": {}, "name": "", "pid": 1, "tid": 1, "ts": 10**300},
            ]

        assert len(problems_after(good, change)) > 3

    def test_a_number_too_large_for_one(self, good):
        good.write_text(good.read_text().replace('"ts":1.000', '"ts":1e400'))
        (problem,) = validate(good)
        assert problem.rule == "readable"


class TestFlows:
    def test_a_flow_beside_its_slice(self, good):
        def change(trace):
            row(trace, "fwdbwd")["ts"] += 0.001

        (problem,) = problems_after(good, change)
        assert problem.startswith("flows: no slice begins where flow fwdbwd 1 is")

    def test_a_flow_without_an_end(self, good):
        def change(trace):
            trace["traceEvents"] = [e for e in trace["traceEvents"] if (e["ph"], e["name"]) != ("f", "ac2g")]

        assert problems_after(good, change) == ["flows: flow ac2g 1 has 1 starts and 0 ends"]

    def test_a_flow_back_in_time(self, good):
        def change(trace):
            for e in trace["traceEvents"]:
                if e["name"] == "fwdbwd":
                    e["ph"] = "f" if e["ph"] == "s" else "s"

        assert problems_after(good, change) == ["flows: flow fwdbwd 1 ends before it starts"]


class TestHeader:
    @pytest.mark.parametrize("key", ["schemaVersion", "deviceProperties", "displayTimeUnit", "baseTimeNanoseconds", "traceName"])
    def test_a_missing_key(self, good, key):
        assert problems_after(good, lambda trace: trace.pop(key) and None) == [f"header: {key} missing"]

    def test_keys_behind_the_rows(self, good):
        (problem,) = problems_after(good, lambda trace: trace | {"mine": 1})
        assert problem.startswith("header: mine stand behind traceEvents")

    def test_the_order(self, good):
        problems = problems_after(good, lambda trace: dict(reversed(trace.items())))
        assert any(p.startswith("header: keys come in the order traceName") for p in problems)

    def test_versions_and_the_base(self, good):
        problems = problems_after(good, lambda trace: trace | {"schemaVersion": 2, "baseTimeNanoseconds": 1.5})
        assert problems == ["header: schemaVersion is 2, not 1", "header: baseTimeNanoseconds is 1.5, no integer"]


class TestFiles:
    def only_problem(self, path) -> str:
        (problem,) = validate(path)
        assert problem.rule == "readable"
        assert str(path) in problem.message
        return str(problem)

    @pytest.mark.parametrize("share", [0.01, 0.3, 0.7, 0.999])
    @pytest.mark.parametrize("compress", [bytes, gzip.compress])
    def test_a_part_of_a_trace(self, good, share, compress):
        content = compress(good.read_bytes().strip())
        good.write_bytes(content[: int(len(content) * share)])
        self.only_problem(good)

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"   ",
            b"hello",
            b"{}",
            b"5",
            b'{"a": 1}',
            b'{"traceEvents": 5}',
            b"\xff\xfe",
            b"\x1f\x8bnot gzip",
            b'{"a" 1}',
        ]
        + [b'{"traceEvents": []} and more', b'{"traceEvents": [], "traceEvents": []}', b'{"traceEvents": [NaN]}', b"[" * 100_000],
    )
    def test_something_else(self, tmp_path, content):
        path = tmp_path / "file"
        path.write_bytes(content)
        self.only_problem(path)

    def test_a_missing_file_is_the_systems_error(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            validate(tmp_path / "none")

    def test_space_anywhere(self, good):
        good.write_text("\n " + json.dumps(json.loads(good.read_text()), indent=3) + "\r\n")
        assert validate(good) == []

    @given(st.binary(max_size=60))
    def test_any_bytes_are_told_to_be_no_trace(self, tmp_path_factory, content):
        path = tmp_path_factory.mktemp("files") / "file"
        path.write_bytes(content)
        self.only_problem(path)


def test_a_problem_reads_as_a_sentence():
    assert str(Problem("nesting", "a is outside b")) == "nesting: a is outside b"
    assert str(Problem("nesting", "a is outside b", 3)) == "nesting: a is outside b (and 2 more)"


def test_times_are_read_to_the_nanosecond():
    # between 2**42 and 2**52 / 1000 microseconds, the product with 1000 is rounded to the wrong nanosecond now and then
    for ns in [*range(200), *range(4_450_000_000_000_000, 4_450_000_000_002_000)]:
        assert trace_check._ns(ns / 1000) == ns
