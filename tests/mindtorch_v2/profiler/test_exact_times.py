"""The real recorder on a clock that counts its readings: every number is known beforehand.

A microsecond passes with each reading. Each event reads the clock when it begins and when it ends; those of backward share some readings.
"""

import gc
import itertools
import json
import time
import weakref
from collections import deque

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import dispatcher
from mindtorch_v2.profiler import _ExperimentalConfig, profile, record_function, validate
from mindtorch_v2.profiler.capture.operators import recorder

x = torch.ones(2, 3)


@pytest.fixture(autouse=True)
def clock():
    """Seconds, one microsecond more at each reading."""
    ticks = iter(range(1, 10**9))
    recorder.set_clock(lambda: next(ticks) * 1e-6)
    yield
    recorder.set_clock(time.perf_counter)


def program():
    """Readings of the clock: the start of the recording is 0."""
    with profile() as prof:
        with record_function("outer"):  # 1 … 8
            x + x  # 2 3
            with record_function("inner"):  # 4 … 7
                x + x  # 5 6
        x * x  # 9 10
    return prof


def test_times_of_events():
    events = program().events()
    assert [(e["name"], e.time_range.start, e.time_range.end) for e in events] == [
        ("outer", 1, 8),
        ("aten::add", 2, 3),
        ("inner", 4, 7),
        ("aten::add", 5, 6),
        ("aten::mul", 9, 10),
    ]
    assert [e["duration_ns"] for e in events] == [7000, 1000, 3000, 1000, 1000]
    assert [e.self_cpu_time_total for e in events] == [3, 1, 2, 1, 1]


def test_averages():
    rows = {r.key: (r.count, r.cpu_time_total, r.self_cpu_time_total, r.cpu_time) for r in program().key_averages()}
    assert rows == {"outer": (1, 7, 3, 7), "aten::add": (2, 2, 2, 1), "inner": (1, 3, 2, 3), "aten::mul": (1, 1, 1, 1)}


def test_self_times_add_up_to_the_whole():
    prof = program()
    assert prof.events().self_cpu_time_total == 8
    assert sum(r.self_cpu_time_total for r in prof.key_averages()) == 8


def test_the_table():
    lines = program().key_averages().table(sort_by="cpu_time_total").splitlines()
    rows = [line.split() for line in lines[3:7]]
    assert rows == [
        ["outer", "37.50%", "3.000us", "87.50%", "7.000us", "7.000us", "1"],
        ["inner", "25.00%", "2.000us", "37.50%", "3.000us", "3.000us", "1"],
        ["aten::add", "25.00%", "2.000us", "25.00%", "2.000us", "1.000us", "2"],
        ["aten::mul", "12.50%", "1.000us", "12.50%", "1.000us", "1.000us", "1"],
    ]
    assert "Self CPU time total: 8.000us" in lines


def test_the_trace(tmp_path):
    path = tmp_path / "trace.json"
    program().export_chrome_trace(str(path))
    assert validate(path) == []
    rows = [r for r in json.loads(path.read_text())["traceEvents"] if r.get("cat") in ("cpu_op", "user_annotation")]
    zero = rows[0]["ts"] - 1
    assert [(r["name"], r["ts"] - zero, r["dur"]) for r in rows] == [
        ("outer", 1, 7),
        ("aten::add", 2, 1),
        ("inner", 4, 3),
        ("aten::add", 5, 1),
        ("aten::mul", 9, 1),
    ]


def test_a_composite_and_its_children():
    w = torch.ones(4, 3)
    b = torch.ones(4)
    with profile() as prof:
        torch.nn.functional.linear(x, w, b)  # linear 1 … 6 over t 2 3 and addmm 4 5
    assert [(e["name"], e.time_range.start, e.time_range.end, e.self_cpu_time_total) for e in prof.events()] == [
        ("aten::linear", 1, 6, 3),
        ("aten::t", 2, 3, 1),
        ("aten::addmm", 4, 5, 1),
    ]


def test_a_backward_pass():
    """A node's evaluation begins where the one before it ended, and its computation with it."""
    w = torch.ones(3, requires_grad=True)
    w.exp().backward(torch.ones(3))
    y = w.exp().exp()
    grad = torch.ones(3)
    with profile() as prof:
        y.backward(grad)
    evaluate = "autograd::engine::evaluate_function: "
    assert [(e["name"], int(e.time_range.start), e.time_range.end) for e in prof.events()] == [
        (evaluate + "ExpBackward0", 1, 5),
        ("ExpBackward0", 1, 4),
        ("aten::mul", 2, 3),
        (evaluate + "ExpBackward0", 5, 9),
        ("ExpBackward0", 5, 8),
        ("aten::mul", 6, 7),
        (evaluate + "torch::autograd::AccumulateGrad", 9, 12),
        ("torch::autograd::AccumulateGrad", 9, 12),
        ("aten::add_", 10, 11),
    ]
    parents = [e.cpu_parent and e.cpu_parent.name for e in prof.events()]
    node, leaf = "ExpBackward0", "torch::autograd::AccumulateGrad"
    assert parents == [None, evaluate + node, node, None, evaluate + node, node, None, evaluate + leaf, leaf]


def test_evaluations_of_nodes_do_not_touch():
    """A reader takes slices that touch for nested."""
    y = torch.ones(2, requires_grad=True)
    loss = y.exp().sin().sum()
    with profile() as prof:
        loss.backward()
    evaluations = [e for e in prof.events() if e.name.startswith("autograd::engine")]
    assert len(evaluations) == 4
    assert min(b["start_ns"] - a["end_ns"] for a, b in itertools.pairwise(evaluations)) == 1


def test_hooks_of_backward_are_in_the_engines_time():
    w = torch.ones(3, requires_grad=True)
    y = w.exp()
    y.register_hook(lambda grad: grad * 2)
    y.grad_fn.register_hook(lambda *grads: None)
    grad = torch.ones(3)
    with profile() as prof:
        y.backward(grad)
    assert [(e["name"].rpartition(" ")[2], int(e.time_range.start), e.time_range.end) for e in prof.events()][:4] == [
        ("ExpBackward0", 1, 8),
        ("aten::mul", 2, 3),
        ("ExpBackward0", 4, 7),
        ("aten::mul", 5, 6),
    ]


def test_a_node_that_fails_has_its_time():
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            return t.clone()

        @staticmethod
        def backward(ctx, grad):
            grad * 2
            raise ZeroDivisionError

    w = torch.ones(3, requires_grad=True)
    y = Fails.apply(w.exp())
    grad = torch.ones(3)
    with profile() as prof:
        with pytest.raises(ZeroDivisionError):
            y.backward(grad)
        x + x
    assert [(e["name"].rpartition(" ")[2], int(e.time_range.start), e.time_range.end) for e in prof.events()] == [
        ("FailsBackward", 1, 5),
        ("FailsBackward", 1, 4),
        ("aten::mul", 2, 3),
        ("aten::add", 6, 7),
    ]


def test_a_node_whose_gradient_is_taken_does_not_run():
    w = torch.ones(3, requires_grad=True)
    middle = w.exp()
    y = middle.sin()
    grad = torch.ones(3)
    with profile() as prof:
        torch.autograd.grad(y, middle, grad)
    assert [(e["name"].rpartition(" ")[2], int(e.time_range.start), e.time_range.end) for e in prof.events()] == [
        ("SinBackward0", 1, 8),
        ("SinBackward0", 2, 7),
        ("aten::cos", 3, 4),
        ("aten::mul", 5, 6),
        ("ExpBackward0", 8, 9),
    ]


def test_steps():
    with profile() as prof:  # 0
        x + x  # 1 2
        prof.step()  # 3
        x + x  # 4 5
    assert [(e["step"], e.time_range.start) for e in prof.events()] == [(0, 1), (1, 4)]


def test_a_raising_operator_has_its_time():
    with profile() as prof:
        with pytest.raises(RuntimeError):
            torch.mm(x, x)  # 1 2
        x + x  # 3 4
    assert [(e["name"], e.time_range.start, e.time_range.end) for e in prof.events()] == [("aten::mm", 1, 2), ("aten::add", 3, 4)]


def test_groups_by_shapes():
    y = torch.ones(5)
    with profile(record_shapes=True) as prof:
        x + x
        y + y
        x + x
    rows = prof.key_averages(group_by_input_shape=True)
    assert [(r.key, r.input_shapes, r.count, r.cpu_time_total) for r in rows] == [
        ("aten::add", [[2, 3], [2, 3], []], 2, 2),
        ("aten::add", [[5], [5], []], 1, 1),
    ]


class TestTensorsAreLeftAlone:
    OPTIONS = pytest.mark.parametrize(
        "options",
        [{}, {"record_shapes": True}, {"with_stack": True, "experimental_config": _ExperimentalConfig(record_python_gc_info=True)}],
    )

    @OPTIONS
    def test_storages_and_arrays_die_when_the_program_drops_them(self, options):
        gc.disable()  # what dies must die without its help
        try:
            with profile(**options):
                w = torch.ones(100, requires_grad=True)
                h = (w * 2).relu()
                loss = torch.stack([h, h]).sum()
                loss.backward()
                watched = [weakref.ref(t) for t in (w, h, loss, w.grad)]
                watched += [weakref.ref(t._storage) for t in (w, h, loss, w.grad)]
                watched += [weakref.ref(h.grad_fn)]
                del w, h, loss
                assert [r() for r in watched] == [None] * 9
        finally:
            gc.enable()

    @OPTIONS
    def test_gradients_take_the_same_memory_over_as_without_a_profiler(self, options):
        def addresses():
            w = torch.ones(50, requires_grad=True)
            incoming = torch.full((50,), 2.0)
            (w * 1).backward(incoming)
            first = w.grad._array.__array_interface__["data"][0]
            (w * 3).sum().backward()
            second = w.grad._array.__array_interface__["data"][0]
            taken_over = first == incoming._array.__array_interface__["data"][0]
            return first == second, taken_over, w.grad.tolist()

        plain = addresses()
        with profile(**options):
            recorded = addresses()
        assert recorded == plain

    @OPTIONS
    def test_no_reference_is_added_to_an_argument(self, options):
        import sys

        t = torch.ones(4)
        before = sys.getrefcount(t), sys.getrefcount(t._storage), sys.getrefcount(t._array)
        with profile(**options):
            for _ in range(10):
                t + t
                torch.cat([t, t])
            assert (sys.getrefcount(t), sys.getrefcount(t._storage), sys.getrefcount(t._array)) == before


@pytest.mark.parametrize("options", [{}, {"profile_memory": True, "record_shapes": True}], ids=["plain", "everything"])
def test_starting_and_stopping_are_in_nobodys_frame(options, monkeypatch):
    """Each takes a tenth of a second here, and the function that does both has a few microseconds."""
    ticks = itertools.count(1e-6, 1e-6)
    recorder.set_clock(ticks.__next__)  # no function of Python's, which would be an event

    def slow(function):
        def run(*arguments):
            deque(itertools.islice(ticks, 100_000), maxlen=0)
            return function(*arguments)

        return run

    monkeypatch.setattr(dispatcher, "activate", slow(dispatcher.activate))
    monkeypatch.setattr(dispatcher, "deactivate", slow(dispatcher.deactivate))

    def work():
        x + x

    def outer():
        with profile(with_stack=True, **options) as prof:
            work()
        return prof

    prof = outer()
    times = {e.name.rpartition(": ")[2]: e.cpu_time_total for e in prof.events() if e["kind"] == "python_function"}
    assert times["outer"] < 10_000  # the first call of an operator is compiled inside
    assert 0 < times["work"] < times["outer"]
