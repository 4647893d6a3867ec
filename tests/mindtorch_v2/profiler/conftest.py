"""What several tests of the profiler ask for by name."""

import pytest

from mindtorch_v2.profiler import ExecutionTraceObserver

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
