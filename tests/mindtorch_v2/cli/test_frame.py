"""The frame of the command line: help, names that are near, errors and statuses."""

from __future__ import annotations

import importlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mindtorch_v2.cli import console, frame

SOURCE = Path(__file__).parent.parent.parent.parent / "src"
posix = pytest.mark.skipif(os.name != "posix", reason="signals and terminals are POSIX's")


def front(*arguments, **options):
    """`mindtorch` in a process of its own, as the console script starts it."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), **options.pop("environment", {})}
    command = [sys.executable, "-m", "mindtorch_front", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, **options)


class TestHelp:
    def test_names_every_command(self, mindtorch):
        text = mindtorch("--help")
        for name, entry in frame.COMMANDS.items():
            assert f"  {name} " in text
            assert entry.summary in text
        assert "examples:" in text

    @pytest.mark.parametrize("name", frame.COMMANDS)
    def test_each_command_says_what_it_does_and_how(self, name, mindtorch):
        text = mindtorch(name, "--help")
        assert f"mindtorch {name}" in text
        assert "examples:" in text

    @pytest.mark.parametrize("name", [name for name, entry in frame.COMMANDS.items() if not entry.runs_program])
    def test_the_table_and_the_docstring_agree(self, name):
        assert importlib.import_module(f"mindtorch_v2.cli.{name}").__doc__.startswith(f"{frame.COMMANDS[name].summary}\n")

    @pytest.mark.parametrize("name", [name for name in frame.COMMANDS if name != "run"])
    def test_every_command_has_json(self, name):
        assert "--json" in {option for action in frame.parser_of(name)._actions for option in action.option_strings}

    def test_the_page_has_every_command(self):
        page = (SOURCE.parent / "docs" / "command-line.md").read_text()
        for name in frame.COMMANDS:
            assert f"## `mindtorch {name}`\n\n<!-- output of: python -m mindtorch_front {name} --help -->" in page

    def test_version(self, mindtorch):
        assert mindtorch("--version") == "mindtorch_v2, with the API of PyTorch 2.13.0\n"


class TestMistakes:
    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ([], "a command is missing"),
            (["topp"], "did you mean 'top'"),
            (["top"], "FILE"),
            (["top", "--sotr", "self", "x"], "did you mean '--sort'"),
            (["top", "--sort", "totl", "x"], "did you mean 'total'"),
            (["top", "--by", "shapes", "x"], "did you mean 'shape'"),
            (["flame", "x", "-o", "y.png"], "--format"),
            (["run"], "a program is missing"),
        ],
    )
    def test_usage(self, mindtorch, arguments, said):
        assert said in mindtorch(*arguments, status=2)

    def test_a_file_that_is_not_there(self, mindtorch, gpu):
        assert f"did you mean '{gpu.name}'" in mindtorch("top", gpu.with_name("gpuu.json"), status=1)
        assert "there is no folder" in mindtorch("top", gpu.parent / "none" / "x", status=1)

    @pytest.mark.parametrize("name", ["top", "info", "device", "advise", "leaks", "memory"])
    def test_a_file_of_another_kind(self, mindtorch, tmp_path, name):
        (tmp_path / "x.json").write_text("hello")
        said = mindtorch(name, tmp_path / "x.json", status=1)
        assert said.startswith(f"mindtorch {name}: ")
        assert said.count("\n") == 1

    def test_rows_that_are_no_events(self, mindtorch, tmp_path):
        """torch's raw timeline of memory is a list of lists."""
        (tmp_path / "x.json").write_text("[[-1, 0, [0, 0], 512], [5, 1, [1, 0], 256]]")
        assert "is no trace: none of its 2 rows is an event" in mindtorch("top", tmp_path / "x.json", status=1)

    def test_a_process_that_is_not_there(self, mindtorch, gpu):
        assert "it has 4242" in mindtorch("top", gpu, "--process", "4241", status=1)


class TestStart:
    def test_without_the_runtime(self, gpu):
        """Help imports neither the runtime nor NumPy; reading a file does without the runtime, and a table in a pipe without rich."""
        code = "import sys, mindtorch_front\nsys.argv = ['mindtorch', *sys.argv[1:]]\ntry: mindtorch_front.main()\nexcept SystemExit: pass\n"
        code += "print([m for m in ('numpy', 'rich', 'mindtorch_v2._dispatch', 'orjson') if m in sys.modules], file=sys.stderr)"
        for arguments, loaded in (
            (["--help"], "[]"),
            (["top", "--help"], "[]"),
            (["top", gpu, "--json"], "['numpy', 'orjson']"),
            (["top", gpu], "['numpy', 'orjson']"),
            (["device", gpu], "['numpy', 'orjson']"),
        ):
            environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
            command = [sys.executable, "-c", code, *map(str, arguments)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
            assert done.stderr.strip() == loaded, arguments

    def test_the_packages_are_whole_once_they_are_used(self):
        code = "import torch, mindtorch_v2 as m, torch.nn.functional as F; from torch.profiler import profile\n"
        code += "with profile() as p: F.relu(torch.ones(2))\nprint(torch is m, type(m).__name__, len(p.events()) > 0)"
        assert front("run", "-c", code).stdout == "True module True\n"

    def test_python_m_is_the_same(self, gpu):
        environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        command = [sys.executable, "-m", "mindtorch_v2", "info", str(gpu), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
        assert json.loads(done.stdout) == json.loads(front("info", gpu, "--json").stdout)


class TestOutput:
    def test_no_colour_and_no_progress_in_a_pipe(self, gpu):
        done = front("top", gpu)
        assert "\x1b" not in done.stdout
        assert done.stderr == ""

    @posix
    @pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}])
    def test_on_a_terminal_lines_fit(self, gpu, environment):
        import pty

        leader, follower = pty.openpty()
        settings = {**os.environ, "PYTHONPATH": str(SOURCE), "COLUMNS": "60", "TERM": "xterm", **environment}
        command = [sys.executable, "-m", "mindtorch_front", "top", str(gpu)]
        subprocess.run(command, stdout=follower, stderr=subprocess.PIPE, timeout=120, env=settings, check=True)
        os.close(follower)
        text = b""
        while True:
            try:
                part = os.read(leader, 65_536)
            except OSError:  # the terminal is gone
                break
            if not part:
                break
            text += part
        os.close(leader)
        plain = re.sub(r"\x1b\[[0-9;]*m", "", text.decode())
        table = [line for line in plain.splitlines() if "aten::" in line or line.startswith("name")]
        assert table
        assert max(map(len, table)) <= 60
        assert "To fit the terminal: without" in plain
        assert not re.search(r"\x1b\[[0-9;]*3[0-7]", text.decode()) or not environment

    def test_progress_on_a_terminal_after_a_while(self, gpu, monkeypatch):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        monkeypatch.setattr(sys, "stderr", Terminal())
        monkeypatch.setattr(console, "PATIENCE_S", 0.0)
        console.opened(str(gpu))
        assert f"reading {gpu.name}" in sys.stderr.getvalue()
        monkeypatch.setattr(console, "PATIENCE_S", 1_000.0)
        monkeypatch.setattr(sys, "stderr", Terminal())
        console.opened(str(gpu))
        assert sys.stderr.getvalue() == ""

    @posix
    def test_a_reader_that_goes_away_is_no_error(self, recorded):
        command = f"{sys.executable} -m mindtorch_front top {recorded} --limit -1 --by stack | head -n 1"
        environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120, env=environment)
        assert done.stderr == ""
        assert done.stdout.startswith("name")

    def test_an_interrupt(self, mindtorch, gpu, monkeypatch):
        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr("mindtorch_v2.cli.info.opened", interrupt)
        mindtorch("info", gpu, status=130)


class TestCompletion:
    def test_all_commands_and_options(self, mindtorch):
        assert set(mindtorch("completion", "bash", "--json")) == set(frame.COMMANDS)

    @posix
    def test_bash(self, mindtorch, tmp_path):
        (tmp_path / "complete.sh").write_text(
            mindtorch("completion", "bash") + 'COMP_WORDS=(mindtorch top --so); COMP_CWORD=2; _mindtorch; echo "${COMPREPLY[@]}"\n'
            'COMP_WORDS=(mindtorch fl); COMP_CWORD=1; _mindtorch; echo "${COMPREPLY[@]}"\n'
        )
        done = subprocess.run(["bash", str(tmp_path / "complete.sh")], capture_output=True, text=True, timeout=60)
        assert done.stdout == "--sort\nflame\n"

    @pytest.mark.parametrize("shell", ["zsh", "fish"])
    def test_others(self, mindtorch, shell):
        text = mindtorch("completion", shell)
        assert "flame" in text
        assert "--sort" in text or "-l sort" in text
