"""Every number of a report is the one that the tables print."""

from pathlib import Path

import numpy as np
import pytest
from tests.mindtorch_v2.profiler.report import reports
from tests.mindtorch_v2.profiler.report.reports import ALL, parts_of, trained

from mindtorch_v2.profiler import Results
from mindtorch_v2.profiler.model.session import Session


@pytest.fixture(scope="module")
def prof():
    return trained(**ALL)


@pytest.fixture(scope="module")
def parts(prof, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    prof.export_report(path)
    return parts_of(path)


def rows_of(table):
    """The rows of a table of operators, as averages have them."""
    columns = ("count", "total", "self", "memory", "selfMemory", "flops")
    return [
        (table["names"][name], *(table[column][i].item() for column in columns)) for i, name in enumerate(table["name"].tolist())
    ]


def rows_of_averages(averages):
    return [
        (
            row.key,
            row.count,
            round(row.cpu_time_total * 1000),
            round(row.self_cpu_time_total * 1000),
            row.cpu_memory_usage,
            row.self_cpu_memory_usage,
            row.flops,
        )
        for row in averages
    ]


@pytest.mark.parametrize(
    ("grouping", "options"),
    [
        ("name", {}),
        ("shape", {"group_by_input_shape": True}),
        ("stack", {"group_by_stack_n": 8}),
        ("module", {"group_by_module": True}),
    ],
)
def test_operators_are_the_averages(prof, parts, grouping, options):
    table = parts["operators.0"]["groupings"][grouping]
    assert rows_of(table) == rows_of_averages(prof.key_averages(**options))


def test_medians_and_maxima_are_those_of_the_events(prof, parts):
    table = parts["operators.0"]["groupings"]["name"]
    times = {}
    for event in prof.events():
        times.setdefault(("ProfilerStep*" if event.name.startswith("ProfilerStep#") else event.name, event["kind"]), []).append(
            event["duration_ns"]
        )
    for i, name in enumerate(table["name"].tolist()):
        found = sorted(times[table["names"][name], table["kinds"][table["kind"][i]]])
        assert table["max"][i] == found[-1]
        assert table["median"][i] == found[(len(found) - 1) // 2]


def test_lines_are_those_of_the_program(prof, parts):
    table = parts["operators.0"]["groupings"]["line"]
    rows = {
        (table["names"][n], table["lines"][line] if line >= 0 else ""): s
        for n, line, s in zip(table["name"].tolist(), table["line"].tolist(), table["self"].tolist())
    }
    of_mm = {line: ns for (name, line), ns in rows.items() if name == "aten::addmm"}
    source = Path(reports.__file__).read_text().splitlines()
    calls = [source.index(text) + 1 for text in ("            x = self.body(x)", "        return self.head(x)")]
    assert [line.rpartition("/")[2] for line in of_mm] == [f"reports.py({line}): forward" for line in calls]
    assert sum(of_mm.values()) == sum(
        round(row.self_cpu_time_total * 1000) for row in prof.key_averages() if row.key == "aten::addmm"
    )


def test_the_parts_of_the_wall_time_are_the_summary(prof, parts):
    summary, overview = prof.summary(), parts["overview.0"]
    times = {part["key"]: part["ns"] for part in overview["parts"]}
    assert overview["wall"] == summary.wall_ns == sum(times.values())
    assert times.pop("forward") + times.pop("backward") + times.pop("optimizer") == summary.operators_ns
    assert times == {name: ns for name, ns in summary.parts.items() if name != "operators"}
    assert summary.backward_ns > 0
    assert summary.optimizer_ns > 0


def test_events_are_those_of_the_recording(prof, parts):
    events, found = prof.events(), parts["events.0"]
    labels = [name for name, *_ in found["labels"]]
    base = prof.session.info.started_ns
    names = [labels[i] for i in found["label"].tolist()]
    assert ["ProfilerStep*" if name.startswith("ProfilerStep#") else name for name in names] == [event.name for event in events]
    assert found["start"].tolist() == [event["start_ns"] - base for event in events]
    assert found["duration"].tolist() == [event["duration_ns"] for event in events]
    assert (found["duration"] - found["inner"]).tolist() == [round(event.self_cpu_time_total * 1000) for event in events]
    assert found["memory"].tolist() == [event.cpu_memory_usage for event in events]


def test_depths_are_how_many_events_are_around(prof, parts):
    found = parts["events.0"]
    start, end, track, depth = found["start"], found["start"] + found["duration"], found["track"], found["depth"]
    for i in np.random.default_rng(0).choice(len(start), 60, replace=False).tolist():
        before = np.arange(len(start)) < i
        assert depth[i] == np.sum(before & (track == track[i]) & (start <= start[i]) & (end >= end[i]))


def test_partners_are_those_of_the_sequence_numbers(prof, parts):
    found, session = parts["events.0"], prof.session
    sequences = session.sequence.tolist()
    assert len(found["forward"]) > 20
    assert len(found["start"]) == len(session)  # no row is left out here, so that rows are the session's
    for forward, backward in zip(found["forward"].tolist(), found["backward"].tolist(), strict=True):
        assert sequences[forward] == sequences[backward] >= 0
        assert session.end_ns[forward] <= session.start_ns[backward]


def test_a_session_read_from_a_file_gives_the_same_page(prof, parts, tmp_path):
    prof.session.save(tmp_path / "run.session")
    Results(Session.load(tmp_path / "run.session")).export_report(tmp_path / "again.html", title="again")
    again = parts_of(tmp_path / "again.html")
    assert again.keys() == parts.keys()
    for name in ("overview.0", "operators.0", "events.0"):
        np.testing.assert_equal(again[name], parts[name])
