"""The tensor object: geometry, memory, copies, facts."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import mindtorch_v2 as torch

DTYPES = [torch.bool, torch.uint8, torch.int64, torch.uint32, torch.float16, torch.bfloat16, torch.float32, torch.complex64]


def test_geometry():
    x = torch.arange(24.0).reshape(2, 3, 4)
    assert x.shape == x.size() == torch.Size([2, 3, 4])
    assert x.size(-1) == 4
    assert x.stride() == (12, 4, 1)
    assert x[1, 1:].storage_offset() == 16
    assert x.permute(2, 0, 1).stride() == (1, 12, 4)
    assert x.permute(2, 0, 1).dim_order() == (1, 2, 0)
    assert (x.numel(), x.dim(), x.ndim, x.element_size(), x.nbytes) == (24, 3, 3, 4, 96)
    assert torch.numel(x) == 24
    assert torch.empty(0, 3).stride() == (3, 1)
    for call in (lambda: x.size(3), lambda: x.stride(-4)):
        with pytest.raises(IndexError, match=r"expected to be in range of \[-3, 2\]"):
            call()


def test_size_is_a_tuple():
    s = torch.Size([2, 3])
    assert repr(s) == "torch.Size([2, 3])"
    assert s + (1,) == (2, 3, 1)
    assert isinstance(s[1:], torch.Size)
    assert s.numel() == 6
    assert pickle.loads(pickle.dumps(s)) == s


def test_contiguity():
    x = torch.empty(2, 3, 4, 5)
    assert x.is_contiguous()
    assert not x.is_contiguous(memory_format=torch.channels_last)
    last = x.contiguous(memory_format=torch.channels_last)
    assert last.stride() == (60, 1, 15, 3)
    assert last.is_contiguous(memory_format=torch.channels_last)
    assert not last.is_contiguous()
    assert not x.t().is_contiguous() if x.dim() == 2 else True
    assert torch.empty(2, 1).t().is_contiguous()
    assert torch.empty(2, 3, 4, 5, 6).to(memory_format=torch.channels_last_3d).is_contiguous(memory_format=torch.channels_last_3d)
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last"):
        torch.empty(2, 3, memory_format=torch.channels_last)


def test_facts():
    x = torch.ones(2)
    assert x.is_cpu
    assert [x.is_cuda, x.is_npu, x.is_meta, x.is_sparse, x.is_quantized, x.is_mps] == [False] * 6
    assert x.layout is torch.strided
    assert x.is_floating_point()
    assert torch.is_floating_point(x)
    assert torch.is_complex(torch.ones(1, dtype=torch.complex64))
    assert not torch.ones(1, dtype=torch.uint8).is_signed()
    assert x.get_device() == -1
    assert torch.is_tensor(x)
    assert not torch.is_tensor([1])
    assert torch.is_storage(x.untyped_storage())
    assert x.is_same_size(torch.zeros(2))
    assert torch.is_nonzero(torch.tensor(3))
    assert torch.typename(x) == "torch.FloatTensor"
    assert x.type() == "torch.FloatTensor"


def test_storages_are_shared_by_views():
    x = torch.arange(6.0)
    y = x[2:].reshape(2, 2).t()
    assert y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    assert x.untyped_storage().nbytes() == 24
    assert y.data_ptr() == x.data_ptr() + 8
    assert not x.is_set_to(y)
    assert x.is_set_to(x[:])
    storage = y._typed_storage()
    assert storage._elements().tolist() == [0, 1, 2, 3, 4, 5]
    storage._setitem(2, 9)
    assert y[0, 0].item() == 9


def test_data_shares_elements_and_not_the_version():
    x = torch.ones(3, requires_grad=True)
    y = (x * x).sum()
    x.data.mul_(2)
    y.backward()
    assert x.grad.tolist() == [4, 4, 4]
    assert not x.data.requires_grad


def test_setting_data_keeps_identity():
    x = torch.ones(3, requires_grad=True)
    x.data = torch.full((2,), 5.0)
    assert x.requires_grad
    assert x.tolist() == [5, 5]
    (x * x).sum().backward()
    assert x.grad.tolist() == [10, 10]
    with pytest.raises(RuntimeError, match="must be floating point or complex"):
        x.data = torch.ones(2, dtype=torch.int64)
    with pytest.raises(TypeError, match="has to be a tensor"):
        x.data = [1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "copier", [copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t)), lambda t: pickle.loads(pickle.dumps(t, protocol=2))]
)
def test_copies_have_memory_of_their_own(dtype, copier):
    x = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype)
    y = copier(x)
    assert (y.dtype, y.shape, y.stride()) == (x.dtype, x.shape, x.stride())
    assert y.tolist() == x.tolist()
    assert y.data_ptr() != x.data_ptr()


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
def test_copies_keep_sharing_among_themselves(copier):
    x = torch.arange(6.0).reshape(2, 3)
    a, b = copier([x, x[1].t()])
    a[1, 0] = 50
    assert b[0].item() == 50
    assert x[1, 0].item() == 3
    c, d = copier([x, x])
    assert c is d


def test_copies_keep_attributes_gradients_and_class():
    class Mine(torch.Tensor):
        pass

    x = torch.ones(2, requires_grad=True)
    x.note = ["kept"]
    x.grad = torch.full((2,), 3.0)
    y = copy.deepcopy(x)
    assert y.requires_grad
    assert y.note == ["kept"]
    assert y.note is not x.note
    assert y.grad.tolist() == [3, 3]
    assert y.grad is not x.grad
    assert type(copy.deepcopy(torch.ones(2).as_subclass(Mine))) is Mine
    shallow = copy.copy(x)
    assert shallow.data_ptr() == x.data_ptr()


def test_only_leaves_are_copied():
    y = torch.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(y)


def test_pickles_of_results_are_leaves():
    y = torch.ones(2, requires_grad=True) * 2
    copied = pickle.loads(pickle.dumps(y))
    assert copied.tolist() == [2, 2]
    assert copied.requires_grad
    assert copied.is_leaf


def test_meta_tensors_copy_and_pickle():
    x = torch.empty(1 << 20, 1 << 20, device="meta")
    assert copy.deepcopy(x).shape == x.shape
    assert pickle.loads(pickle.dumps(x)).is_meta


def test_subclasses():
    class Mine(torch.Tensor):
        pass

    x = torch.ones(2, requires_grad=True)
    mine = x.as_subclass(Mine)
    assert type(mine) is Mine
    assert mine.data_ptr() == x.data_ptr()
    made = torch.Tensor._make_subclass(Mine, torch.ones(2), True)
    assert type(made) is Mine
    assert made.requires_grad
    assert made.is_leaf
    with pytest.raises(TypeError, match="does not inherit from Tensor"):
        x.as_subclass(int)


def test_functions_of_elements():
    assert torch.arange(3.0).apply_(lambda v: v * v).tolist() == [0, 1, 4]
    assert torch.arange(3.0).map_(torch.ones(3), lambda a, b: a - b).tolist() == [-1, 0, 1]
    assert list(reversed(torch.arange(3)).tolist()) == [2, 1, 0]


def test_what_a_machine_without_accelerators_refuses():
    with pytest.raises(RuntimeError, match="Cannot access accelerator device"):
        torch.ones(2).pin_memory()
    assert not torch.ones(2).is_pinned()


def test_expanded_out_is_refused():
    out = torch.empty(1).expand(3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        torch.bernoulli(torch.ones(3), out=out)


def test_formats_and_layouts_are_singletons():
    assert pickle.loads(pickle.dumps(torch.channels_last)) is torch.channels_last
    assert copy.deepcopy(torch.strided) is torch.strided
    assert repr(torch.preserve_format) == "torch.preserve_format"


def test_numpy_arrays_stay_writeable():
    a = np.zeros(3)
    t = torch.from_numpy(a)
    t.add_(1)
    assert a.tolist() == [1, 1, 1]


def test_typed_constructors_take_numbers_as_they_are():
    """Not by way of the default dtype, which is narrower."""
    assert torch.DoubleTensor([0.1, 1e308]).tolist() == [0.1, 1e308]
    assert torch.LongTensor([16777217.0, 2.7]).tolist() == [16777217, 2]
    assert torch.LongTensor([2**53 + 1]).tolist() == [2**53 + 1]
    assert torch.ones(1, dtype=torch.float64).new([0.1]).item() == 0.1


def test_other_data_keeps_the_count_of_writes():
    x = torch.ones(1, 2)
    view, detached = x[:], x.detach()
    x.add_(1)
    version = x._version
    x.data = torch.zeros(2, 3)
    assert x._version == view._version == version
    x.add_(1)
    assert x._version == view._version == detached._version == version + 1
    view.add_(1)
    assert x._version == view._version == version + 2
    assert (x.tolist(), view.tolist()) == ([[1, 1, 1]] * 2, [[3, 3]])
    x.data = torch.ones(2)
    x.mul_(3)
    assert view._version == version + 3
    assert x.data._version == 0
    x.data.add_(1)
    assert (x.tolist(), x._version) == ([4, 4], version + 3)
    alone = torch.ones(2)
    alone.add_(1)
    alone.data = torch.zeros(3)
    alone.add_(1)
    assert (alone._version, alone.tolist(), type(alone.untyped_storage()).__name__) == (2, [1, 1, 1], "UntypedStorage")
