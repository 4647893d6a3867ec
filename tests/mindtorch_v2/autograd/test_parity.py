"""Graphs, gradients and messages next to torch's own."""

from __future__ import annotations

import re

import numpy as np
import pytest

import mindtorch_v2

pytestmark = pytest.mark.parity

EXPRESSIONS = {
    "linear": lambda T, x, w: (x @ w.t() + w[0]).sum(),
    "functional linear": lambda T, x, w: T.nn.functional.linear(x, w, w[0]).mean(),
    "softmax": lambda T, x, w: (T.softmax(x, -1) * w).sum(),
    "log_softmax": lambda T, x, w: T.nn.functional.cross_entropy(x, T.tensor([0, 1, 2])),
    "norm": lambda T, x, w: ((x - x.mean(0)) / (x.var(0) + 1e-5).sqrt()).sum(),
    "slices": lambda T, x, w: (x[1:, ::2] * 2 + x[:-1, ::2]).sum(),
    "masked": lambda T, x, w: T.where(x > 0, x, w).sum(),
    "cat": lambda T, x, w: T.cat([x, w, x * 2]).sum(),
    "stack and split": lambda T, x, w: sum(p.sum() for p in T.stack([x, w]).split(1)),
    "inplace": lambda T, x, w: (x * 1).mul_(w).add_(x).sum(),
    "inplace on a view": lambda T, x, w: _write(x * 1, w).sum(),
    "einsum": lambda T, x, w: T.einsum("ij,kj->ik", x, w).sum(),
    "reshape": lambda T, x, w: x.t().reshape(-1).view(3, 3).unsqueeze(0).expand(2, 3, 3).squeeze(0).sum(),
    "pow and division": lambda T, x, w: (x**2 / (w**2 + 1) - 2 / (x**2 + 1)).sum(),
    "number first": lambda T, x, w: (1 - x * 2 + 3 / (2 + w * w)).sum(),
    "max": lambda T, x, w: x.max(1).values.sum() + x.max() + w.amax(0).sum(),
    "activations": lambda T, x, w: (T.relu(x) + T.tanh(w) + T.sigmoid(x) + T.nn.functional.gelu(w) + T.nn.functional.silu(x)).sum(),
    "unbind": lambda T, x, w: x.unbind(0)[1].sum() + w.chunk(2, 1)[0].sum(),
    "gather": lambda T, x, w: x.gather(1, T.tensor([[0], [1], [2]])).sum() + w.index_select(0, T.tensor([0, 0])).sum(),
    "layer_norm": lambda T, x, w: T.nn.functional.layer_norm(x, (3,), w[0], w[1]).sum(),
    "matmul of vectors": lambda T, x, w: x[0] @ w @ x[1],
    "bmm": lambda T, x, w: (x.expand(2, 3, 3) @ w).sum(),
    "clamp and abs": lambda T, x, w: (x.clamp(-0.5, 0.5) + w.abs()).sum(),
    "cumsum": lambda T, x, w: (x.cumsum(0) * w.flip(0)).sum(),
    "conversion": lambda T, x, w: x.float().double().sum() + (w.to(T.float32) * 2).sum(),
}


def _write(y, w):
    y[0].mul_(w[1])
    y[:, 1] = w[:, 0]
    return y


def _inputs(torch):
    r = np.random.default_rng(0)
    return tuple(torch.tensor(r.standard_normal((3, 3)), requires_grad=True) for _ in range(2))


def _graph(node, seen=None):
    """A graph as text: names, indices, shared nodes by number."""
    seen = {} if seen is None else seen
    if node is None:
        return "-"
    if node in seen:
        return f"#{seen[node]}"
    seen[node] = len(seen)
    inner = ", ".join(f"{_graph(n, seen)}:{i}" if n is not None else "-" for n, i in node.next_functions)
    return f"{node.name()}({inner})"


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_same_graph_and_gradients(name):
    import torch

    results = []
    for library in (torch, mindtorch_v2):
        x, w = _inputs(library)
        y = EXPRESSIONS[name](library, x, w)
        graph = _graph(y.grad_fn)
        y.backward()
        results.append((graph, y.item(), *(None if t.grad is None else t.grad.numpy() for t in (x, w))))
    (graph, value, *grads), (our_graph, our_value, *our_grads) = results
    assert our_graph == graph
    assert our_value == pytest.approx(value)
    for ours, theirs in zip(our_grads, grads, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-8)


FAILURES = {
    "exp overwritten": lambda T, x: _then(x.exp(), lambda y: (y.mul_(2), y.sum().backward())),
    "input overwritten": lambda T, x: _then(x.exp(), lambda y: _then(y * y, lambda z: (y.add_(1), z.sum().backward()))),
    "view overwritten": lambda T, x: _then(x.exp(), lambda y: (y[0].mul_(2), y.sum().backward())),
    "leaf": lambda T, x: x.mul_(2),
    "leaf view": lambda T, x: x[0].mul_(2),
    "split view": lambda T, x: (x * 1).split(1)[0].mul_(2),
    "chunk view": lambda T, x: (x * 1).chunk(2)[0].mul_(2),
    "detach_ of a view": lambda T, x: (x * 1)[0].detach_(),
    "twice": lambda T, x: _then(x.exp().sum(), lambda y: (y.backward(), y.backward())),
    "no grad": lambda T, x: T.ones(3).sum().backward(),
    "not a scalar": lambda T, x: (x * 2).backward(),
    "unused": lambda T, x: T.autograd.grad(x.sum(), T.ones(2, requires_grad=True)),
    "grad of integers": lambda T, x: T.ones(2, dtype=T.int64).requires_grad_(),
    "numpy of a tensor that requires grad": lambda T, x: x.numpy(),
    "requires_grad of a result": lambda T, x: (x * 2).requires_grad_(False),
    "wrong gradient shape": lambda T, x: (x * 2).backward(T.ones(7)),
    "out=": lambda T, x: T.add(x, x, out=T.ones(3, 3, dtype=T.float64)),
}


def _then(value, use):
    return use(value)


@pytest.mark.parametrize("name", FAILURES)
def test_same_messages(name):
    import torch

    texts = []
    for library in (torch, mindtorch_v2):
        x = _inputs(library)[0]
        with pytest.raises(Exception, match=r"(?s).*") as error:
            FAILURES[name](library, x)
        texts.append((error.type, re.sub(r"0x[0-9a-f]+", "", str(error.value))))
    assert texts[1] == texts[0]


def test_backward_nodes_run_in_torch_s_order():
    import torch

    orders = []
    for library in (torch, mindtorch_v2):
        x, w = _inputs(library)
        order = []

        def watched(t, order=order):
            t.grad_fn.register_prehook(lambda grads, name=t.grad_fn.name(): order.append(name))
            return t

        a = watched(x.exp())
        b = watched(w.sin())
        c = watched(a * b)
        d = watched(b.cos())
        watched((c + d).sum()).backward()
        orders.append(order)
    assert orders[1] == orders[0]
