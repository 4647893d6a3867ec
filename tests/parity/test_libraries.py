"""Libraries written for PyTorch, used by programs that run under both: the same numbers."""

import json
import math
import os
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.parity

ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = sorted((pathlib.Path(__file__).parent / "library_programs").glob("*_program.py"))
QUIET = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}


def results(program, *command):
    environment = {**os.environ, **QUIET, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, *command, program], capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line.removeprefix("RESULT ") for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    return [json.loads(line) for line in lines]


def is_close(a, b):
    """The same number, but for what is rounded otherwise in some steps of training."""
    return a == b or (isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-5))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem.removesuffix("_program"))
def test_the_same_numbers(program):
    expected = results(program, program.with_name("with_torch.py"))
    assert expected
    found = results(program, "-m", "mindtorch_v2", "run")
    assert [row[:3] for row in found] == [row[:3] for row in expected]
    different = [e[0] for f, e in zip(found, expected, strict=True) if not all(map(is_close, f[3], e[3]))]
    assert different == []
