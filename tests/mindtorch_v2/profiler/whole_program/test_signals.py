"""Signals that end a recorded program, once and again: what existed is in the results, or in the spool."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from mindtorch_v2.profiler.opening import open_recording

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")

SOURCE = Path(__file__).parents[4] / "src"
ENVIRONMENT = {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
COUNT = 2_000

WORKING = f"""
    import signal
    import torch
    from mindtorch_v2.profiler.capture import capture
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell runs in the background
    for _ in range({COUNT}):
        torch.ones(2).exp()
    capture.active._draining._work()  # what the recorder's own thread does within a second
    print("ready", flush=True)
    while True:
        torch.ones(2).sin()
"""
OWN_PROFILER = "import sys, mindtorch_v2\nsys.modules['torch'] = mindtorch_v2\nfrom mindtorch_v2.profiler import profile\n"
OWN_PROFILER += "with profile(spool='own.spool', profile_memory=True) as prof:\n"

COMMANDS = {
    "mindtorch profile": ["-m", "mindtorch_v2", "profile", "--quiet", "-o", "out", "script.py"],
    "python -m": ["-m", "mindtorch_v2.profiler", "--profile-memory", "script.py"],
    "its own": ["script.py"],
}


@pytest.fixture
def start(tmp_path):
    """Starts a command on a program in a directory of the test's own; it is killed at the end of the test if it goes on."""
    begun = []

    def start(command, text):
        text = textwrap.dedent(text)
        if command == "its own":
            text = OWN_PROFILER + textwrap.indent(text, "    ")
        (tmp_path / "script.py").write_text(text)
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [sys.executable, *COMMANDS[command]],
            cwd=tmp_path,
            env={**os.environ, **ENVIRONMENT},
            stdout=pipe,
            stderr=pipe,
            text=True,
        )
        begun.append(process)
        return process

    yield start
    for process in begun:
        process.kill()
        process.communicate()


def operators(session):
    labels = [session.labels[i] for i in session.label.tolist()]
    return [label.name for label in labels if label.kind == "op"]


def left(folder):
    """The sessions that are left, of whatever files."""
    ends = (".session", ".spool")
    return [open_recording(path).session for path in sorted(folder.rglob("*")) if path.suffix in ends]


@pytest.mark.parametrize("signals", [1, 2, 3])
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_signal_loses_what_was_recorded(start, tmp_path, command, name, signals):
    process, number = start(command, WORKING), getattr(signal, name)
    assert process.stdout.readline() == "ready\n"
    for _ in range(signals):
        process.send_signal(number)
        try:
            process.wait(0.15)
        except subprocess.TimeoutExpired:
            continue
    _, errors = process.communicate(timeout=60)
    assert process.returncode in (-number, 128 + number, 1 if name == "SIGINT" else -number), errors
    assert "whole_program" not in errors, errors
    trace = tmp_path / "script.pt.trace.json"
    sessions = left(tmp_path) + ([open_recording(trace).session] if trace.exists() else [])
    for session in sessions:
        assert operators(session).count("aten::exp") == COUNT
    assert sessions


TRAINING = """
    import os, signal, sys, torch
    from mindtorch_v2.profiler.capture import {module}

    signal.signal(signal.SIGINT, signal.default_int_handler)
    function = {module}.{function}

    def interrupted(*arguments):
        {module}.{function} = function
        for _ in range(2):
            os.kill(os.getpid(), signal.{name})
        return function(*arguments)

    {module}.{function} = interrupted
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(8):
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
@pytest.mark.parametrize("where", ["log_records.drain", "columns.assemble"])
def test_signals_while_a_cycle_ends_lose_nothing_of_it(tmp_path, name, where):
    module, function = where.split(".")
    (tmp_path / "script.py").write_text(textwrap.dedent(TRAINING.format(module=module, function=function, name=name)))
    command = [sys.executable, "-m", "mindtorch_v2", "profile", "--wait", "2", "--active", "3", "-o", "out", "script.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode in (-signal.SIGTERM, 128 + signal.SIGINT, -signal.SIGINT), done.stderr
    (session,) = left(tmp_path)
    assert operators(session).count("aten::addmm") == 3


def test_a_recording_whose_end_fails_is_read_from_its_spool(tmp_path):
    text = TRAINING.format(module="columns", function="assemble", name="SIGTERM")
    text = text.replace("os.kill(os.getpid(), signal.SIGTERM)", "raise MemoryError")
    text = text.replace(
        "        optimizer.step()", "        try:\n            optimizer.step()\n        except MemoryError:\n            pass"
    )
    (tmp_path / "script.py").write_text(textwrap.dedent(text))
    command = [sys.executable, "-m", "mindtorch_v2", "profile", "--quiet", "--active", "3", "-o", "out", "script.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    (session,) = left(tmp_path)
    assert operators(session).count("aten::addmm") == 3
