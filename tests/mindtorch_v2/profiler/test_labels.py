"""A session holds the names it uses; those of earlier recordings are freed, and enter no later one."""

import gc
import linecache
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function, schedule
from mindtorch_v2.profiler.capture import capture, labels
from mindtorch_v2.profiler.capture.operators import call_inputs, recorder
from mindtorch_v2.profiler.model.session import Label


def names(prof: profile) -> set[str]:
    return {label.name for label in prof.session.labels}


def test_a_session_has_the_labels_that_it_uses() -> None:
    x = torch.ones(2)
    with profile() as first, record_function("request of Alice"):
        x + x
    with profile() as second:
        x * x
    assert names(first) == {"request of Alice", "aten::add"}
    assert names(second) == {"aten::mul"}


def test_labels_of_a_recording_are_freed() -> None:
    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return Double.apply(x)

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return grad * 2

    x, net = torch.ones(2, requires_grad=True), Net()
    with profile(with_stack=True, with_modules=True, record_shapes=True, schedule=schedule(wait=0, warmup=1, active=2)) as prof:
        for i in range(3):
            with record_function(f"step {i}", f"text {i}"):
                net(x).sum().backward()
            prof.step()
    own = {"step 1", "ProfilerStep#1", "DoubleBackward", "nn.Module: Net_0"}
    assert own <= names(prof)
    del prof
    gc.collect()
    assert [label for label in gc.get_objects() if type(label) is Label and label.name in own] == []


def test_texts_of_scopes_are_freed() -> None:
    with profile(record_shapes=True):
        pass  # the first of its form measures what events cost, with inputs that stay
    before = len(call_inputs.table)
    with profile(record_shapes=True) as prof:
        for i in range(100):
            with record_function("request", f"args {i}"):
                pass
    assert len(prof.session.input_table) == 100
    assert len(call_inputs.table) <= before + 1
    assert not call_inputs._texts


def test_a_label_of_an_earlier_recording_is_no_event() -> None:
    """A thread that got a label's number in one recording and writes its record in the next."""
    with profile():
        number = labels.label_number(Label("old", "scope"))
    with profile() as prof:
        assert capture.active is not None
        with record_function("new"):
            pass
        now = recorder.clock()
        capture.active._log.write(number, now, now, 1)
    assert [e.name for e in prof.events()] == ["new"]


def test_sources_of_generated_functions_are_kept_once() -> None:
    def record() -> None:
        with profile(with_stack=True, profile_memory=True, record_shapes=True, with_modules=True):
            torch.ones(2, requires_grad=True).sum().backward()

    record()
    before = len(linecache.cache)
    for _ in range(3):
        record()
    assert len(linecache.cache) == before
