"""Recurrent operators and cells against torch's, values and gradients."""

import numpy as np
import pytest

import mindtorch_v2 as mt

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]  # torch warns when its switches are set


def parameters(rng, kind, layers, bidirectional, size, hidden, biases, projection=0):
    gates = {"lstm": 4, "gru": 3}.get(kind, 1)
    directions = 2 if bidirectional else 1
    out = projection or hidden
    made = []
    for layer in range(layers):
        for _ in range(directions):
            width = size if layer == 0 else out * directions
            made += [rng.standard_normal((gates * hidden, width)), rng.standard_normal((gates * hidden, out))]
            if biases:
                made += [rng.standard_normal(gates * hidden), rng.standard_normal(gates * hidden)]
            if projection:
                made.append(rng.standard_normal((projection, hidden)))
    return made


def tensors(lib, arrays):
    return [lib.from_numpy(np.array(a)).requires_grad_() for a in arrays]


def flat(x):
    return [t for v in x for t in (flat(v) if isinstance(v, list | tuple) else [v])]


def compare(call, arrays):
    import torch

    results = []
    for lib in (mt, torch):
        leaves = tensors(lib, arrays)
        with torch.backends.mkldnn.flags(enabled=False):
            outs = flat([call(lib, leaves)])
            sum((o * (i + 1)).sum() for i, o in enumerate(outs)).backward()
        results.append(([o.detach().numpy() for o in outs], [t.grad.numpy() if t.grad is not None else None for t in leaves]))
    for mine, theirs in zip(flat(results[0]), flat(results[1]), strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
@pytest.mark.parametrize(
    ("layers", "bidirectional", "biases", "batch_first"), [(1, False, True, False), (2, True, True, True), (2, False, False, False)]
)
def test_layers(kind, layers, bidirectional, biases, batch_first):
    rng = np.random.default_rng(0)
    weights = parameters(rng, kind, layers, bidirectional, 3, 4, biases)
    states = layers * (2 if bidirectional else 1)
    arrays = [
        rng.standard_normal((2, 5, 3)),
        rng.standard_normal((states, 2 if batch_first else 5, 4)),
        rng.standard_normal((states, 2 if batch_first else 5, 4)),
        *weights,
    ]

    def call(lib, leaves):
        x, h, c, *params = leaves
        hx = [h, c] if kind == "lstm" else h
        return getattr(lib, kind)(x, hx, params, biases, layers, 0.0, True, bidirectional, batch_first)

    compare(call, arrays)


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn_tanh"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_packed_sequences(kind, bidirectional):
    rng = np.random.default_rng(0)
    weights = parameters(rng, kind, 2, bidirectional, 3, 4, True)
    sizes = np.array([3, 3, 2, 1])
    states = 2 * (2 if bidirectional else 1)
    arrays = [
        rng.standard_normal((sizes.sum(), 3)),
        rng.standard_normal((states, 3, 4)),
        rng.standard_normal((states, 3, 4)),
        *weights,
    ]

    def call(lib, leaves):
        x, h, c, *params = leaves
        hx = [h, c] if kind == "lstm" else h
        return getattr(lib, kind)(x, lib.from_numpy(sizes), hx, params, True, 2, 0.0, True, bidirectional)

    compare(call, arrays)


def test_projected_lstm():
    rng = np.random.default_rng(0)
    weights = parameters(rng, "lstm", 1, False, 3, 4, True, projection=2)
    arrays = [rng.standard_normal((5, 2, 3)), rng.standard_normal((1, 2, 2)), rng.standard_normal((1, 2, 4)), *weights]
    compare(lambda lib, leaves: lib.lstm(leaves[0], leaves[1:3], leaves[3:], True, 1, 0.0, True, False, False), arrays)


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
def test_cells(kind):
    rng = np.random.default_rng(0)
    arrays = [
        rng.standard_normal((2, 3)),
        rng.standard_normal((2, 4)),
        rng.standard_normal((2, 4)),
        *parameters(rng, kind, 1, False, 3, 4, True),
    ]

    def call(lib, leaves):
        x, h, c, *params = leaves
        return getattr(lib, kind + "_cell")(x, [h, c] if kind == "lstm" else h, *params)

    compare(call, arrays)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_weight_norm(dim):
    rng = np.random.default_rng(0)
    shape = [1, 1, 1]
    shape[dim] = (3, 4, 5)[dim]
    arrays = [rng.standard_normal((3, 4, 5)), rng.standard_normal(shape)]
    compare(lambda lib, leaves: lib._weight_norm(*leaves, dim), arrays)
