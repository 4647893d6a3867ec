"""Initialisers: their ranges, moments and structure; and, against torch, the very numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.nn import init


def test_constants() -> None:
    assert init.constant_(torch.empty(2), 0.5).tolist() == [0.5, 0.5]
    assert init.eye_(torch.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert init.ones_(torch.empty(1)).tolist() == [1]
    assert init.zeros_(torch.empty(1)).tolist() == [0]


def test_dirac_passes_channels_through() -> None:
    w = init.dirac_(torch.empty(4, 2, 3), groups=2)
    x = torch.arange(20.0).view(1, 4, 5)
    assert torch.nn.functional.conv1d(x, w, padding=1, groups=2).tolist() == x.tolist()


@pytest.mark.parametrize(
    ("fill", "bound"),
    [
        (lambda t: init.xavier_uniform_(t, gain=2), 2 * math.sqrt(6 / 300)),
        (lambda t: init.kaiming_uniform_(t, a=math.sqrt(5)), 1 / math.sqrt(200)),
        (lambda t: init.kaiming_uniform_(t, mode="fan_out", nonlinearity="relu"), math.sqrt(6 / 100)),
    ],
)
def test_uniform_bounds(fill: Any, bound: float) -> None:
    torch.manual_seed(0)
    w = fill(torch.empty(100, 200)).numpy()
    assert 0.99 * bound < np.abs(w).max() <= bound
    assert abs(w.mean()) < 0.01


@pytest.mark.parametrize(
    ("fill", "std"),
    [
        (lambda t: init.normal_(t, 0, 3), 3),
        (lambda t: init.xavier_normal_(t), math.sqrt(2 / 300)),
        (lambda t: init.kaiming_normal_(t, nonlinearity="relu"), math.sqrt(2 / 200)),
    ],
)
def test_normal_deviations(fill: Any, std: float) -> None:
    torch.manual_seed(0)
    assert fill(torch.empty(100, 200)).numpy().std() == pytest.approx(std, rel=0.02)


@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (3, 2, 2)])
def test_orthogonal(shape: tuple[int, ...]) -> None:
    w = init.orthogonal_(torch.empty(shape), gain=2).numpy().reshape(shape[0], -1)
    product = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-5)


def test_truncated_normal_stays_inside() -> None:
    torch.manual_seed(0)
    w = init.trunc_normal_(torch.empty(10000), a=-0.5, b=1.0).numpy()
    assert w.min() >= -0.5
    assert w.max() <= 1
    # the mean of a standard normal between the bounds
    density = lambda x: math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    share = (math.erf(1 / math.sqrt(2)) + math.erf(0.5 / math.sqrt(2))) / 2
    assert w.mean() == pytest.approx((density(-0.5) - density(1.0)) / share, abs=0.01)


def test_truncated_normal_of_a_far_range() -> None:
    with pytest.warns(UserWarning, match="mean is more than 2 std"):
        w = init.trunc_normal_(torch.empty(10), a=8.0, b=9.0).numpy()
    assert w.min() >= 8


def test_sparse_columns() -> None:
    w = init.sparse_(torch.empty(10, 4), 0.3).numpy()
    assert (w == 0).sum(0).tolist() == [3] * 4


def test_gains() -> None:
    assert init.calculate_gain("relu") == math.sqrt(2)
    assert init.calculate_gain("leaky_relu", 1) == 1
    with pytest.raises(ValueError, match="Unsupported nonlinearity"):
        init.calculate_gain("none")


def test_errors_and_warnings() -> None:
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        init.xavier_uniform_(torch.empty(3))
    with pytest.raises(ValueError, match="Mode up not supported"):
        init.kaiming_normal_(torch.empty(3, 3), mode="up")
    with pytest.warns(UserWarning, match="zero-element tensors is a no-op"):
        init.kaiming_uniform_(torch.empty(0, 3))
    with pytest.warns(FutureWarning, match="nn.init.normal_"):
        init.normal(torch.empty(3))


FILLS = [
    lambda init, t: init.xavier_uniform_(t),
    lambda init, t: init.kaiming_normal_(t),
    lambda init, t: init.trunc_normal_(t, a=-0.3),
    lambda init, t: init.orthogonal_(t),
    lambda init, t: init.sparse_(t, 0.2),
]


@pytest.mark.parity
@pytest.mark.parametrize("fill", FILLS)
def test_the_same_numbers_as_torch(fill: Any) -> None:
    import torch as oracle

    torch.manual_seed(3)
    oracle.manual_seed(3)
    ours, theirs = fill(init, torch.empty(7, 5)), fill(oracle.nn.init, oracle.empty(7, 5))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=2e-6)
