"""Names that lead to other tools: they are there, and say what they cannot do."""

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ExecutionTraceObserver, itt, profile


def test_itt_is_not_available():
    assert itt.is_available() is False
    for call in (lambda: itt.mark("x"), lambda: itt.range_push("x"), itt.range_pop, lambda: itt.range("x {}", 1).__enter__()):
        with pytest.raises(RuntimeError, match="ITT is not part of this runtime"):
            call()


class TestExecutionTraceObserver:
    def test_cannot_be_registered(self, monkeypatch):
        observer = ExecutionTraceObserver()
        with pytest.raises(NotImplementedError, match="not supported yet"):
            observer.register_callback("trace.json")
        assert not observer.is_registered
        assert ExecutionTraceObserver.build_execution_trace_obs_from_env() is None
        monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", "1")
        with pytest.raises(NotImplementedError, match="not supported yet"):
            ExecutionTraceObserver.build_execution_trace_obs_from_env()

    def test_a_profiler_takes_one(self):
        with profile(execution_trace_observer=ExecutionTraceObserver()) as prof:
            torch.ones(2).neg()
        assert "aten::neg" in [e.name for e in prof.events()]

    def test_folders_of_other_files(self, tmp_path):
        path = str(tmp_path / "trace.json")
        assert ExecutionTraceObserver.get_resources_dir_for_et_path(path) is None
        folder = str(tmp_path / "trace_resources")
        assert ExecutionTraceObserver.get_resources_dir_for_et_path(path, create_dir=True) == folder
        assert ExecutionTraceObserver.get_resources_dir_for_et_path(path) == folder
        with pytest.warns(UserWarning, match="cannot be made"):
            missing = ExecutionTraceObserver.get_resources_dir_for_et_path(str(tmp_path / "no" / "x.json"), create_dir=True)
        assert missing is None


def test_observers_of_ones_own_follow_the_recording():
    calls = []

    class Observer(torch.profiler.profiler._ITraceObserver):
        def start(self):
            calls.append("start")

        def stop(self):
            calls.append("stop")

        def cleanup(self):
            calls.append("cleanup")

    with profile(execution_trace_observer=Observer()):
        pass
    assert calls == ["start", "stop", "cleanup"]
