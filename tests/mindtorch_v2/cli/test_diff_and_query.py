"""`mindtorch diff` and `mindtorch query`, from files."""

import json

import pytest

from mindtorch_v2.cli import frame

from ..profiler.comparison.test_comparison import MODEL, steps


@pytest.fixture
def mindtorch(capsys):
    """Runs a command; returns its exit status, output and errors."""

    def run(*arguments):
        status = 0
        try:
            frame.main(list(map(str, arguments)))
        except SystemExit as end:
            status = end.code
        return status, *capsys.readouterr()

    return run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    slower = [*MODEL[:2], ("aten::linear", 3_500_000, [("aten::addmm", 2_500_000)])]
    sessions = {"before": steps(MODEL), "same": steps(MODEL, seed=9), "after": steps(slower, seed=1)}
    for name, session in sessions.items():
        session.save(folder / f"{name}.session")
    return folder


def test_a_change_is_named(mindtorch, runs):
    status, out, err = mindtorch("diff", runs / "before.session", runs / "after.session")
    assert (status, err) == (0, "")
    assert "slower  aten::addmm" in out
    status, out, _ = mindtorch("diff", runs / "before.session", runs / "same.session")
    assert "No place in the program changed." in out


def test_a_limit_for_ci(mindtorch, runs):
    pair = (runs / "before.session", runs / "after.session")
    status, _, err = mindtorch("diff", "--fail-over", "4%", *pair)
    assert status == 1
    assert "longer, more than 4.0%" in err
    assert mindtorch("diff", "--fail-over", "0.5", *pair)[0] == 0
    assert mindtorch("diff", "--fail-over", "4%", runs / "before.session", runs / "same.session")[0] == 0
    assert mindtorch("diff", "--fail-over", "much", *pair)[0] == 2


def test_other_forms(mindtorch, runs):
    pair = (runs / "before.session", runs / "after.session")
    assert "| slower | `aten::addmm` |" in mindtorch("diff", "--markdown", *pair)[1]
    found = json.loads(mindtorch("diff", "--json", *pair)[1])
    assert [change["name"] for change in found["changes"]] == ["aten::addmm"]


def test_a_question_with_a_name_and_one_in_sql(mindtorch, runs):
    status, out, _ = mindtorch("query", runs / "before.session", "top")
    assert status == 0
    assert out.split()[:3] == ["name", "calls", "self_ns"]
    found = json.loads(mindtorch("query", "--json", runs / "before.session", "select count(*) as n from steps")[1])
    assert found["rows"] == [{"n": 24}]


def test_an_answer_without_rows_says_so(mindtorch, runs):
    assert mindtorch("query", runs / "before.session", "kernels")[1].splitlines()[1:] == ["No rows."]


def test_wrong_questions_are_told(mindtorch, runs):
    status, _, err = mindtorch("query", runs / "before.session", "tpo")
    assert status == 2
    assert "did you mean 'top'?" in err
    status, _, err = mindtorch("query", runs / "before.session", "select * from evnts")
    assert status == 1
    assert 'Did you mean "events"?' in err
    assert mindtorch("query")[0] == 2
    status, _, err = mindtorch("query", runs / "befor.session", "top")
    assert status == 1
    assert "did you mean 'before.session'" in err


def test_lists_and_files(mindtorch, runs, tmp_path):
    assert "Which operators take most time" in mindtorch("query", "--list")[1]
    assert "self_ns" in mindtorch("query", "--schema")[1]
    assert "events" in json.loads(mindtorch("query", "--schema", "--json")[1])
    status, out, _ = mindtorch("query", runs / "before.session", "--parquet", tmp_path / "tables")
    assert status == 0
    assert str(tmp_path / "tables" / "events.parquet") in out.split()
