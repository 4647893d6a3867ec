"""`mindtorch profile`: a program runs as it does without, and leaves a folder with the answers."""

import gzip
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from mindtorch_v2.cli.frame import main
from mindtorch_v2.profiler.model.session import Session
from mindtorch_v2.profiler.opening import open_recording

SOURCE = Path(__file__).parents[4] / "src"
COMMAND = ("-W", "error", "-m", "mindtorch_v2", "profile")


@pytest.fixture
def profile(tmp_path):
    """Runs the command on a script in a directory of the test's own."""

    def run(text, *options, arguments=(), **more):
        (tmp_path / "script.py").write_text(textwrap.dedent(text))
        environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, *COMMAND, *options, "script.py", *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120, **more)

    return run


def names(session: Session) -> list[str]:
    return [session.labels[i].name for i in session.label]


TRAINING = """
    import sys, torch
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(int(sys.argv[1])):
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    print("trained", sys.argv[1:])
"""


def test_a_folder_with_all_results(profile, tmp_path):
    done = profile(TRAINING, arguments=["4", "--", "-x"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("trained ['4', '--', '-x']\n")
    assert "of script.py 4 -- -x, 4 steps (median " in done.stdout
    assert "open script.profile/report.html in a browser" in done.stdout
    assert "Most time in" in done.stdout
    folder = tmp_path / "script.profile"
    assert {path.name for path in folder.iterdir()} == {"run.session", "trace.json.gz", "report.html", "summary.json"}
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["steps"]["count"] == 4
    assert sum(summary["parts_ns"].values()) == summary["wall_ns"]
    session = Session.load(folder / "run.session")
    assert names(session).count("aten::addmm") == 4
    assert session.info.environment["threads"] == 1


def test_a_second_run_has_a_folder_of_its_own(profile, tmp_path):
    profile(TRAINING, arguments=["1"])
    done = profile(TRAINING, arguments=["2"])
    assert "script.profile-2/report.html" in done.stdout
    assert (tmp_path / "script.profile-2" / "run.session").exists()
    done = profile(TRAINING, "-o", "script.profile", arguments=["2"])
    assert done.returncode == 2
    assert "has the results of another run" in done.stderr
    assert done.stdout == ""  # nothing ran


def test_a_schedule(profile, tmp_path):
    done = profile(TRAINING, "--wait", "2", "--active", "2", "-o", "out", arguments=["9"])
    assert done.returncode == 0, done.stderr
    session = Session.load(tmp_path / "out" / "run.session")
    assert {name for name in names(session) if name.startswith("ProfilerStep#")} == {"ProfilerStep#3", "ProfilerStep#4"}


def test_a_limit_is_told(profile, tmp_path):
    done = profile(TRAINING, "--max-events", "40", "-o", "out", arguments=["30"])
    assert "The recording ended after 40 events and " in done.stdout
    assert "trained" in done.stdout
    assert 0 < names(Session.load(tmp_path / "out" / "run.session")).count("aten::addmm") < 30


def test_the_last_events_are_kept_if_asked(profile, tmp_path):
    done = profile(TRAINING, "--max-events", "40", "--keep", "last", "-o", "out", arguments=["30"])
    assert "The recording ended" not in done.stdout
    session = Session.load(tmp_path / "out" / "run.session")
    assert len(session) == 40
    assert "ProfilerStep#29" in names(session)
    done = profile(TRAINING, "--max-events", "0", "--keep", "last", arguments=["1"])
    assert done.returncode == 2
    assert "--keep last needs to know how much: give --max-events, --max-bytes or --max-seconds" in done.stderr


def test_a_schedule_that_begins_after_the_end(profile, tmp_path):
    done = profile(TRAINING, "--wait", "2", "--warmup", "1", "--active", "2", arguments=["2"])
    assert "Nothing was recorded: the schedule begins to record after 3 steps, and the program made 2." in done.stderr
    assert not (tmp_path / "script.profile").exists()


def test_patterns_leave_operators_out(profile, tmp_path):
    done = profile(TRAINING, "--include", "aten::*mm", "-o", "out", arguments=["2"])
    assert "Operators that include and exclude leave out are not recorded: their time counts as own Python." in done.stdout
    operators = {name for name in names(Session.load(tmp_path / "out" / "run.session")) if name.startswith("aten::")}
    assert operators == {"aten::addmm", "aten::mm"}


def test_json_is_the_last_line_and_quiet_prints_nothing(profile):
    done = profile(TRAINING, "--json", arguments=["2"])
    *_, last = done.stdout.splitlines()
    found = json.loads(last)
    assert found["steps"]["count"] == 2
    assert found["files"]["report.html"] == os.path.join("script.profile", "report.html")
    done = profile(TRAINING, "--quiet", arguments=["2"])
    assert done.stdout == "trained ['2']\n"
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("end", "status", "message"),
    [
        ("raise ValueError('mine')", 1, "ValueError: mine"),
        ("import sys; sys.exit(7)", 7, ""),
        ("import os; os._exit(3)", 3, ""),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM, ""),
    ],
)
def test_however_the_program_ends_its_results_are_there(profile, tmp_path, end, status, message):
    done = profile(f"import torch; torch.ones(3).sin()\n{end}", "-o", "out")
    assert done.returncode == status
    assert message in done.stderr
    assert "aten::sin" in names(Session.load(tmp_path / "out" / "run.session"))
    assert (tmp_path / "out" / "report.html").exists()


def test_wrong_options_and_programs_run_nothing(profile, tmp_path):
    done = profile("print('ran')", "--wait", "3")
    assert (done.returncode, done.stdout) == (2, "")
    assert "a schedule needs --active" in done.stderr
    done = profile("print('ran')", "--max-events", "-1")
    assert (done.returncode, done.stdout) == (2, "")
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, *COMMAND, "none.py"], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120
    )
    assert done.returncode == 2
    assert "can't open file" in done.stderr
    assert not (tmp_path / "none.profile").exists()


def test_nothing_recorded_is_explained(profile):
    done = profile("print('hello')")
    assert done.returncode == 0
    assert "Nothing was recorded: the program imports neither torch nor mindtorch_v2." in done.stderr


CHILDREN = """
    import multiprocessing, os, subprocess, sys, torch

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return torch.ones(2).tan()

    def work():
        torch.ones(2).tan()

    if __name__ == "__main__":
        how = sys.argv[1]
        torch.ones(2).cos()
        if how == "loader":
            list(torch.utils.data.DataLoader(Data(), num_workers=1))
        elif how == "subprocess":
            subprocess.run([sys.executable, "-c", "import torch; torch.ones(2).tan()"], check=True)
        elif how == "os.fork":
            pid = os.fork()
            if pid == 0:
                work()
                sys.exit(0)
            os.waitpid(pid, 0)
        else:
            process = multiprocessing.get_context(how).Process(target=work)
            process.start()
            process.join()
"""


@pytest.mark.skipif(os.name != "posix", reason="fork is POSIX's")
@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver", "subprocess", "os.fork", "loader"])
def test_processes_that_the_program_starts_are_recorded_too(profile, tmp_path, how):
    done = profile(CHILDREN, "-o", "out", arguments=[how])
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "and 1 other process" in done.stdout
    main = Session.load(tmp_path / "out" / "run.session")
    (path,) = (tmp_path / "out").glob("process-*.session")
    child = Session.load(path)
    assert "aten::tan" in names(child)
    assert "aten::tan" not in names(main)
    assert "aten::cos" not in names(child)
    assert path.name == f"process-{child.info.pid}.session"
    assert child.info.parent_pid == main.info.pid  # that of a forkserver's process, too, which the server started
    assert main.info.started_ns < child.start_ns.min() < main.info.stopped_ns  # on one time base


KILLED = """
    import os, subprocess, sys, torch
    torch.ones(2).cos()
    child = "import ctypes, os, signal, time, torch; torch.ones(2).tan(); time.sleep(0.7); {end}"
    process = subprocess.Popen([sys.executable, "-c", child])
    process.wait() if "{wait}" else os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
@pytest.mark.parametrize(
    ("end", "wait", "why"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "yes", "and was not stopped: its process was killed, crashed or left by os._exit"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "", "and was not stopped: its process was killed, crashed or left by os._exit"),
        ("ctypes.string_at(0)", "yes", "by a crash: Fatal Python error: Segmentation fault"),
    ],
)
def test_a_process_that_was_killed_is_recovered(profile, tmp_path, end, wait, why):
    done = profile(KILLED.format(end=end, wait=wait), "-o", "out")
    assert done.returncode == 0, done.stderr
    assert "and 1 other process" in done.stdout
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("Process "))
    assert line.endswith(f"{why}.")
    (process,) = json.loads((tmp_path / "out" / "summary.json").read_text())["processes"]
    assert process["ended"] in line
    assert process["events"] == len(open_recording(tmp_path / "out").sessions[1])
    main, child = open_recording(tmp_path / "out").sessions
    assert ("aten::cos" in names(main), "aten::tan" in names(child)) == (True, True)
    rows = json.loads(gzip.decompress((tmp_path / "out" / "trace.json.gz").read_bytes()))["traceEvents"]
    assert {"aten::cos", "aten::tan"} <= {row.get("name") for row in rows}


CRASHES = """
    import ctypes, faulthandler, os, time, torch
    torch.ones(2).cos()
    log = open("log", "wb")
    {own}
    pid = os.fork()
    if not pid:
        torch.ones(2).tan()
        time.sleep(0.7)
        ctypes.string_at(0)
    os.waitpid(pid, 0)
    print("enabled", faulthandler.is_enabled())
"""


@pytest.mark.skipif(os.name != "posix", reason="fork is POSIX's")
@pytest.mark.parametrize("options", [(), ("--no-children",)])
class TestCrashesOfForkedProcesses:
    """The traceback of a crash is written where the program has it, and otherwise to the spool of the process that crashed."""

    def crash(self, profile, options, own):
        done = profile(CRASHES.format(own=own), "-o", "out", *options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def test_a_program_that_asks_for_it_has_it(self, profile, tmp_path, options):
        assert "enabled True" in self.crash(profile, options, "faulthandler.enable(file=log)")
        assert b"Segmentation fault" in (tmp_path / "log").read_bytes()

    def test_a_program_that_wants_none_has_none(self, profile, tmp_path, options):
        told = self.crash(profile, options, "faulthandler.disable()")
        assert "enabled False" in told
        assert "by a crash" not in told

    def test_others_have_it_in_the_spool(self, profile, tmp_path, options):
        told = self.crash(profile, options, "")
        assert ("by a crash: Fatal Python error: Segmentation fault" in told) == (not options)


WORKERS = """
    import multiprocessing, os, signal, sys, torch

    def work(end):
        for _ in range(40):
            torch.ones(2).tan()
        with torch.profiler.profile():  # until here, the spool has all
            pass
        if end == "killed":
            os.kill(os.getpid(), signal.SIGKILL)

    if __name__ == "__main__":
        workers = [multiprocessing.Process(target=work, args=(end,)) for end in ("by itself", "killed")]
        for worker in workers:
            worker.start()
            worker.join()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_processes_without_an_optimizer_have_no_steps(profile, tmp_path, capsys):
    assert profile(WORKERS, "-o", "out").returncode == 0
    assert len(list((tmp_path / "out").glob("process-*.spool"))) == 1  # of the one that was killed
    for path in ("out", "out/trace.json.gz"):
        main(["info", str(tmp_path / path), "--json"])
        told = json.loads(capsys.readouterr().out)["processes"]
        assert [process["steps"] for process in told if process["steps"]] == []
        assert sum(process["event_count"] >= 80 for process in told) == 2


def test_processes_are_left_alone_if_asked(profile, tmp_path):
    done = profile(CHILDREN, "-o", "out", "--no-children", arguments=["subprocess"])
    assert "other process" not in done.stdout
    assert not list((tmp_path / "out").glob("process-*"))


def test_stacks_begin_with_the_program(profile, tmp_path):
    profile("import torch\ntorch.ones(2).sin()", "--with-stack", "-o", "out")
    session = Session.load(tmp_path / "out" / "run.session")
    functions = {label.name for label in session.labels if label.kind == "python_function"}
    assert "script.py(1): <module>" in functions
    assert not [name for name in functions if "mindtorch_front" in name or "runpy" in name or "cli/" in name]
    sin = next(row for row in range(len(session)) if names(session)[row] == "aten::sin")
    assert [session.frames[f].function for f in session.stack_table[session.stack[sin]]] == ["<module>"]


@pytest.mark.skipif(os.name != "posix", reason="fork is POSIX's")
def test_the_trace_has_all_processes(profile, tmp_path):
    profile(CHILDREN, "-o", "out", arguments=["fork"])
    rows = json.loads(gzip.decompress((tmp_path / "out" / "trace.json.gz").read_bytes()))["traceEvents"]
    by_process = {row["pid"]: row["name"] for row in rows if row.get("name") in ("aten::cos", "aten::tan")}
    assert sorted(by_process.values()) == ["aten::cos", "aten::tan"]
