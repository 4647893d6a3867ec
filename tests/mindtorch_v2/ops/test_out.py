"""Calls with `out=`: each is an operator of its own, with a row that has what it writes to among its inputs."""

import numpy as np
import pytest

import mindtorch_v2 as torch


def rows(call):
    with torch.profiler.profile(record_shapes=True) as prof:
        call()
    return [(e.name, e.input_shapes) for e in prof.events()]


def test_the_tensor_to_write_to_is_an_input():
    x, out = torch.ones(2, 3), torch.empty(2, 3)
    assert rows(lambda: torch.add(x, x, out=out)) == [("aten::add", [[2, 3], [2, 3], [], [2, 3]])]
    assert out.tolist() == [[2.0] * 3] * 2


def test_so_are_several():
    x, values, indices = torch.ones(2, 3), torch.empty(2), torch.empty(2, dtype=torch.int64)
    found = rows(lambda: torch.max(x, 1, out=(values, indices)))
    assert found == [("aten::max", [[2, 3], [], [], [2], [2]])]
    assert values.tolist() == [1.0, 1.0]


def test_a_number_in_a_tensor_s_place():
    x, out = torch.ones(2), torch.empty(2)
    assert rows(lambda: torch.add(x, 3, out=out)) == [("aten::add", [[2], [], [], [2]])]
    assert out.tolist() == [4.0, 4.0]


def test_parts_of_a_composite_are_inside():
    x, out = torch.ones(2, 2), torch.empty(2, 2)
    found = [name for name, _ in rows(lambda: torch.matmul(x, x, out=out))]
    assert found == ["aten::matmul", "aten::mm"]


def test_errors_are_the_same():
    x = torch.ones(2, requires_grad=True)
    with torch.profiler.profile(), pytest.raises(RuntimeError, match="automatic differentiation"):
        torch.add(x, x, out=torch.empty(2))
    with torch.profiler.profile(), pytest.raises(TypeError, match="must be Tensor"):
        torch.add("x", x, out=torch.empty(2))
    with torch.profiler.profile(), pytest.raises(RuntimeError, match="can't be cast"):
        torch.add(torch.ones(2), torch.ones(2), out=torch.empty(2, dtype=torch.int64))


def test_the_clock_can_change_in_between():
    from mindtorch_v2.profiler.capture.operators import recorder

    x, out = torch.ones(2), torch.empty(2)
    rows(lambda: torch.add(x, x, out=out))
    before = recorder.clock
    ticks = iter(np.arange(1e3))
    recorder.set_clock(lambda: float(next(ticks)))
    try:
        with torch.profiler.profile() as prof:
            torch.add(x, x, out=out)
    finally:
        recorder.set_clock(before)
    assert prof.events()[0]["duration_ns"] == 1_000_000_000


def test_overloads_are_atens():
    config = torch.profiler._ExperimentalConfig(capture_overload_names=True)
    x = torch.ones(2, 2)
    with torch.profiler.profile(experimental_config=config) as prof:
        torch.sum(x, 0, out=torch.empty(2))
        torch.abs(x, out=torch.empty(0))
        torch.abs(x)
    assert [(e.name, e.overload_name) for e in prof.events() if e.name != "aten::empty"] == [
        ("aten::sum", "IntList_out"), ("aten::abs", "out"), ("aten::abs", ""),
    ]  # fmt: skip


def test_a_factory_is_one_row():
    out = torch.empty(4, dtype=torch.int64)
    assert rows(lambda: torch.arange(4, out=out)) == [("aten::arange", [[], [4]])]
    assert out.tolist() == [0, 1, 2, 3]
    assert rows(lambda: torch.eye(2, out=torch.empty(0))) == [("aten::empty", [[], [], [], [], [], []]), ("aten::eye", [[], [0]])]
