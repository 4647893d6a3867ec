"""Views share memory with their base, have torch's strides, and refuse what torch refuses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mindtorch_v2 as torch

SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


def counting(*shape: int) -> torch.Tensor:
    return torch.from_numpy(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))


VIEWS = {
    "view": lambda x: x.view(-1),
    "transpose": lambda x: x.transpose(0, -1),
    "permute": lambda x: x.permute(*range(x.dim())[::-1]),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "select": lambda x: x.select(0, -1),
    "narrow": lambda x: x.narrow(0, 0, 1),
    "slice": lambda x: x[::2],
    "flatten": lambda x: x.unsqueeze(0).flatten(),
    "unbind": lambda x: x.unbind(0)[0],
    "split": lambda x: x.split(1)[-1],
    "as_strided": lambda x: x.as_strided((1,), (1,), x.numel() - 1),
    "unfold": lambda x: x.unfold(0, 1, 1),
}


@pytest.mark.parametrize("name", VIEWS)
@given(shape=SHAPES)
def test_writing_to_a_view_writes_to_its_base(name, shape):
    x = counting(*shape)
    view = VIEWS[name](x)
    assert view._is_view()
    assert view._base is x
    view.fill_(-1)
    assert (x._array == -1).sum() == view.numel()
    assert x._version == view._version == 1


@given(shape=SHAPES, data=st.data())
def test_permutations_undo_each_other(shape, data):
    x = counting(*shape)
    order = data.draw(st.permutations(range(len(shape))))
    back = tuple(int(i) for i in np.argsort(order))
    assert np.array_equal(x.permute(order)._array, np.transpose(x._array, order))
    assert np.array_equal(x.permute(order).permute(back)._array, x._array)
    assert x.permute(order).permute(back).stride() == x.stride()


@given(shape=SHAPES, data=st.data())
def test_reshape_copies_only_where_strides_demand_it(shape, data):
    x = counting(*shape).permute(data.draw(st.permutations(range(len(shape)))))
    flat = x.reshape(-1)
    assert np.array_equal(flat._array, x._array.reshape(-1))
    assert (flat.untyped_storage() is x.untyped_storage()) == np.shares_memory(flat._array, x._array)


def test_strides_and_offsets_count_elements():
    x = counting(4, 5)
    part = x[1:3, 2]
    assert part.stride() == (5,)
    assert part.storage_offset() == 7
    assert x.t().stride() == (1, 5)
    assert x.unsqueeze(0).stride() == (20, 5, 1)
    assert x.t().unsqueeze(-1).stride() == (1, 5, 1)
    assert x.t().unsqueeze(0)[:, :2].stride() == (5, 1, 5)
    assert x.t().unsqueeze(0).untyped_storage() is x.untyped_storage()
    assert counting(3).expand(2, 3).stride() == (0, 1)
    assert counting(3).expand(1, 3).stride() == (3, 1)


class TestView:
    def test_infers_one_dimension(self):
        assert counting(2, 6).view(3, -1).shape == (3, 4)

    @pytest.mark.parametrize(
        ("size", "text"),
        [
            ((3, 5), r"shape '\[3, 5\]' is invalid for input of size 16"),
            ((-1, -1), "only one dimension can be inferred"),
            ((-2, 8), "invalid shape dimension -2"),
            ((-1, 3), r"shape '\[-1, 3\]' is invalid for input of size 16"),
        ],
    )
    def test_refuses_shapes_that_do_not_fit(self, size, text):
        with pytest.raises(RuntimeError, match=text):
            counting(4, 4).view(size)

    def test_refuses_strides_that_do_not_fit(self):
        with pytest.raises(RuntimeError, match="view size is not compatible with input tensor's size and stride"):
            counting(4, 4).t().view(16)

    def test_of_no_elements_cannot_be_inferred(self):
        with pytest.raises(RuntimeError, match="cannot reshape tensor of 0 elements into shape"):
            torch.zeros(0).view(0, -1)

    def test_reads_bytes_as_another_dtype(self):
        x = torch.tensor([1.0, 2.0])
        assert x.view(torch.int32).tolist() == [0x3F800000, 0x40000000]
        assert x.view(torch.uint8).shape == (8,)
        assert x.view(torch.uint8).view(torch.float32).tolist() == [1.0, 2.0]
        with pytest.raises(RuntimeError, match=r"self.size\(-1\) must be divisible by 2"):
            torch.zeros(3).view(torch.float64)


class TestExpand:
    def test_repeats_without_memory(self):
        x = counting(3, 1)
        y = x.expand(2, -1, 4)
        assert y.shape == (2, 3, 4)
        assert y.untyped_storage() is x.untyped_storage()
        assert np.array_equal(y._array, np.broadcast_to(x._array, (2, 3, 4)))

    @pytest.mark.parametrize("write", [lambda y: y.add_(1), lambda y: y.fill_(1), lambda y: y.copy_(torch.ones(3))])
    def test_refuses_writes_that_hit_an_element_twice(self, write):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"):
            write(counting(3).expand(2, 3))

    def test_parts_that_do_not_overlap_can_be_written(self):
        x = torch.zeros(3)
        x.expand(2, 3)[1].add_(1)
        x.expand(2, 3)[0][1] = 5
        assert x.tolist() == [1.0, 5.0, 1.0]

    def test_errors(self):
        with pytest.raises(RuntimeError, match=r"must match the existing size \(4\) at non-singleton dimension 0"):
            counting(4, 4).expand(3, 4)
        with pytest.raises(RuntimeError, match=r"the number of sizes provided \(1\) must be greater or equal"):
            counting(4, 4).expand(4)
        with pytest.raises(RuntimeError, match="isn't allowed in a leading, non-existing dimension 0"):
            counting(4).expand(-1, 4)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.bool, torch.complex64, torch.int8])
    def test_every_dtype(self, dtype):
        assert torch.ones(2, dtype=dtype).expand(3, 2).clone().shape == (3, 2)


def test_as_strided_stays_inside_of_the_storage():
    x = counting(4, 4)
    assert x.as_strided((2, 2), (5, 1), 2).tolist() == [[2.0, 3.0], [7.0, 8.0]]
    assert x[2:].as_strided((2,), (1,), 0).tolist() == [0.0, 1.0]
    with pytest.raises(RuntimeError, match="requiring a storage size of 100 are out of bounds for storage of size 64"):
        x.as_strided((5, 5), (5, 1))
    with pytest.raises(RuntimeError, match="Negative strides"):
        x.as_strided((2,), (-1,))


def test_as_strided_over_every_other_element_of_a_numpy_array():
    array = np.arange(10.0)
    x = torch.from_numpy(array[::2])
    view = x.as_strided((3,), (3,))
    assert view.tolist() == [0.0, 3.0, 6.0]
    view.fill_(-1)
    assert array[3] == -1


def test_gradient_of_overlapping_strided_view_adds_up():
    x = torch.zeros(4, requires_grad=True)
    x.as_strided((3, 2), (1, 1)).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0, 2.0, 1.0]


def test_gradient_through_writes_to_views():
    x = torch.ones(3, 3, requires_grad=True)
    y = x.clone()
    y[0] = 5
    y[:, 1] *= 2
    y.sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0, 0.0], [1.0, 2.0, 1.0], [1.0, 2.0, 1.0]]


def test_in_place_views_change_the_tensor_itself():
    x = counting(2, 3)
    assert x.t_() is x
    assert x.shape == (3, 2)
    assert x.unsqueeze_(0).shape == (1, 3, 2)
    assert x.squeeze_().transpose_(0, 1).shape == (2, 3)
    y = torch.ones(1, 3, requires_grad=True)
    z = y * 2
    z.squeeze_(0)
    z[1].backward()
    assert y.grad.tolist() == [[0.0, 2.0, 0.0]]


def test_resize_keeps_elements():
    x = counting(4).clone()
    assert x.resize_(2, 2).tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert x.resize_(2).tolist() == [0.0, 1.0]
    assert x.resize_(4).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert x.resize_(3, 3).shape == (3, 3)
    assert x.flatten()[:4].tolist() == [0.0, 1.0, 2.0, 3.0]
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        torch.ones(2, requires_grad=True).resize_(3)


def test_set_shares_memory():
    x, y = counting(4), torch.zeros(1)
    y.set_(x)
    y[0] = 9
    assert x[0].item() == 9
    assert y.set_().numel() == 0


def test_properties_that_transpose():
    x = counting(2, 3)
    assert x.T.shape == x.mT.shape == x.mH.shape == x.H.shape == (3, 2)
    with pytest.raises(RuntimeError, match=r"tensor\.mT is only supported on matrices"):
        _ = counting(2).mT
    with pytest.raises(RuntimeError, match="only supported on matrices"):
        _ = counting(1, 2, 3).H
    z = torch.tensor([[1 + 2j]])
    assert z.mH.tolist() == [[1 - 2j]]


def test_meta_views_have_shapes_without_memory():
    x = torch.empty(10**6, 10**5, device="meta")
    assert x[0].shape == (10**5,)
    assert x.t().stride() == (1, 10**5)
    assert x.view(-1).device.type == "meta"
    assert x.expand(2, -1, -1).shape == (2, 10**6, 10**5)
