"""Conversions, copies, fills, masks and limits."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mindtorch_v2 as torch


def array(t):
    return np.asarray(t._array)


def test_to_returns_itself_when_nothing_changes():
    x = torch.ones(2)
    assert x.to(torch.float32) is x
    assert x.to("cpu") is x
    assert x.to(torch.device("cpu")) is x
    assert x.to(x) is x
    assert x.float() is x
    assert x.to() is x
    assert x.to(torch.float32, copy=True) is not x
    assert x.to(torch.float32, False, True) is not x


def test_signatures_of_to():
    x = torch.tensor([1.5, -2.5])
    assert x.to(torch.int64).dtype is torch.int64
    assert x.to("cpu", torch.float64).dtype is torch.float64
    assert x.to(device="cpu", dtype=torch.float16).dtype is torch.float16
    assert x.to(torch.zeros(1, dtype=torch.int8)).dtype is torch.int8
    assert x.to(other=torch.zeros(1, dtype=torch.int8)).dtype is torch.int8
    assert x.to(None, torch.float64).dtype is torch.float64
    assert x.type_as(torch.zeros(1, dtype=torch.bool)).dtype is torch.bool
    with pytest.raises(TypeError, match="invalid combination"):
        x.to(1.5)
    with pytest.raises(TypeError, match="unexpected"):
        x.to(torch.float64, nonsense=1)


def test_short_forms_and_type():
    x = torch.tensor([0.0, 2.7])
    assert array(x.long()).tolist() == [0, 2]
    assert array(x.bool()).tolist() == [False, True]
    assert x.half().dtype is torch.float16
    assert x.type() == "torch.FloatTensor"
    assert x.type("torch.DoubleTensor").dtype is torch.float64
    assert x.type(torch.int32).dtype is torch.int32
    with pytest.raises(RuntimeError, match="complex32"):
        x.chalf()


def test_casts_out_of_range_are_those_of_c():
    x = torch.tensor([300.0, -1.0])
    assert array(x.to(torch.uint8)).tolist() == [44, 255]
    assert array(torch.tensor([math.nan]).to(torch.int32)).tolist() == [-(2**31)]


def test_complex_to_bool_looks_at_both_parts():
    assert array(torch.tensor([1j, 0j]).to(torch.bool)).tolist() == [True, False]


def test_conversion_is_differentiable():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x.double() * 3).sum().backward()
    assert x.grad.dtype is torch.float32
    assert array(x.grad).tolist() == [3, 3]


def test_detach_shares_memory_and_version():
    x = torch.ones(2, requires_grad=True)
    y = x.detach()
    assert not y.requires_grad
    y.add_(1)
    assert array(x).tolist() == [2, 2]
    assert x._version == y._version == 1


def test_detach_in_place():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    assert y.detach_() is y
    assert y.is_leaf
    assert not y.requires_grad


def test_clone_keeps_dense_strides():
    x = torch.zeros(2, 3).t()
    assert x.clone().stride() == (1, 3)
    assert x.clone(memory_format=torch.contiguous_format).stride() == (2, 1)
    assert x.contiguous().stride() == (2, 1)
    assert x.contiguous().contiguous() is not x
    y = torch.zeros(2, 3)
    assert y.contiguous() is y
    image = torch.zeros(2, 3, 4, 5)
    assert image.contiguous(memory_format=torch.channels_last).stride() == (60, 1, 15, 3)


def test_copy_broadcasts_casts_and_takes_numbers():
    x = torch.zeros(2, 3)
    x.copy_(torch.tensor([1, 2, 3]))
    assert array(x).tolist() == [[1, 2, 3]] * 2
    x.copy_(7)
    assert array(x).tolist() == [[7] * 3] * 2
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        torch.zeros(3).copy_(torch.zeros(2, 3))


def test_gradient_of_copy():
    x, y = torch.ones(3, requires_grad=True), torch.ones(1, requires_grad=True)
    x.clone().copy_(y).sum().backward()
    assert array(x.grad).tolist() == [0, 0, 0]
    assert array(y.grad).tolist() == [3]


@pytest.mark.parametrize("write", [lambda x, v: x.fill_(v), lambda x, v: x.masked_fill(torch.tensor([True, False]), v)])
def test_numbers_that_do_not_fit(write):
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
        write(torch.zeros(2, dtype=torch.uint8), 300)
    with pytest.raises(RuntimeError, match="value cannot be converted to type int64_t without overflow"):
        write(torch.zeros(2, dtype=torch.int64), math.inf)
    with pytest.raises(RuntimeError, match="value cannot be converted to type float without overflow"):
        write(torch.zeros(2), 1j)


def test_fill_with_a_tensor():
    x = torch.zeros(2)
    assert array(x.fill_(torch.tensor(3))).tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="fill_ only supports 0-dimension value tensor"):
        x.fill_(torch.tensor([1.0]))


@pytest.mark.parametrize("size", [10, 5000])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.int8, torch.bfloat16, torch.complex64, torch.complex128, torch.bool]
)
def test_where_and_masked_fill_of_any_size(size, dtype):
    rng = np.random.default_rng(0)
    mask = rng.integers(0, 2, size).astype(bool)
    x, y = (torch.from_numpy(rng.integers(0, 2, size)).to(dtype) for _ in range(2))
    condition = torch.from_numpy(mask)
    np.testing.assert_array_equal(array(torch.where(condition, x, y)), np.where(mask, array(x), array(y)))
    np.testing.assert_array_equal(array(x.masked_fill(condition, 1)), np.where(mask, array(torch.ones((), dtype=dtype)), array(x)))


def test_where_with_special_values_and_strides():
    x = torch.full((80, 80), math.nan)
    y = torch.zeros(80, 1)
    condition = torch.eye(80).bool().t()
    result = array(torch.where(condition, x.t(), y))
    assert np.isnan(np.diag(result)).all()
    assert np.isnan(result).sum() == 80


def test_where_promotes_and_refuses():
    condition = torch.tensor([True, False])
    assert torch.where(condition, torch.tensor([1, 2]), 0.5).dtype is torch.float32
    assert torch.where(condition, torch.tensor([1.0, 2.0], dtype=torch.float64), 0).dtype is torch.float64
    assert torch.where(condition, 1, 0).dtype is torch.int64
    assert [array(i).tolist() for i in torch.where(condition)] == [[0]]
    assert array(torch.ones(2).where(condition, 0.0)).tolist() == [1, 0]
    with pytest.raises(RuntimeError, match="expected condition to be a boolean tensor"):
        torch.where(torch.ones(2), torch.ones(2), torch.ones(2))


def test_masked_fill_refuses():
    with pytest.raises(RuntimeError, match="only supports boolean masks"):
        torch.ones(2).masked_fill(torch.ones(2), 0)
    with pytest.raises(RuntimeError, match="0-dimensional value tensor"):
        torch.ones(2).masked_fill(torch.tensor([True, False]), torch.ones(2))


@pytest.mark.parametrize("size", [3, 3000])
def test_clamp(size):
    x = torch.linspace(-2, 2, size)
    np.testing.assert_array_equal(array(x.clamp(-1, 1)), np.clip(array(x), -1, 1))
    np.testing.assert_array_equal(array(x.clamp(min=0.5)), np.maximum(array(x), np.float32(0.5)))
    np.testing.assert_array_equal(array(x.clamp(max=torch.tensor(0.5))), np.minimum(array(x), np.float32(0.5)))
    assert math.isnan(array(torch.tensor([math.nan]).clamp(0, 1))[0])
    assert torch.tensor([1, 2]).clamp(min=1.5).dtype is torch.float32
    with pytest.raises(RuntimeError, match="At least one of 'min' or 'max' must not be None"):
        x.clamp()
    with pytest.raises(RuntimeError, match="result type Float can't be cast"):
        torch.tensor([1, 2]).clamp_(min=1.5)


def test_gradient_of_clamp_includes_the_limits():
    x = torch.tensor([-1.0, 0.0, 0.5, 1.0, 2.0], requires_grad=True)
    x.clamp(0, 1).sum().backward()
    assert array(x.grad).tolist() == [0, 1, 1, 1, 0]


def test_lerp_dtypes_and_ends():
    x, y = torch.tensor([1.0]), torch.tensor([3.0])
    assert array(torch.lerp(x, y, 1.0)).tolist() == [3]
    assert array(x.clone().lerp_(y, 0.25)).tolist() == [1.5]
    assert array(torch.lerp(x, y, torch.tensor([0.75]))).tolist() == [2.5]
    with pytest.raises(RuntimeError, match="expected dtype float for `end` but got dtype double"):
        torch.lerp(x, y.double(), 0.5)


def test_ternary_in_place():
    x = torch.ones(2)
    x.addcmul_(torch.tensor([2.0, 3.0]), torch.tensor([4.0, 5.0]), value=0.5)
    assert array(x).tolist() == [5, 8.5]
    x.addcdiv_(torch.tensor([1.0, 2.0]), torch.tensor([2.0, 4.0]), value=-2)
    assert array(x).tolist() == [4, 7.5]
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.ones(2, dtype=torch.int64).addcmul_(torch.ones(2), torch.ones(2))
    with pytest.raises(RuntimeError, match="Integer division with addcdiv is no longer supported"):
        torch.addcdiv(torch.tensor([1]), torch.tensor([1]), torch.tensor([1]))
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        torch.ones(2).addcmul_(torch.ones(3, 2), torch.ones(3, 2))


def test_copies_of_expanded_tensors_are_row_major():
    x = torch.zeros(2, 3).expand(4, 2, 3)
    assert x.clone().stride() == (6, 3, 1)
    assert x.double().stride() == (6, 3, 1)
    assert x.clone().view(-1).shape == (24,)


def test_meta_tensors_have_dtype_and_strides_without_memory():
    x = torch.empty(100000, 1000000, device="meta")
    assert torch.where(x > 0, x, 0).dtype is torch.float32
    assert x.t().clone().stride() == (1, 1000000)
    assert x.lerp(x, 0.5).shape == x.shape
    assert torch.empty(2, dtype=torch.int64, device="meta").clamp(min=0.5).dtype is torch.float32
    assert torch.complex(x, x).dtype is torch.complex64
    assert torch.ones(2, 3).t().to("meta").stride() == (1, 3)
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        x.to("cpu")


def test_discarding_the_imaginary_part_warns_once(monkeypatch):
    from mindtorch_v2._backends.cpu.creation import copying

    monkeypatch.setattr(copying, "_warned", False)
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        torch.tensor([1 + 1j]).to(torch.float32)
    torch.tensor([1 + 1j]).to(torch.float32)


def test_warnings_for_users_pass_through_generated_functions():
    """Generated functions drop NumPy's warnings; those that operators mean for users must arrive."""
    with pytest.warns(UserWarning, match=r"std\(\): degrees of freedom is <= 0"):
        torch.ones(1).std()
