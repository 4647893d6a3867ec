"""Sums, means, products, truth values and extrema: values known from arithmetic, and torch's rules at the edges."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mindtorch_v2 as torch

INF, NAN = math.inf, math.nan


def same(t, expected, dtype=None):
    got = np.asarray(t.tolist())
    np.testing.assert_allclose(got, np.asarray(expected), rtol=1e-6, equal_nan=True)
    assert got.shape == np.asarray(expected).shape
    if dtype is not None:
        assert t.dtype is dtype


class TestSum:
    def test_whole_and_dims(self):
        x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
        same(x.sum(), 11.0)
        same(x.sum(0), [4.0, 7.0])
        same(x.sum(-1), [3.0, 8.0])
        same(x.sum((0, 1)), 11.0)
        same(x.sum(1, keepdim=True), [[3.0], [8.0]])
        same(torch.sum(x, axis=1, keepdims=True), [[3.0], [8.0]])
        same(torch.sum(x, None, True), [[11.0]])
        same(torch.sum(x, ()), 11.0)

    def test_integers_add_up_in_int64(self):
        same(torch.tensor([200, 100], dtype=torch.uint8).sum(), 300, torch.int64)
        same(torch.tensor([True, True]).sum(), 2, torch.int64)
        same(torch.tensor([[True, True]]).sum(1), [2], torch.int64)

    def test_dtype_converts_first(self):
        same(torch.tensor([0.6, 0.6]).sum(dtype=torch.int32), 0, torch.int32)
        same(torch.tensor([[1, 2]]).sum(1, dtype=torch.float64), [3.0], torch.float64)
        same(torch.tensor([[1, 2]]).sum(1, dtype=torch.bool), [True], torch.bool)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_half_precision_accumulates_in_float32(self, dtype):
        # one after another in bfloat16 this would stay at 256
        same(torch.ones(1000, dtype=dtype).sum(), 1000.0, dtype)
        same(torch.ones(2, 1000, dtype=dtype).sum(1), [1000.0, 1000.0], dtype)

    @pytest.mark.parametrize("shape", [(1 << 20,), (1000, 1111), (1111, 1000), (3, 70001), (70001, 3)])
    @pytest.mark.parametrize("dim", [None, 0, -1])
    def test_long_sums_are_accurate(self, shape, dim):
        array = np.random.default_rng(0).random(shape, dtype=np.float32)
        x = torch.from_numpy(array)
        got = x.sum() if dim is None else x.sum(dim)
        exact = array.sum(dim, dtype=np.float64)
        np.testing.assert_allclose(np.asarray(got.tolist()), exact, rtol=1e-6)

    def test_empty_and_zero_dim(self):
        same(torch.zeros(0).sum(), 0.0)
        same(torch.zeros(0, 2).sum(0), [0.0, 0.0])
        same(torch.tensor(3).sum(0), 3)
        with pytest.raises(IndexError, match=r"expected to be in range of \[-1, 0\], but got 1"):
            torch.tensor(3).sum(1)

    def test_refusals(self):
        x = torch.ones(2, 2)
        with pytest.raises(RuntimeError, match="dim 0 appears multiple times"):
            x.sum((0, 0))
        with pytest.raises(TypeError, match=r"'keepdim' .* must be bool, not int"):
            x.sum(0, 1)
        with pytest.raises(TypeError, match="invalid combination of arguments"):
            torch.sum(x, 1.5)
        with pytest.raises(TypeError, match="unexpected keyword argument 'dims'"):
            torch.sum(x, dims=1)

    def test_out(self):
        out = torch.empty(2, dtype=torch.int64)
        assert torch.sum(torch.tensor([[1.5, 2.5], [3.0, 1.0]]), 1, out=out) is out
        same(out, [3, 4])  # torch: computed in the dtype of out

    def test_results_are_row_major(self):
        x = torch.ones(2, 3, 4).permute(2, 0, 1)
        for reduced in (x.sum(1), x.amax(1), x.prod(1), x.any(1), x.norm(dim=1), x.max(1)[0], x.var(1), x.argmax(1)):
            assert reduced.stride() == (3, 1)
        assert x.sum(1, keepdim=True).stride() == (3, 3, 1)

    def test_gradients(self):
        x = torch.ones(2, 3, requires_grad=True)
        y = x.sum()
        assert y.grad_fn.name() == "SumBackward0"
        assert x.sum(1).grad_fn.name() == "SumBackward1"
        (g,) = torch.autograd.grad(x.sum(1), x, torch.tensor([1.0, 2.0]))
        same(g, [[1.0] * 3, [2.0] * 3])
        (g,) = torch.autograd.grad(x.sum(()), x)
        same(g, np.ones((2, 3)))


class TestMean:
    def test_values(self):
        x = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
        same(x.mean(), 3.0)
        same(x.mean(0), [2.0, 4.0])
        same(x.mean((0, 1), keepdim=True), [[3.0]])
        same(torch.zeros(0).mean(), NAN)
        same(torch.tensor([1, 2]).mean(dtype=torch.float64), 1.5, torch.float64)

    def test_integers_are_refused(self):
        with pytest.raises(RuntimeError, match=r"could not infer output dtype\. Input dtype .* Got: Long"):
            torch.tensor([1, 2]).mean()
        with pytest.raises(RuntimeError, match="Optional dtype must be"):
            torch.tensor([1.0]).mean(dtype=torch.int32)

    def test_gradient(self):
        x = torch.ones(2, 4, requires_grad=True)
        x.mean().backward()
        same(x.grad, np.full((2, 4), 1 / 8))


class TestSumToSize:
    def test_sums_broadcast_dimensions(self):
        x = torch.ones(2, 3, 4)
        same(x.sum_to_size(3, 1), [[8.0], [8.0], [8.0]])
        same(x.sum_to_size((1, 3, 4)), np.full((1, 3, 4), 2.0))
        assert x.sum_to_size(2, 3, 4) is x
        same(x.sum_to_size(()), 24.0)

    def test_refuses_other_shapes(self):
        with pytest.raises(RuntimeError, match=r"size \{\[2\]\} is not expandable to size \{\[3\]\}"):
            torch.ones(3).sum_to_size(2)


class TestTruth:
    def test_values(self):
        x = torch.tensor([[1.0, 0.0], [NAN, 2.0]])
        same(x.any(), True, torch.bool)
        same(x.all(), False)
        same(x.all(1), [False, True])
        same(torch.all(x, (0, 1)), False)
        same(torch.any(torch.zeros(2, 2), ()), np.zeros((2, 2), bool))  # torch: no dimension is reduced
        same(torch.ones(0).all(), True)
        same(torch.ones(0).any(), False)

    def test_uint8_stays_uint8(self):
        same(torch.tensor([3, 0], dtype=torch.uint8).any(), 1, torch.uint8)

    def test_count_nonzero(self):
        x = torch.tensor([[1.0, 0.0], [3.0, 2.0]])
        same(x.count_nonzero(), 3, torch.int64)
        same(x.count_nonzero(0), [2, 1])
        same(torch.count_nonzero(x, (0, 1)), 3)


class TestExtrema:
    def test_values_and_indices(self):
        x = torch.tensor([[1.0, 5.0, 5.0], [7.0, 2.0, 7.0]])
        same(x.max(), 7.0)
        values, indices = x.max(1)
        same(values, [5.0, 7.0])
        same(indices, [1, 0], torch.int64)  # the first of equals
        same(x.min(0, keepdim=True).values, [[1.0, 2.0, 5.0]])
        same(torch.max(x, torch.tensor(3.0)), [[3.0, 5.0, 5.0], [7.0, 3.0, 7.0]])
        same(torch.max(input=x, dim=1).indices, [1, 0])

    def test_nan_wins_and_its_first_index_counts(self):
        x = torch.tensor([1.0, NAN, 3.0, NAN])
        same(x.max(), NAN)
        assert x.max(0).indices.item() == 1
        assert x.argmin().item() == 1
        same(x.amin(0), NAN)

    def test_first_row_of_large_columns(self):
        array = np.random.default_rng(1).integers(0, 5, (300, 200)).astype(np.float32)
        array[5, 7] = np.nan
        x = torch.from_numpy(array)
        np.testing.assert_array_equal(np.asarray(x.argmax(0).tolist()), array.argmax(0))
        np.testing.assert_array_equal(np.asarray(x.min(0).indices.tolist()), array.argmin(0))

    def test_named_tuple(self):
        result = torch.tensor([1.0, 2.0]).max(0)
        assert isinstance(result, tuple)
        assert isinstance(result, torch.return_types.max)
        assert repr(result) == "torch.return_types.max(\nvalues=tensor(2.),\nindices=tensor(1))"
        out = torch.empty(0), torch.empty(0, dtype=torch.int64)
        written = torch.max(torch.tensor([[1.0, 2.0]]), 1, out=out)
        assert written.values is out[0]
        assert type(written).__name__ == "max_out"
        with pytest.raises(TypeError, match="takes a 2-sequence"):
            torch.return_types.max((1,))

    def test_empty(self):
        empty = torch.zeros(0, 2)
        with pytest.raises(RuntimeError, match=r"max\(\): Expected reduction dim to be specified for input.numel\(\) == 0"):
            empty.max()
        with pytest.raises(IndexError, match=r"max\(\): Expected reduction dim 0 to have non-zero size"):
            empty.max(0)
        assert empty.max(1).values.shape == (0,)
        with pytest.raises(IndexError, match=r"argmax\(\): Expected reduction dim to be specified"):
            empty.argmax()

    def test_dtypes_without_an_order(self):
        with pytest.raises(NotImplementedError, match="\"max_all\" not implemented for 'ComplexFloat'"):
            torch.tensor([1j]).max()
        with pytest.raises(RuntimeError, match=r"argmax\(\): does not support bool input"):
            torch.tensor([True]).argmax()

    def test_equal_elements_share_the_gradient(self):
        x = torch.tensor([3.0, 1.0, 3.0], requires_grad=True)
        (g,) = torch.autograd.grad(x.max(), x)
        same(g, [0.5, 0.0, 0.5])
        (g,) = torch.autograd.grad(x.amax(0), x)
        same(g, [0.5, 0.0, 0.5])
        (g,) = torch.autograd.grad(x.max(0).values, x)
        same(g, [1.0, 0.0, 0.0])

    def test_aminmax(self):
        low, high = torch.tensor([[1.0, 4.0], [3.0, 2.0]]).aminmax(dim=1)
        same(low, [1.0, 2.0])
        same(high, [4.0, 3.0])


class TestProd:
    def test_values(self):
        same(torch.tensor([[2.0, 3.0], [4.0, 5.0]]).prod(), 120.0)
        same(torch.tensor([[2, 3], [4, 5]], dtype=torch.int8).prod(1), [6, 20], torch.int64)
        same(torch.zeros(0).prod(), 1.0)

    @pytest.mark.parametrize(
        ("values", "expected"),
        [([2.0, 3.0, 4.0], [12.0, 8.0, 6.0]), ([2.0, 0.0, 4.0], [0.0, 8.0, 0.0]), ([0.0, 0.0, 4.0], [0.0, 0.0, 0.0])],
    )
    def test_gradient_with_zeros(self, values, expected):
        x = torch.tensor(values, requires_grad=True)
        (g,) = torch.autograd.grad(x.prod(), x)
        same(g, expected)
        (g,) = torch.autograd.grad(x.prod(0), x)
        same(g, expected)

    def test_second_gradient_with_zeros(self):
        x = torch.tensor([0.0, 0.0, 3.0], requires_grad=True)
        (g,) = torch.autograd.grad(x.prod(), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
        same(h, [3.0, 3.0, 0.0])


class TestNan:
    def test_nansum_and_nanmean(self):
        x = torch.tensor([[1.0, NAN], [NAN, NAN]])
        same(x.nansum(1), [1.0, 0.0])
        same(x.nanmean(1), [1.0, NAN])
        same(torch.tensor([INF, -INF, NAN]).nansum(), NAN)

    def test_logsumexp(self):
        same(torch.tensor([[0.0, 0.0], [1000.0, 1000.0]]).logsumexp(1), [math.log(2), 1000 + math.log(2)])
        same(torch.tensor([-INF, -INF]).logsumexp(0), -INF)
        same(torch.tensor([1, 1]).logsumexp(0), 1 + math.log(2), torch.float32)


REDUCTIONS = ["sum", "prod", "any", "all", "var", "amax", "argmax", "cumsum", "norm", "max", "softmax"]
REFUSED = {
    torch.int32: {"var", "norm", "softmax"},
    torch.uint8: {"var", "norm", "softmax"},
    torch.bool: {"var", "norm", "softmax", "argmax"},
    torch.complex64: {"amax", "argmax", "max", "softmax"},
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.uint8, torch.bool, torch.complex64])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_meta_results_have_the_cpu_geometry(dtype, name):
    arguments = {"dim": 1} if name in ("cumsum", "softmax") else {"dim": 1, "keepdim": True}
    x = torch.ones(2, 3, dtype=dtype)
    if name in REFUSED.get(dtype, ()):
        with pytest.raises((RuntimeError, NotImplementedError)):
            getattr(x, name)(**arguments)
        return
    want = getattr(x, name)(**arguments)
    got = getattr(x.to("meta"), name)(**arguments)
    for g, w in zip(*((r,) if isinstance(r, torch.Tensor) else r for r in (got, want)), strict=True):
        assert (g.shape, g.dtype, g.stride(), g.device.type) == (w.shape, w.dtype, w.stride(), "meta")


def test_meta_reductions_do_not_compute():
    x = torch.empty(1 << 20, 1 << 18, device="meta")  # one tebibyte
    assert x.sum(1).shape == (1 << 20,)
    assert x.softmax(1).mean().shape == ()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_mean_of_many_half_precision_numbers(dtype: torch.dtype) -> None:
    x = torch.full((300, 300), 3.0, dtype=dtype)  # their sum, and their number, are beyond float16
    assert x.mean().item() == 3.0
    assert x.mean().dtype is dtype
    assert x.mean((0, 1), keepdim=True).tolist() == [[3.0]]
