"""Programs of several processes: what each of them computes, and sees in profiles, as in torch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.parity

PROGRAMS = Path(__file__).with_name("distributed_programs")


def _run(program, size, path, *, ours):
    """What each rank of a program wrote."""
    launcher = ["-m", "mindtorch_v2", "run"] if ours else []
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *launcher, str(PROGRAMS / program), str(size), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(Path(f"{path}.{rank}").read_text()) for rank in range(size)]


@pytest.mark.parametrize("size", [2, 3])
def test_operations_between_processes(size, tmp_path):
    ours = _run("collectives.py", size, tmp_path / "ours", ours=True)
    theirs = _run("collectives.py", size, tmp_path / "theirs", ours=False)
    for rank in range(size):
        assert ours[rank].keys() == theirs[rank].keys()
        different = {key: (ours[rank][key], theirs[rank][key]) for key in ours[rank] if ours[rank][key] != theirs[rank][key]}
        assert not different


@pytest.mark.parametrize("size", [2, 3])
def test_training_by_several_processes(size, tmp_path):
    ours = _run("training.py", size, tmp_path / "ours", ours=True)
    theirs = _run("training.py", size, tmp_path / "theirs", ours=False)
    for own, other in zip(ours, theirs, strict=True):
        assert own.keys() == other.keys()
        for name, run in own.items():
            if not isinstance(run, dict) or "losses" not in run:
                continue
            assert run["repr"] == other[name]["repr"]
            assert run["losses"] == pytest.approx(other[name]["losses"], rel=1e-5, abs=1e-6), name
            for step, (grads, expected) in enumerate(zip(run["gradients"], other[name]["gradients"], strict=True)):
                assert [g is None for g in grads] == [g is None for g in expected], (name, step)
                tolerance = 2e-3 if name == "half" else 1e-5
                assert [g or 0.0 for g in grads] == pytest.approx([g or 0.0 for g in expected], rel=1e-4, abs=tolerance), (
                    name,
                    step,
                )
            assert run["state"].keys() == other[name]["state"].keys()
        for name in ("rows", "distributedInfo", "no parameters", "device_ids", "unused left"):
            assert own[name] == other[name], name
        assert own["copied"] == pytest.approx(other["copied"], rel=1e-4, abs=1e-5)
