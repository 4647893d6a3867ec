"""Traces of torch on GPUs and of torch_npu, as sessions."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mindtorch_v2.profiler import Results
from mindtorch_v2.profiler.device import DeviceActivity
from mindtorch_v2.profiler.model import tree
from mindtorch_v2.profiler.model.session import DIRECTIONS, Copies, Frame, ModulePart, TensorInput, join
from mindtorch_v2.profiler.model.session_check import check
from mindtorch_v2.profiler.model.summary import Summary
from mindtorch_v2.profiler.opening import derived, open_recording
from mindtorch_v2.profiler.output.event_list import EventList

from ..device_traces import HOST, annotation, call, copy, kernel, op, row, sync, write


def opened(path):
    (session,) = open_recording(path).sessions
    check(session)
    return session


def names(session):
    return [session.labels[i].name for i in session.label.tolist()]


def at(session, name):
    return names(session).index(name)


class TestGpu:
    @pytest.fixture
    def session(self, tmp_path):
        rows = [
            annotation("ProfilerStep#3", 0, 100),
            op(
                "aten::mm",
                10,
                30,
                **{"Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "c10::BFloat16"], "Sequence number": 5},
            ),
            call("cudaLaunchKernel", 15, 5, 11),
            kernel("gemm", 40, 20, 11),
            annotation("ProfilerStep#4", 100, 50),
            call("cudaMemcpyAsync", 110, 5, 12),
            copy("DtoH", 120, 4, 12, 4_000, stream=20, device=1),
            op("aten::item", 125, 22),
            call("cudaDeviceSynchronize", 130, 15, 13),
            sync("Context Sync", 131, 13, 13),
            row("gpu_user_annotation", "ProfilerStep#3", 40, 20, 0, 7),
            row("overhead", "Activity Buffer Request", 5, 2, -1, 0),
            {"ph": "C", "name": "GPU 0 Utilization", "pid": 0, "ts": 1, "args": {"value": 5}},
            {"ph": "s", "id": 11, "cat": "ac2g", "name": "ac2g", "pid": HOST, "tid": HOST, "ts": 15},
        ]
        return opened(write(tmp_path / "gpu.json", rows, distributedInfo={"rank": 2}, host_name="node"))

    def test_kinds_and_tracks(self, session):
        kinds = {(session.labels[i].name, session.labels[i].kind) for i in session.label.tolist()}
        assert {("aten::mm", "op"), ("gemm", "kernel"), ("cudaLaunchKernel", "runtime"), ("Context Sync", "sync")} < kinds
        assert ("Activity Buffer Request", "overhead") in kinds
        streams = {(t.device_type, t.device_index, t.thread_id) for t in session.tracks if t.device_type != "CPU"}
        assert streams == {("CUDA", 0, 7), ("CUDA", 1, 20)}

    def test_launches(self, session):
        assert session.launch[at(session, "gemm")] == at(session, "cudaLaunchKernel")
        assert session.launch[at(session, "Context Sync")] == at(session, "cudaDeviceSynchronize")

    def test_copies_have_bytes_and_a_direction(self, session):
        ((place, size, direction),) = zip(*(column.tolist() for column in session.copies))
        assert (names(session)[place], size, DIRECTIONS[direction]) == ("Memcpy DtoH (Device -> Pinned)", 4_000, "device to host")

    def test_steps_go_with_the_launch(self, session):
        assert session.step[at(session, "gemm")] == 3
        assert session.step[at(session, "Memcpy DtoH (Device -> Pinned)")] == 4

    def test_arguments(self, session):
        (given,) = session.input_table
        assert given == (TensorInput((2, 3), (3, 1), "float32"), TensorInput((3, 4), (4, 1), "bfloat16"))
        assert session.sequence[at(session, "aten::mm")] == 5

    def test_the_whole(self, session):
        info = session.info
        assert (info.pid, info.process_name, info.use_device, info.distributed) == (HOST, "python3", "cuda", {"rank": 2})
        assert info.metadata == {"host_name": "node"}
        assert info.device_properties == ({"id": 0, "name": "GPU"},)
        assert dict(info.adjusted) == {"counters left out": 1}

    def test_device_time_of_operators_and_in_all(self, session):
        table = Results(session).key_averages()
        assert {row.key: row.device_time_total for row in table if "aten" in row.key} == {"aten::mm": 20.0, "aten::item": 0.0}
        assert "Self CUDA time total: 24.000us" in table.table()  # a kernel and a copy; neither the annotation nor the waiting

    def test_joined_and_cut(self, session):
        both = join([session, session])
        (row,) = session.copies.row.tolist()
        assert both.copies.row.tolist() == [row, row + len(session)]
        assert both.head(len(session)).copies.row.tolist() == [row]
        assert session.head(row).copies.row.tolist() == []

    def test_copies_that_do_not_fit_are_refused(self, session):
        for broken in (
            session.copies._replace(row=session.copies.row + 100),
            session.copies._replace(direction=session.copies.direction + 10),
            session.copies._replace(size_bytes=session.copies.size_bytes[:0]),
            Copies(*(np.repeat(column, 2) for column in session.copies)),
        ):
            with pytest.raises(ValueError, match="copies"):
                check(session.replace(copies=broken))

    def test_saved_and_loaded(self, session, tmp_path):
        session.save(tmp_path / "a.session")
        assert opened(tmp_path / "a.session").copies.size_bytes.tolist() == [4_000]


class TestWhatOverlaps:
    def test_work_of_a_stream_keeps_its_length(self, tmp_path):
        session = opened(write(tmp_path / "t.json", [op("f", 0, 1), kernel("a", 10, 10, 1), kernel("b", 15, 10, 2)]))
        durations = {n: int(e - s) for n, s, e in zip(names(session), session.start_ns, session.end_ns)}
        assert (durations["a"], durations["b"]) == (10_000, 10_000)
        assert len({(t.device_index, t.thread_id) for t in session.tracks if t.device_type == "CUDA"}) == 1
        assert dict(session.info.adjusted) == {"slices of streams that overlap, on lines of their own": 1}

    def test_functions_that_straddle_are_cut_and_none_is_lost(self, tmp_path):
        rows = [row("python_function", "a.py(1): f", 0, 10, HOST, HOST), op("aten::mm", 5, 10)]
        session = opened(write(tmp_path / "t.json", rows))
        assert names(session) == ["a.py(1): f", "aten::mm"]
        assert session.end_ns.tolist()[1] - session.end_ns.tolist()[0] == 10_000  # f ends where the operator begins
        assert dict(session.info.adjusted) == {"slices cut, so that they nest": 1}

    def test_an_outer_row_that_comes_later_is_around(self, tmp_path):
        session = opened(write(tmp_path / "t.json", [op("inner", 0, 5), op("outer", 0, 10)]))
        assert names(session) == ["outer", "inner"]
        assert tree.parents(session).tolist() == [-1, 0]


class TestPython:
    def test_stacks_are_the_functions_around(self, tmp_path):
        rows = [
            row("python_function", "train.py(3): <module>", 0, 100, HOST, HOST, **{"Python id": 1, "Python parent id": None}),
            row("python_function", "nn.Module: Net_0", 10, 50, HOST, HOST, **{"Python id": 2, "Python parent id": 1}),
            row("python_function", "nn.Module: Linear_1", 15, 20, HOST, HOST, **{"Python id": 3, "Python parent id": 2}),
            op("aten::linear", 20, 10),
        ]
        session = opened(write(tmp_path / "t.json", rows, with_stack=1))
        stack = session.stack_table[session.stack[at(session, "aten::linear")]]
        places = [session.frames[frame] for frame in stack]
        assert places == [Frame("", 0, "nn.Module: Linear_1"), Frame("", 0, "nn.Module: Net_0"), Frame("train.py", 3, "<module>")]
        module = session.labels[session.label[at(session, "nn.Module: Linear_1")]].module
        assert module == (ModulePart("Net_0", "Net"), ModulePart("Linear_1", "Linear"))

    def test_call_stacks_of_rows(self, tmp_path):
        rows = [op("aten::add", 0, 1, **{"Call stack": "b.py(7): g;a.py(1): f"})]
        session = opened(write(tmp_path / "t.json", rows))
        assert [session.frames[f] for f in session.stack_table[session.stack[0]]] == [Frame("b.py", 7, "g"), Frame("a.py", 1, "f")]


def test_memory_of_host_and_device(tmp_path):
    def change(at, size, total, device_type, device):
        facts = {"Addr": 99, "Bytes": size, "Total Allocated": total, "Device Type": device_type, "Device Id": device}
        return {
            "ph": "i",
            "cat": "cpu_instant_event",
            "s": "t",
            "name": "[memory]",
            "pid": HOST,
            "tid": HOST,
            "ts": at,
            "args": facts,
        }

    rows = [
        op("aten::empty", 0, 10),
        change(5, 64, 64, 0, -1),
        change(6, 128, 128, 1, 0),
        change(20, -64, 0, 0, -1),
        kernel("k", 1, 1, 1),
    ]
    session = opened(write(tmp_path / "t.json", rows))
    assert session.memory.size_bytes.tolist() == [64, 128, -64]
    assert [session.tracks[i].device_type for i in session.memory.track.tolist()] == ["CPU", "CUDA", "CPU"]
    assert session.memory.event.tolist() == [at(session, "aten::empty")] * 2 + [at(session, "[memory]")]


def test_a_process_without_changes_of_memory_in_a_trace_with_memory(tmp_path):
    session = opened(write(tmp_path / "a.json", [op("aten::mm", 0, 10)], profile_memory=1))
    (event,) = EventList.of(session)
    assert dict(event)["name"] == "aten::mm"
    assert not [key for key in dict(event) if "memory" in key]


def test_changes_of_memory_at_no_time_are_left_out(tmp_path):
    facts = {"Addr": 99, "Bytes": 8, "Total Allocated": 8, "Device Type": 0, "Device Id": -1}
    change = {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": HOST, "tid": HOST, "args": facts}
    session = opened(write(tmp_path / "t.json", [op("f", 0, 10), {**change, "ts": 5}, {**change, "ts": 1e300}]))
    assert session.memory.time_ns.tolist() == [5_000]
    assert session.info.adjusted == (("times that no clock tells", 1),)


@pytest.mark.parametrize("name", [["a"], {"a": 1}, 3, None])
def test_names_of_processes_that_are_no_text(tmp_path, name):
    named = {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "ts": 0, "args": {"name": name}}
    session = opened(write(tmp_path / "t.json", [op("f", 0, 10), kernel("k", 1, 1, 1), named]))
    assert sorted(label.name for label in session.labels) == ["f", "k"]


class TestAscend:
    """`trace_view.json`: a list, times as text, no categories but those of Python."""

    ROWS = [
        *(
            {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
            for pid, name in ((1, "Python"), (2, "CANN"), (3, "Ascend Hardware"), (4, "Overlap Analysis"))
        ),
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 10, "ts": "1700000000000100.125", "dur": 50, "args": {"Sequence number": 4}},
        {"ph": "X", "name": "Node@launch", "pid": 2, "tid": 10, "ts": "1700000000000110.000", "dur": 5.5, "args": {"connection_id": 8}},
        {"ph": "X", "name": "MatMulV2", "pid": 3, "tid": 47, "ts": "1700000000000130.250", "dur": "20.5",
         "args": {"Task Type": "AI_CORE", "Stream Id": 47, "connection_id": 8}},
        {"ph": "X", "name": "Computing", "pid": 4, "tid": 0, "ts": "1700000000000130.250", "dur": 20.5},
        {"ph": "s", "cat": "async_npu", "name": "torch_to_npu", "id": "7", "pid": 1, "tid": 10, "ts": "1700000000000100.125"},
        {"ph": "f", "cat": "async_npu", "name": "torch_to_npu", "id": "7", "pid": 3, "tid": 47, "ts": "1700000000000130.250", "bp": "e"},
    ]  # fmt: skip

    def test_rows(self, tmp_path):
        (tmp_path / "trace_view.json").write_text(json.dumps(self.ROWS))
        session = opened(tmp_path / "trace_view.json")
        kinds = {session.labels[i].name: session.labels[i].kind for i in session.label.tolist()}
        assert kinds == {"aten::mm": "op", "Node@launch": "runtime", "MatMulV2": "kernel"}
        place = at(session, "MatMulV2")
        assert session.start_ns[place] == 1_700_000_000_000_130_250
        assert session.end_ns[place] - session.start_ns[place] == 20_500
        assert session.launch[place] == at(session, "Node@launch")
        assert session.tracks[session.track[place]].device_type == "NPU"
        assert session.info.use_device == "npu"

    def test_collectives_and_waits(self, tmp_path):
        """As torch_npu writes them at its level 1: calls of CANN, tasks of streams, collectives and their planes, and its own sums."""
        host, bits = 5_000, 5_000 << 10  # the last five bits of a process are the number of its device
        pids = {"Python": host, "CANN": bits + (7 << 5) + 3, "Ascend Hardware": bits + (13 << 5) + 3, "HCCL": bits + (15 << 5) + 3}
        rows = [{"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}} for name, pid in pids.items()]
        told = [
            ("Python", 5_000, "aten::item", 0, 200, {}),
            ("CANN", 5_000, "AscendCL@aclrtSynchronizeStreamWithTimeout", 10, 180, {"connection_id": 1}),
            ("CANN", 5_001, "Node@launch", 5, 4, {"connection_id": 2}),
            ("CANN", 5_001, "Node@launch", 12, 4, {"connection_id": 3}),
            ("Ascend Hardware", 2, "MatMulV3", 20, 30, {"Task Type": "AI_CORE", "connection_id": 2}),
            ("Ascend Hardware", 2, "EVENT_WAIT", 50, 90, {"Task Type": "EVENT_WAIT_SQE"}),
            ("Ascend Hardware", 2, "Adam", 140, 20, {"Task Type": "AI_CORE"}),
            ("Ascend Hardware", 4, "Notify Wait", 40, 70, {"Task Type": "Notify Wait"}),
            ("Ascend Hardware", 4, "SDMA", 110, 25, {"Task Type": "SDMA"}),
            ("HCCL", 0, "hcom_allReduce__586_0_1", 40, 100, {"connection_id": 3}),
            ("HCCL", 2, "Notify_Wait", 40, 70, {}),
            ("HCCL", 2, "Memcpy", 110, 25, {}),
        ]
        rows += [
            {
                "ph": "X",
                "name": name,
                "pid": pids[process],
                "tid": tid,
                "ts": f"{1_700_000_000_000_000 + start}.000",
                "dur": dur,
                "args": args,
            }
            | ({"cat": "cpu_op"} if process == "Python" else {})
            for process, tid, name, start, dur, args in told
        ]
        (tmp_path / "trace_view.json").write_text(json.dumps(rows))
        session = opened(tmp_path / "trace_view.json")
        (device,) = DeviceActivity.of(session).devices
        assert (device.type, device.index) == ("NPU", 3)
        assert device.sorts == {"computation": 50_000, "communication": 100_000, "memory": 0}
        assert device.overlap == {"computation, communication": 10_000}
        assert {stream.number for stream in device.streams} == {2, 4, 10_000, 10_002}
        assert [track.name or track.thread_id for track in session.tracks if track.device_type == "CPU"] == [5_000, 5_001]
        summary = Summary.of(session)  # the call of CANN is inside of the operator that made it
        assert (summary.device_ns, summary.forward_ns) == (180_000, 20_000)

    @pytest.mark.parametrize("inside", [".", "ASCEND_PROFILER_OUTPUT"])
    def test_a_folder(self, tmp_path, inside):
        (tmp_path / inside).mkdir(exist_ok=True)
        (tmp_path / inside / "trace_view.json").write_text(json.dumps(self.ROWS))
        assert "MatMulV2" in names(opened(tmp_path))

    def test_arrows_lead_to_the_operator_where_there_are_no_numbers(self, tmp_path):
        rows = [
            {**r, "args": {k: v for k, v in r.get("args", {}).items() if k != "connection_id"}}
            for r in self.ROWS
            if r.get("pid") != 2
        ]
        (tmp_path / "trace_view.json").write_text(json.dumps(rows))
        session = opened(tmp_path / "trace_view.json")
        assert session.launch[at(session, "MatMulV2")] == at(session, "aten::mm")
        (row,) = [row for row in Results(session).key_averages() if row.key == "aten::mm"]
        assert row.device_time_total == 20.5


def test_a_file_of_several_processes(tmp_path):
    rows = [op("a", 0, 1), {**op("b", 0, 1), "pid": 555, "tid": 555}, call("cudaLaunchKernel", 0, 1, 3), kernel("k", 2, 1, 3)]
    sessions = open_recording(write(tmp_path / "t.json", rows)).sessions
    assert [s.info.pid for s in sessions] == [HOST, 555]
    assert [names(s) for s in sessions] == [["a", "cudaLaunchKernel", "k"], ["b"]]


class TestStrangeFiles:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "is empty"),
            (b"hello", "is no trace"),
            (b"{}", 'no "traceEvents"'),
            (b'{"traceEvents": [', "it ends"),
            (b'{"traceEvents": [{"ph": "X"', "it ends"),
            (b'{"traceEvents": [{"ph": "X"}]', "it ends"),
            (b'{"traceEvents": [{"ph": "X"}]} x', "behind its end"),
            (b'{"traceEvents": [{"ph": "X"} {"ph": "X"}]}', "is no trace"),
            (b'{"traceEvents": [], "traceEvents": []}', "twice"),
            (b"\x1f\x8bnothing", "is no trace"),
            (b"PK\x03\x04", "no session file"),
            (b"[" * 100_000, "is no trace"),
        ],
    )
    def test_are_refused_in_a_sentence(self, tmp_path, content, message):
        (tmp_path / "t.json").write_bytes(content)
        with pytest.raises(ValueError, match=message):
            open_recording(tmp_path / "t.json")

    def test_a_folder_without_sessions(self, tmp_path):
        with pytest.raises(ValueError, match=r"has no \.session file"):
            open_recording(tmp_path)

    def test_rows_without_sense_are_counted_and_left_out(self, tmp_path):
        strange = [5, None, [], {}, {"ph": []}, {"ph": "X"}, {**op("f", 1, 1), "ts": None}, {**op("f", 1, 1), "pid": []}]
        session = opened(write(tmp_path / "t.json", [*strange, op("f", 1e300, 1), op("good", 1, -5, **{"Sequence number": "x"})]))
        assert names(session) == ["good"]
        assert dict(session.info.adjusted) == {
            "unreadable rows left out": len(strange),
            "times that no clock tells": 1,
            "negative durations": 1,
        }

    def test_slices_without_end_are_refused_before_they_take_hours(self, tmp_path):
        for make in (
            lambda i: op("f", i, 40_000 - 2 * i),  # each inside of the one before
            lambda i: op("f", i, 50_000),  # each across the one before
            lambda i: kernel("k", i, 50_000, i),
        ):
            with pytest.raises(ValueError, match="are open at a time"):
                open_recording(write(tmp_path / "t.json", [make(i) for i in range(10_000)]))

    def test_stacks_that_grow_with_the_square_are_refused(self, tmp_path, monkeypatch):
        monkeypatch.setattr(derived, "MOST_FRAMES", 1_000)
        rows = [row("python_function", f"a.py({i}): f", i, 900 - 2 * i, HOST, HOST) for i in range(100)]
        rows += [op("f", 100 + i, 0.5) for i in range(10)] + [op("g", i + 0.5, 0.1) for i in range(100)]
        with pytest.raises(ValueError, match="more than 1,000 frames"):
            open_recording(write(tmp_path / "t.json", rows))

    def test_a_frame_that_calls_itself(self, tmp_path):
        rows = [{**op("f", 0, 1, stack=["x"]), "sf": 1}]
        with pytest.raises(ValueError, match="calls itself"):
            open_recording(write(tmp_path / "t.json", rows, stackFrames={"1": {"name": "a", "parent": "1"}}))

    def test_no_events(self, tmp_path):
        assert len(opened(write(tmp_path / "t.json", []))) == 0
