"""Every example runs, learns, and prints the losses that it prints under PyTorch."""

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


def run(*command):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def losses(output):
    return [float(x) for x in re.findall(r"loss (\S+)", output)]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_it_learns(example):
    printed = losses(run("-W", "error", example, "--steps", 30))
    assert printed[-1] < 0.9 * printed[0]


@pytest.mark.parity
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_every_loss_is_torchs(example):
    ours, theirs = losses(run(example)), losses(run("-c", AS_TORCH, example))
    assert len(ours) == len(theirs) > 5
    assert ours == pytest.approx(theirs, rel=3e-4, abs=1e-5)
