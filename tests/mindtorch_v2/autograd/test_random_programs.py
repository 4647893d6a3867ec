"""Random programs of views, in-place writes, hooks and detached tensors: same values, gradients and errors as torch."""

from __future__ import annotations

import random

import numpy as np
import pytest

import mindtorch_v2

pytestmark = pytest.mark.parity

SEEDS_IN_A_TEST = 40


def _retained(a, kept):
    v = a * 1.5
    if v.requires_grad:
        v.retain_grad()
        kept.append(v)
    return v


def _hooked(a):
    v = a + 0
    if v.requires_grad:
        v.register_hook(lambda g: g * 1.25)
    return v


def _without_grad(T, a):
    with T.no_grad():
        return a * 2


def _write_row(a, b, i, j):
    a[i] = b[j].clone()
    return a


def _scale_row(a, i):
    a[i].mul_(2.0)
    return a


def _write_columns(a, b):
    a[:, 1:3].copy_(b[:, 0:2].clone())
    return a


def _swapped(T, a):
    x, y = a.split(2, 1)
    return T.cat([y, x], 1)


# (T, a, b, two row numbers, list of tensors whose gradient is kept) → a new value of shape (3, 4)
STEPS = [
    lambda T, a, b, i, j, kept: a * b,
    lambda T, a, b, i, j, kept: a + b,
    lambda T, a, b, i, j, kept: a.sin(),
    lambda T, a, b, i, j, kept: a.exp().clamp(max=5),
    lambda T, a, b, i, j, kept: a.reshape(-1).view(3, 4),
    lambda T, a, b, i, j, kept: a.t().contiguous().t(),
    lambda T, a, b, i, j, kept: a[:],
    lambda T, a, b, i, j, kept: a.clone(),
    lambda T, a, b, i, j, kept: a.mul_(b),
    lambda T, a, b, i, j, kept: a.add_(b),
    lambda T, a, b, i, j, kept: a.sigmoid_(),
    lambda T, a, b, i, j, kept: _scale_row(a, i),
    lambda T, a, b, i, j, kept: _write_columns(a, b),
    lambda T, a, b, i, j, kept: _write_row(a, b, i, j),
    lambda T, a, b, i, j, kept: a.detach(),
    lambda T, a, b, i, j, kept: _without_grad(T, a),
    lambda T, a, b, i, j, kept: T.cat([a[:1], b[1:]]),
    lambda T, a, b, i, j, kept: _swapped(T, a),
    lambda T, a, b, i, j, kept: a.unsqueeze(0).expand(2, 3, 4).sum(0),
    lambda T, a, b, i, j, kept: (a / (b * b + 1)).tanh(),
    lambda T, a, b, i, j, kept: _retained(a, kept),
    lambda T, a, b, i, j, kept: _hooked(a),
    lambda T, a, b, i, j, kept: a.view_as(a),
]


def run_program(T, seed):
    """What a program computed, and which of its steps failed."""
    choose, numbers = random.Random(seed), np.random.default_rng(seed)
    leaves = [T.tensor(numbers.uniform(0.5, 1.5, (3, 4)), requires_grad=i == 0 or choose.random() < 0.6) for i in range(3)]
    values, kept, failed = list(leaves), [], []
    for at in range(choose.randint(3, 16)):
        step, a, b = choose.randrange(len(STEPS)), choose.choice(values), choose.choice(values)
        i, j = choose.randrange(3), choose.randrange(3)
        try:
            values.append(STEPS[step](T, a, b, i, j, kept))
        except RuntimeError:
            failed.append(at)
    out = sum((v * v).sum() for v in values[-4:])
    wanted = [x for x in leaves if x.requires_grad]
    gradients = []
    try:
        if choose.random() < 0.4:
            gradients = T.autograd.grad(out, wanted, create_graph=True, allow_unused=True)
            out = sum(g.sin().sum() for g in gradients if g is not None)
        if not isinstance(out, int) and out.requires_grad:
            out.backward()
    except RuntimeError:
        failed.append("backward")
    tensors = [*values, *gradients, *(x.grad for x in leaves), *(v.grad for v in kept)]
    return failed, [v.requires_grad for v in values], [None if t is None else t.detach().numpy().copy() for t in tensors]


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
@pytest.mark.parametrize("first", range(0, 400, SEEDS_IN_A_TEST))
def test_programs(first):
    import torch

    for seed in range(first, first + SEEDS_IN_A_TEST):
        failed, requires_grad, arrays = run_program(torch, seed)
        our_failed, our_requires_grad, our_arrays = run_program(mindtorch_v2, seed)
        assert our_failed == failed, seed
        assert our_requires_grad == requires_grad, seed
        for ours, theirs in zip(our_arrays, arrays, strict=True):
            assert (ours is None) == (theirs is None), seed
            if ours is not None:
                np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9, err_msg=f"seed {seed}")
