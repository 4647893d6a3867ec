"""Clipping gradients, and parameters as one vector."""

from __future__ import annotations

import math

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn


def with_grads() -> list[torch.Tensor]:
    made = [nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(3))]
    made[0].grad, made[1].grad = torch.tensor([3.0, 0.0]), torch.tensor([4.0])
    return made


@pytest.mark.parametrize("foreach", [None, True, False])
def test_norm(foreach: bool | None) -> None:
    params = with_grads()
    assert float(nn.utils.clip_grad_norm_(params, 1.0, foreach=foreach)) == 5
    assert params[0].grad.tolist() == pytest.approx([0.6, 0], rel=1e-5)
    assert params[1].grad.tolist() == pytest.approx([0.8], rel=1e-5)
    before = params[0].grad.tolist()
    nn.utils.clip_grad_norm_(params, 10.0, foreach=foreach)
    assert params[0].grad.tolist() == before


def test_other_norms() -> None:
    params = with_grads()
    assert float(nn.utils.clip_grad_norm_(params, 100.0, norm_type=math.inf)) == 4
    assert float(nn.utils.clip_grad_norm_(params, 100.0, norm_type=1)) == 7
    assert float(nn.utils.get_total_norm([])) == 0


def test_non_finite() -> None:
    params = with_grads()
    params[0].grad[0] = math.nan
    with pytest.raises(RuntimeError, match="non-finite, so it cannot be clipped"):
        nn.utils.clip_grad_norm_(params, 1.0, error_if_nonfinite=True)


@pytest.mark.parametrize("foreach", [None, False])
def test_value(foreach: bool | None) -> None:
    params = with_grads()
    params[1].grad.neg_()
    nn.utils.clip_grad_value_(params, 0.5, foreach=foreach)
    assert [params[0].grad.tolist(), params[1].grad.tolist()] == [[0.5, 0], [-0.5]]


def test_vectors() -> None:
    m = nn.Linear(2, 1)
    v = nn.utils.parameters_to_vector(m.parameters())
    assert v.shape == (3,)
    nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0, 3.0]), m.parameters())
    assert m(torch.ones(1, 2)).tolist() == [[6]]
