"""`x[key]` and `x[key] = value` against NumPy, whose rules torch follows, and where it differs against known facts."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mindtorch_v2 as torch

SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4)


def counting(*shape: int) -> torch.Tensor:
    return torch.from_numpy(np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape))


@st.composite
def keys(draw, shape):
    """A key for this shape: ints, slices, None, ..., masks and index arrays."""
    key, dim = [], 0
    while dim < len(shape) and draw(st.integers(0, 9)):
        kind = draw(st.sampled_from(["int", "slice", "none", "array", "list", "mask"]))
        n = shape[dim]
        if kind == "int":
            key.append(draw(st.integers(-n, n - 1)))
        elif kind == "slice":
            bound = st.none() | st.integers(-n - 2, n + 2)
            key.append(slice(draw(bound), draw(bound), draw(st.none() | st.integers(1, 3))))
        elif kind == "none":
            key.append(None)
            continue
        elif kind == "array":
            key.append(np.array(draw(st.lists(st.integers(-n, n - 1), min_size=2, max_size=2))))
        elif kind == "list":
            key.append(draw(st.lists(st.integers(-n, n - 1), min_size=2, max_size=2)))
        elif not any(isinstance(k, np.ndarray | list) for k in key):
            key.append(draw(hnp.arrays(bool, (n,))))
        else:
            continue
        dim += 1
        if isinstance(key[-1], np.ndarray) and key[-1].dtype == bool:
            break  # its number of true elements need not broadcast with later arrays
    if draw(st.booleans()) and dim == len(shape):
        key.insert(draw(st.integers(0, len(key))), Ellipsis)
    return tuple(key)


def as_tensors(key):
    return tuple(torch.from_numpy(k.copy()) if isinstance(k, np.ndarray) else k for k in key)


def numpy_order(key) -> bool:
    """Whether NumPy orders the result's dimensions as torch does.

    torch selects with ints before it indexes with arrays, NumPy counts an int beside an array as an array; and an Ellipsis between
    arrays that stands for no dimension separates them in NumPy alone.
    """
    arrays = [i for i, k in enumerate(key) if isinstance(k, np.ndarray | list)]
    ellipsis = [i for i, k in enumerate(key) if k is Ellipsis]
    between = ellipsis and arrays and arrays[0] < ellipsis[0] < arrays[-1]
    return not between and not (arrays and any(isinstance(k, int) for k in key))


def test_an_ellipsis_for_no_dimension_does_not_separate_arrays():
    assert counting(1, 2, 2)[:, [0, 1, 1], ..., [0, 1, 0]].tolist() == [[0.0, 3.0, 2.0]]


@settings(max_examples=300)
@given(data=st.data(), shape=SHAPES)
def test_reading_matches_numpy(data, shape):
    key = data.draw(keys(shape).filter(numpy_order))
    x = counting(*shape)
    assert np.array_equal(x[as_tensors(key)]._array, x._array[key])


@settings(max_examples=200)
@given(data=st.data(), shape=SHAPES)
def test_writing_matches_numpy(data, shape):
    key = data.draw(keys(shape).filter(numpy_order))
    x = counting(*shape)
    expected = x._array.copy()
    expected[key] = -1
    x[as_tensors(key)] = -1
    assert np.array_equal(x._array, expected)


@settings(max_examples=100)
@given(data=st.data(), shape=SHAPES)
def test_gradient_counts_how_often_an_element_was_read(data, shape):
    key = data.draw(keys(shape).filter(numpy_order))
    x = torch.ones(*shape, requires_grad=True)
    y = x[as_tensors(key)]
    y.sum().backward()
    expected = np.zeros(shape, np.float32)
    np.add.at(expected, key, 1)
    assert np.array_equal(x.grad._array, expected)


def test_basic_keys_are_views_and_others_copies():
    x = counting(4, 4)
    for key in (0, slice(1, 3), None, ..., (slice(None), 0), (0, 1)):
        assert x[key].untyped_storage() is x.untyped_storage()
    for key in ([0, 1], x > 3, torch.tensor([0, 1]), True):
        assert x[key].untyped_storage() is not x.untyped_storage()


def test_backward_nodes_are_torchs():
    x = torch.ones(4, 4, requires_grad=True)
    for key, node in (
        (0, "Select"),
        (slice(1, 3), "Slice"),
        (None, "Unsqueeze"),
        (..., "Alias"),
        ([0, 1], "Index"),
        (x > 0, "Index"),
    ):
        assert x[key].grad_fn.name() == node + "Backward0"


class One:
    def __index__(self) -> int:
        return 1


def test_numbers_that_are_not_int():
    x = counting(4, 4)
    for one in (One(), np.int64(1), torch.tensor(1), np.array(1), torch.tensor(1, dtype=torch.int16)):
        assert x[one].tolist() == [4.0, 5.0, 6.0, 7.0]
    assert x[torch.tensor(1) :].shape == (3, 4)
    assert x[range(2)].shape == (2, 4)
    assert x[(0, 1),].shape == (2, 4)


def test_zero_dim_bools_add_a_dimension():
    x = counting(2, 3)
    assert x[True].shape == x[torch.tensor(True)].shape == (1, 2, 3)
    assert x[False].shape == (0, 2, 3)
    assert x[0, True].shape == (1, 3)
    x[True] = 1
    assert x.sum().item() == 6
    x[False] = 2
    assert x.sum().item() == 6


def test_ints_beside_arrays_select_first():
    assert counting(2, 3, 4)[0, :, [0, 1]].shape == (3, 2)


def test_uint8_masks_still_work_with_a_warning():
    with pytest.warns(UserWarning, match="indexing with dtype torch.uint8 is now deprecated"):
        assert counting(3)[torch.tensor([1, 0, 1], dtype=torch.uint8)].tolist() == [0.0, 2.0]


def test_a_list_of_lists_is_a_tuple_with_a_warning():
    with pytest.warns(UserWarning, match="non-tuple sequence"):
        assert counting(4, 4)[[[0, 1], [1, 2]]].tolist() == [1.0, 6.0]


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (5, "index 5 is out of bounds for dimension 0 with size 4"),
        (-5, "index -5 is out of bounds for dimension 0 with size 4"),
        ((slice(None), 7), "index 7 is out of bounds for dimension 1 with size 4"),
        ((0, 0, 0), "too many indices for tensor of dimension 2"),
        (1.5, r"only integers, slices \(`:`\), ellipsis"),
        ([9], "index 9 is out of bounds for dimension 0 with size 4"),
        (
            [True, False],
            r"The shape of the mask \[2\] at index 0 does not match the shape of the indexed tensor \[4, 4\] at index 0",
        ),
        (([0, 1], [0, 1, 2]), r"could not be broadcast together with shapes \[2\], \[3\]"),
    ],
)
def test_what_is_refused(key, text):
    with pytest.raises(IndexError, match=text):
        counting(4, 4)[key]


def test_more_that_is_refused():
    x = counting(4, 4)
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        torch.tensor(1.0)[0]
    with pytest.raises(ValueError, match="step must be greater than zero"):
        x[::-1]
    with pytest.raises(IndexError, match="tensors used as indices must be long, int, byte or bool tensors"):
        x[torch.tensor([1.0])]
    with pytest.raises(TypeError, match=r"can't assign a list to a torch\.FloatTensor"):
        x[0] = [1, 2, 3, 4]
    with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes match"):
        x[[0]] = torch.zeros(1, dtype=torch.int64)
    with pytest.raises(RuntimeError, match=r"value tensor of shape \[3\] cannot be broadcast to indexing result of shape \[2, 4\]"):
        x[[0, 1]] = torch.zeros(3)


def test_values_broadcast_and_convert():
    x = torch.zeros(2, 3)
    x[0] = torch.tensor([1, 2, 3])
    x[:, 1] = torch.ones(1, 1, 2)
    assert x.tolist() == [[1.0, 1.0, 3.0], [0.0, 1.0, 0.0]]
    n = torch.zeros(2, dtype=torch.int64)
    n[0] = 2.7
    assert n.tolist() == [2, 0]


def test_gradient_of_what_is_written():
    x = torch.zeros(3, requires_grad=True)
    v = torch.ones(2, requires_grad=True)
    y = x * 1
    y[[0, 2]] = v * 3
    (y * torch.tensor([1.0, 2.0, 4.0])).sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 0.0]
    assert v.grad.tolist() == [3.0, 12.0]


def test_length_iteration_and_membership():
    x = counting(2, 3)
    assert len(x) == 2
    assert [row.tolist() for row in x] == x.tolist()
    assert 5.0 in x
    assert 6.0 not in x
    for function in (len, iter):
        with pytest.raises(TypeError, match="0-d tensor"):
            function(torch.tensor(1.0))
    with pytest.raises(RuntimeError, match="only supports Tensor or scalar"):
        "a" in x  # noqa: B015


@pytest.mark.parity
def test_mixed_keys_match_torch():
    import random

    import torch as reference

    rng = random.Random(0)
    items = [0, -1, slice(None), slice(1, None, 2), None, ..., [0, 1], True, np.array([0, 1]), np.array([[0], [1]])]
    for _ in range(500):
        key = tuple(rng.sample(items, rng.randint(1, 4)))
        array = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
        results = []
        for library in (reference, torch):
            made = tuple(library.from_numpy(k) if isinstance(k, np.ndarray) else k for k in key)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    results.append(library.from_numpy(array.copy())[made].tolist())
                except Exception as error:
                    results.append((type(error), str(error)))
        assert results[0] == results[1], key


class TestOverridingIndices:
    def test_an_index_decides_what_is_meant(self):
        calls = []

        class Index:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                calls.append(func)
                return -1

        t = torch.tensor([5])
        assert (t[Index()], t[5, Index()]) == (-1, -1)
        t[Index()] = 1
        t[0] = Index()
        assert calls == [torch.Tensor.__getitem__] * 2 + [torch.Tensor.__setitem__] * 2
        assert t.tolist() == [5]

    def test_a_subclass_as_an_index(self):
        class Index(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return func.__name__

        assert torch.tensor([5])[torch.tensor([0]).as_subclass(Index)] == "__getitem__"


def test_a_mask_between_whole_dimensions():
    v = torch.tensor([[[[1], [2]], [[3], [4]]]])
    mask = torch.tensor([[True, False], [False, True]])
    torch.ops.aten.index_put_(v, [None, mask, None], torch.tensor(0))
    assert v.tolist() == [[[[0], [2]], [[3], [0]]]]


def test_bounds_of_slices_are_integers():
    with pytest.raises(TypeError, match="slice indices must be integers"):
        torch.zeros(5)[1.0:2]
