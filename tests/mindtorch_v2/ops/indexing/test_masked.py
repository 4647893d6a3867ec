"""`torch.masked` and segment reductions."""

from __future__ import annotations

import math

import pytest

import mindtorch_v2 as torch

INF = math.inf
X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
MASK = [[True, False, True], [False, False, False]]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sum", [4.0, 0.0]),
        ("prod", [3.0, 1.0]),
        ("amax", [3.0, -INF]),
        ("amin", [1.0, INF]),
        ("mean", [2.0, math.nan]),
        ("var", [2.0, math.nan]),
        ("median", [1.0, math.nan]),
        ("norm", [math.sqrt(10), 0.0]),
        ("logsumexp", [math.log(math.e + math.e**3), -INF]),
        ("argmax", [2.0, 0.0]),
    ],
)
def test_reductions(name, expected):
    arguments = {"dim": 1, "mask": torch.tensor(MASK)}
    got = getattr(torch.masked, name)(torch.tensor(X), **arguments)
    assert got.tolist() == pytest.approx(expected, nan_ok=True)


def test_normalisations():
    x, mask = torch.tensor([1.0, 5.0, 1.0]), torch.tensor([True, False, True])
    assert torch.masked.softmax(x, 0, mask=mask).tolist() == [0.5, 0.0, 0.5]
    assert torch.masked.softmin(x, 0, mask=mask).tolist() == [0.5, 0.0, 0.5]
    assert torch.masked.normalize(x, 1.0, 0, mask=mask).tolist() == [0.5, 0.0, 0.5]
    assert torch.masked.cumsum(x, 0, mask=mask).tolist() == [1.0, 1.0, 2.0]
    assert torch.masked.cumprod(x, 0, mask=mask).tolist() == [1.0, 1.0, 1.0]


def test_masks_broadcast():
    assert torch.masked.sum(torch.tensor(X), 1, mask=torch.tensor([1, 0, 0])).tolist() == [1.0, 4.0]
    with pytest.raises(IndexError, match="mask dimensionality higher"):
        torch.masked.sum(torch.tensor([1.0]), mask=torch.tensor([[True]]))
    with pytest.raises(RuntimeError, match="dim=1 appears multiple times"):
        torch.masked.sum(torch.tensor(X), (1, 1))


def test_no_gradient_outside_of_the_mask():
    x = torch.tensor(X, requires_grad=True)
    torch.masked.mean(x, 1, mask=torch.tensor(MASK))[0].backward()
    assert x.grad.tolist() == [[0.5, 0.0, 0.5], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("reduce", "expected"),
    [
        ("sum", [1.0, 0.0, 5.0]),
        ("mean", [1.0, math.nan, 2.5]),
        ("max", [1.0, -INF, 3.0]),
        ("min", [1.0, INF, 2.0]),
        ("prod", [1.0, 1.0, 6.0]),
    ],
)
def test_segments(reduce, expected):
    data = torch.tensor([1.0, 2.0, 3.0])
    lengths = torch.tensor([1, 0, 2])
    assert torch.segment_reduce(data, reduce, lengths=lengths).tolist() == pytest.approx(expected, nan_ok=True)
    offsets = torch.tensor([0, 1, 1, 3])
    assert torch.segment_reduce(data, reduce, offsets=offsets).tolist() == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_segment_gradients(reduce):
    data = torch.tensor([[1.0, 2.0], [0.0, 4.0], [5.0, 3.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: torch.segment_reduce(t, reduce, lengths=torch.tensor([2, 1])), (data,))


def test_segment_lengths_must_cover_the_data():
    with pytest.raises(RuntimeError, match=r"to sum to data\.size"):
        torch.segment_reduce(torch.ones(3), "sum", lengths=torch.tensor([1, 1]))
