"""Traces that this package wrote, read back: the same recording."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler.model.recording import Recording
from mindtorch_v2.profiler.model.session import Info, Track
from mindtorch_v2.profiler.model.session_check import check
from mindtorch_v2.profiler.opening import open_recording

from ..by_hand import kernel, op, record, runtime, scope
from ..same_session import as_written, read_back, rows, sums


def train(profiler, steps=2):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        with torch.profiler.record_function("<script>"):
            optimizer.zero_grad()
            torch.cat([model(torch.ones(3, 4)), torch.zeros(1, 2)]).sum().backward()
            optimizer.step()
        profiler.step()


@pytest.fixture(scope="module", params=["plain", "everything"])
def recorded(request):
    wanted = dict.fromkeys(("record_shapes", "with_stack", "profile_memory", "with_modules", "with_flops"), True)
    with torch.profiler.profile(**(wanted if request.param == "everything" else {})) as profiler:
        train(profiler)
    return profiler.profiler.session


class TestRoundTrip:
    def test_events_tree_steps_and_sequence_numbers(self, recorded, tmp_path):
        assert rows(read_back(recorded, tmp_path)) == rows(as_written(recorded))

    def test_self_times(self, recorded, tmp_path):
        found, wanted = (Recording(s) for s in (read_back(recorded, tmp_path), as_written(recorded)))
        assert sorted(found.without_children(found.cpu_ns).tolist()) == sorted(wanted.without_children(wanted.cpu_ns).tolist())

    def test_the_table(self, recorded, tmp_path):
        assert sums(read_back(recorded, tmp_path)) == sums(as_written(recorded))

    @pytest.mark.parametrize("recorded", ["everything"], indirect=True)
    def test_the_table_by_shapes_and_modules(self, recorded, tmp_path):
        found, wanted = read_back(recorded, tmp_path), as_written(recorded)
        assert sums(found, shapes=True) == sums(wanted, shapes=True)
        assert sums(found, modules=True) == sums(wanted, modules=True)

    def test_stacks(self, recorded, tmp_path):
        def stacks(session):
            if session.stack is None:
                return None
            texts = [tuple(session.frames[f] for f in stack) for stack in session.stack_table]
            kinds = [label.kind for label in session.labels]
            return sorted(
                (session.start_ns[i], kinds[session.label[i]], texts[stack] if stack >= 0 else ())
                for i, stack in enumerate(session.stack.tolist())
                if kinds[session.label[i]] in ("op", "scope")
            )

        assert stacks(read_back(recorded, tmp_path)) == stacks(as_written(recorded))

    def test_memory(self, recorded, tmp_path):
        found = read_back(recorded, tmp_path).memory
        if recorded.memory is None:
            assert found is None
            return
        for name in ("time_ns", "address", "size_bytes", "total_bytes"):
            assert getattr(found, name).tolist() == getattr(recorded.memory, name).tolist()

    def test_the_header(self, recorded, tmp_path):
        info = read_back(recorded, tmp_path).info
        for name in ("pid", "started_ns", "stopped_ns", "trace_id", "record_shapes", "with_stack", "profile_memory", "with_flops"):
            assert getattr(info, name) == getattr(recorded.info, name)
        assert info.adjusted == ()

    def test_compressed_is_the_same(self, recorded, tmp_path):
        plain, packed = (read_back(recorded, tmp_path, name) for name in ("a.json", "a.json.gz"))
        assert rows(plain) == rows(packed)
        assert (tmp_path / "a.json.gz").read_bytes()[:2] == b"\x1f\x8b"


def test_saved_sessions_and_folders(tmp_path):
    first, second = (record([op(name, 0, 10)], info=Info(pid=pid)) for name, pid in (("a", 7), ("b", 3)))
    second.save(tmp_path / "process-3.session")
    first.save(tmp_path / "run.session")
    opened = open_recording(tmp_path)
    assert [s.info.pid for s in opened.sessions] == [7, 3]
    assert opened.session is opened.sessions[0]
    assert open_recording(tmp_path / "process-3.session").session.info.pid == 3


class TestMemoryOutsideOfEvents:
    def record(self, work):
        with torch.profiler.profile(profile_memory=True) as profiler:
            work()
        return profiler.session

    def test_changes_are_rows_as_in_the_recording(self, tmp_path):
        held = [torch.ones(4)]
        session = self.record(held.clear)
        found = read_back(session, tmp_path)
        assert [label.name for label in found.labels] == ["[memory]"]
        assert rows(found) == rows(session)
        assert found.memory.size_bytes.tolist() == [-16]

    def test_a_thread_that_only_frees_memory_has_its_changes(self, tmp_path):
        held = [torch.ones(4)]

        def work():
            torch.ones(2)
            thread = threading.Thread(target=held.clear, name="frees")
            thread.start()
            thread.join()

        session = self.record(work)
        found = read_back(session, tmp_path)
        assert rows(found) == rows(as_written(session))
        assert found.memory.size_bytes.tolist() == session.memory.size_bytes.tolist()
        assert [found.tracks[i].name for i in found.memory.track.tolist()][-1] == "frees"

    def test_rows_of_a_device_keep_their_launches_and_copies(self, tmp_path):
        """A change between two events moves the rows behind it."""

        def change(at):
            facts = {"Addr": 1, "Bytes": 8, "Total Allocated": 8, "Device Type": 0, "Device Id": -1}
            return {
                "ph": "i",
                "cat": "cpu_instant_event",
                "s": "t",
                "name": "[memory]",
                "pid": 7,
                "tid": 7,
                "ts": at,
                "args": facts,
            }

        events = [
            {"ph": "X", "cat": "cpu_op", "name": "aten::f", "pid": 7, "tid": 7, "ts": 0, "dur": 5},
            change(7),
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 7, "tid": 7, "ts": 10, "dur": 2, "args": {"correlation": 3}},
            change(13),
            {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": 7, "ts": 20, "dur": 4,
             "args": {"correlation": 3, "bytes": 64, "device": 0, "stream": 7}},
        ]  # fmt: skip
        (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
        (found,) = open_recording(tmp_path / "trace.json").sessions
        names = [found.labels[i].name for i in found.label.tolist()]
        assert names == ["aten::f", "[memory]", "cudaMemcpyAsync", "[memory]", "Memcpy HtoD"]
        assert found.launch.tolist() == [-1, -1, -1, -1, 2]
        assert found.copies.row.tolist() == [4]
        assert found.memory.event.tolist() == [1, 3]
        check(found)


def test_a_device_of_our_own(tmp_path):
    tracks = [Track(1, 1, "MainThread"), Track(7, 7, "", "PrivateUse1", 0), Track(9, 9, "", "PrivateUse1", 1)]
    session = record(
        [
            scope("step", 0, 5_000, op("aten::mm", 100, 4_000, runtime("launch", 200, 300, correlation=1))),
            kernel("matmul", 400, 900, stream=7, correlation=1),
            kernel("other", 500, 1_000, stream=9, correlation=-1),
        ],
        tracks=tracks,
        info=Info(pid=77, stopped_ns=6_000, use_device="npu"),
    )
    found = read_back(session, tmp_path)
    assert [(t.tid, t.device_type, t.device_index) for t in found.tracks] == [
        (t.tid, t.device_type, t.device_index) for t in tracks
    ]
    names = [found.labels[i].name for i in found.label.tolist()]
    assert found.launch is not None
    assert names[found.launch[names.index("matmul")]] == "launch"
    assert found.launch[names.index("other")] == -1
    assert found.info.use_device == "npu"
    assert np.array_equal(found.start_ns, session.start_ns)
