"""gather, scatter and the operators along an index, against loops written out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mindtorch_v2 as torch

NUMBERS = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.complex64]


def random_index(rng: np.random.Generator, n: int, *shape: int) -> torch.Tensor:
    return torch.from_numpy(rng.integers(0, n, shape))


@given(seed=st.integers(0, 2**32 - 1), dim=st.integers(-2, 1))
def test_gather_and_scatter_follow_their_definition(seed, dim):
    rng = np.random.default_rng(seed)
    x = torch.from_numpy(rng.standard_normal((4, 5)))
    index = random_index(rng, x.shape[dim], 3, 2)
    src = torch.from_numpy(rng.standard_normal((3, 4)))
    gathered = x.gather(dim, index)
    added = x._array.copy()
    for i, j in itertools.product(range(3), range(2)):
        k = int(index[i, j])
        where = (k, j) if dim in (0, -2) else (i, k)
        assert gathered[i, j] == x[where]
        added[where] += src._array[i, j]
    np.testing.assert_allclose(x.scatter_add(dim, index, src)._array, added)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("dim", [0, 1])
def test_index_add_sums_repeated_positions(dtype, dim):
    x = torch.zeros(3, 3, dtype=dtype)
    source = torch.ones(4, 3, dtype=dtype) if dim == 0 else torch.ones(3, 4, dtype=dtype)
    result = x.index_add(dim, torch.tensor([0, 0, 2, 0]), source, alpha=2)
    expected = [6, 0, 2]
    assert [complex(v).real for v in (result[:, 0] if dim == 0 else result[0])] == expected
    assert result.dtype is dtype
    assert not x.any()


@pytest.mark.parametrize("dtype", NUMBERS)
def test_accumulating_index_put(dtype):
    x = torch.zeros(3, 2, dtype=dtype)
    x.index_put_((torch.tensor([0, 0, -1]),), torch.ones(3, 2, dtype=dtype), accumulate=True)
    assert [complex(v).real for v in x[:, 1]] == [2, 0, 1]
    x.index_put_((torch.tensor([1, 1]), torch.tensor([0, 0])), torch.ones(2, dtype=dtype), accumulate=True)
    assert complex(x[1, 0]).real == 2
    y = torch.zeros(2, 3, dtype=dtype).t()
    y.index_put_((None, torch.tensor([1, 1])), torch.ones(3, 2, dtype=dtype), accumulate=True)
    assert [complex(v).real for v in y[:, 1]] == [2, 2, 2]


def test_bool_accumulates_as_or():
    x = torch.zeros(3, dtype=torch.bool)
    assert x.scatter_add(0, torch.tensor([0, 0]), torch.tensor([True, True])).tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("reduce", "include_self", "expected"),
    [
        ("sum", True, [15.0, 4.0]),
        ("sum", False, [5.0, 4.0]),
        ("prod", True, [60.0, 4.0]),
        ("prod", False, [6.0, 4.0]),
        ("mean", True, [5.0, 4.0]),
        ("mean", False, [2.5, 4.0]),
        ("amax", True, [10.0, 4.0]),
        ("amax", False, [3.0, 4.0]),
        ("amin", True, [2.0, 4.0]),
        ("amin", False, [2.0, 4.0]),
    ],
)
def test_scatter_reduce(reduce, include_self, expected):
    x, index, src = torch.tensor([10.0, 4.0]), torch.tensor([0, 0]), torch.tensor([2.0, 3.0])
    assert x.scatter_reduce(0, index, src, reduce, include_self=include_self).tolist() == expected
    if reduce != "sum":
        assert x.index_reduce(0, index, src, reduce, include_self=include_self).tolist() == expected


def test_scatter_of_a_value_in_place_and_transposed():
    x = torch.zeros(2, 3)
    x.t().scatter_(0, torch.tensor([[2, 0]]), 1.0)
    assert x.tolist() == [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    x.scatter_(1, torch.tensor([[0], [0]]), 2.0, reduce="add")
    assert x[:, 0].tolist() == [2.0, 3.0]


def test_index_copy_fill_select_take_put():
    x = torch.zeros(3, 2)
    where = torch.tensor([2, 0])
    assert x.index_copy(0, where, torch.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist() == [[3.0, 4.0], [0.0, 0.0], [1.0, 2.0]]
    assert x.index_fill(1, torch.tensor([-1]), 5.0).tolist() == [[0.0, 5.0]] * 3
    y = torch.tensor([[1, 2], [3, 4]])
    assert y.index_select(1, torch.tensor([1, 1])).tolist() == [[2, 2], [4, 4]]
    assert y.take(torch.tensor([0, -1])).tolist() == [1, 4]
    assert y.put(torch.tensor([0, 0]), torch.tensor([5, 6]), accumulate=True).tolist() == [[12, 2], [3, 4]]
    assert torch.take_along_dim(y, torch.tensor([[-1], [0]]), 1).tolist() == [[2], [3]]


def test_masks():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.masked_select(torch.tensor([True, False])).tolist() == [1.0, 3.0]
    assert x.masked_scatter(x > 1, torch.tensor([7.0, 8.0, 9.0])).tolist() == [[1.0, 7.0], [8.0, 9.0]]
    with pytest.raises(RuntimeError, match="expected number of elements in source >= number of ones in mask"):
        x.masked_scatter(x > 1, torch.tensor([7.0]))


def test_masked_select_of_many():
    rng = np.random.default_rng(0)
    x, mask = rng.standard_normal((300, 200)), rng.random((300, 200)) < 0.5
    for array in (x, x.T.copy().T, np.repeat(x, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(torch.from_numpy(array).masked_select(torch.from_numpy(mask)).numpy(), array[mask])
    rows = torch.from_numpy(x).masked_select(torch.from_numpy(mask[:, :1]))  # broadcast
    np.testing.assert_array_equal(rows.numpy(), x[mask[:, 0]].reshape(-1))


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 4), (70, 80), (10, 30, 40)])
def test_nonzero(shape):
    x = torch.from_numpy((np.random.default_rng(0).random(shape) > 0.6).astype(np.float32))
    assert np.array_equal(x.nonzero()._array, np.argwhere(x._array))
    assert np.array_equal(torch.argwhere(x > 0)._array, np.argwhere(x._array))
    for ours, expected in zip(torch.nonzero(x, as_tuple=True), np.nonzero(x._array), strict=True):
        assert np.array_equal(ours._array, expected)


def test_nonzero_static_fills_up():
    x = torch.tensor([0, 1, 1])
    assert torch.nonzero_static(x, size=3).tolist() == [[1], [2], [-1]]
    assert torch.nonzero_static(x, size=1).tolist() == [[1]]
    assert torch.tensor(3.0).nonzero().shape == (1, 0)


def test_large_masks_and_pairs_of_indices():
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.standard_normal((300, 400)))
    rows, columns = random_index(rng, 300, 1000), random_index(rng, 400, 1000)
    assert np.array_equal(x[rows, columns]._array, x._array[rows._array, columns._array])
    assert np.array_equal(x[-1 - rows]._array, x._array[-1 - rows._array])
    assert np.array_equal(x[x > 0]._array, x._array[x._array > 0])
    with pytest.raises(IndexError, match="index 400 is out of bounds for dimension 1 with size 400"):
        x[rows, columns + (400 - columns.max())]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: x.gather(0, torch.tensor([[9]])), RuntimeError, "index 9 is out of bounds for dimension 0 with size 2"),
        (lambda x: x.gather(0, torch.tensor([[-1]])), RuntimeError, "index -1 is out of bounds"),
        (lambda x: x.gather(0, torch.tensor([0])), RuntimeError, "same number of dimensions as input"),
        (lambda x: x.gather(0, torch.tensor([[0.0]])), RuntimeError, "Expected dtype int32/int64 for index"),
        (lambda x: x.scatter(0, torch.tensor([[5]]), 1.0), RuntimeError, "index 5 is out of bounds"),
        (lambda x: x.index_select(0, torch.tensor([5])), IndexError, "index out of range in self"),
        (lambda x: x.index_select(0, torch.tensor([-1])), IndexError, "index out of range in self"),
        (lambda x: x.index_add(0, torch.tensor([5]), torch.ones(1, 2)), IndexError, "index out of range in self"),
        (lambda x: x.take(torch.tensor([9])), IndexError, "tried to access index 9 on a tensor of 4 elements"),
        (lambda x: x.scatter_reduce(0, torch.tensor([[0]]), x, "max"), RuntimeError, "reduce argument must be either"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(torch.ones(2, 2))


def test_one_hot():
    assert torch.nn.functional.one_hot(torch.tensor([2, 0])).tolist() == [[0, 0, 1], [1, 0, 0]]
    with pytest.raises(RuntimeError, match="Class values must be smaller than num_classes"):
        torch.nn.functional.one_hot(torch.tensor([3]), 2)
