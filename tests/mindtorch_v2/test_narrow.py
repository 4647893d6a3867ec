"""Element types that are kept and converted, and not computed with: float8, complex32, bits."""

from __future__ import annotations

import io
import pickle

import pytest

import mindtorch_v2 as torch

FLOATS = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]
NAMES = [*FLOATS, "complex32", "float4_e2m1fn_x2", "bits8", "bits16", "bits1x8", "bits2x4", "bits4x2"]
NAMES += [f"{kind}{n}" for kind in ("uint", "int") for n in range(1, 8)]


@pytest.mark.parametrize("name", NAMES)
def test_names(name):
    d = getattr(torch, name)
    assert (repr(d), str(d), isinstance(d, torch.dtype)) == (f"torch.{name}", f"torch.{name}", True)
    assert d.itemsize == {"complex32": 4, "bits16": 2}.get(name, 1)
    assert (d.is_floating_point, d.is_complex) == (name.startswith("float"), name == "complex32")
    assert pickle.loads(pickle.dumps(d)) is d


def test_values_that_each_type_has():
    # one sign bit, four (five) bits of exponent, three (two) of mantissa
    x = torch.tensor([1.0, -2.5, 448.0, 0.0])
    assert x.to(torch.float8_e4m3fn).view(torch.uint8).tolist() == [0x38, 0xC2, 0x7E, 0]
    assert torch.tensor([1.0, -2.5, 57344.0]).to(torch.float8_e5m2).view(torch.uint8).tolist() == [0x3C, 0xC1, 0x7B]
    assert x.to(torch.float8_e4m3fn).tolist() == [1, -2.5, 448, 0]
    assert torch.tensor([0.5, 1.0, 8.0]).to(torch.float8_e8m0fnu).view(torch.uint8).tolist() == [126, 127, 130]
    z = torch.tensor([1 + 2j, -0.5j]).to(torch.complex32)
    assert z.tolist() == [1 + 2j, -0.5j]
    assert z.to(torch.complex64).tolist() == [1 + 2j, -0.5j]
    assert z.view(torch.float16).tolist() == [1, 2, 0, -0.5]


def test_rounding():
    assert torch.tensor([1.06, 1.07, 500.0]).to(torch.float8_e4m3fn).float()[:2].tolist() == [1.0, 1.125]
    assert torch.tensor(-1e9).to(torch.float8_e4m3fn).item() == -448
    assert torch.tensor(float("nan")).to(torch.float8_e5m2).view(torch.uint8).item() == 0x7F
    assert torch.tensor([0.0, -2.0]).to(torch.float8_e8m0fnu).view(torch.uint8).tolist() == [0, 128]
    assert torch.tensor(1e9).to(torch.float8_e5m2).item() == float("inf")


def test_making_them():
    for d in (torch.float8_e4m3fn, torch.complex32):
        made = (torch.zeros(2, dtype=d), torch.ones(2, dtype=d), torch.full((2,), 2.0, dtype=d), torch.tensor([1, 2.5], dtype=d))
        assert [(t.dtype, t.tolist()) for t in made] == [(d, [0, 0]), (d, [1, 1]), (d, [2, 2]), (d, [1, 2.5])]
        x = made[3]
        assert torch.ones_like(torch.zeros(2), dtype=d).tolist() == [1, 1]
        assert (torch.zeros_like(x).dtype, torch.empty_like(x).shape) == (d, (2,))
        assert torch.zeros_like(x).tolist() == [0, 0]
        x[0] = torch.tensor(4.0, dtype=d)
        assert x.tolist() == [4, 2.5]
    assert torch.empty(3, dtype=torch.bits16).shape == (3,)


def test_what_moves_elements():
    x = torch.arange(6.0).reshape(2, 3).to(torch.float8_e4m3fn)
    for made, values in (
        (x.t(), [[0, 3], [1, 4], [2, 5]]),
        (x[1], [3, 4, 5]),
        (x[:, 1:].contiguous(), [[1, 2], [4, 5]]),
        (x.reshape(-1)[torch.tensor([5, 0])], [5, 0]),
        (torch.cat([x, x])[3], [3, 4, 5]),
        (x.clone().flatten(), [0, 1, 2, 3, 4, 5]),
        (x.flip(0)[0], [3, 4, 5]),
        (torch.stack([x[0], x[1]])[1], [3, 4, 5]),
    ):
        assert (made.dtype, made.tolist()) == (torch.float8_e4m3fn, values)
    row = x[0]
    row.copy_(torch.tensor([7.0, 8.0, 9.0]))
    assert x.tolist() == [[7, 8, 9], [3, 4, 5]]
    assert (x == x).all().item()
    assert (x[0, 0].item(), x.to(torch.int64).tolist()[1]) == (7, [3, 4, 5])
    y = torch.zeros(2, 3)
    y.copy_(x)
    assert y.tolist() == [[7, 8, 9], [3, 4, 5]]
    assert repr(x) == "tensor([[7., 8., 9.],\n        [3., 4., 5.]], dtype=torch.float8_e4m3fn)"


def test_nothing_is_computed():
    x = torch.ones(2).to(torch.float8_e4m3fn)
    for compute in (
        lambda: x + x,
        lambda: x + 1,
        lambda: -x,
        lambda: x.exp(),
        lambda: x.sum(),
        lambda: x @ x,
        lambda: x < x,
        lambda: x.sort(),
    ):
        with pytest.raises(NotImplementedError, match="not implemented for 'Float8_e4m3fn'"):
            compute()
    with pytest.raises(RuntimeError, match="attempted to promote Float8_e4m3fn and Float"):
        x + torch.ones(2)
    with pytest.raises(RuntimeError, match="attempted to promote Float8_e4m3fn and Float"):
        torch.promote_types(torch.float8_e4m3fn, torch.float32)
    with pytest.raises(NotImplementedError, match=r"convert the result"):
        torch.rand(3, dtype=torch.float8_e4m3fn)
    with pytest.raises(NotImplementedError, match="not implemented for 'Bits8'"):
        torch.ones(3, dtype=torch.bits8)
    with pytest.raises(TypeError, match="unsupported ScalarType Float8_e4m3fn"):
        x.numpy()
    with pytest.raises(NotImplementedError, match="copy_kernel"):
        torch.ones(2).to(torch.bits8)


def test_limits():
    assert (torch.finfo(torch.float8_e4m3fn).max, torch.finfo(torch.float8_e5m2).eps) == (448, 0.25)
    assert torch.finfo(torch.complex32).dtype == "float16"
    assert torch.float16.to_complex() is torch.complex32 is torch.chalf
    assert torch.complex32.to_real() is torch.float16


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_checkpoints(name, legacy):
    d = getattr(torch, name)
    x = torch.arange(8, dtype=torch.uint8).view(d)
    buffer = io.BytesIO()
    torch.save([x, d], buffer, _use_new_zipfile_serialization=not legacy)
    buffer.seek(0)
    loaded, dtype = torch.load(buffer)
    assert dtype is loaded.dtype is d
    assert loaded.view(torch.uint8).tolist() == list(range(8))
