"""The tutorials' programs: what the tool names first is the cause that was planted."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "examples" / "tutorials"


@pytest.fixture
def run(tmp_path):
    """Runs a command of `mindtorch`, or a program, in a directory of the test's own; returns what it prints."""

    def run(*command):
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-W", "error", *map(str, command)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def mindtorch(run):
    return lambda *arguments: run("-m", "mindtorch_front", *arguments)


def test_my_training_is_slow(mindtorch):
    text = mindtorch("profile", "--with-stack", "-o", "slow", PROGRAMS / "slow_training.py")
    assert "First advice: The program made tensors of Python data (torch.tensor)" in text
    first = json.loads(mindtorch("advise", "--json", "slow"))["findings"][0]
    assert any("slow_training.py" in evidence.get("place", "") for evidence in first["evidence"])


def test_i_run_out_of_memory(mindtorch):
    text = mindtorch("profile", "--profile-memory", "--with-stack", "-o", "grow", PROGRAMS / "growing_memory.py")
    assert "First advice: Memory grows by 128.50 KB a step" in text
    findings = json.loads(mindtorch("advise", "--json", "grow"))["findings"]
    (grows,) = [finding for finding in findings if finding["rule"] == "memory grows with each step"]
    lines = (PROGRAMS / "growing_memory.py").read_text().splitlines()
    kept = next(number for number, line in enumerate(lines, 1) if "predictions.append" in line)
    assert {evidence["place"].split(":")[-2] for evidence in grows["evidence"]} == {str(kept)}


def test_it_got_slower_since_yesterday(mindtorch):
    program = PROGRAMS / "yesterday_and_today.py"
    for folder, hidden in (("yesterday", 256), ("today", 512)):
        mindtorch("profile", "--quiet", "--with-modules", "-o", folder, program, "--hidden", hidden, "--steps", 60)
    changes = json.loads(mindtorch("diff", "--json", "yesterday", "today"))["changes"]
    assert changes[0]["module"] in ("Model.middle.0", "Model.middle.2")
    assert (changes[0]["kind"], changes[0]["name"]) in {("slower", "aten::addmm"), ("slower", "aten::mm")}


def test_i_have_a_trace_from_a_gpu_machine(run, mindtorch):
    run(PROGRAMS / "gpu_trace.py", "gpu.json.gz")
    first = mindtorch("device", "gpu.json.gz").splitlines()[0]
    assert first.startswith("CUDA:0 (a GPU): busy 55.4% of 38.985ms; idle: synchronization 44.3%")
    (process,) = json.loads(mindtorch("info", "--json", "gpu.json.gz"))["processes"]
    assert process["steps"] == [0, 19]
