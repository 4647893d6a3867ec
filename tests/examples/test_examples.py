"""Every example runs, learns, and prints the losses that it prints under PyTorch."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

# Runs a script with the name mindtorch_v2 meaning torch.
AS_TORCH = """
import runpy, sys
import torch, torch.nn.functional
torch.set_num_threads(1)
for name, module in list(sys.modules.items()):
    if name == "torch" or name.startswith("torch."):
        sys.modules["mindtorch_v2" + name[5:]] = module
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture
def run(tmp_path):
    """Runs Python in a directory of the test's own."""
    return lambda *command: _run(command, tmp_path)


def _run(command, directory):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, *map(str, command)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=directory, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def losses(output):
    return [float(x) for x in re.findall(r"loss (\S+)", output)]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_it_learns(example, run):
    printed = losses(run("-W", "error", example, "--steps", 30))
    assert printed[-1] < 0.9 * printed[0]


@pytest.mark.parity
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_every_loss_is_torchs(example, run):
    ours, theirs = losses(run(example)), losses(run("-c", AS_TORCH, example))
    assert len(ours) == len(theirs) > 5
    assert ours == pytest.approx(theirs, rel=3e-4, abs=1e-5)


@pytest.mark.parametrize("oracle", [(), pytest.param(("-c", AS_TORCH), marks=pytest.mark.parity)], ids=["ours", "torch"])
def test_the_profiled_training_reports_each_cycle(run, tmp_path, oracle):
    printed = run(*oracle, ROOT / "examples" / "profile_training.py", "--steps", 30, "--rows", -1)
    assert re.findall(r"up to step (\d+):", printed) == ["10", "20"]
    for cycle in printed.split("up to step")[1:]:
        assert re.search(r"Optimizer\.step#Adam\.step .* 3 ", cycle)
        assert re.search(r" backward .* 3 ", cycle)
    traces = sorted((tmp_path / "traces").glob("*.pt.trace.json"))
    steps = [
        [row["name"] for row in json.loads(t.read_bytes())["traceEvents"] if row["name"].startswith("ProfilerStep")] for t in traces
    ]
    assert steps == [
        ["ProfilerStep#7", "ProfilerStep#8", "ProfilerStep#9"],
        ["ProfilerStep#17", "ProfilerStep#18", "ProfilerStep#19"],
    ]
