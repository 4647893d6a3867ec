"""Activation functions: values from their definitions, in-place variants, dtypes, gradients of both orders, errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F

POINTS = np.concatenate([np.linspace(-8, 8, 97), [0.0, 1e-6, -1e-6, 25.0, -25.0]])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


DEFINITIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "gelu": lambda x: np.array([v * 0.5 * math.erfc(-v / math.sqrt(2)) for v in x]),
    "silu": lambda x: x * _sigmoid(x),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "celu": lambda x: np.maximum(x, 0) + np.minimum(0, np.expm1(x)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "logsigmoid": lambda x: -np.log1p(np.exp(-x)),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hardtanh": lambda x: np.clip(x, -1, 1),
    "hardshrink": lambda x: np.where(np.abs(x) > 0.5, x, 0),
    "softshrink": lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "tanhshrink": lambda x: x - np.tanh(x),
}


@pytest.mark.parametrize("name", DEFINITIONS)
@pytest.mark.parametrize("repeat", [1, 64])  # 64: past the size at which masks are applied bit by bit
def test_values(name: str, repeat: int) -> None:
    x = np.tile(POINTS, repeat)
    want = DEFINITIONS[name](x)
    for dtype, tolerance in ((np.float64, 1e-9), (np.float32, 2e-6)):
        got = getattr(F, name)(torch.from_numpy(x.astype(dtype)))
        assert got._array.dtype == dtype
        np.testing.assert_allclose(got._array, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", [n for n in DEFINITIONS if n not in ("relu", "hardshrink")])
def test_gradients_match_differences(name: str) -> None:
    x = torch.tensor([-4.1, -2.2, -0.7, 0.3, 1.4, 2.9], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(getattr(F, name), (x,))
    if name == "hardsigmoid":  # torch: has no second derivative
        with pytest.raises(RuntimeError, match="derivative for aten::hardsigmoid_backward is not implemented"):
            torch.autograd.gradgradcheck(F.hardsigmoid, (x,))
    else:
        assert torch.autograd.gradgradcheck(getattr(F, name), (x,))


@pytest.mark.parametrize(
    "name", ["relu", "relu6", "silu", "mish", "elu", "selu", "celu", "leaky_relu", "hardswish", "hardsigmoid", "hardtanh"]
)
def test_inplace_is_the_same_and_differentiates(name: str) -> None:
    function = getattr(F, name)
    x = torch.tensor([-2.0, -0.5, 0.5, 2.0], requires_grad=True)
    (want,) = torch.autograd.grad(function(x).sum(), x)
    y = x * 1
    version = y._version
    z = function(y, inplace=True)
    assert z is y
    assert y._version == version + 1
    np.testing.assert_allclose(z.detach()._array, function(x.detach())._array)
    (got,) = torch.autograd.grad(z.sum(), x)
    np.testing.assert_allclose(got._array, want._array, rtol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["gelu", "silu", "softplus", "hardswish", "leaky_relu", "elu"])
def test_half_precision_rounds_once(name: str, dtype: torch.dtype) -> None:
    x = torch.tensor([-1.5, 0.25, 3.0]).to(dtype)
    got = getattr(F, name)(x)
    assert got.dtype is dtype
    want = getattr(F, name)(x.to(torch.float32)).to(dtype)
    assert got.to(torch.float32).tolist() == want.to(torch.float32).tolist()


@pytest.mark.parametrize(
    ("name", "kernel"), [("gelu", "GeluKernelImpl"), ("silu", "silu_cpu"), ("softplus", "softplus_cpu"), ("mish", "mish_cpu")]
)
def test_integers_are_refused(name: str, kernel: str) -> None:
    with pytest.raises(NotImplementedError, match=f"\"{kernel}\" not implemented for 'Long'"):
        getattr(F, name)(torch.tensor([1, 2]))


def test_relu_of_integers_and_bools() -> None:
    assert F.relu(torch.tensor([-1, 2])).tolist() == [0, 2]
    with pytest.raises(RuntimeError, match="Boolean inputs not supported for relu"):
        F.relu(torch.tensor([True]))


def test_nodes_are_named_as_in_torch() -> None:
    x = torch.ones(2, requires_grad=True)
    assert F.relu(x).grad_fn.name() == "ReluBackward0"
    assert F.leaky_relu(x * 1, inplace=True).grad_fn.name() == "LeakyReluBackward1"
    assert F.selu(x).grad_fn.name() == "EluBackward0"
    assert F.logsigmoid(x).grad_fn.name() == "LogSigmoidBackward0"
    assert F.prelu(x, torch.ones(1)).grad_fn.name() == "PreluKernelBackward0"


def test_infinities() -> None:
    x = torch.tensor([math.inf])
    assert F.gelu(x).item() == math.inf
    assert F.silu(x).item() == math.inf
    assert F.softplus(x).item() == math.inf
    assert F.logsigmoid(-x).item() == -math.inf
    assert F.elu(-x).item() == -1


def test_masked_gradients_keep_infinities_out() -> None:
    x = torch.tensor([-1.0, 1.0] * 2000, requires_grad=True)
    (g,) = torch.autograd.grad(F.relu(x), x, torch.full((4000,), math.inf))
    assert g._array[0] == 0
    assert g._array[1] == math.inf


def test_small_inputs_keep_their_digits() -> None:
    x = torch.tensor([1e-6], dtype=torch.float32)
    np.testing.assert_allclose(F.elu(-x).item(), math.expm1(-1e-6), rtol=1e-6)
    np.testing.assert_allclose(F.softplus(torch.tensor([-18.0])).item(), math.log1p(math.exp(-18)), rtol=1e-6)
    np.testing.assert_allclose(F.logsigmoid(torch.tensor([18.0])).item(), -math.log1p(math.exp(-18)), rtol=1e-6)


def test_glu_halves_a_dimension() -> None:
    x = torch.tensor([[1.0, 2.0, 0.0, 0.0]])
    assert F.glu(x).tolist() == [[0.5, 1.0]]
    with pytest.raises(RuntimeError, match="Halving dimension must be even, but dimension 1 is size 3"):
        F.glu(torch.ones(2, 3))


def test_prelu_takes_a_slope_for_each_channel() -> None:
    x = -torch.ones(1, 2, 2)
    assert F.prelu(x, torch.tensor([0.5, 0.25])).tolist() == [[[-0.5, -0.5], [-0.25, -0.25]]]
    with pytest.raises(RuntimeError, match="Found parameter numbers = 3 and channel size = 2"):
        F.prelu(x, torch.ones(3))


def test_rrelu_draws_slopes_between_its_bounds() -> None:
    torch.manual_seed(0)
    x = -torch.ones(100, requires_grad=True)
    y = F.rrelu(x, 0.1, 0.3, training=True)
    slopes = -y.detach()._array
    assert ((slopes >= 0.1) & (slopes <= 0.3)).all()
    assert np.unique(slopes).size > 50
    (g,) = torch.autograd.grad(y.sum(), x)
    np.testing.assert_allclose(g._array, slopes)
    np.testing.assert_allclose(F.rrelu(x, 0.1, 0.3).detach()._array, -0.2, rtol=1e-6)


def test_softshrink_refuses_a_negative_threshold() -> None:
    with pytest.raises(RuntimeError, match=r"lambda must be in range \[0, .*\] for input dtype Float, but found -0.5"):
        F.softshrink(torch.ones(1), -0.5)


def test_gelu_refuses_an_unknown_approximation() -> None:
    with pytest.raises(RuntimeError, match="approximate argument must be either none or tanh"):
        F.gelu(torch.ones(1), approximate="other")


def test_gumbel_softmax_is_one_hot_when_hard() -> None:
    torch.manual_seed(0)
    logits = torch.zeros(50, 4, requires_grad=True)
    y = F.gumbel_softmax(logits, hard=True)
    np.testing.assert_allclose(np.sort(y.detach()._array, 1), [[0, 0, 0, 1]] * 50, atol=1e-6)
    (g,) = torch.autograd.grad((y * torch.arange(4.0)).sum(), logits)
    assert np.abs(g._array).sum() > 0


def test_implicit_softmax_dimension_warns() -> None:
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax"):
        y = F.softmax(torch.zeros(2, 2))
    assert y.tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_gelu_in_single_precision_over_its_whole_range() -> None:
    x = np.concatenate([np.linspace(-12, 12, 5001), [0.0, 1e30, -1e30, np.inf]]).astype(np.float32)
    wide = x[:-1].astype(np.float64)
    got = F.gelu(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(got[:-1], wide * special.ndtr(wide), rtol=1e-6, atol=1e-6)
    assert got[-1] == np.inf
