"""Joining, splitting, repeating and reordering, against NumPy and known facts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mindtorch_v2 as torch

SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)
DTYPES = [torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.bool, torch.complex64]


def counting(*shape: int, dtype=torch.float32) -> torch.Tensor:
    return torch.arange(int(np.prod(shape))).reshape(shape).to(dtype)


class TestJoining:
    @given(shape=SHAPES, data=st.data())
    def test_cat_and_split_undo_each_other(self, shape, data):
        x = counting(*shape)
        dim = data.draw(st.integers(-len(shape), len(shape) - 1))
        size = data.draw(st.integers(1, 4))
        assert torch.equal(torch.cat(x.split(size, dim), dim), x)
        assert torch.equal(torch.cat(x.chunk(size, dim), dim), x)
        assert torch.equal(torch.cat(x.tensor_split(size, dim), dim), x)

    @given(shape=SHAPES, data=st.data())
    def test_stack_and_unbind_undo_each_other(self, shape, data):
        x = counting(*shape)
        dim = data.draw(st.integers(-len(shape), len(shape) - 1))
        assert torch.equal(torch.stack(x.unbind(dim), dim), x)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_cat_keeps_the_dtype(self, dtype):
        x = torch.ones(2, dtype=dtype)
        assert torch.cat([x, x]).dtype is dtype
        assert torch.stack([x, x], 1).shape == (2, 2)

    def test_cat_promotes(self):
        assert torch.cat([torch.ones(1, dtype=torch.int64), torch.ones(1, dtype=torch.float16)]).dtype is torch.float16

    def test_cat_skips_legacy_empty_vectors(self):
        assert torch.cat([torch.zeros(0), torch.ones(2, 3)]).shape == (2, 3)

    def test_cat_errors(self):
        with pytest.raises(ValueError, match="expected a non-empty list of Tensors"):
            torch.cat([])
        with pytest.raises(RuntimeError, match=r"zero-dimensional tensor \(at position 1\) cannot be concatenated"):
            torch.cat([torch.ones(1), torch.tensor(1.0)])
        with pytest.raises(RuntimeError, match="Expected size 2 but got size 3 for tensor number 1 in the list"):
            torch.cat([torch.ones(2, 2), torch.ones(2, 3)])
        with pytest.raises(IndexError, match="Dimension out of range"):
            torch.cat([torch.ones(2), torch.ones(2)], 2)
        with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
            torch.stack([torch.ones(2), torch.ones(3)])

    def test_cat_out_must_not_be_an_input(self):
        x = torch.ones(2)
        with pytest.raises(RuntimeError, match="refer to a single memory location"):
            torch.cat([x, x], out=x)

    def test_stacks(self):
        a, b = torch.tensor([1, 2]), torch.tensor([3, 4])
        assert torch.hstack([a, b]).tolist() == [1, 2, 3, 4]
        assert torch.vstack([a, b]).tolist() == [[1, 2], [3, 4]]
        assert torch.dstack([a, b]).tolist() == [[[1, 3], [2, 4]]]
        assert torch.column_stack([a, b]).tolist() == [[1, 3], [2, 4]]

    def test_gradients_of_unused_parts_are_zero(self):
        x = torch.ones(4, 2, requires_grad=True)
        x.split(2)[1].sum().backward()
        assert x.grad.sum(1).tolist() == [0.0, 0.0, 2.0, 2.0]
        y = torch.ones(3, requires_grad=True)
        y.unbind()[1].backward()
        assert y.grad.tolist() == [0.0, 1.0, 0.0]

    def test_split_results_are_tuples(self):
        x = counting(4)
        for parts in (x.split(2), x.chunk(2), x.unbind(), x.split([1, 3]), torch.hsplit(x, 2)):
            assert type(parts) is tuple

    def test_split_parts_refuse_writes_when_differentiable(self):
        x = torch.ones(4, requires_grad=True) * 1
        with pytest.raises(RuntimeError, match="is the output of a function that returns multiple views"):
            x.split(2)[0].add_(1)

    def test_split_errors(self):
        with pytest.raises(RuntimeError, match="split_sizes to sum exactly to 4"):
            counting(4).split([1, 2])
        with pytest.raises(RuntimeError, match="greater than 0, got: 0"):
            counting(4).chunk(0)
        with pytest.raises(RuntimeError, match="at least a 1-dimensional tensor"):
            torch.tensor(1.0).split(1)


class TestRepeating:
    @given(shape=SHAPES, data=st.data())
    def test_repeat_tiles(self, shape, data):
        x = counting(*shape)
        times = tuple(data.draw(st.lists(st.integers(0, 3), min_size=len(shape), max_size=len(shape) + 1)))
        assert np.array_equal(x.repeat(times)._array, np.tile(x._array, times))

    @given(shape=SHAPES, data=st.data())
    def test_flip_and_roll(self, shape, data):
        x = counting(*shape)
        dim = data.draw(st.integers(-len(shape), len(shape) - 1))
        shift = data.draw(st.integers(-5, 5))
        assert np.array_equal(x.flip(dim)._array, np.flip(x._array, dim))
        assert np.array_equal(x.roll(shift, dim)._array, np.roll(x._array, shift, dim))
        assert np.array_equal(x.roll(shift)._array, np.roll(x._array, shift))
        assert all(s > 0 for s in x.flip(dim).stride())

    @pytest.mark.parametrize("k", range(-1, 5))
    def test_rot90(self, k):
        x = counting(2, 3)
        assert np.array_equal(x.rot90(k)._array, np.rot90(x._array, k))

    def test_repeat_interleave(self):
        x = torch.tensor([[1, 2], [3, 4]])
        assert x.repeat_interleave(2).tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
        assert x.repeat_interleave(torch.tensor([1, 2]), 0).tolist() == [[1, 2], [3, 4], [3, 4]]
        assert torch.repeat_interleave(torch.tensor([0, 2, 1])).tolist() == [1, 1, 2]
        with pytest.raises(RuntimeError, match="repeats can not be negative"):
            torch.repeat_interleave(torch.tensor([-1]))

    def test_meshgrid_and_products(self):
        a, b = torch.tensor([1, 2]), torch.tensor([3, 4, 5])
        for indexing in ("ij", "xy"):
            for ours, expected in zip(
                torch.meshgrid(a, b, indexing=indexing), np.meshgrid(a._array, b._array, indexing=indexing), strict=True
            ):
                assert np.array_equal(ours._array, expected)
        assert torch.cartesian_prod(a, b).tolist() == [[1, 3], [1, 4], [1, 5], [2, 3], [2, 4], [2, 5]]
        assert torch.combinations(b).tolist() == [[3, 4], [3, 5], [4, 5]]
        assert torch.combinations(a, with_replacement=True).tolist() == [[1, 1], [1, 2], [2, 2]]
        with pytest.warns(UserWarning, match="required to pass the indexing argument"):
            torch.meshgrid(a, b)


class TestTriangles:
    @pytest.mark.parametrize("shape", [(3, 4), (2, 4, 3), (200, 400)])
    @pytest.mark.parametrize("diagonal", [-2, 0, 1, 5, -9])
    def test_tril_and_triu(self, shape, diagonal):
        x = counting(*shape)
        assert np.array_equal(x.tril(diagonal)._array, np.tril(x._array, diagonal))
        assert np.array_equal(x.triu(diagonal)._array, np.triu(x._array, diagonal))

    def test_in_place_and_nan(self):
        x = torch.full((2, 2), float("nan"))
        x.tril_()
        assert x[0, 1].item() == 0
        with pytest.raises(RuntimeError, match="must have at least 2 dimensions"):
            torch.ones(2).tril()

    def test_diagonals(self):
        x = counting(3, 3)
        assert x.diagonal(1).tolist() == [1.0, 5.0]
        x.diagonal().fill_(9)
        assert x.trace().item() == 27
        assert torch.tensor([1, 2]).diag(1).tolist() == [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
        assert torch.block_diag(torch.ones(1, 2), torch.tensor(5.0)).tolist() == [[1.0, 1.0, 0.0], [0.0, 0.0, 5.0]]
        assert torch.ones(2, 2, dtype=torch.int8).trace().dtype is torch.int64


class TestScatteredViews:
    def test_the_input_stays_as_it_was(self):
        x = torch.zeros(2, 2)
        assert x.select_scatter(torch.ones(2), 0, 1).tolist() == [[0.0, 0.0], [1.0, 1.0]]
        assert x.slice_scatter(torch.ones(2, 1), 1, 1).tolist() == [[0.0, 1.0], [0.0, 1.0]]
        assert x.diagonal_scatter(torch.ones(2)).tolist() == [[1.0, 0.0], [0.0, 1.0]]
        assert x.sum().item() == 0

    def test_copies_are_not_views(self):
        x = counting(2, 2)
        for made in (torch.view_copy(x, (4,)), torch.select_copy(x, 0, 0), torch.t_copy(x), *torch.unbind_copy(x)):
            assert made.untyped_storage() is not x.untyped_storage()
            assert not made._is_view()


def test_padding():
    x = torch.tensor([[1.0, 2.0]])
    assert torch.constant_pad_nd(x, (1, 0, 0, 1), 9.0).tolist() == [[9.0, 1.0, 2.0], [9.0, 9.0, 9.0]]
    assert torch.constant_pad_nd(x, (-1, 1)).tolist() == [[2.0, 0.0]]
    with pytest.raises(RuntimeError, match="Length of pad must be even"):
        torch.constant_pad_nd(x, (1,))


def test_broadcasting_helpers():
    assert torch.broadcast_shapes((2, 1), (3,)) == (2, 3)
    a, b = torch.broadcast_tensors(torch.ones(2, 1), torch.ones(3))
    assert a.shape == b.shape == (2, 3)
    assert torch.atleast_3d(torch.ones(2)).shape == (1, 2, 1)
    assert [t.dim() for t in torch.atleast_2d(torch.tensor(1.0), torch.ones(1))] == [2, 2]
    with pytest.raises(RuntimeError, match="a dimension of length 3 at -1"):
        torch.broadcast_shapes((2,), (3,))


def test_movedim_and_unflatten():
    x = counting(2, 3, 4)
    assert x.movedim((0, 1), (2, 0)).shape == (3, 4, 2)
    assert x.unflatten(2, (2, -1)).shape == (2, 3, 2, 2)
    assert torch.flatten(x, 1).shape == (2, 12)
    with pytest.raises(RuntimeError, match="repeated dim in `source`"):
        x.movedim((0, 0), (1, 2))
    with pytest.raises(RuntimeError, match="don't multiply up to the size of dim 2"):
        x.unflatten(2, (3, 2))


def test_unravel_index():
    where = torch.unravel_index(torch.tensor([5, 3]), (2, 3))
    assert [w.tolist() for w in where] == [[1, 1], [2, 0]]


def test_a_strided_view_of_nothing_has_a_gradient_of_zeros():
    x = torch.ones(3, 2, requires_grad=True)
    (grad,) = torch.autograd.grad(x.as_strided((0, 2), (2, 1)), x, torch.ones(0, 2, requires_grad=True), create_graph=True)
    assert grad.tolist() == [[0.0, 0.0]] * 3
    assert not grad.requires_grad
