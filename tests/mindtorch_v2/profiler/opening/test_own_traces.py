"""Traces that this package wrote, read back: the same recording."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler.model import tree
from mindtorch_v2.profiler.model.recording import Recording
from mindtorch_v2.profiler.model.session import Info, Track
from mindtorch_v2.profiler.model.session_check import check
from mindtorch_v2.profiler.opening import open_recording
from mindtorch_v2.profiler.output import chrome_trace
from mindtorch_v2.profiler.output.event_list import EventList
from mindtorch_v2.profiler.output.slice_times import slice_times

from ..by_hand import kernel, op, record, runtime, scope


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


def as_written(session):
    """The session with the times of its trace: some ends are a nanosecond earlier there."""
    base = chrome_trace.base_time_ns(session)
    times = slice_times(session, base)
    return session.replace(start_ns=times.start + base, end_ns=times.end + base)


def read_back(session, tmp_path, name="trace.json"):
    chrome_trace.write(session, tmp_path / name)
    (found,) = open_recording(tmp_path / name).sessions
    check(found)
    return found


def rows(session):
    """What is known of each event, in an order that does not depend on ties between tracks."""
    labels = session.labels
    parents = tree.parents(session)
    names = [labels[i].name for i in session.label.tolist()]
    facts = [
        (start, end, session.tracks[track].tid, depth, names[at], labels[label].kind, labels[label].scope, step, sequence)
        + (names[parent] if parent >= 0 else None,)
        for at, (start, end, track, depth, label, step, sequence, parent) in enumerate(
            zip(
                *(
                    column.tolist()
                    for column in (
                        session.start_ns, session.end_ns, session.track, session.depth, session.label, session.step,
                        session.sequence, parents,
                    )
                )
            )
        )
        if labels[label].kind != "memory"
    ]  # fmt: skip
    return sorted(facts)


def sums(session, **by):
    from mindtorch_v2.profiler.model.grouping import GroupBy

    return sorted(
        (
            row.key,
            row.count,
            row.self_cpu_time_total,
            row.cpu_time_total,
            row.flops,
            str(row.input_shapes),
            str(row.stack),
            row.module,
        )
        for row in EventList.averages_of(session, GroupBy(**by))
    )


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
