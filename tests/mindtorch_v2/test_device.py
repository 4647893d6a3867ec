"""Devices: names, the default one, meta tensors, and the NPU that is not there."""

from __future__ import annotations

import pickle
import threading

import pytest

import mindtorch_v2 as torch


def test_names():
    assert torch.device("cpu") is torch.device("cpu")
    assert torch.device("cpu", 0) == torch.device("cpu:0")
    assert torch.device("cpu") != torch.device("cpu:0")
    assert torch.device("npu:1").index == 1
    assert repr(torch.device("cuda", 1)) == "device(type='cuda', index=1)"
    assert str(torch.device("meta")) == "meta"
    assert pickle.loads(pickle.dumps(torch.device("npu:1"))) == torch.device("npu:1")
    for bad in ("foo", "cpu:x", ""):
        with pytest.raises(RuntimeError):
            torch.device(bad)
    with pytest.raises(RuntimeError, match="must not include an index"):
        torch.device("cpu:0", 1)


def test_device_as_context_and_decorator():
    with torch.device("meta"):
        assert torch.ones(2).is_meta
        assert torch.tensor([1]).is_meta
        assert torch.rand(2).is_meta
        assert torch.arange(3).is_meta
        with torch.device("cpu"):
            assert torch.ones(2).is_cpu
        assert torch.ones(2, device="cpu").is_cpu

    @torch.device("meta")
    def make():
        return torch.zeros(2)

    assert make().is_meta
    assert torch.ones(2).is_cpu


def test_default_device():
    torch.set_default_device("meta")
    try:
        assert torch.get_default_device() == torch.device("meta")
        assert torch.ones(2).is_meta
        with torch.device("cpu"):
            assert torch.ones(2).is_cpu
        assert torch.ones(2).is_meta
    finally:
        torch.set_default_device(None)
    assert torch.get_default_device() == torch.device("cpu")
    assert torch.ones(2).is_cpu


def test_default_device_belongs_to_a_thread():
    seen = []
    with torch.device("meta"):
        thread = threading.Thread(target=lambda: seen.append(torch.ones(1).device.type))
        thread.start()
        thread.join()
    assert seen == ["cpu"]


def test_meta_tensors_have_geometry_and_no_elements():
    huge = torch.empty(1 << 20, 1 << 20, device="meta")
    assert huge.shape == (1 << 20, 1 << 20)
    assert huge.data_ptr() == 0
    moved = torch.ones(2, 3).to("meta")
    assert moved.is_meta
    assert moved.shape == (2, 3)
    assert (moved + moved).is_meta
    with pytest.raises(NotImplementedError, match="no data"):
        moved.to("cpu")
    with pytest.raises(NotImplementedError, match="no data"):
        torch.tensor([1, 2]).new_tensor(moved)


def test_npu_is_absent_and_says_so():
    assert not torch.npu.is_available()
    assert torch.npu.device_count() == 0
    for call in (
        lambda: torch.ones(2, device="npu"),
        lambda: torch.ones(2).npu(),
        lambda: torch.npu.synchronize(),
        lambda: torch.ones(2).to("npu:0"),
    ):
        with pytest.raises(RuntimeError, match="no Ascend NPU runtime"):
            call()
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        torch.ones(2).cuda()
