"""Every example runs, learns, and prints the losses that it prints under PyTorch."""

import contextlib
import io
import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import mindtorch_v2

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

# What gets smaller where the loss need not: two networks that compete, and an agent that meets harder situations the better it is.
GETS_SMALLER = {"gan": r"distance from the ring (\S+)", "policy_gradient": r"fallen for (\S+)"}

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
    output = run("-W", "error", example, "--steps", 30)
    printed = [float(x) for x in re.findall(GETS_SMALLER.get(example.stem, r"loss (\S+)"), output)]
    assert printed[-1] < 0.9 * printed[0]


def printed_by(library, example, folder):
    """What an example prints with `mindtorch_v2` meaning this library, on one thread and in this process."""
    script = folder / example.name
    script.write_text(example.read_text().replace("mindtorch_v2", library.__name__))
    threads, printed = library.get_num_threads(), io.StringIO()
    library.set_num_threads(1)
    try:
        with contextlib.redirect_stdout(printed), pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.setattr(sys, "argv", [example.name])
            runpy.run_path(str(script), run_name="__main__")
    finally:
        library.set_num_threads(threads)
    return printed.getvalue()


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")  # torch's own
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_every_loss_is_torchs(example, tmp_path):
    import torch

    ours, theirs = (losses(printed_by(library, example, tmp_path)) for library in (mindtorch_v2, torch))
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
