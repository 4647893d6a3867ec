"""The file of a report: self-contained, whatever is in it. How it looks and acts is tested in a browser (tests/browser)."""

import base64
import hashlib
import re

import pytest
from tests.mindtorch_v2.profiler.by_hand import Event, op, record, scope
from tests.mindtorch_v2.profiler.report.reports import ALL, parts_of, trained

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function
from mindtorch_v2.profiler.advice import advise
from mindtorch_v2.profiler.model.session import KINDS, Info, Label, empty_session
from mindtorch_v2.profiler.output import report
from mindtorch_v2.profiler.output.report import sources
from mindtorch_v2.profiler.output.report.page import PAGE

HOSTILE = [
    "</script><script>document.title='taken over'</script>",
    "<!--<script>",
    "{{DATA}}{{TITLE}}",
    "a\x00b",
    "\ud800 alone",
    "\u202egnirts",
    "\u2028",
    "]]>",
    "&lt;b&gt;",
    "x" * 1_000_000,
]


def test_nothing_is_asked_of_the_network(tmp_path):
    page = PAGE.read_text()
    assert not re.search(
        r"""(?:src|href)=["']?(?:https?:)?//|url\(|@import|fetch\(|XMLHttpRequest|WebSocket|importScripts|eval\(""", page
    )
    assert len(page) < 1_000_000


def test_the_policy_allows_this_script_and_no_other():
    page = PAGE.read_text()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for element, directive in (("script", "script-src"), ("style", "style-src")):
        (content,) = re.findall(rf"<{element}>(.*?)</{element}>", page, re.S)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}';" in policy


def test_licences_are_in_the_page():
    page = PAGE.read_text()
    assert "uplot" in page
    assert "Permission is hereby granted, free of charge" in page


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_names_can_be_any_text(name, tmp_path):
    with profile(with_stack=True, record_shapes=True) as prof, record_function(name):
        torch.ones(2) + 1
    prof.export_report(tmp_path / "report.html", title=name)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert text.count("<script") == PAGE.read_text().count("<script") + len(parts_of(tmp_path / "report.html"))
    assert text.count("</script>") == text.count("<script")
    labels = [label for label, *_ in parts_of(tmp_path / "report.html")["events.0"]["labels"]]
    assert name.encode("utf-8", "backslashreplace").decode() in labels


@pytest.mark.parametrize("kind", KINDS)
def test_events_of_every_kind_have_a_category(kind, tmp_path):
    report.write([record([Event(Label("f", kind), 0, 10)])], tmp_path / "report.html")
    found = parts_of(tmp_path / "report.html")["events.0"]
    ((name, category, shown),) = found["labels"]
    assert (name, shown) == ("f", kind)
    assert found["categories"][category] in (kind, {"op": "operator", "python_function": "python"}.get(kind))


def test_an_empty_session(tmp_path):
    report.write([empty_session(Info(started_ns=5, stopped_ns=5))], tmp_path / "report.html")
    found = parts_of(tmp_path / "report.html")
    assert found["overview.0"]["wall"] == 0
    assert found["events.0"]["start"].tolist() == []


def test_without_sessions_there_is_nothing_to_show(tmp_path):
    with pytest.raises(ValueError, match="at least one session"):
        report.write([], tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_processes_have_one_time_base(tmp_path):
    first = record([op("aten::mm", 1000, 1200)], info=Info(started_ns=900, stopped_ns=2000, pid=1, process_name="python"))
    second = record([scope("load", 1500, 1600)], info=Info(started_ns=1400, stopped_ns=1700, pid=2, parent_pid=1))
    report.write([first, second], tmp_path / "report.html")
    found = parts_of(tmp_path / "report.html")
    assert [process["pid"] for process in found["report"]["processes"]] == [1, 2]
    assert found["report"]["processes"][1]["parent"] == 1
    assert found["events.0"]["start"].tolist() == [100]
    assert found["events.1"]["start"].tolist() == [600]


def test_options_that_were_not_recorded_are_named(tmp_path):
    trained(steps=1).export_report(tmp_path / "report.html")
    groupings = parts_of(tmp_path / "report.html")["operators.0"]["groupings"]
    needs = {name: table["needs"] for name, table in groupings.items() if "needs" in table}
    assert needs == {
        "shape": "record_shapes=True",
        "line": "with_stack=True",
        "stack": "with_stack=True",
        "module": "with_modules=True",
    }


def test_progress_is_told(tmp_path):
    told = []
    report.write(
        [trained(steps=1, **ALL).session], tmp_path / "report.html", progress=lambda done, count: told.append((done, count))
    )
    assert told == [(i, told[-1][1]) for i in range(1, told[-1][1] + 1)]


def test_advice_that_is_known_is_not_asked_for_again(tmp_path, monkeypatch):
    session = record([op("aten::mm", 0, 100)])
    known = advise(session)
    monkeypatch.setattr(sources, "advise", None)
    report.write([session], tmp_path / "report.html", advice=known)
    assert (tmp_path / "report.html").stat().st_size
