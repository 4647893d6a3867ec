"""The cell magic in a real IPython, which comes with the programs that read traces."""

import pytest

pytestmark = pytest.mark.parity


@pytest.fixture
def shell():
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "mindtorch_v2.notebook")
    yield shell
    shell.run_line_magic("unload_ext", "mindtorch_v2.notebook")
    InteractiveShell.clear_instance()


CELL = """
import mindtorch_v2 as torch
total = torch.ones(3).sin().sum()
"""


def run(shell, line, cell=CELL):
    result = shell.run_cell(f"%%mindtorch {line}\n{cell}")
    result.raise_error()


def test_a_cell_is_recorded_and_shown(shell, capsys):
    run(shell, "--as prof --no-report")
    assert float(shell.user_ns["total"]) == pytest.approx(2.524, abs=1e-3)
    shown = capsys.readouterr().out
    assert "Wall time of the recording" in shown
    assert "aten::sin" in shown
    assert "aten::sin" in [event.name for event in shell.user_ns["prof"].events()]


def test_the_report_is_shown_inside_the_notebook(shell, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    run(shell, "--with-stack")
    (frame,) = shown
    text = frame._repr_html_()
    assert text.startswith('<iframe sandbox="allow-scripts')
    assert "<script" not in text  # the page is an attribute, escaped


def test_an_error_of_the_cell_comes_through_and_recording_ends(shell, capsys):
    with pytest.raises(ZeroDivisionError):
        run(shell, "", "1 / 0")
    run(shell, "--no-report")
    assert "aten::sin" in capsys.readouterr().out


def test_a_wrong_option_is_told(shell, capsys):
    run(shell, "--with-stak", "raise SystemError('the cell must not run')")
    assert "--with-stak" in capsys.readouterr().err


def test_a_cell_without_operators(shell, capsys):
    run(shell, "", "x = 1 + 1")
    assert "Nothing was recorded" in capsys.readouterr().out
