"""Steps, modules, flame graphs, advice, memory and the environment: what their sections say is what the profiler's answers say."""

import json

import numpy as np
import pytest
from tests.mindtorch_v2.profiler import device_traces
from tests.mindtorch_v2.profiler.by_hand import op, python_function, record, scope
from tests.mindtorch_v2.profiler.report.reports import ALL, parts_of, trained

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.device import DeviceActivity
from mindtorch_v2.profiler.device.critical_path import critical_path
from mindtorch_v2.profiler.model.memory_timeline import timeline_of
from mindtorch_v2.profiler.model.session import COMPILE, Frame, Info, Label, Track
from mindtorch_v2.profiler.opening import open_recording
from mindtorch_v2.profiler.output import memory_page, report

from ..by_hand import Event


@pytest.fixture(scope="module")
def prof():
    return trained(**ALL)


@pytest.fixture(scope="module")
def parts(prof, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    prof.export_report(path)
    return parts_of(path)


def report_of(session, tmp_path):
    report.write([session], tmp_path / "report.html")
    return parts_of(tmp_path / "report.html")


class TestSteps:
    def test_they_are_the_profilers_steps(self, prof, parts):
        found = parts["steps.0"]
        steps = [event for event in prof.events() if event.name == "ProfilerStep*"]
        assert found["duration"].tolist() == [event["duration_ns"] for event in steps]
        assert found["number"].tolist() == [1, 2, 3, 4]

    def test_their_parts_add_up(self, parts):
        found = parts["steps.0"]
        assert np.sum(list(found["parts"].values()), axis=0).tolist() == found["duration"].tolist()

    def test_a_slow_one_is_told_with_what_was_different(self, tmp_path):
        events = []
        for i in range(8):
            start, more = 10_000 * i, 4000 if i == 5 else 0
            inside = [op("aten::mm", start + 100, start + 1100 + more), op("aten::add", start + 5200, start + 5300)]
            if i == 6:
                compiled = Event(Label(COMPILE, "compile", operator="aten::t"), start + 5400, start + 8400)
                inside.append(op("aten::t", start + 5350, start + 8500, compiled))
            events.append(scope(f"ProfilerStep#{i}", start, start + 6000 + (more or 3000 * (i == 6)), *inside, tid=7))
        session = record(events, info=Info(stopped_ns=100_000, thread_id=7), tracks=[Track(7, 7, "MainThread")])
        found = report_of(session, tmp_path)["steps.0"]
        assert [found["number"][slow["step"]] for slow in found["slow"]] == [5, 6]
        longer, compiling = found["slow"]
        assert longer["excess"] == 4000
        assert longer["parts"][0] == ["forward", 4000]
        assert longer["labels"][0] == ["aten::mm", 4000, 1, 1.0]
        assert compiling["parts"][0] == ["compilation", 3000]
        assert compiling["compiled"] == [1, 3000]
        assert COMPILE not in [name for name, *_ in compiling["labels"]]

    def test_none(self, tmp_path):
        found = report_of(record([op("aten::mm", 1, 2)]), tmp_path)["steps.0"]
        assert "prof.step()" in found["needs"]


class TestModules:
    def test_they_are_those_of_by_module(self, prof, parts):
        found, times = parts["modules.0"], prof.by_module()
        assert found["path"] == [row.module for row in times]
        assert [found["classes"][i] for i in found["class"].tolist()] == [row.class_name for row in times]
        for key, field in (("forward", "forward_us"), ("backward", "backward_us"), ("selfForward", "self_forward_us")):
            assert found[key].tolist() == [round(getattr(row, field) * 1000) for row in times]
        assert found["calls"].tolist() == [row.calls for row in times]

    def test_operations_and_memory_are_those_of_the_averages(self, prof, parts):
        found, rows = parts["modules.0"], prof.key_averages(group_by_module=True)
        inside = [row for row in rows if row.module == "Net" or row.module.startswith("Net.")]
        at = found["path"].index("Net")
        assert found["flopsForward"][at] == sum(row.flops for row in inside if row.phase == "forward") > 0
        assert found["flopsBackward"][at] == sum(row.flops for row in inside if row.phase == "backward") > 0
        assert found["memory"][at] == sum(row.self_cpu_memory_usage for row in inside if row.phase == "forward")

    def test_the_tree(self, parts):
        found = parts["modules.0"]
        above = {
            path: found["path"][i] if i >= 0 else None for path, i in zip(found["path"], found["parent"].tolist(), strict=True)
        }
        assert above == {"Net": None, "Net.body": "Net", "Net.body.0": "Net.body", "Net.body.1": "Net.body", "Net.body.2": "Net.body", "Net.head": "Net"}  # fmt: skip


class TestFlame:
    def paths(self, tree, key="self"):
        """Self time by path."""
        found = {}
        for i in range(len(tree["name"])):
            names, at = [], i
            while at >= 0:
                names.insert(0, tree["names"][tree["name"][at]])
                at = tree["parent"][at]
            found[tuple(names)] = int(tree[key][i])
        return found

    def test_operators_by_hand(self, tmp_path):
        events = [
            scope("body", 0, 100, python_function("f", 5, 95, op("aten::linear", 10, 50, op("aten::addmm", 20, 40)))),
            scope("body", 200, 300, op("aten::linear", 210, 250, op("aten::addmm", 220, 240))),
        ]
        tree = report_of(record(events), tmp_path)["flame.0"]["operators"]
        assert self.paths(tree) == {("body",): 70, ("body", "aten::linear"): 40, ("body", "aten::linear", "aten::addmm"): 40}
        assert self.paths(tree, "count") == {("body",): 2, ("body", "aten::linear"): 2, ("body", "aten::linear", "aten::addmm"): 2}

    def test_self_times_are_those_of_the_averages(self, prof, parts):
        tree = parts["flame.0"]["operators"]
        found = {}
        for path, ns in self.paths(tree).items():
            found[path[-1]] = found.get(path[-1], 0) + ns
        for path, ns in self.paths(tree, "selfBackward").items():
            found[path[-1]] += ns
        kinds = {event.name: event["kind"] for event in prof.events()}
        expected = {
            row.key: round(row.self_cpu_time_total * 1000)
            for row in prof.key_averages()
            if kinds[row.key] in ("op", "scope", "compile")
        }
        assert found == expected

    def test_modules(self, prof, parts):
        tree = parts["flame.0"]["module"]
        paths = self.paths(tree)
        assert ("Net", "body", "0", "aten::addmm") in paths
        backward = self.paths(tree, "selfBackward")
        times = {row.module: row for row in prof.by_module()}
        linear = sum(ns for path, ns in backward.items() if path[:2] == ("Net", "head"))
        assert linear == round(times["Net.head"].backward_us * 1000)

    def test_call_sites(self, prof, parts):
        tree = parts["flame.0"]["stack"]
        of_stack = sum(self.paths(tree).values()) + sum(self.paths(tree, "selfBackward").values())
        assert of_stack == sum(round(event.self_cpu_time_total * 1000) for event in prof.events() if event.stack)
        assert any("reports.py" in name for path in self.paths(tree) for name in path)

    def test_what_it_needs(self, tmp_path):
        found = report_of(record([op("aten::mm", 1, 2)]), tmp_path)["flame.0"]
        assert {name: tree.get("needs") for name, tree in found.items()} == {
            "operators": None,
            "calls": "with_stack=True",
            "stack": "with_stack=True",
            "module": "with_modules=True",
        }


def test_advice_is_that_of_the_profiler(prof, parts):
    found, advice = parts["advice.0"], prof.advise()
    assert [finding["rule"] for finding in found["findings"]] == [finding.rule for finding in advice]
    assert [finding["gain"] for finding in found["findings"]] == [finding.gain_ns for finding in advice]
    assert [part["ns"] for part in found["unexplained"]] == [part.time_ns for part in advice.unexplained]
    for finding, told in zip(found["findings"], advice, strict=True):
        names = {prof.session.labels[i].name for i in prof.session.label[told.rows]}
        assert finding["event"] < 0 or parts["events.0"]["labels"][parts["events.0"]["label"][finding["event"]]][0] in names


def test_the_line_of_the_program_is_no_function_in_c_and_none_of_a_library(tmp_path):
    stack = (
        Frame("", 0, "<built-in method mul_ of Tensor object>"),
        Frame("/env/lib/python3.12/site-packages/torch/nn/linear.py", 3, "forward"),
        Frame("/env/lib/python3.12/site-packages/lightning/loop.py", 4, "advance"),
        Frame("/home/me/train.py", 5, "step"),
    )
    info = Info(stopped_ns=10, with_stack=True, source_roots=("/env/lib/python3.12/site-packages/",))
    table = report_of(record([op("aten::mul_", 1, 2, stack=stack)], info=info), tmp_path)["operators.0"]["groupings"]["name"]
    assert [table["lines"][i] for i in table["line"]] == ["/home/me/train.py(5): step"]


class TestMemory:
    def test_it_is_the_data_of_the_memory_page(self, prof, parts):
        expected = memory_page.page_data(timeline_of(prof.session).of_device("cpu"))
        found = parts["memory.0"]["timeline"]
        assert {name: column.tolist() for name, column in found["pieces"].items()} == expected["pieces"]
        assert found["peak"] == expected["peak"]

    def test_a_curve_without_stacks(self, tmp_path):
        with profile(profile_memory=True) as prof:
            kept = torch.ones(1000)
        found = report_of(prof.session, tmp_path)["memory.0"]
        assert found["needs"] == "record_shapes=True, with_stack=True"
        assert found["curve"]["bytes"].tolist() == prof.session.memory.total_bytes.tolist()
        assert kept.shape == (1000,)

    def test_not_recorded(self, tmp_path):
        with profile() as prof:
            torch.ones(2)
        assert "profile_memory=True" in report_of(prof.session, tmp_path)["memory.0"]["needs"]


class TestDevice:
    @pytest.fixture
    def session(self, tmp_path):
        rows = [
            device_traces.op("aten::mm", 0, 12),
            device_traces.call("cudaLaunchKernel", 3, 6, 1),
            device_traces.kernel("gemm", 12, 30, 1),
            device_traces.call("cudaStreamSynchronize", 15, 27, 2),
            device_traces.op("aten::add", 60, 12),
            device_traces.call("cudaLaunchKernel", 63, 6, 3),
            device_traces.kernel("add", 70, 10, 3),
        ]
        (tmp_path / "trace.json").write_text(json.dumps(device_traces.trace(rows)))
        return open_recording(tmp_path / "trace.json").session

    def test_it_is_the_activity_of_the_device(self, session, tmp_path):
        parts = report_of(session, tmp_path)
        (found,) = parts["device.0"]["devices"]
        (device,) = DeviceActivity.of(session).devices
        assert parts["report"]["processes"][0]["hasDevice"]
        assert found["busy_ns"] == device.busy_ns == 40_000
        assert found["idle_causes"] == dict(device.idle_causes)
        assert [kernel["name"] for kernel in found["kernels"]] == ["gemm", "add"]
        assert found["queues"][0]["length"].tolist() == device.streams[0].queue.length.tolist()
        assert set(found["idle_causes"]) == set(parts["device.0"]["means"])

    def test_the_critical_path_is_that_of_the_command(self, session, tmp_path):
        parts = report_of(session, tmp_path)
        found, path = parts["device.0"]["path"], critical_path(session)
        assert found["places"] == path.by_place() == {"host": 36_000, "launch": 4_000, "device": 40_000, "earlier work": 0}
        assert [(each["name"], each["total_ns"]) for each in found["names"]] == [(s.name, s.total_ns) for s in path.by_name()]
        assert found["end"] - found["start"] == found["total_ns"] == 80_000
        assert set(found["places"]) == set(parts["device.0"]["places"])

    def test_launches_and_kernels_are_partners(self, session, tmp_path):
        events = report_of(session, tmp_path)["events.0"]
        names = [events["labels"][i][0] for i in events["label"].tolist()]
        pairs = [(names[a], names[b]) for a, b in zip(events["caller"].tolist(), events["kernel"].tolist(), strict=True)]
        assert pairs == [("cudaLaunchKernel", "gemm"), ("cudaLaunchKernel", "add")]

    def test_none(self, prof, parts):
        assert "a device" in parts["device.0"]["needs"]
        assert not parts["report"]["processes"][0]["hasDevice"]


def test_the_environment_is_text_alone(tmp_path):
    info = Info(
        started_ns=1_700_000_000_000_000_000,
        command=("train.py", "--lr", "0.1"),
        environment={"Python": "3.12", "cores": 8},
        metadata={"column": {"column": [0, 1, 2, 0, "i4"]}},
        record_shapes=True,
    )
    found = report_of(record([], info=info), tmp_path)["environment.0"]
    groups = {title: dict(rows) for title, rows in found["groups"]}
    assert groups["Program"]["command"] == "train.py --lr 0.1"
    assert groups["Program"]["recorded from"] == "2023-11-14 22:13:20.000000 UTC"
    assert groups["Machine and versions"] == {"Python": "3.12", "cores": "8"}
    assert groups["Metadata"] == {"column": '{"column": [0, 1, 2, 0, "i4"]}'}
    assert [is_on for _, _, is_on in found["options"]] == [True, False, False, False, False]
