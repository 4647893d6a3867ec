"""Tensors in memory that processes share."""

import gc
import os
import pickle

import pytest

import mindtorch_v2 as torch

from .forked import in_child

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")


def mapped():
    """How many pieces of shared memory this process has mapped."""
    with open("/proc/self/maps") as maps:
        return sum("memfd:mindtorch_v2" in line for line in maps)


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def test_a_forked_process_writes_to_the_same_memory():
    x = torch.zeros(3)
    assert not x.is_shared()
    assert x.share_memory_() is x
    assert x.is_shared()

    def write():
        x[1] = 7

    assert in_child(write) == 0
    assert x.tolist() == [0, 7, 0]


def test_without_it_the_memory_is_each_process_s_own():
    x = torch.zeros(3)
    assert in_child(lambda: x.fill_(7)) == 0
    assert x.tolist() == [0, 0, 0]


def test_everything_on_the_storage_moves_along():
    x = torch.arange(6.0).reshape(2, 3)
    row, column, data, detached, same = x[1], x[:, 1], x.data, x.detach(), x.untyped_storage()
    x.share_memory_()
    x += 10
    assert row.tolist() == [13, 14, 15]
    assert column.tolist() == [11, 14]
    assert data.tolist() == detached.tolist() == x.tolist() == [[10, 11, 12], [13, 14, 15]]
    assert all(t.is_shared() for t in (row, column, data, detached))
    assert x.untyped_storage() is same
    assert same.is_shared()
    assert row.stride() == (1,)
    assert column.stride() == (3,)
    assert column.storage_offset() == 1


def test_a_view_can_be_the_one_that_is_moved():
    x = torch.arange(6.0)
    half = x[3:]
    half.share_memory_()
    half.zero_()
    assert x.is_shared()
    assert x.tolist() == [0, 1, 2, 0, 0, 0]


def test_storages_move_with_their_tensors():
    x = torch.arange(3)
    storage = x.untyped_storage()
    assert storage.share_memory_() is storage
    x[0] = 5
    assert x.is_shared()
    assert storage.bytes()[0] == 5


@pytest.mark.parametrize("make", [lambda: torch.empty(0), lambda: torch.empty(2, 0, 3), lambda: torch.tensor(1.5)])
def test_empty_and_single(make):
    x = make().share_memory_()
    assert x.is_shared()
    assert x.shape == make().shape


def test_moving_twice_moves_once():
    x = torch.ones(4).share_memory_()
    address = x.data_ptr()
    assert x.share_memory_().data_ptr() == address


def test_gradients_and_versions_are_kept():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    with torch.no_grad():
        x.share_memory_()
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    assert x._version == 0


def test_a_module_s_parameters_move():
    layer = torch.nn.Linear(3, 2)
    before = layer.weight.detach().clone()
    layer.share_memory()
    assert layer.weight.is_shared()
    assert layer.bias.is_shared()
    assert torch.equal(layer.weight, before)
    layer(torch.ones(3)).sum().backward()
    assert layer.weight.grad.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_the_memory_is_freed_with_the_last_tensor_on_it():
    maps, files = mapped(), descriptors()
    x = torch.ones(100_000).share_memory_()
    view = x[5:]
    assert mapped() == maps + 1
    del x
    assert mapped() == maps + 1
    assert view[0].item() == 1
    del view
    gc.collect()
    assert (mapped(), descriptors()) == (maps, files)


def test_meta_tensors_have_nothing_to_share():
    x = torch.empty(3, device="meta")
    assert x.share_memory_() is x
    assert not x.is_shared()


def test_sparse_tensors_are_pickled():
    x = torch.sparse_coo_tensor([[0, 2]], [1.0, 2.0], (3,)).coalesce()
    again = pickle.loads(pickle.dumps(x))
    assert again.to_dense().tolist() == [1, 0, 2]
    assert again.is_coalesced()
