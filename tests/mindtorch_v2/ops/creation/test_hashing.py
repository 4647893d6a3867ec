"""Hashes of tensors."""

import struct

import pytest

import mindtorch_v2 as torch


def bits(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def test_hash_is_the_exclusive_or_of_the_elements_bits():
    assert torch.hash_tensor(torch.tensor([1.5])).item() == bits(1.5)
    assert torch.hash_tensor(torch.tensor([1.0, 2.0])).item() == bits(1.0) ^ bits(2.0)
    assert torch.hash_tensor(torch.tensor([1, 2])).item() == 3
    assert torch.hash_tensor(torch.tensor([-3], dtype=torch.int8)).item() == 2**64 - 3


def test_along_a_dimension():
    x = torch.tensor([[1, 2], [4, 4]])
    assert torch.hash_tensor(x, dim=1).tolist() == [3, 0]
    assert torch.hash_tensor(x, dim=0, keepdim=True).shape == (1, 2)
    assert torch.hash_tensor(x).dtype is torch.uint64


def test_there_is_one_mode():
    with pytest.raises(RuntimeError, match="mode"):
        torch.hash_tensor(torch.ones(2), mode=1)
