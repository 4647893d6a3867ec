"""Conjugates and negatives as views: one memory, and a bit that says what its elements mean."""

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import keys


@pytest.fixture
def x():
    return torch.tensor([1 + 2j, 3 - 1j])


def test_a_conjugate_shares_memory(x):
    y = x.conj()
    assert y.is_conj()
    assert not x.is_conj()
    assert y.data_ptr() == x.data_ptr()
    assert y._base is x
    assert y.tolist() == [1 - 2j, 3 + 1j]
    assert not y.conj().is_conj()
    assert y.conj().tolist() == x.tolist()


def test_writes_reach_the_base(x):
    y = x.conj()
    y[0] = 3 + 4j
    assert x.tolist() == [3 - 4j, 3 - 1j]
    y.mul_(1j)
    assert y.tolist() == [-4 + 3j, -1 + 3j]
    assert x.tolist() == [-4 - 3j, -1 - 3j]
    assert x._version == 2
    y.imag.zero_()
    assert x.tolist() == [-4, -1]


def test_operators_see_the_elements(x):
    y = x.conj()
    assert (y + 1j).tolist() == [1 - 1j, 3 + 2j]
    assert torch.cat([y, x]).tolist() == [1 - 2j, 3 + 1j, 1 + 2j, 3 - 1j]
    assert torch.dot(y, x).item() == 15
    assert y.imag.tolist() == [-2, 1]
    assert y.imag.is_neg()
    assert y.real.tolist() == [1, 3]
    assert repr(y) == "tensor([1.-2.j, 3.+1.j])"
    assert [t.is_conj() for t in (y + 0, y.clone(), y.to(torch.complex128), y.resolve_conj())] == [False] * 4


def test_views_stay_conjugate(x):
    y = x.conj()
    for view in (y[:1], y.view(2, 1), y.expand(2, 2), y.detach(), y.reshape(1, 2), y.chunk(2)[1], y.unsqueeze(0).t()):
        assert view.is_conj()
        assert view.data_ptr() in (x.data_ptr(), x[1].data_ptr())


def test_memory_is_not_handed_out_unfinished(x):
    with pytest.raises(RuntimeError, match=r"conjugate bit set. Use tensor.resolve_conj\(\)"):
        x.conj().numpy()
    with pytest.raises(RuntimeError, match="negative bit set"):
        x.conj().imag.numpy()
    with pytest.raises(BufferError, match="conjugate bit"):
        x.conj().__dlpack__()
    with pytest.raises(RuntimeError, match="unresolved conjugated"):
        torch.view_as_real(x.conj())
    with pytest.raises(RuntimeError, match="conjugate view tensors"):
        x.conj().view(torch.float32)
    np.testing.assert_array_equal(x.conj().resolve_conj().numpy(), [1 - 2j, 3 + 1j])
    np.testing.assert_array_equal(x.conj().imag.numpy(force=True), [-2, 1])


def test_gradients_through_writes():
    x = torch.tensor([1 + 2j], dtype=torch.complex128, requires_grad=True)
    z = x * 1
    z.conj().mul_(1j)  # z becomes conj(conj(x) * i) = -i x
    z.imag.sum().backward()  # imag(-i x) = -real(x)
    assert x.grad.resolve_conj().tolist() == [-1]


def test_out_is_written_as_its_elements(x):
    torch.add(x, 1, out=x.conj())
    assert x.tolist() == [2 - 2j, 4 + 1j]


def test_negatives():
    x = torch.tensor([1.0, -2.0])
    y = torch._neg_view(x)
    assert y.is_neg()
    assert y.tolist() == [-1, 2]
    assert (y + 1).tolist() == [0, 3]
    y.add_(1)
    assert x.tolist() == [0, -3]


def test_a_tensor_without_the_bits_never_meets_the_layer(x):
    (x + x, x.conj() + x)
    functions = torch.ops.aten.add.Tensor.op.compiled
    plain = [f for full, f in functions.items() if not full & keys.PENDING]
    pending = [f for full, f in functions.items() if full & keys.PENDING]
    assert plain
    assert pending
    assert not any("resolved" in f.__code__.co_names for f in plain)
    assert all("resolved" in f.__code__.co_names for f in pending)
