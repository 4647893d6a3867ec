"""Names that lead to other tools: they are there, and say what they cannot do."""

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import itt, profile


def test_itt_is_not_available():
    assert itt.is_available() is False
    for call in (lambda: itt.mark("x"), lambda: itt.range_push("x"), itt.range_pop, lambda: itt.range("x {}", 1).__enter__()):
        with pytest.raises(RuntimeError, match="ITT is not part of this runtime"):
            call()


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
