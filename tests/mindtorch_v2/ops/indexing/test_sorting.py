"""Sorting, ranks, distinct elements and positions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mindtorch_v2 as torch

INF, NAN = math.inf, math.nan


def values_of(t):
    return np.asarray(t.tolist())


class TestSort:
    @pytest.mark.parametrize("n", [7, 500])  # below and above the extent that packs keys with indices
    @pytest.mark.parametrize("descending", [False, True])
    @pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int16", "uint8", "bool", "float16", "bfloat16"])
    def test_order_is_stable(self, n, descending, dtype):
        array = np.random.default_rng(0).integers(0, 9 if dtype != "bool" else 2, n)
        x = torch.from_numpy(array).to(getattr(torch, dtype))
        values, indices = x.sort(descending=descending, stable=True)
        expected = np.argsort(-array if descending else array, kind="stable")
        np.testing.assert_array_equal(values_of(indices), expected)
        np.testing.assert_array_equal(values_of(values).astype(np.int64), array[expected])
        assert values.dtype is x.dtype

    @pytest.mark.parametrize("n", [1, 100])
    def test_nan_is_greatest(self, n):
        x = torch.tensor([3.0, NAN, -INF, INF, -0.0, 0.0] * n)
        assert math.isnan(x.sort().values[-1].item())
        assert x.sort().values[0].item() == -INF
        assert math.isnan(x.sort(descending=True).values[0].item())
        assert x.sort().indices[n].item() == 4  # zeros of both signs are equal, so the first keeps its place

    @settings(deadline=None, max_examples=50)
    @given(hnp.arrays(np.float32, st.integers(128, 300), elements=st.floats(width=32, allow_nan=True)))
    def test_packed_keys_sort_as_numpy_does(self, array):
        indices = torch.from_numpy(array).argsort(stable=True)
        np.testing.assert_array_equal(values_of(indices), np.argsort(array, kind="stable"))

    def test_dimensions_and_layout(self):
        x = torch.tensor([[3, 1, 2], [1, 3, 0]])
        np.testing.assert_array_equal(values_of(x.sort(0).values), [[1, 1, 0], [3, 3, 2]])
        assert x.t().sort(0).values.stride() == x.t().stride()
        np.testing.assert_array_equal(values_of(torch.msort(x)), [[1, 1, 0], [3, 3, 2]])

    def test_gradient_follows_the_elements(self):
        x = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
        (x.sort().values * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
        assert x.grad.tolist() == [100.0, 1.0, 10.0]


class TestRanks:
    @pytest.mark.parametrize("largest", [True, False])
    @pytest.mark.parametrize("k", [0, 1, 5, 200])
    def test_topk(self, largest, k):
        array = np.random.default_rng(0).permutation(2 * 1000).reshape(2, 1000).astype(np.float32)
        values, indices = torch.from_numpy(array).topk(k, 1, largest)
        order = np.argsort(-array if largest else array, axis=1)[:, :k]
        np.testing.assert_array_equal(values_of(indices).reshape(2, k), order)
        np.testing.assert_array_equal(values_of(values).reshape(2, k), np.take_along_axis(array, order, 1))

    def test_topk_takes_no_bool_for_a_dimension(self):
        with pytest.raises(TypeError, match=r"topk\(\): argument 'dim' \(position 2\) must be int, not bool"):
            torch.ones(3, 2).topk(1, True)

    def test_topk_with_ties_and_nan(self):
        x = torch.tensor([1.0, 2.0, 2.0, 2.0] * 200)
        assert x.topk(3).values.tolist() == [2.0, 2.0, 2.0]
        x[5] = NAN
        assert math.isnan(x.topk(2).values[0].item())
        assert x.topk(2).values[1].item() == 2.0

    def test_topk_refusals(self):
        with pytest.raises(RuntimeError, match="selected index k out of range"):
            torch.ones(2).topk(3)
        with pytest.raises(RuntimeError, match="topk does not support bool dtypes on CPU"):
            torch.tensor([True]).topk(1)

    def test_kthvalue(self):
        values, indices = torch.tensor([[5.0, 1.0, 3.0], [2.0, 9.0, 4.0]]).kthvalue(2)
        assert values.tolist() == [3.0, 4.0]
        assert indices.tolist() == [2, 2]
        with pytest.raises(RuntimeError, match="selected number k out of range"):
            torch.ones(2).kthvalue(0)

    def test_median_is_the_lower_one(self):
        assert torch.tensor([4.0, 1.0, 3.0, 2.0]).median().item() == 2.0
        values, indices = torch.tensor([[4, 1, 3, 2]]).median(1, keepdim=True)
        assert values.tolist() == [[2]]
        assert indices.tolist() == [[3]]

    def test_median_of_nan(self):
        x = torch.tensor([[1.0, NAN, 3.0], [1.0, 2.0, 3.0]])
        assert math.isnan(x.median().item())
        assert x.median(1).indices.tolist() == [1, 1]
        assert x.nanmedian(1).values.tolist() == [1.0, 2.0]
        assert math.isnan(torch.tensor([NAN]).nanmedian().item())
        assert math.isnan(torch.tensor([]).median().item())

    def test_mode_is_the_smallest_of_the_most_frequent(self):
        values, indices = torch.tensor([[3, 1, 1, 3, 2], [5, 4, 3, 2, 1]]).mode()
        assert values.tolist() == [1, 1]
        assert indices.tolist() == [2, 4]


class TestQuantile:
    @pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
    @pytest.mark.parametrize("dim", [None, 0, 1])
    def test_as_numpy(self, interpolation, dim):
        array = np.random.default_rng(0).random((6, 7))
        q = np.array([0.0, 0.25, 0.6, 1.0])
        got = torch.from_numpy(array).quantile(torch.from_numpy(q), dim, interpolation=interpolation)
        np.testing.assert_allclose(values_of(got), np.quantile(array, q, axis=dim, method=interpolation))

    def test_nan(self):
        x = torch.tensor([[1.0, NAN, 3.0], [1.0, 2.0, 3.0]])
        assert math.isnan(x.quantile(0.5, 1)[0].item())
        assert x.nanquantile(0.5, 1).tolist() == [2.0, 2.0]
        assert x.nanquantile(0.5, 1, keepdim=True).shape == (2, 1)

    def test_refusals(self):
        with pytest.raises(RuntimeError, match=r"quantile\(\) q must be in the range \[0, 1\] but got 2"):
            torch.ones(2).quantile(2.0)
        with pytest.raises(RuntimeError, match="must be same dtype"):
            torch.ones(2).quantile(torch.tensor(0.5, dtype=torch.float64))


class TestUnique:
    def test_all_flags(self):
        x = torch.tensor([[3, 1], [3, 2]])
        values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
        assert values.tolist() == [1, 2, 3]
        assert inverse.tolist() == [[2, 0], [2, 1]]
        assert counts.tolist() == [1, 1, 2]
        assert x.unique().tolist() == [1, 2, 3]
        values, counts = x.unique(return_counts=True)
        assert counts.tolist() == [1, 1, 2]

    def test_dim(self):
        x = torch.tensor([[3, 1], [1, 5], [3, 1]])
        values, inverse = x.unique(dim=0, return_inverse=True)
        assert values.tolist() == [[1, 5], [3, 1]]
        assert inverse.tolist() == [1, 0, 1]
        with pytest.raises(RuntimeError, match="0 sized dimensions"):
            torch.ones(0, 2).unique(dim=1)

    def test_every_nan_is_distinct(self):
        assert torch.tensor([NAN, NAN, 1.0]).unique().shape == (3,)

    def test_consecutive(self):
        values, inverse, counts = torch.unique_consecutive(torch.tensor([1, 1, 2, 1]), return_inverse=True, return_counts=True)
        assert values.tolist() == [1, 2, 1]
        assert inverse.tolist() == [0, 0, 1, 2]
        assert counts.tolist() == [2, 1, 1]

    def test_isin(self):
        x = torch.tensor([1, 2, 3])
        assert torch.isin(x, torch.tensor([3, 1])).tolist() == [True, False, True]
        assert torch.isin(x, 2, invert=True).tolist() == [True, False, True]
        assert torch.isin(2, x).item() is True


class TestSearch:
    def test_sides_and_rows(self):
        edges = torch.tensor([1.0, 2.0, 2.0, 3.0])
        x = torch.tensor([2.0, NAN, 0.0])
        assert torch.searchsorted(edges, x).tolist() == [1, 4, 0]
        assert torch.searchsorted(edges, x, right=True).tolist() == [3, 4, 0]
        assert torch.bucketize(x, edges, right=True, out_int32=True).dtype is torch.int32
        rows = torch.tensor([[1, 3], [10, 30]])
        assert torch.searchsorted(rows, torch.tensor([[2, 5], [2, 20]])).tolist() == [[1, 2], [0, 1]]
        assert torch.searchsorted(torch.tensor([3, 1, 2]), 2, sorter=torch.tensor([1, 2, 0])).item() == 1

    def test_refusals(self):
        with pytest.raises(RuntimeError, match="side can only be 'left' or 'right' but got up"):
            torch.searchsorted(torch.ones(2), torch.ones(2), side="up")
        with pytest.raises(RuntimeError, match="side and right can't be set to opposites"):
            torch.searchsorted(torch.ones(2), torch.ones(2), side="left", right=True)
        with pytest.raises(RuntimeError, match=r"boundaries tensor must be 1 dimension, but got dim\(2\)"):
            torch.bucketize(torch.ones(2), torch.ones(2, 2))


@pytest.mark.parametrize("name", ["unique", "unique_consecutive", "norm", "sum", "max"])
def test_subclasses_override_the_public_function(name):
    seen = []

    class Recorded(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    result = getattr(torch, name)(torch.ones(2, 2).as_subclass(Recorded))
    assert seen == [getattr(torch, name)]
    assert type(result) is Recorded
