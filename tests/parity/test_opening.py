"""Traces that torch wrote, read from their files: the rows and sums of torch's own `key_averages`."""

from __future__ import annotations

import collections
import json

import pytest
import torch

from mindtorch_v2.profiler import validate
from mindtorch_v2.profiler.model.grouping import GroupBy
from mindtorch_v2.profiler.model.session_check import check
from mindtorch_v2.profiler.opening import open_recording
from mindtorch_v2.profiler.output.event_list import EventList

pytestmark = pytest.mark.parity


def record(path, **options):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    optimizer = torch.optim.Adam(model.parameters())
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options) as profiler:
        for _ in range(3):
            with torch.profiler.record_function("my block"):
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(torch.randn(5, 8)), torch.randint(0, 4, (5,)))
                torch.cat([loss.reshape(1), loss.reshape(1)]).sum().backward()
                optimizer.step()
            profiler.step()
    profiler.export_chrome_trace(str(path))
    (session,) = open_recording(path).sessions
    check(session)
    return profiler, session


def sums(rows):
    """Names, counts and times in nanoseconds."""
    return {(row.key, row.count, round(row.cpu_time_total * 1000), round(row.self_cpu_time_total * 1000)) for row in rows}


def test_the_table(tmp_path):
    profiler, session = record(tmp_path / "trace.json")
    assert sums(EventList.averages_of(session)) == sums(profiler.key_averages())


def test_torch_keeps_what_the_format_promises(tmp_path):
    record(tmp_path / "trace.json", record_shapes=True)
    assert validate(tmp_path / "trace.json") == []


def test_the_table_by_shapes(tmp_path):
    profiler, session = record(tmp_path / "trace.json.gz", record_shapes=True)
    found, wanted = EventList.averages_of(session, GroupBy(shapes=True)), profiler.key_averages(group_by_input_shape=True)

    def keys(rows):
        return collections.Counter((row.key, row.count, str(row.input_shapes)) for row in rows)

    assert sums(found) == sums(wanted)
    assert keys(found) == keys(wanted)


@pytest.mark.parametrize("options", [{"with_stack": True}, {"with_stack": True, "profile_memory": True, "with_modules": True}])
def test_no_row_is_lost_where_slices_straddle(tmp_path, options):
    _, session = record(tmp_path / "trace.json", record_shapes=True, **options)
    rows = json.loads((tmp_path / "trace.json").read_bytes())["traceEvents"]
    wanted = collections.Counter(row["name"] for row in rows if row["ph"] == "X" and row["cat"] != "Trace")
    assert collections.Counter(session.labels[i].name for i in session.label.tolist()) == wanted
    changes = [row["args"] for row in rows if row["name"] == "[memory]"]
    if changes:
        assert sorted(session.memory.size_bytes.tolist()) == sorted(args["Bytes"] for args in changes)


def test_operators_keep_their_times_where_functions_are_cut(tmp_path):
    profiler, session = record(tmp_path / "trace.json", with_stack=True)

    def operators(rows):
        return {(row.key, row.count, round(row.cpu_time_total * 1000)) for row in rows if row.key.startswith("aten::")}

    assert operators(EventList.averages_of(session)) == operators(profiler.key_averages())
    assert dict(session.info.adjusted).get("slices cut, so that they nest", 0) > 0


def test_steps(tmp_path):
    _, session = record(tmp_path / "trace.json", schedule=torch.profiler.schedule(wait=0, warmup=1, active=2, repeat=1))
    names = [session.labels[i].name for i in session.label.tolist()]
    assert [session.step[i] for i, name in enumerate(names) if name == "my block"] == [1, 2]
