"""What several tests of the profiler ask for by name."""

import gc
import os
import subprocess
import sys
import textwrap

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._storage import UntypedStorage
from mindtorch_v2.profiler import ExecutionTraceObserver
from mindtorch_v2.profiler.capture.memory.storage_hooks import array_slot

from .execution_traces import Trace


@pytest.fixture
def traced(tmp_path):
    """A function that runs another under an observer and reads what was written."""

    def run(work, name="trace.json"):
        path = tmp_path / name
        observer = ExecutionTraceObserver().register_callback(str(path))
        try:
            observer.start()
            work()
            observer.stop()
        finally:
            observer.unregister_callback()
        return Trace(path)

    return run


@pytest.fixture
def run_python(tmp_path):
    """A function that runs a program in a process of its own, in the temporary folder, with warnings as errors."""

    def run(source, *arguments):
        (tmp_path / "script.py").write_text(textwrap.dedent(source))
        environment = os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(torch.__file__))}
        command = [sys.executable, "-W", "error", "script.py", *map(str, arguments)]
        # the limit is for programs that hang: on a machine with ten times the work, 12 s of computing took more than 120
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=900)

    return run


@pytest.fixture(scope="module")
def nothing_frozen():
    """No object is out of the collector's sight, as in most programs: advice walks through all objects otherwise, 0.4 s each time among those of all tests."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.fixture
def history_off(tmp_path, monkeypatch):
    """No history of memory is recorded after the test, and nothing is left that watches."""
    monkeypatch.chdir(tmp_path)  # where the snapshot of a failed allocation goes
    gc.collect()
    yield
    torch.cpu.memory._record_memory_history(enabled=None)
    assert vars(UntypedStorage)["array"] is array_slot
