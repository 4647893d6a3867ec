"""Derivatives of the backward operators of normalisation: their statistics are arguments that follow from the input."""

import numpy as np
import pytest

import mindtorch_v2 as torch

aten = torch.ops.aten
MASK = [True, True, True]
_rng = np.random.default_rng(0)
WEIGHT, BIAS = (torch.from_numpy(_rng.standard_normal(4)) for _ in range(2))


def layer_norm_backward(grad, x):
    _, mean, rstd = aten.native_layer_norm(x.detach(), [4], WEIGHT, BIAS, 1e-5)
    return aten.native_layer_norm_backward(grad, x, [4], mean, rstd, WEIGHT, BIAS, MASK)[0]


def batch_norm_backward(grad, x):
    _, mean, invstd = aten.native_batch_norm(x.detach(), WEIGHT, BIAS, None, None, True, 0.1, 1e-5)
    return aten.native_batch_norm_backward(grad, x, WEIGHT, None, None, mean, invstd, True, 1e-5, MASK)[0]


@pytest.mark.parametrize("function", [layer_norm_backward, batch_norm_backward])
def test_backward_operators_differentiate(function):
    points = [torch.from_numpy(_rng.standard_normal((3, 4))).requires_grad_(True) for _ in range(2)]
    assert torch.autograd.gradcheck(function, points)
    assert torch.autograd.gradgradcheck(function, points)
