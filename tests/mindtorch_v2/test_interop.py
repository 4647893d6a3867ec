"""Sharing memory with NumPy, buffers and DLPack."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import mindtorch_v2 as torch


def test_what_is_set_on_an_array_is_not_set_on_its_tensor() -> None:
    source = np.zeros((2, 3), np.float32)
    t = torch.from_numpy(source)
    for array in (source, t.numpy(), np.asarray(t)):
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # NumPy means to give that up
            array.shape = (6,)
        assert t.shape == (2, 3)


def test_from_numpy_shares_memory_both_ways():
    a = np.arange(6.0).reshape(2, 3)
    t = torch.from_numpy(a)
    t[0, 0] = 7
    a[1, 1] = 8
    assert a[0, 0] == 7
    assert t[1, 1].item() == 8
    assert torch.from_numpy(a.T).stride() == (1, 3)
    assert torch.from_numpy(a[:, ::2]).stride() == (3, 2)


@pytest.mark.parametrize(
    ("array", "error", "text"),
    [
        (np.ones(3)[::-1], ValueError, "stride in the given numpy array is negative"),
        (np.array(["a"]), TypeError, "can't convert np.ndarray of type numpy.str_"),
        (np.array([None]), TypeError, "can't convert np.ndarray of type numpy.object_"),
        (np.ones(2, ">f4"), ValueError, "byte order"),
        ([1], TypeError, r"expected np.ndarray \(got list\)"),
    ],
)
def test_from_numpy_refuses(array, error, text):
    with pytest.raises(error, match=text):
        torch.from_numpy(array)


def test_numpy_shares_memory_and_refuses():
    t = torch.ones(2)
    t.numpy()[0] = 5
    assert t[0].item() == 5
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"Use tensor.detach\(\).numpy\(\) instead"):
        x.numpy()
    assert x.numpy(force=True).tolist() == [1, 1]
    with pytest.raises(TypeError, match="meta device type tensor"):
        torch.empty(2, device="meta").numpy()
    with pytest.raises(TypeError, match="unsupported ScalarType BFloat16"):
        torch.ones(2, dtype=torch.bfloat16).numpy()


def test_numpy_protocols():
    t = torch.tensor([[1.0, 2.0]])
    assert np.asarray(t).dtype == np.float32
    assert np.shares_memory(np.asarray(t), t.numpy())
    assert not np.shares_memory(np.array(t), t.numpy())
    assert np.asarray(t, np.float64).dtype == np.float64
    sine = np.sin(t)
    assert isinstance(sine, torch.Tensor)
    np.testing.assert_allclose(sine.numpy(), np.sin([[1, 2]]), rtol=1e-6)
    with pytest.raises(ValueError, match="copy"):
        np.asarray(t, np.float64, copy=False)


def test_what_numpy_says_in_bools_comes_back_in_bytes():
    said = np.greater_equal(torch.tensor([1, 2, 3]), 2)
    assert said.dtype is torch.uint8
    assert said.tolist() == [0, 1, 1]


def test_memory_that_an_array_shares_is_not_exchanged():
    for share in (torch.Tensor.numpy, np.asarray):
        x = torch.zeros(3)
        array = share(x)
        with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
            x.resize_(10)
        assert x.resize_(2).shape == (2,)  # which needs no other memory
        assert array.shape == (3,)


def test_numpy_scalars_as_operands():
    t = torch.ones(2)
    assert (np.float64(2) * t).tolist() == [2, 2]
    assert (t * np.float32(3)).dtype is torch.float32


def test_frombuffer():
    data = bytearray(8)
    t = torch.frombuffer(data, dtype=torch.int32)
    t[1] = 258
    assert bytes(data) == b"\0\0\0\0\2\1\0\0"
    assert torch.frombuffer(data, dtype=torch.uint8, offset=4, count=2).tolist() == [2, 1]
    for options, text in (
        ({"dtype": torch.int32, "count": 3}, "must not be greater than actual buffer length"),
        ({"dtype": torch.int32, "offset": 9}, "must be non-negative and no greater than buffer length"),
        ({"dtype": torch.int32, "offset": 1}, "must be a multiple of element size"),
    ):
        with pytest.raises(ValueError, match=text):
            torch.frombuffer(data, **options)


def test_dlpack_with_numpy_shares_memory():
    t = torch.arange(4.0)
    a = np.from_dlpack(t)
    assert a.ctypes.data == t.data_ptr()
    back = torch.from_dlpack(np.arange(3))
    assert back.tolist() == [0, 1, 2]
    assert t.__dlpack_device__() == (1, 0)
    from mindtorch_v2.utils import dlpack

    assert dlpack.from_dlpack(dlpack.to_dlpack(t)).data_ptr() == t.data_ptr()
    with pytest.raises(BufferError, match="require gradient"):
        torch.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises(BufferError, match="no elements"):
        torch.empty(2, device="meta").__dlpack__()


def test_tolist():
    assert torch.tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert torch.tensor(1 + 2j).tolist() == 1 + 2j
    assert torch.tensor([1.5], dtype=torch.bfloat16).tolist() == [1.5]
    assert torch.tensor(True).tolist() is True
    with pytest.raises(NotImplementedError, match="no data"):
        torch.empty(2, device="meta").tolist()


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (3, "uint8", 3),
        (1.5, "bfloat16", 1.5),
        (True, "bool", True),
        (1 + 2j, "complex64", 1 + 2j),
        (2.5, "float16", 2.5),
        (-4, "int64", -4),
    ],
)
def test_item_is_a_python_number(value, dtype, expected):
    got = torch.tensor(value, dtype=getattr(torch, dtype)).item()
    assert got == expected
    assert type(got) is type(expected)


def test_python_conversions():
    assert int(torch.tensor(2.7)) == 2
    assert float(torch.tensor([3])) == 3.0
    assert complex(torch.tensor(2.0)) == 2 + 0j
    assert [10, 20][torch.tensor(1)] == 20
    assert bool(torch.tensor([0.5]))
    assert len(torch.ones(3, 2)) == 3


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: torch.ones(2).item(), RuntimeError, "a Tensor with 2 elements cannot be converted to Scalar"),
        (lambda: int(torch.ones(2)), ValueError, "only one element tensors"),
        (lambda: bool(torch.ones(2)), RuntimeError, "more than one value is ambiguous"),
        (lambda: bool(torch.ones(0)), RuntimeError, "no values is ambiguous"),
        (lambda: float(torch.tensor(1j)), RuntimeError, "without overflow"),
        (lambda: len(torch.tensor(1)), TypeError, "len\\(\\) of a 0-d tensor"),
        (lambda: torch.tensor(1.5).__index__(), TypeError, "only integer tensors of a single element"),
        (lambda: torch.empty((), device="meta").item(), RuntimeError, "cannot be called on meta tensors"),
    ],
)
def test_conversions_refuse(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parity
def test_dlpack_with_torch_shares_memory():
    import torch as theirs

    ours = torch.arange(6.0).reshape(2, 3).t()
    there = theirs.from_dlpack(ours)
    assert there.data_ptr() == ours.data_ptr()
    assert tuple(there.stride()) == ours.stride()
    there[0, 0] = 9
    assert ours[0, 0].item() == 9
    back = torch.from_dlpack(theirs.arange(4, dtype=theirs.int32))
    assert back.dtype is torch.int32
    assert back.tolist() == [0, 1, 2, 3]
