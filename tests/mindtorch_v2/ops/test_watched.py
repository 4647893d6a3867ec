"""An operator does the same whether a profiler records or not.

While one does, some operators get the memory of their results from operators, or call their own variants with `out=`, as ATen's do.
"""

import capture
import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import registry
from mindtorch_v2._ops.calling import call_op

SAMPLES = capture.load()
WATCHED = [op for op in registry.all_ops() if op.watched is not None]


def facts(result):
    """All there is to see of a result."""
    results = result if isinstance(result, list | tuple) else [result]
    return [
        (t.dtype, tuple(t.shape), t.stride(), t._version, t.requires_grad, t.is_contiguous(), t._array.tobytes())
        if isinstance(t, torch.Tensor)
        else t
        for t in results
    ]


def copied(x):
    if isinstance(x, torch.Tensor):
        return x.detach().clone().requires_grad_(x.requires_grad) if x.requires_grad else x.clone()
    return [copied(v) for v in x] if isinstance(x, list | tuple) else x


@pytest.mark.parametrize("op", [pytest.param(op, id=capture.label(op)) for op in WATCHED if capture.label(op) in SAMPLES])
def test_the_same_result(op):
    for sample in SAMPLES[capture.label(op)]:
        plain = facts(call_op(op, copied(sample)))
        with torch.profiler.profile():
            recorded = call_op(op, copied(sample))
        assert facts(recorded) == plain


def test_operators_that_are_made_otherwise_when_watched_have_samples():
    assert {op.name for op in WATCHED} - {op.name for op in WATCHED if capture.label(op) in SAMPLES} <= {
        "arange", "linspace", "logspace", "eye", "logical_and", "logical_or", "logical_xor", "logical_not", "logical_and_", "logical_or_",
        "logical_xor_", "logical_not_", "repeat_interleave",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor", "logical_not", "logical_and_", "logical_not_"])
def test_the_same_truth(name):
    def call():
        x, y = torch.tensor([0.0, 1.0, 2.0, 0.0]), torch.tensor([0.0, 0.0, 3.0, 1.0])
        return getattr(x, name)(*() if "not" in name else (y,))

    plain = facts(call())
    with torch.profiler.profile():
        recorded = call()
    assert facts(recorded) == plain


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.arange(5),
        lambda: torch.arange(1, 7, 2),
        lambda: torch.arange(0, 1, 0.25, dtype=torch.float64),
        lambda: torch.arange(0),
        lambda: torch.linspace(0, 1, 7),
        lambda: torch.linspace(3, 3, 1, dtype=torch.int32),
        lambda: torch.logspace(0, 2, 3, base=2.0),
        lambda: torch.eye(3),
        lambda: torch.eye(2, 4, dtype=torch.int64),
        lambda: torch.eye(4, 2, dtype=torch.bool),
        lambda: torch.eye(0),
    ],
)
def test_the_same_factories(make):
    plain = facts(make())
    with torch.profiler.profile():
        recorded = make()
    assert facts(recorded) == plain


@pytest.mark.parametrize(
    ("shape", "repeats"),
    [
        ((2, 3), (2, 2)),
        ((2, 3), (1, 1)),
        ((2, 3), (2, 1, 3)),
        ((3,), (2, 2, 1)),
        ((2, 3), (0, 2)),
        ((2, 3), (2, 0, 1, 1)),
        ((0, 3), (2, 2)),
        ((), ()),
        ((), (3,)),
        ((1, 1), (4, 1)),
    ],
)
def test_the_same_repetitions(shape, repeats):
    x = torch.arange(max(int(np.prod(shape)), 1), dtype=torch.float32)[: int(np.prod(shape))].reshape(shape)
    for source in (x, x.t() if x.dim() == 2 else x, x.clone().requires_grad_()):
        plain = source.repeat(repeats)
        with torch.profiler.profile():
            recorded = source.repeat(repeats)
        assert facts(recorded) == facts(plain)
        assert np.array_equal(plain.detach().numpy(), np.tile(source.detach().numpy(), repeats))
        for result in (plain, recorded):
            assert result._base is None
            assert (result.grad_fn is not None) == source.requires_grad


@pytest.mark.parametrize("repeats", [(2,), (-1, 2)])
def test_the_same_refusals_of_repetitions(repeats):
    x = torch.ones(2, 3)
    with pytest.raises(RuntimeError) as plain:
        x.repeat(repeats)
    with torch.profiler.profile(), pytest.raises(RuntimeError) as recorded:
        x.repeat(repeats)
    assert str(recorded.value) == str(plain.value)


@pytest.mark.parametrize("size", [None, 3])
@pytest.mark.parametrize("counts", [[1, 2, 0], [3], [], [0, 0]])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_the_same_positions(counts, dtype, size):
    def call():
        repeats = torch.tensor(counts, dtype=dtype)
        try:
            return facts(torch.repeat_interleave(repeats, output_size=size))
        except RuntimeError as e:
            return str(e)

    plain = call()
    with torch.profiler.profile():
        recorded = call()
    assert recorded == plain


@pytest.mark.parametrize("counts", [torch.tensor([1, -1]), torch.tensor(1), torch.ones(2), torch.ones(2, 2, dtype=torch.int64)])
def test_the_same_refusals_of_positions(counts):
    with pytest.raises(RuntimeError) as plain:
        torch.repeat_interleave(counts)
    with torch.profiler.profile(), pytest.raises(RuntimeError) as recorded:
        torch.repeat_interleave(counts)
    assert str(recorded.value) == str(plain.value)


class TestOut:
    def rows(self, call):
        with torch.profiler.profile(record_shapes=True) as prof:
            call()
        return [(e.name, e.input_shapes) for e in prof.events()]

    def test_the_tensor_to_write_to_is_an_input(self):
        x, out = torch.ones(2, 3), torch.empty(2, 3)
        assert self.rows(lambda: torch.add(x, x, out=out)) == [("aten::add", [[2, 3], [2, 3], [], [2, 3]])]
        assert out.tolist() == [[2.0] * 3] * 2

    def test_so_are_several(self):
        x, values, indices = torch.ones(2, 3), torch.empty(2), torch.empty(2, dtype=torch.int64)
        rows = self.rows(lambda: torch.max(x, 1, out=(values, indices)))
        assert rows == [("aten::max", [[2, 3], [], [], [2], [2]])]
        assert values.tolist() == [1.0, 1.0]

    def test_a_number_in_a_tensor_s_place(self):
        x, out = torch.ones(2), torch.empty(2)
        assert self.rows(lambda: torch.add(x, 3, out=out)) == [("aten::add", [[2], [], [], [2]])]
        assert out.tolist() == [4.0, 4.0]

    def test_parts_of_a_composite_are_inside(self):
        x, out = torch.ones(2, 2), torch.empty(2, 2)
        rows = [name for name, _ in self.rows(lambda: torch.matmul(x, x, out=out))]
        assert rows == ["aten::matmul", "aten::mm"]

    def test_errors_are_the_same(self):
        x = torch.ones(2, requires_grad=True)
        with torch.profiler.profile(), pytest.raises(RuntimeError, match="automatic differentiation"):
            torch.add(x, x, out=torch.empty(2))
        with torch.profiler.profile(), pytest.raises(TypeError, match="must be Tensor"):
            torch.add("x", x, out=torch.empty(2))
        with torch.profiler.profile(), pytest.raises(RuntimeError, match="can't be cast"):
            torch.add(torch.ones(2), torch.ones(2), out=torch.empty(2, dtype=torch.int64))

    def test_the_clock_can_change_in_between(self):
        from mindtorch_v2.profiler.capture import recorder

        x, out = torch.ones(2), torch.empty(2)
        self.rows(lambda: torch.add(x, x, out=out))
        before = recorder.clock
        ticks = iter(np.arange(1e3))
        recorder.set_clock(lambda: float(next(ticks)))
        try:
            with torch.profiler.profile() as prof:
                torch.add(x, x, out=out)
        finally:
            recorder.set_clock(before)
        assert prof.events()[0]["duration_ns"] == 1_000_000_000

    def test_overloads_are_atens(self):
        config = torch.profiler._ExperimentalConfig(capture_overload_names=True)
        x = torch.ones(2, 2)
        with torch.profiler.profile(experimental_config=config) as prof:
            torch.sum(x, 0, out=torch.empty(2))
            torch.abs(x)
        assert [(e.name, e.overload_name) for e in prof.events() if e.name != "aten::empty"] == [
            ("aten::sum", "IntList_out"), ("aten::abs", ""), ("aten::abs", "out"),
        ]  # fmt: skip
