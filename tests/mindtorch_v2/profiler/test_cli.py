"""`python -m mindtorch_v2.profiler`: a program runs as it does without, and what it did is shown and written."""

import errno
import gzip
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from mindtorch_v2._launch import program
from mindtorch_v2.profiler import cli
from mindtorch_v2.profiler.model.session import Session

SOURCE = Path(__file__).parent.parent.parent.parent / "src"
END_OF_TABLE = "Self CPU time total: "
PROFILER = ("-W", "error", "-m", "mindtorch_v2.profiler")

posix = pytest.mark.skipif(os.name != "posix", reason="signals and fork are POSIX's")


@pytest.fixture
def run(tmp_path):
    """Runs Python in a directory of the test's own."""

    def run(*command, **options):
        environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        return subprocess.run(
            [sys.executable, *map(str, command)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
            timeout=120,
            **options,
        )

    return run


@pytest.fixture
def script(tmp_path):
    def write(text, name="script.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return name

    return write


def names(path):
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [row["name"] for row in json.loads(text)["traceEvents"] if row.get("cat") in ("cpu_op", "user_annotation")]


FACTS = """
import json, os, pickle, sys
class Thing: pass
mine = sorted(k for k in globals() if k.startswith("__"))
spec = __spec__ and __spec__.name
print(json.dumps([sys.argv, sys.path[0], __name__, __file__, __package__, spec, mine, type(__loader__).__name__]))
print(type(pickle.loads(pickle.dumps(Thing()))) is Thing, vars(sys.modules["__main__"]) is globals())
print("to stderr", file=sys.stderr)
sys.exit(3)
"""


@pytest.mark.parametrize("form", ["script", "directory", "module"])
def test_a_program_finds_what_it_finds_without(run, script, form):
    name = {"script": "inner/script.py", "directory": "inner/__main__.py", "module": "inner/__init__.py"}[form]
    script(FACTS if form != "module" else "", name)
    if form == "module":
        script(FACTS, "inner/__main__.py")
    program = {"script": ["inner/script.py"], "directory": ["inner"], "module": ["-m", "inner"]}[form]
    arguments = ["a b", "--trace", "x", "-h", "--", "-m"]
    alone, profiled = run(*program, *arguments), run(*PROFILER, "--table", "none", "--no-trace", *program, *arguments)
    assert json.loads(alone.stdout.splitlines()[0])[0][1:] == arguments
    assert (profiled.stdout, profiled.stderr, profiled.returncode) == (alone.stdout, alone.stderr, alone.returncode)


@pytest.mark.parametrize("form", ["script", "module"])
@pytest.mark.parametrize(
    "arguments",
    [["--", "--x"], ["--"], ["--", "--"], ["a", "--", "b"], ["--help"], ["-m", "--", "--trace"], ["--trace=1", "-h", "--"]],
)
def test_every_argument_behind_the_program_is_its_own(monkeypatch, tmp_path, form, arguments):
    got = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli.run, "run_recorded", lambda recording, request: got.append((recording, request)))
    monkeypatch.setattr(cli.run, "_recording", lambda options, trace, spool: options)
    program = ["-m", "pkg"] if form == "module" else ["script.py"]
    cases = [[*program], ["--with-stack", *program], ["--row-limit", "-1", "--trace=t.json", *program], ["run", *program]]
    if form == "script":
        cases += [["--", *program], ["--with-stack", "--", *program], ["--trace", "t.json", "--", *program]]
    else:
        cases += [["-mpkg"], ["--with-stack", "-mpkg"]]
    for before in cases:
        cli.main([*before, *arguments])
        options, request = got.pop()
        assert (request.name, request.arguments) == (program[-1], arguments), before
        assert request.form == form
        assert options.with_stack == ("--with-stack" in before)


def test_a_program_can_be_called_like_a_command_or_an_option(monkeypatch, tmp_path):
    got = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli.run, "run_recorded", lambda recording, request: got.append((request.name, request.arguments)))
    cli.main(["--", "run", "advise"])
    cli.main(["--", "--strange.py", "-h"])
    assert got == [("run", ["advise"]), ("--strange.py", ["-h"])]


def test_two_dashes_reach_the_program(run, script):
    script("import sys; print(sys.argv)")
    alone = run("script.py", "--", "--x")
    assert alone.stdout == "['script.py', '--', '--x']\n"
    for before in ([], ["--with-stack", "--"]):
        profiled = run(*PROFILER, "--table", "none", "--no-trace", *before, "script.py", "--", "--x")
        assert (profiled.stdout, profiled.stderr, profiled.returncode) == (alone.stdout, "", 0)
    helped = run(*PROFILER, "--table", "none", "--no-trace", "--", "script.py", "--help")
    assert helped.stdout == "['script.py', '--help']\n"


def test_the_table_comes_last_and_files_are_where_they_were_asked_for(run, script, tmp_path):
    script("""
        import atexit, os, threading
        import mindtorch_v2 as torch

        def later():
            torch.zeros(2).cos()
            print("from a thread\\n", end="")  # in one piece: two threads print

        def at_exit():
            torch.zeros(2).tan()
            print("at exit")

        atexit.register(at_exit)
        threading.Thread(target=later).start()
        with torch.profiler.record_function("my block \\N{SNOWMAN}"):
            torch.ones(3, 4).sin()
        os.chdir("/")
        print("end of the script\\n", end="")
    """)
    options = ["--record-shapes", "--with-stack", "--profile-memory", "--with-flops", "--sort-by", "count", "--row-limit", "-1"]
    done = run(*PROFILER, *options, "--trace", "t.json.gz", "--session", "s.session", "script.py")
    assert (done.returncode, done.stderr) == (0, "")
    own, table = done.stdout.split("\n\n", 1)
    assert own.splitlines()[-1] == "at exit"
    assert "end of the script" in own
    assert "from a thread" in own
    for name in ("aten::sin", "aten::cos", "aten::tan", "[[3, 4]]", "my block", "CPU Mem", "FLOPs"):
        assert name in table
    assert "t.json.gz (" in table
    assert {"aten::sin", "aten::cos", "aten::tan", "my block \N{SNOWMAN}"} <= set(names(tmp_path / "t.json.gz"))
    session = Session.load(tmp_path / "s.session")
    assert session.info.record_shapes
    assert session.info.with_stack
    sin = next(i for i, label in enumerate(session.labels) if label.name == "aten::sin")
    stack = session.stack_table[session.stack[list(session.label).index(sin)]]
    assert [session.frames[i] for i in stack] == [(str(tmp_path / "script.py"), 16, "<module>")], "no frames of the profiler"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["s.session", "script.py", "t.json.gz"]


def test_modules_have_a_table_of_their_own(run, script):
    script("""
        import mindtorch_v2 as torch
        net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
        net(torch.ones(1, 2)).sum().backward()
    """)
    done = run(*PROFILER, "--with-modules", "--row-limit", "-1", "--no-trace", "script.py")
    assert (done.returncode, done.stderr) == (0, "")
    operators, modules, _ = done.stdout.strip().split("\n\n")[-3:]
    assert "nn.Module: Linear_0" in operators
    assert [line.split()[:3] for line in modules.splitlines()[3:6]] == [
        ["Sequential", "Sequential", "1"],
        ["Sequential.0", "Linear", "1"],
        ["Sequential.1", "ReLU", "1"],
    ]


def test_an_error_is_shown_as_without_and_what_was_recorded_is_written(run, script, tmp_path):
    text = """
        import sys
        def fail():
            if "mindtorch_v2" in sys.modules:
                sys.modules["mindtorch_v2"].ones(2).exp()
            try:
                {}["x"]
            except KeyError:
                raise RuntimeError("broken")
        fail()
    """
    script(text)
    alone, profiled = run("script.py"), run(*PROFILER, "script.py")
    assert (profiled.stderr, profiled.returncode) == (alone.stderr, 1)
    assert profiled.stdout.startswith("\n---")
    assert "script.pt.trace.json (" in profiled.stdout
    assert names(tmp_path / "script.pt.trace.json")[-1] == "aten::exp"


def test_a_syntax_error_is_shown_as_without(run, script):
    script("x = (\n")
    alone, profiled = run("script.py"), run(*PROFILER, "script.py")
    assert (profiled.stdout, profiled.stderr, profiled.returncode) == (alone.stdout, alone.stderr, 1)


@posix
@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("os.kill(os.getpid(), signal.SIGINT)", -signal.SIGINT),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
        ("os._exit(5)", 5),
    ],
)
def test_a_program_that_is_ended_leaves_what_was_recorded(run, script, tmp_path, end, status):
    script(f"""
        import os, signal, time
        import mindtorch_v2 as torch
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell runs in the background
        torch.ones(2).exp()
        {end}
        time.sleep(60)
    """)
    done = run(*PROFILER, "--table", "stderr", "script.py")
    assert done.returncode == status
    assert done.stdout == ""
    assert END_OF_TABLE in done.stderr
    assert ("KeyboardInterrupt\n" in done.stderr) == (status == -signal.SIGINT)
    assert "aten::exp" in names(tmp_path / "script.pt.trace.json")


@posix
def test_processes_that_the_program_starts_show_nothing(run, script, tmp_path):
    script("""
        import multiprocessing, os
        import mindtorch_v2 as torch

        def work(x):
            torch.ones(1).cos()
            return x + 1

        if __name__ == "__main__":
            torch.ones(2).exp()
            for method in ("fork", "spawn"):
                with multiprocessing.get_context(method).Pool(1) as pool:
                    print(pool.map(work, [1, 2]))
            child = os.fork()
            if child == 0:
                torch.ones(1).cos()
            else:
                print(os.waitpid(child, 0)[1])
    """)
    done = run(*PROFILER, "script.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("[2, 3]\n[2, 3]\n0\n\n---")
    assert done.stdout.count(END_OF_TABLE) == 1
    found = names(tmp_path / "script.pt.trace.json")
    assert "aten::exp" in found
    assert "aten::cos" not in found


def test_the_programs_own_profilers_come_first(run, script, tmp_path):
    script("""
        import mindtorch_v2 as torch
        x = torch.ones(2)
        x.exp()
        with torch.profiler.profile() as prof:
            x.sin()
        with torch.autograd.profiler.profile() as old:
            x.tan()
        x.cos()
        print(*([e.name for e in events if e["kind"] == "op"] for events in (prof.events(), old.function_events)))
    """)
    done = run(*PROFILER, "--table", "table.txt", "script.py")
    assert done.returncode == 0
    assert done.stdout == "['aten::sin'] ['aten::tan']\n"
    assert "own profiler (script.py:5, script.py:7)" in done.stderr
    assert names(tmp_path / "script.pt.trace.json")[-2:] == ["aten::exp", "aten::cos"]
    assert "aten::cos" in (tmp_path / "table.txt").read_text()


def test_a_program_that_changes_the_directory_leaves_no_spool(run, script, tmp_path):
    script("""
        import os, torch
        os.mkdir("other")
        os.chdir("other")
        torch.ones(2).sin()
        with torch.profiler.profile():
            pass
        torch.ones(2).cos()
    """)
    done = run(*PROFILER, "--no-trace", "script.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert "aten::cos" in done.stdout
    assert not list(tmp_path.rglob("*.spool"))


def test_a_file_that_cannot_be_written_at_the_end_is_said_and_fails(run, script):
    script("import os\nos.rmdir('results')\nprint('done')")
    done = run("-c", "import os; os.mkdir('results')")
    done = run(*PROFILER, "--trace", "results/t.json", "script.py")
    assert done.returncode == 1
    assert done.stdout.startswith("done\n\nNothing was recorded")
    assert "cannot write the trace to 'results/t.json': No such file or directory" in done.stderr


def test_an_error_while_results_are_made_is_shown_with_its_traceback(run, script, tmp_path):
    script(
        """
        import mindtorch_v2 as torch
        from mindtorch_v2.profiler.cli.printed_run import PrintedRun

        def make_table(self):
            raise LookupError("no rows today")

        PrintedRun._table_text = make_table
        torch.ones(2) * 2
        print("done")
        """
    )
    ended = run(*PROFILER, "--session", "run.session", "script.py")
    assert ended.returncode == 1
    assert ended.stdout == "done\n"
    message, *lines = ended.stderr.splitlines()
    assert message == "python -m mindtorch_v2.profiler: making the results failed: LookupError: no rows today"
    assert lines[0] == "Traceback (most recent call last):"
    assert any(line.endswith(", in make_table") for line in lines)  # the line of the program, too
    assert lines[-1] == "LookupError: no rows today"
    assert (tmp_path / "run.session").exists()  # what was written before stays


def complaint(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        cli.main(arguments)
    return end.value.code, capsys.readouterr().err


def test_bad_arguments_are_found_before_anything_runs(capsys, script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script("raise AssertionError('it ran')")
    (tmp_path / "folder").mkdir()
    cases = {
        ("missing.py",): (2, "can't open file"),
        ("folder",): (1, "can't find '__main__' module in"),
        ("--trace", "folder", "script.py"): (2, "--trace: cannot write 'folder': Is a directory"),
        ("--session", "no/s", "script.py"): (2, "--session: cannot write 'no/s': No such file or directory"),
        ("--trace", "x", "--session", "./x", "script.py"): (2, "--trace and --session both name './x'"),
        ("--trace", "script.py", "other.py"): (2, "is the name of a program"),
        ("--trace", "x", "--no-trace", "script.py"): (2, "not allowed with"),
        ("--sort-by", "size", "script.py"): (2, "argument --sort-by: invalid choice: 'size'"),
        ("--row-limit", "-5", "script.py"): (2, "invalid number of rows"),
        ("--rec", "script.py"): (2, "unrecognized arguments: --rec"),
        (): (2, "script.py"),
    }
    for arguments, (status, message) in cases.items():
        code, error = complaint(capsys, *arguments)
        assert code == status, arguments
        assert message in error, arguments
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "script.py"]


def test_a_directory_that_takes_no_files(capsys, script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script("raise AssertionError('it ran')")

    def refuse(path, *rest):
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "open", refuse)
    code, error = complaint(capsys, "script.py")
    assert code == 2
    wanted = "--trace: cannot write 'script.pt.trace.json': Permission denied; choose a place with --trace PATH, or give --no-trace"
    assert wanted in error


@posix
def test_a_program_can_come_through_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text("x = 1"))
    writer.start()
    found = program.of_script(str(tmp_path / "pipe"))
    writer.join()
    names = {}
    exec(found.code, names)
    assert names["x"] == 1


def test_help_names_every_option(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    for option in (
        "-m",
        "--record-shapes",
        "--with-stack",
        "--sort-by",
        "--row-limit",
        "--table",
        "--trace",
        "--no-trace",
        "--session",
    ):
        assert f"  {option}" in text


READING = """
    import mindtorch_v2 as torch
    x = torch.randn(3000)
    print(len([x[i].item() for i in range(3000)]))
"""


@pytest.mark.parametrize("table", ["stdout", "none"])
def test_advice_follows_the_table(run, script, table):
    script(READING)
    done = run(*PROFILER, "--advice", "--no-trace", "--with-stack", "--table", table, "script.py")
    assert (done.returncode, done.stderr) == (0, "")
    before, advice = done.stdout.split("1. ", 1)
    assert (END_OF_TABLE in before) == (table == "stdout")
    assert "3,000 times" in advice
    assert "script.py:4 " in advice
    assert "needs record_shapes=True" in advice


def test_advice_about_a_saved_session(run, script, tmp_path, monkeypatch, capsys):
    script(READING)
    run(*PROFILER, "--no-trace", "--table", "none", "--session", "s.session", "script.py")
    monkeypatch.chdir(tmp_path)

    def advised(*arguments):
        cli.main(["advise", *arguments])
        return capsys.readouterr().out

    assert "item() in a loop" in advised("s.session", "--min-share", "0")
    written = json.loads(advised("--json", "--min-share", "0", "s.session"))
    assert "item() in a loop" in [finding["rule"] for finding in written["findings"]]
    with pytest.raises(SystemExit) as end:
        advised("none.session")
    shown = capsys.readouterr()
    assert (end.value.code, shown.out) == (1, "")
    assert "No such file" in shown.err


SAYS = {
    "torch": ("import torch", "the program imports torch and ran no operator of it."),
    "torch below": ("from torch.nn import functional", "the program imports torch and ran no operator of it."),
    "both": ("import torch\nimport mindtorch_v2", "the program imports torch and ran no operator of it."),
    "no operator": ("import mindtorch_v2 as torch", "the program imports mindtorch_v2 and ran no operator of it."),
    "in a function": ("def f():\n    from mindtorch_v2 import nn", "the program imports mindtorch_v2 and ran no operator of it."),
    "in a module": ("import helper", "the program imports mindtorch_v2 and ran no operator of it."),
    "neither": ("import json", "the program imports neither torch nor mindtorch_v2."),
    "own profiler": (
        "import mindtorch_v2 as torch\nwith torch.profiler.profile(): torch.ones(2)",
        "no operator ran outside of the program's own profiler",
    ),
    "fork": (
        "import os\nimport mindtorch_v2 as torch\nif os.fork() == 0: torch.ones(2); os._exit(0)\nos.wait()",
        "no operator of mindtorch_v2 ran in this process. The program started others",
    ),
    "subprocess": (
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import mindtorch_v2'])",
        "no operator of mindtorch_v2 ran in this process. The program started others",
    ),
}


@pytest.mark.parametrize("case", SAYS)
def test_why_nothing_was_recorded(run, script, tmp_path, case):
    if case == "fork" and not hasattr(os, "fork"):
        pytest.skip("fork is POSIX's")
    text, reason = SAYS[case]
    (tmp_path / "torch.py").write_text("")  # stands for PyTorch, which is not asked
    script("from mindtorch_v2 import ones", "helper.py")
    script(text)
    done = run(*PROFILER, "--no-trace", "script.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("\nNothing was recorded: ")
    assert reason in done.stdout
    assert "Does it import torch?" not in done.stdout


@posix
class TestOnATerminal:
    """The table fits the terminal that it is printed to, and nothing else."""

    PROGRAM = """
        import mindtorch_v2 as torch
        with torch.profiler.record_function("a scope with a name that is longer than most terminals have room for"):
            torch.ones(2) * 2
    """

    def printed(self, tmp_path, script, columns):
        import fcntl
        import pty
        import struct
        import termios

        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
        environment.pop("COLUMNS", None)
        command = [sys.executable, *PROFILER, "--no-trace", script(self.PROGRAM)]
        process = subprocess.Popen(command, stdout=theirs, stdin=theirs, stderr=subprocess.PIPE, cwd=tmp_path, env=environment)
        os.close(theirs)
        text = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the end, on Linux
                break
            if not part:
                break
            text += part
        os.close(ours)
        assert (process.stderr.read(), process.wait()) == (b"", 0)
        process.stderr.close()
        return text.decode().splitlines()

    def test_narrow(self, tmp_path, script):
        lines = self.printed(tmp_path, script, 80)
        at = next(i for i, line in enumerate(lines) if line.startswith("--"))
        assert max(map(len, lines[at : at + 5])) <= 80
        assert any("…" in line for line in lines[at : at + 8])
        assert any(line.startswith("To fit 80 characters: ") for line in lines)

    def test_wide(self, tmp_path, script):
        lines = self.printed(tmp_path, script, 300)
        assert not any(line.startswith("To fit") for line in lines)

    def test_no_terminal(self, run, script):
        text = run(*PROFILER, "--no-trace", script(self.PROGRAM)).stdout
        assert "To fit" not in text
        assert "CPU time avg" in text
