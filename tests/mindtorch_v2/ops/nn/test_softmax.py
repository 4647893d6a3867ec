"""Softmax and its logarithm."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

import mindtorch_v2 as torch

INF = math.inf


def reference(array, axis):
    shifted = np.exp(array.astype(np.float64) - array.max(axis, keepdims=True))
    return shifted / shifted.sum(axis, keepdims=True)


@pytest.mark.parametrize("shape", [(5,), (3, 4), (300, 700), (4, 5, 6), (2, 200000)])
@pytest.mark.parametrize("dim", [0, -1])
def test_values_in_every_layout(shape, dim):
    array = np.random.default_rng(0).standard_normal(shape).astype(np.float32) * 5
    got = torch.from_numpy(array).softmax(dim)
    np.testing.assert_allclose(got.numpy(), reference(array, dim), rtol=2e-5, atol=1e-8)
    got = torch.from_numpy(array).log_softmax(dim)
    np.testing.assert_allclose(got.numpy(), np.log(reference(array, dim)), rtol=1e-5, atol=1e-5)


def test_extreme_values():
    assert torch.tensor([1e30, 0.0]).softmax(0).tolist() == [1.0, 0.0]
    assert torch.tensor([-INF, 0.0]).softmax(0).tolist() == [0.0, 1.0]
    assert math.isnan(torch.tensor([-INF, -INF]).softmax(0)[0].item())
    assert torch.tensor([1e4, 1e4 + 1]).log_softmax(0).tolist() == pytest.approx([-1.3132617, -0.3132617], rel=1e-6)
    assert torch.tensor(3.0).softmax(0).item() == 1.0
    assert torch.zeros(0, 3).softmax(1).shape == (0, 3)


def test_half_precision_is_computed_in_float32():
    out = torch.zeros(4096, dtype=torch.bfloat16).softmax(0)
    assert out.dtype is torch.bfloat16
    assert out[0].item() == 2**-12


def test_dtype_converts_first():
    assert torch.tensor([1, 1]).softmax(0, dtype=torch.float64).tolist() == [0.5, 0.5]
    with pytest.raises(NotImplementedError, match="\"softmax_lastdim_kernel_impl\" not implemented for 'Long'"):
        torch.tensor([1, 1]).softmax(0)
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.ones(2).log_softmax(1)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dim", [0, 1, -1, -2])
def test_gradients(name, dim):
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: getattr(t, name)(dim), (x,))
    assert torch.autograd.gradgradcheck(lambda t: getattr(t, name)(dim), (x,))


def test_nodes_are_torchs():
    x = torch.ones(2, requires_grad=True)
    assert x.softmax(0).grad_fn.name() == "SoftmaxBackward0"
    assert x.log_softmax(0).grad_fn.name() == "LogSoftmaxBackward0"


def test_safe_softmax_gives_zeros_for_rows_masked_out():
    x = torch.tensor([[-INF, -INF], [0.0, 0.0]])
    assert torch._safe_softmax(x, 1).tolist() == [[0.0, 0.0], [0.5, 0.5]]


def test_results_are_row_major():
    x = torch.ones(2, 3).t()
    assert x.softmax(0).stride() == (2, 1)
    assert x.log_softmax(1).stride() == (2, 1)


@pytest.mark.parametrize("shift", [0.0, 200.0, -200.0])  # exponentials as they are, and after the maximum is taken off
def test_many_long_rows(shift: float) -> None:
    x = (np.random.default_rng(0).standard_normal((300, 1000)) * 3 + shift).astype(np.float32)
    x[7] = -np.inf
    wide = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        logs = wide - special.logsumexp(wide, 1, keepdims=True)
    t = torch.from_numpy(x)
    np.testing.assert_allclose(t.log_softmax(-1).numpy(), logs, rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(t.softmax(-1).numpy(), np.exp(logs), rtol=2e-5, atol=1e-9)
