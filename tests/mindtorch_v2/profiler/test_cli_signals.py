"""Ctrl-C and other signals while `python -m mindtorch_v2.profiler` makes its results."""

import json
import os
import random
import signal
import subprocess
import sys
import threading

import pytest

from mindtorch_v2.profiler.model.session import Session

from .test_cli import END_OF_TABLE, PROFILER, SOURCE, names, run, script

__all__ = ["run", "script"]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")

ENVIRONMENT = {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
FILES = ["--session", "s.session", "--trace", "t.json"]

# a program that sends itself signals when its trace is about to be written
SIGNALS_IN_RESULTS = """
    import os, signal
    import mindtorch_v2 as torch
    from mindtorch_v2.profiler.output import chrome_trace

    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell runs in the background
    write = chrome_trace.write

    def send_and_write(*arguments, **options):
        for number in {numbers}:
            os.kill(os.getpid(), number)
        write(*arguments, **options)

    chrome_trace.write = send_and_write
    torch.ones(2).exp()
    {end}
"""
ENDS = {"well": "", "by Ctrl-C": "os.kill(os.getpid(), signal.SIGINT)", "at once": "os._exit(3)", "by an error": "raise ValueError"}


def left(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != "script.py")


@pytest.mark.parametrize("end", ENDS)
def test_one_interrupt_loses_nothing(run, script, tmp_path, end):
    script(SIGNALS_IN_RESULTS.format(numbers="[signal.SIGINT]", end=ENDS[end]))
    done = run(*PROFILER, *FILES, "script.py")
    assert done.returncode == 130
    assert "results are being made; Ctrl-C again gives up" in done.stderr
    assert END_OF_TABLE in done.stdout
    assert left(tmp_path) == ["s.session", "t.json"]
    assert "aten::exp" in names(tmp_path / "t.json")
    assert len(Session.load(tmp_path / "s.session")) > 0
    assert "profiler/cli" not in done.stderr


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("count", [2, 5])
def test_a_second_one_gives_up_what_is_not_complete(run, script, tmp_path, end, count):
    (tmp_path / "t.json").write_text("before")
    script(SIGNALS_IN_RESULTS.format(numbers=f"[signal.SIGINT] * {count}", end=ENDS[end]))
    done = run(*PROFILER, *FILES, "--advice", "script.py")
    assert done.returncode == 130
    assert "given up after Ctrl-C: the trace t.json, the table, the summary, the advice\n" in done.stderr
    assert "session  s.session (" in done.stdout
    assert END_OF_TABLE not in done.stdout
    assert left(tmp_path) == ["s.session", "t.json"]
    assert (tmp_path / "t.json").read_text() == "before"
    assert len(Session.load(tmp_path / "s.session")) > 0
    assert "profiler/cli" not in done.stderr


@pytest.mark.parametrize("end", ENDS)
def test_the_process_ends_by_sigterm_when_the_results_are_there(run, script, tmp_path, end):
    script(SIGNALS_IN_RESULTS.format(numbers="[signal.SIGTERM]", end=ENDS[end]))
    done = run(*PROFILER, *FILES, "script.py")
    assert done.returncode == -signal.SIGTERM
    assert END_OF_TABLE in done.stdout
    assert left(tmp_path) == ["s.session", "t.json"]
    assert "aten::exp" in names(tmp_path / "t.json")


def test_sigterm_in_the_middle_of_printing(run, script, tmp_path):
    script("""
        import io, os, signal, sys
        import mindtorch_v2 as torch

        class Raw(io.RawIOBase):
            def writable(self): return True
            def fileno(self): return 1
            def write(self, data):
                os.write(1, bytes(data))
                os.kill(os.getpid(), signal.SIGTERM)
                return len(data)

        torch.ones(2).exp()
        sys.stdout.detach()
        sys.stdout = sys.__stdout__ = io.TextIOWrapper(io.BufferedWriter(Raw()))
        print("half")
        sys.stdout.flush()
    """)
    done = run(*PROFILER, "--table", "stderr", "script.py")
    assert done.returncode == -signal.SIGTERM
    assert "half" in done.stdout
    assert END_OF_TABLE in done.stderr
    assert "aten::exp" in names(tmp_path / "script.pt.trace.json")


def test_a_thread_that_ends_the_process_has_its_results_finished(run, script, tmp_path):
    script("""
        import os, signal, threading
        import mindtorch_v2 as torch
        from mindtorch_v2.profiler.output import chrome_trace

        signal.signal(signal.SIGINT, signal.default_int_handler)
        write, begun = chrome_trace.write, threading.Event()

        def send_and_write(*arguments, **options):
            begun.set()
            main.join(2)  # it has ended, or waits for these results
            write(*arguments, **options)

        chrome_trace.write = send_and_write
        main = threading.main_thread()
        torch.ones(2).exp()
        threading.Thread(target=os._exit, args=(7,)).start()
        begun.wait()
    """)
    done = run(*PROFILER, "script.py")
    assert done.returncode == 7
    assert "aten::exp" in names(tmp_path / "script.pt.trace.json")


WORKING = """
    import signal
    import mindtorch_v2 as torch
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for _ in range(20_000):
        torch.ones(2).exp()
    print("ready", flush=True)
    while True:
        torch.ones(2).exp()
"""


@pytest.mark.parametrize("seed", range(6))
def test_interrupts_at_any_moment(script, tmp_path, seed):
    rng = random.Random(seed)
    script(WORKING)
    with subprocess.Popen(
        [sys.executable, *PROFILER, *FILES, "--table", "table.txt", "script.py"],
        cwd=tmp_path,
        env={**os.environ, **ENVIRONMENT},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "ready\n"
        killer = threading.Timer(100, process.kill)  # of a process that does not end
        killer.start()
        for delay in [0, *(rng.expovariate(4) for _ in range(rng.randint(1, 4)))]:
            try:
                process.wait(delay)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
        killer.cancel()
    assert process.returncode in (130, -signal.SIGINT), errors
    assert "profiler/cli" not in errors, errors
    assert "KeyboardInterrupt" in errors
    assert "s.session" in left(tmp_path)
    assert set(left(tmp_path)) <= {"s.session", "t.json", "table.txt"}
    assert len(Session.load(tmp_path / "s.session")) >= 40_000
    if "t.json" in left(tmp_path):
        json.loads((tmp_path / "t.json").read_text())
    if "table.txt" in left(tmp_path):
        assert END_OF_TABLE in (tmp_path / "table.txt").read_text()
