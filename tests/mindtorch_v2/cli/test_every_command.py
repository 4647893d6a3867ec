"""What holds for every command: JSON, no colours in a pipe, tables that fit a narrow terminal, names that are near, progress."""

from __future__ import annotations

import io
import re
import sys
import time

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.cli import console, frame
from mindtorch_v2.profiler import profile

# By command, arguments with which it prints what it has; a name in braces is a file.
ARGUMENTS = {
    "profile": ["{program}", "-o", "{folder}"],
    "run": ["{program}"],
    "top": ["{recorded}"],
    "device": ["{gpu}"],
    "trace": ["{recorded}", "-o", "{folder}.json"],
    "flame": ["{recorded}", "-o", "{folder}.svg"],
    "memory": ["{recorded}"],
    "leaks": ["{recorded}"],
    "report": ["{recorded}", "-o", "{folder}.html"],
    "diff": ["{recorded}", "{gpu}"],
    "query": ["{recorded}", "top"],
    "advise": ["{recorded}"],
    "info": ["{recorded}"],
    "validate": ["{gpu}"],
    "recover": ["{spool}", "-o", "{folder}.session"],
    "completion": ["bash"],
}
RUN_PROGRAMS = [name for name, entry in frame.COMMANDS.items() if entry.runs_program]
READ_FILES = [name for name in ARGUMENTS if name not in RUN_PROGRAMS]
BREAKS_RULES = {"validate": 1}  # the trace of the tests is a part of one, which is told


@pytest.fixture
def spool(tmp_path):
    """What a recording writes meanwhile."""
    with profile(spool=tmp_path / "run.spool"):
        torch.ones(2) + 1
    return tmp_path / "run.spool"


@pytest.fixture
def arguments(recorded, gpu, spool, tmp_path):
    files = {"recorded": recorded, "gpu": gpu, "spool": spool, "folder": tmp_path / "out", "program": tmp_path / "program.py"}
    return lambda name: [name, *(text.format_map(files) for text in ARGUMENTS[name])]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run(arguments):
    """Run a command to its end, which is the one that is expected."""
    if arguments[0] not in BREAKS_RULES:
        frame.main(arguments)
        return
    with pytest.raises(SystemExit) as end:
        frame.main(arguments)
    assert end.value.code == BREAKS_RULES[arguments[0]]


def test_the_table_has_every_command():
    assert set(ARGUMENTS) == set(frame.COMMANDS)


@pytest.mark.parametrize("name", [name for name in READ_FILES if name not in BREAKS_RULES])
def test_json_is_one_value(name, arguments, mindtorch):
    assert isinstance(mindtorch(*arguments(name), "--json"), dict)


def test_run_has_no_json_for_its_output_is_the_programs():
    """What follows the program's name belongs to it, and the command prints nothing of its own."""
    assert [action.option_strings for action in frame.parser_of("run")._actions] == [["-h", "--help"]]


@pytest.mark.parametrize("name", READ_FILES)
def test_no_colours_in_a_pipe(name, arguments, capsys):
    run(arguments(name))
    out, err = capsys.readouterr()
    assert out
    assert "\x1b" not in out + err


@pytest.mark.parametrize("name", [name for name in READ_FILES if name != "completion"])  # that one prints a program
def test_tables_fit_a_narrow_terminal(name, arguments, monkeypatch):
    """Lines with columns do; sentences are left to the terminal."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    run(arguments(name))
    lines = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()).splitlines()
    assert lines
    assert [line for line in lines if len(line) > 60 and "  " in line.strip()] == []


def test_numbers_are_whole_and_texts_share_the_rest(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    headings = [console.Heading("name", is_text=True), console.Heading("time"), console.Heading("source", is_text=True)]
    console.print_table(headings, [["a" * 90, "123.456ms", "b" * 90], ["short", "1.000us", "file.py"]])
    lines = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()).splitlines()
    assert lines[1] == f"{'a' * 6}…{'a' * 6}  123.456ms  {'b' * 7}…{'b' * 6}"
    assert lines[2].split() == ["short", "1.000us", "file.py"]


def test_of_a_long_name_the_end_is_kept(monkeypatch):
    """Of a Python function it says which one it is."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "40")
    headings = [console.Heading("name", is_text=True), console.Heading("calls")]
    console.print_table(headings, [["package/folder/module.py(12): forward_of_block", "1,000"]])
    assert re.search(r"^package/folder/m…forward_of_block +1,000$", terminal.getvalue(), re.M)


def test_a_long_name_in_a_pipe_is_whole_and_widens_its_own_row_alone(capsys):
    headings = [console.Heading("name", is_text=True), console.Heading("time"), console.Heading("source", is_text=True)]
    console.print_table(headings, [["a" * 1500, "123.456ms", "train.py"], ["short", "1.000us", ""]], notes=["2 rows"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"name{' ' * 96}       time  source"
    assert lines[1] == f"{'a' * 1500}  123.456ms  train.py"
    assert lines[2] == f"short{' ' * 95}    1.000us"
    assert lines[3:] == ["2 rows"]


@pytest.mark.parametrize("name", frame.COMMANDS)
def test_a_mistyped_option_is_told_with_the_one_that_is_near(name, arguments, mindtorch):
    option = max((option for action in frame.parser_of(name)._actions for option in action.option_strings), key=len)
    mistyped = option[:3] + option[4:]
    assert f"did you mean '{option}'" in mindtorch(name, mistyped, *arguments(name)[1:], status=2)


@pytest.mark.parametrize("name", [name for name in READ_FILES if name not in ("completion", "info")])  # nothing there takes long
def test_progress_is_shown_beside_reading(name, arguments, monkeypatch):
    """What a command does with a file that was read may take long as well: it is shown by a name of its own."""
    shown = []

    class Bar:
        def __init__(self, what, stream):
            shown.append(what)
            self.has_threads = True

        show = close = lambda self: None
        report = lambda self, done, whole: None

    monkeypatch.setattr(console, "_LateBar", Bar)
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    run(arguments(name))
    assert [what for what in shown if not what.startswith("reading ")]


def test_a_bar_shows_itself_when_nothing_is_reported(monkeypatch):
    monkeypatch.setattr(console, "PATIENCE_S", 0.0)
    terminal = Terminal()
    with console.progress("thinking", terminal):
        until = time.monotonic() + 30
        while "thinking" not in terminal.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
    assert "thinking" in terminal.getvalue()


def test_where_threads_cannot_be_started_a_bar_moves_when_something_is_reported(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(console.threading.Timer, "start", refuse)
    monkeypatch.setattr(console, "PATIENCE_S", 0.0)
    terminal = Terminal()
    with console.progress("writing", terminal) as report:
        report(1, 2)
    assert "writing" in terminal.getvalue()


def test_a_bar_that_was_closed_is_not_shown_later(monkeypatch):
    terminal = Terminal()
    bar = console._LateBar("late", terminal)
    bar.close()
    bar.show()
    assert terminal.getvalue() == ""
