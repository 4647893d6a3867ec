"""torch.utils.checkpoint: the same values, gradients, random numbers, calls and errors."""

import functools
import warnings

import pytest
import torch
import torch.utils.checkpoint

import mindtorch_v2 as mt
import mindtorch_v2.utils.checkpoint

pytestmark = pytest.mark.parity


def model(lib):
    lib.manual_seed(0)
    nn = lib.nn
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 3))


def selective(lib, policy):
    return {"context_fn": functools.partial(lib.utils.checkpoint.create_selective_checkpoint_contexts, policy)}


PROGRAMS = {
    "reentrant": lambda lib, c, m, x: c.checkpoint(m, x, use_reentrant=True),
    "plain": lambda lib, c, m, x: c.checkpoint(m, x, use_reentrant=False),
    "to the end": lambda lib, c, m, x: c.checkpoint(m, x, use_reentrant=False, early_stop=False),
    "other numbers": lambda lib, c, m, x: c.checkpoint(m, x, use_reentrant=False, preserve_rng_state=False),
    "other numbers, reentrant": lambda lib, c, m, x: c.checkpoint(m, x, use_reentrant=True, preserve_rng_state=False),
    "segments": lambda lib, c, m, x: c.checkpoint_sequential(m, 3, x, use_reentrant=False),
    "segments, reentrant": lambda lib, c, m, x: c.checkpoint_sequential(m, 3, x, use_reentrant=True),
    "nested": lambda lib, c, m, x: c.checkpoint(
        lambda y: c.checkpoint(m, y, use_reentrant=False) * y.sum(), x.sin(), use_reentrant=False
    ),
    "one in the other": lambda lib, c, m, x: c.checkpoint(
        lambda y: c.checkpoint(m, y, use_reentrant=True).sin(), x.sin(), use_reentrant=False
    ),
    "products kept": lambda lib, c, m, x: c.checkpoint(m, x, use_reentrant=False, **selective(lib, [lib.ops.aten.addmm.default])),
    "all kept": lambda lib, c, m, x: c.checkpoint(m, x, use_reentrant=False, **selective(lib, lambda *a, **k: True)),
    "default": lambda lib, c, m, x: c.checkpoint(m, x),
    "keywords": lambda lib, c, m, x: c.checkpoint(m, x, use_reentrant=True, other=1),
    "options": lambda lib, c, m, x: c.checkpoint(m, x, use_reentrant=True, debug=True),
    "checks": lambda lib, c, m, x: c.checkpoint(m, x, use_reentrant=False, determinism_check="x"),
    "no gradients": lambda lib, c, m, x: c.checkpoint(m, x.detach(), use_reentrant=True),
    "packets": lambda lib, c, m, x: c.checkpoint(m, x, use_reentrant=False, **selective(lib, [lib.ops.aten.addmm])),
    "both": lambda lib, c, m, x: c.checkpoint(m, x, use_reentrant=False, debug=True, **selective(lib, [])),
}


def outcome(lib, program):
    """Values, gradients, calls of layers and random numbers; or the kind of error."""
    layers = model(lib)
    calls = []
    for name, layer in layers.named_children():
        layer.register_forward_pre_hook(lambda module, args, name=name: calls.append(name))
    x = lib.linspace(-1, 1, 20).reshape(5, 4).requires_grad_()
    lib.manual_seed(7)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            out = program(lib, lib.utils.checkpoint, layers, x)
            out.sum().backward()
        except Exception as error:
            return type(error).__name__, []
    grads = [p.grad for p in (*layers.parameters(), x) if p.grad is not None]
    numbers = [v for t in (out, *grads) for v in t.flatten().tolist()]
    return (calls, lib.rand(1).item(), sorted(w.category.__name__ for w in caught)), numbers


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    (ours, values), (theirs, expected) = outcome(mt, PROGRAMS[name]), outcome(torch, PROGRAMS[name])
    assert ours == theirs
    assert values == pytest.approx(expected, rel=1e-4, abs=1e-6)
