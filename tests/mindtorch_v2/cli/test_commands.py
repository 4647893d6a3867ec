"""Each command on a recording of everything, and on a trace of a GPU."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import advise, profile
from mindtorch_v2.profiler.device import DeviceActivity
from mindtorch_v2.profiler.model.session import Info, Session, Track
from mindtorch_v2.profiler.model.top_rows import GROUPINGS, SORT_KEYS
from mindtorch_v2.profiler.opening import open_recording
from mindtorch_v2.profiler.output.event_list import EventList
from mindtorch_v2.profiler.output.trace_check import validate

from ..profiler.by_hand import op, record


class TestTop:
    def test_rows_are_those_of_key_averages(self, mindtorch, recorded):
        wanted = {
            (row.key, row.count, round(row.self_cpu_time_total * 1000), round(row.cpu_time_total * 1000), row.flops)
            for row in EventList.averages_of(Session.load(recorded))
        }
        rows = mindtorch("top", recorded, "--json", "--limit", "-1")["rows"]
        assert {(r["name"], r["count"], r["self_ns"], r["total_ns"], r["flops"]) for r in rows} == wanted

    def test_mean_median_and_max(self, mindtorch, tmp_path):
        record([op("f", 0, 10), op("f", 10, 40), op("f", 50, 150), op("g", 200, 201)]).save(tmp_path / "a.session")
        (row,) = mindtorch("top", tmp_path / "a.session", "--json", "--name", "f")["rows"]
        assert (row["mean_ns"], row["median_ns"], row["max_ns"], row["count"]) == (140 / 3, 30, 100, 3)

    @pytest.mark.parametrize("by", GROUPINGS)
    def test_groupings_part_the_same_time(self, mindtorch, recorded, by):
        whole = mindtorch("top", recorded, "--json", "--limit", "-1")
        parted = mindtorch("top", recorded, "--json", "--limit", "-1", "--by", by)
        assert parted["self_ns"] == whole["self_ns"]
        assert sum(row["count"] for row in parted["rows"]) == sum(row["count"] for row in whole["rows"])
        assert len(parted["rows"]) >= len(whole["rows"])
        assert mindtorch("top", recorded, "--by", by).startswith("name")

    def test_by_module_and_step(self, mindtorch, recorded):
        rows = mindtorch("top", recorded, "--json", "--limit", "-1", "--by", "module", "--name", "aten::addmm")["rows"]
        assert {(row["module"], row["phase"], row["count"]) for row in rows} == {
            ("Sequential.0", "forward", 2),
            ("Sequential.2", "forward", 2),
        }
        rows = mindtorch("top", recorded, "--json", "--by", "step", "--name", "aten::addmm")["rows"]
        assert sorted((row["step"], row["count"]) for row in rows) == [(0, 2), (1, 2)]

    @pytest.mark.parametrize("sort", SORT_KEYS)
    def test_sorted(self, mindtorch, recorded, sort):
        values = [row[SORT_KEYS[sort]] for row in mindtorch("top", recorded, "--json", "--sort", sort, "--limit", "-1")["rows"]]
        assert values == sorted(values, reverse=sort != "name")

    def test_several_processes_are_summed_up(self, mindtorch, tmp_path):
        for pid, end in ((1, 10), (2, 30)):
            name = "run.session" if pid == 1 else f"process-{pid}.session"
            record([op("f", 0, end)], info=Info(pid=pid)).save(tmp_path / name)
        (row,) = mindtorch("top", tmp_path, "--json")["rows"]
        assert (row["count"], row["total_ns"], row["median_ns"]) == (2, 40, 10)
        (row,) = mindtorch("top", tmp_path, "--json", "--process", "2")["rows"]
        assert (row["count"], row["total_ns"]) == (1, 30)

    def test_names_of_other_programs_move_no_cursor(self, mindtorch, tmp_path):
        record([op("\x1b[2J[bold]evil[/bold]\n", 0, 10)]).save(tmp_path / "a.session")
        out = mindtorch("top", tmp_path / "a.session")
        assert "\x1b" not in out
        assert "\\x1b[2J[bold]evil[/bold]\\n" in out

    def test_what_was_not_recorded(self, mindtorch, gpu):
        assert "record_shapes=True" in mindtorch("top", gpu, "--by", "shape", status=1)

    def test_device(self, mindtorch, gpu):
        assert "CUDA:0 (GPU): busy 52.6%" in mindtorch("top", gpu)
        rows = mindtorch("top", gpu, "--device", "--json")["rows"]
        assert (rows[0]["name"], rows[0]["total_ns"]) == ("gemm", 20_000)
        assert "gemm" in mindtorch("top", gpu, "--device", "--sort", "max")
        assert "not by 'flops'" in mindtorch("top", gpu, "--device", "--sort", "flops", status=2)


class TestDevice:
    def test_json_is_the_activity(self, mindtorch, gpu):
        told = mindtorch("device", gpu, "--json")
        wanted = DeviceActivity.of(open_recording(gpu).session).as_dict()
        assert told["devices"] == json.loads(json.dumps(wanted))["devices"]
        (path,) = told["critical_paths"]
        assert path["name"] == "ProfilerStep#1"
        assert path["total_ns"] == sum(path["places"].values()) == 60_000

    def test_text(self, mindtorch, gpu):
        out = mindtorch("device", gpu)
        assert "host late" in out
        assert "host to device" in out
        assert "5.00 GB/s" in out
        assert "Critical path of ProfilerStep#1" in out

    def test_without_one(self, mindtorch, recorded):
        assert "has no device activity" in mindtorch("device", recorded, status=1)


class TestTrace:
    def test_of_several_processes(self, mindtorch, tmp_path, recorded):
        first = Session.load(recorded)
        folder = tmp_path / "out"
        folder.mkdir()
        first.save(folder / "run.session")
        track = Track(first.info.pid + 1, first.info.pid + 1, "MainThread")
        info = first.info.__class__(**{**vars(first.info), "pid": first.info.pid + 1, "parent_pid": first.info.pid})
        second = first.replace(info=info, tracks=(track, *first.tracks[1:]))
        second.save(folder / f"process-{info.pid}.session")
        told = mindtorch("trace", folder, "-o", tmp_path / "all.json.gz", "--json")
        assert told["processes"] == [first.info.pid, info.pid]
        assert validate(tmp_path / "all.json.gz") == []
        found = open_recording(tmp_path / "all.json.gz").sessions
        assert [s.info.pid for s in found] == [first.info.pid, info.pid]
        assert [len(s) for s in found] == [len(first), len(second)]

    def test_of_a_trace(self, mindtorch, gpu, tmp_path):
        mindtorch("trace", gpu, "-o", tmp_path / "again.json")
        one, other = (open_recording(path).session for path in (gpu, tmp_path / "again.json"))
        assert other.start_ns.tolist() == one.start_ns.tolist()
        assert [label.name for label in other.labels] == [label.name for label in one.labels]
        assert DeviceActivity.of(other).devices[0].idle_causes == DeviceActivity.of(one).devices[0].idle_causes


class TestFlame:
    def test_all_formats_have_the_same_time(self, mindtorch, recorded, tmp_path):
        told = mindtorch("flame", recorded, "-o", tmp_path / "a.speedscope.json", "--json")
        whole = mindtorch("top", recorded, "--json")["self_ns"]
        (profile,) = json.loads((tmp_path / "a.speedscope.json").read_text())["profiles"]
        assert told["time_ns"] == whole == profile["endValue"] == sum(profile["weights"])
        folded = mindtorch("flame", recorded, "-o", "-", "--format", "folded")
        paths = [line.rpartition(" ") for line in folded.splitlines()]
        assert all(int(us) > 0 for _, _, us in paths)
        assert any(path.endswith("aten::linear;aten::addmm") for path, _, _ in paths)

    @pytest.mark.parametrize("by", ["operators", "calls", "stack", "module"])
    def test_phases_add_up_in_every_way_to_merge(self, mindtorch, recorded, tmp_path, by):
        def time_ns(phase):
            return mindtorch("flame", recorded, "-o", tmp_path / "a.svg", "--by", by, "--phase", phase, "--json")["time_ns"]

        assert time_ns("forward") + time_ns("backward") == time_ns("both") <= mindtorch("top", recorded, "--json")["self_ns"]

    def test_by_module(self, mindtorch, recorded):
        options = ("-o", "-", "--format", "folded", "--by", "module")
        paths = [line.rpartition(" ")[0] for line in mindtorch("flame", recorded, *options, "--phase", "forward").splitlines()]
        assert any(path.startswith("Sequential") and path.endswith(";aten::addmm") for path in paths)
        backward = mindtorch("flame", recorded, *options, "--phase", "backward")
        assert "AddmmBackward0" in backward
        assert "aten::addmm" not in backward

    def test_what_was_not_recorded_is_named(self, mindtorch, gpu, tmp_path):
        assert "with_modules=True" in mindtorch("flame", gpu, "-o", tmp_path / "a.svg", "--by", "module", status=1)

    def test_the_picture_is_escaped(self, mindtorch, recorded, tmp_path):
        mindtorch("flame", recorded, "-o", tmp_path / "a.svg")
        text = (tmp_path / "a.svg").read_text()
        assert "<script" not in text
        names = [title.text for title in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}title")]
        assert any(name.startswith("<script>alert(1)</script>: ") for name in names)

    def test_nothing_recorded(self, mindtorch, tmp_path):
        record([]).save(tmp_path / "a.session")
        mindtorch("flame", tmp_path / "a.session", "-o", tmp_path / "a.svg")
        ElementTree.parse(tmp_path / "a.svg")


class TestMemory:
    def test_the_peak_and_its_owners(self, mindtorch, recorded):
        log = Session.load(recorded).memory
        told = mindtorch("memory", recorded, "--json", "--limit", "-1")
        assert told["peak_bytes"] == log.total_bytes.max()
        assert sum(owner["size_bytes"] for owner in told["owners"]) == told["peak_bytes"]
        assert told["end_bytes"] == log.total_bytes[-1]
        assert mindtorch("memory", recorded).startswith("Peak: ")

    def test_a_timeline(self, mindtorch, recorded, tmp_path):
        mindtorch("memory", recorded, "-o", tmp_path / "m.html")
        assert "<html" in (tmp_path / "m.html").read_text()[:200].lower()
        mindtorch("memory", recorded, "-o", tmp_path / "m.json")
        times, sizes = json.loads((tmp_path / "m.json").read_text())
        assert len(times) == len(sizes) > 0

    def test_not_recorded(self, mindtorch, gpu):
        assert "profile_memory=True" in mindtorch("memory", gpu, status=1)


def test_leaks(mindtorch, recorded):
    told = mindtorch("leaks", recorded, "--json", "--limit", "-1")
    assert told["total_bytes"] == sum(row["size_bytes"] for row in told["rows"]) > 0
    assert "Alive at the end" in mindtorch("leaks", recorded)


def test_no_leaks(mindtorch, tmp_path):
    with profile(profile_memory=True) as prof:
        torch.ones(4).exp()
    prof.session.save(tmp_path / "a.session")
    assert mindtorch("leaks", tmp_path / "a.session") == "Nothing that was made in the recording is alive at its end.\n"


def test_nothing_to_recover(mindtorch, tmp_path):
    record([op("f", 0, 10)]).save(tmp_path / "run.session")
    said = mindtorch("recover", tmp_path, status=1)
    assert "has nothing to recover: its recording was saved whole, as" in said


def test_advise(mindtorch, recorded, gpu):
    session = Session.load(recorded)
    assert mindtorch("advise", recorded, "--json", "--min-share", "0") == json.loads(
        json.dumps(advise(session, min_share=0).as_dict())
    )
    assert "recorded" in mindtorch("advise", gpu)
    assert "share between 0 and 1" in mindtorch("advise", "--min-share", "5", gpu, status=2)


class TestInfo:
    def test_a_program_without_steps_has_none(self, mindtorch, tmp_path):
        record([op("f", 0, 10)]).save(tmp_path / "a.session")
        assert mindtorch("info", tmp_path / "a.session", "--json")["processes"][0]["steps"] == []
        assert "  steps  " not in mindtorch("info", tmp_path / "a.session")

    def test_facts(self, mindtorch, recorded):
        (process,) = mindtorch("info", recorded, "--json")["processes"]
        assert sum(process["events"].values()) == process["event_count"] == len(Session.load(recorded))
        assert set(process["options"]) == {"record_shapes", "with_stack", "profile_memory", "with_modules", "with_flops"}
        assert "MainThread" in mindtorch("info", recorded)

    def test_a_tree_of_processes(self, mindtorch, tmp_path):
        for name, pid, parent in (("run", 1, 0), ("process-2", 2, 1), ("process-3", 3, 2)):
            record([op("f", 0, 1)], info=Info(pid=pid, parent_pid=parent)).save(tmp_path / f"{name}.session")
        lines = [line for line in mindtorch("info", tmp_path).splitlines() if "process " in line]
        assert lines == ["process 1 (python)", "  process 2 (python)", "    process 3 (python)"]

    def test_what_was_adjusted(self, mindtorch, tmp_path):
        (tmp_path / "t.json").write_text(json.dumps([{"ph": "C", "name": "counter", "ts": 1}]))
        assert "1 counters left out" in mindtorch("info", tmp_path / "t.json")


class TestValidate:
    def test_good_and_bad(self, mindtorch, recorded, tmp_path):
        mindtorch("trace", recorded, "-o", tmp_path / "t.json")
        assert mindtorch("validate", tmp_path / "t.json", "--json")["problems"] == []
        text = (tmp_path / "t.json").read_text().replace('"tid":', '"tod":', 20)
        (tmp_path / "t.json").write_text(text)
        assert "broken in" in mindtorch("validate", tmp_path / "t.json", status=1)

    def test_a_session(self, mindtorch, recorded):
        assert "keeps what its format promises" in mindtorch("validate", recorded)

    def test_a_folder_with_a_trace(self, mindtorch, recorded, tmp_path):
        mindtorch("trace", recorded, "-o", tmp_path / "trace.json.gz")
        assert "trace.json.gz keeps what its format promises" in mindtorch("validate", tmp_path)
        assert "Is a directory" in mindtorch("validate", tmp_path.parent, status=1)


def test_what_was_not_recorded_is_told_with_the_option_that_records_it(mindtorch, tmp_path):
    record([op("aten::mm", 0, 100)], info=Info(command=("train.py", "--size", "a b"))).save(tmp_path / "plain.session")
    for command in ("memory", "leaks"):
        assert "record with --profile-memory" in mindtorch(command, tmp_path / "plain.session", status=1)
    last = mindtorch("advise", tmp_path / "plain.session").strip().splitlines()[-1]
    assert last.startswith("To have it checked: mindtorch profile --profile-memory --record-shapes --with-stack")
    assert last.endswith("train.py --size 'a b'")
