"""Operators over lists of tensors."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch


def lists(tensors):
    return [np.asarray(t._array).tolist() for t in tensors]


def pair():
    return [torch.tensor([1.0, 4.0]), torch.tensor([[9.0]])]


def test_operand_kinds():
    assert lists(torch._foreach_add(pair(), 1)) == [[2, 5], [[10]]]
    assert lists(torch._foreach_add(pair(), pair(), alpha=2)) == [[3, 12], [[27]]]
    assert lists(torch._foreach_mul(pair(), [2, 3])) == [[2, 8], [[27]]]
    assert lists(torch._foreach_div(pair(), torch.tensor(2.0))) == [[0.5, 2], [[4.5]]]
    assert lists(torch._foreach_sub(pair(), [torch.ones(2), torch.ones(1)])) == [[0, 3], [[8]]]
    assert lists(torch._foreach_pow(pair(), 2)) == [[1, 16], [[81]]]
    assert lists(torch._foreach_pow(2.0, [torch.tensor([3.0])])) == [[8]]
    assert lists(torch._foreach_maximum(pair(), 2.0)) == [[2, 4], [[9]]]
    assert lists(torch._foreach_clamp_max(pair(), [2.0, 3.0])) == [[1, 2], [[3]]]
    assert lists(torch._foreach_sqrt(pair())) == [[1, 2], [[3]]]
    assert lists(torch._foreach_add(pair(), other=pair())) == [[2, 8], [[18]]]


def test_in_place_returns_the_list():
    x = pair()
    first = x[0]
    assert torch._foreach_add_(x, 1.0) is x
    assert torch._foreach_addcmul_(x, x, x, 0.5) is x
    assert lists(x) == [[4, 17.5], [[60]]]
    assert torch._foreach_addcdiv_(x, [torch.ones(2), torch.ones(1)], [torch.ones(2), torch.ones(1)], [1.0, 2.0]) is x
    assert torch._foreach_neg_(x) is x
    assert torch._foreach_neg_(x) is x
    assert lists(x) == [[5, 18.5], [[62]]]
    torch._foreach_lerp_(x, [torch.zeros(2), torch.zeros(1)], 0.5)
    assert lists(x) == [[2.5, 9.25], [[31]]]
    torch._foreach_copy_(x, pair())
    assert lists(x) == lists(pair())
    torch._foreach_addcmul_(x, x, x, torch.tensor([1.0, 2.0]))
    assert lists(x) == [[2, 20], [[171]]]
    torch._foreach_zero_(x)
    assert lists(x) == [[0, 0], [[0]]]
    assert x[0] is first


def test_norm():
    assert lists(torch._foreach_norm([torch.tensor([3.0, 4.0])])) == [5]
    assert lists(torch._foreach_norm([torch.tensor([3.0, -4.0])], float("inf"))) == [4]


def test_lengths_are_checked():
    with pytest.raises(RuntimeError, match="same number of tensors, got 2 and 1"):
        torch._foreach_add(pair(), [torch.ones(2)])
    with pytest.raises(RuntimeError, match="same number of elements as scalar list, got 2 and 1"):
        torch._foreach_mul(pair(), [2.0])
    with pytest.raises(RuntimeError, match="at least one tensor"):
        torch._foreach_sqrt([])


def test_gradients_flow():
    x = torch.tensor([2.0], requires_grad=True)
    torch._foreach_mul([x], 3.0)[0].sum().backward()
    assert lists([x.grad]) == [[3]]
