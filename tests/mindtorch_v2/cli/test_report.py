"""`mindtorch report FILE -o OUT`."""

import json

import pytest
from tests.mindtorch_v2.profiler.report.reports import parts_of, trained

from mindtorch_v2.cli import frame


@pytest.fixture
def saved(tmp_path):
    prof = trained(steps=1)
    prof.session.save(tmp_path / "run.session")
    return prof, tmp_path / "run.session"


def test_of_a_saved_session(saved, tmp_path, capsys):
    prof, path = saved
    frame.main(["report", str(path), "-o", str(tmp_path / "report.html"), "--title", "a <run>"])
    assert f"{len(prof.session):,} events" in capsys.readouterr().out
    assert "<title>a &lt;run&gt;</title>" in (tmp_path / "report.html").read_text()
    assert parts_of(tmp_path / "report.html")["overview.0"]["wall"] == prof.summary().wall_ns


def test_of_a_trace(saved, tmp_path, capsys):
    prof, _ = saved
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    frame.main(["report", str(tmp_path / "trace.json"), "-o", str(tmp_path / "report.html"), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["file"] == str(tmp_path / "report.html")
    assert told["bytes"] == (tmp_path / "report.html").stat().st_size
    assert "<title>trace.json</title>" in (tmp_path / "report.html").read_text()  # it has no command
    table = parts_of(tmp_path / "report.html")["operators.0"]["groupings"]["name"]
    counts = {table["names"][i]: int(n) for i, n in zip(table["name"].tolist(), table["count"].tolist(), strict=True)}
    assert counts["aten::addmm"] == sum(event.name == "aten::addmm" for event in prof.events())


def test_a_page_that_cannot_be_written(saved, tmp_path, capsys):
    with pytest.raises(SystemExit) as left:
        frame.main(["report", str(saved[1]), "-o", str(tmp_path / "nowhere" / "report.html")])
    assert left.value.code == 1
    assert "nowhere" in capsys.readouterr().err
