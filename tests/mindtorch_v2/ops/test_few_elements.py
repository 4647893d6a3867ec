"""Paths of their own for a few elements: the same values as for many, no warnings, and the same rows."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import mindtorch_v2 as torch

SPECIAL = [[1.0, math.inf, -2.0], [math.nan, 0.0, -math.inf], [3e38, 3e38, -1.0]]
MASK = torch.arange(40) % 2 == 0
F = torch.nn.functional


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_sums_of_special_values():
    x = torch.tensor(SPECIAL)
    assert x.sum(1).tolist()[::2] == [math.inf, math.inf]
    assert math.isnan(x.sum().item())
    assert math.isnan(x.mean().item())
    assert math.isnan(x.max().item())
    assert math.isnan(x.min().item())
    assert x[0].max().item() == math.inf
    assert x[0].min().item() == -2


def test_sum_along_each_dimension_is_numpys():
    a = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
    for array in (a, np.asfortranarray(a), a[::2, 1:]):
        x = torch.from_numpy(array)
        for dim in (0, 1, -1, -2):
            for keepdim in (False, True):
                np.testing.assert_allclose(x.sum(dim, keepdim).numpy(), array.sum(dim, keepdims=keepdim), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shift", [0.0, -200.0, 80.0, 300.0])
def test_softmax_wherever_the_scores_are(shift):
    a = np.random.default_rng(1).standard_normal((4, 6)).astype(np.float32) + np.float32(shift)
    x = torch.from_numpy(a)
    wide = a.astype(np.float64)
    expected = np.exp(wide - wide.max(1, keepdims=True))
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(x.softmax(1).numpy(), expected, rtol=2e-6)
    np.testing.assert_allclose(x.log_softmax(1).numpy(), np.log(expected), rtol=2e-6, atol=1e-6)


def test_softmax_of_masked_scores():
    assert torch.tensor([[0.0, -math.inf]]).softmax(1).tolist() == [[1.0, 0.0]]
    assert all(math.isnan(v) for v in torch.tensor([-math.inf, -math.inf]).softmax(0).tolist())


def test_cross_entropy_of_few_rows_is_that_of_float64():
    torch.manual_seed(0)
    x, target = torch.randn(6, 5), torch.tensor([0, 4, 1, 2, 2, 3])
    for reduction in ("mean", "sum"):
        wide = F.cross_entropy(x.double(), target, reduction=reduction)
        assert F.cross_entropy(x, target, reduction=reduction).item() == pytest.approx(wide.item(), rel=1e-6)
    with pytest.raises(IndexError, match="Target 5 is out of bounds"):
        F.cross_entropy(x, torch.tensor([0, 5, 1, 2, 2, 3]))


def test_variances_are_those_of_float64():
    torch.manual_seed(0)
    x = torch.randn(6, 5) + 10
    for correction in (0, 1, 2):
        assert x.var(correction=correction).item() == pytest.approx(x.double().var(correction=correction).item(), rel=1e-5)
        np.testing.assert_allclose(
            x.std(1, correction=correction).numpy(), x.double().std(1, correction=correction).numpy(), rtol=1e-5
        )


@pytest.mark.parametrize("rows", [2, 100])
@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: x.mean(), "mean"),
        (lambda x: x.mean(1), "mean"),
        (lambda x: x.relu(), "relu"),
        (lambda x: x.masked_fill(MASK, 0.0), "masked_fill"),
    ],
)
def test_few_or_many_are_one_operator(call, name, rows):
    x = torch.randn(rows, 40)
    with torch.profiler.profile() as prof:
        call(x)
    assert [e.name for e in prof.events()] == ["aten::" + name]


@pytest.mark.parametrize(
    "call",
    [lambda x: torch.ones(2), torch.zeros_like, lambda x: torch.randn(3), lambda x: x.mean(), lambda x: x.masked_fill(x > 0, 1.0)],
)
def test_a_fresh_result_was_never_written(call):
    x = torch.ones(3)
    with torch.profiler.profile():
        recorded = call(x)
    assert recorded._version == call(x)._version == 0
