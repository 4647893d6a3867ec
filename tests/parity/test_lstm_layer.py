"""Layers of an LSTM as one operator each, `mkldnn_rnn_layer`: when torch takes it, its rows, values and gradients."""

import contextlib

import numpy as np
import pytest

import mindtorch_v2 as mt

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

LAYER = "aten::mkldnn_rnn_layer"


def libraries():
    import torch

    return mt, torch


def flat(x):
    return [t for v in x for t in (flat(v) if isinstance(v, list | tuple) else [v])]


def close(ours, theirs, tolerance=2e-6):
    """Within float rounding of the largest value."""
    for mine, other in zip(ours, theirs, strict=True):
        a, b = mine.detach().float().numpy(), other.detach().float().numpy()
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(np.abs(b).max(), 1e-3))


OPTIONS = [
    {},
    {"bias": False, "num_layers": 2},
    {"bidirectional": True, "batch_first": True},
    {"num_layers": 2, "bidirectional": True, "dropout": 0.4},
]


def states(lib, options, batch, width):
    layers = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    return [lib.randn(layers, batch, width, requires_grad=True) for _ in range(2)]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(("steps", "width"), [(1, 5), (3, 40), (9, 40)])
def test_values_and_gradients(options, steps, width):
    found = []
    for lib in libraries():
        lib.manual_seed(0)
        batch_first = options.get("batch_first", False)
        net = lib.nn.LSTM(6, width, **options)
        x = lib.randn(*((4, steps) if batch_first else (steps, 4)), 6, requires_grad=True)
        h, c = states(lib, options, 4, width)
        out, (hn, cn) = net(x, (h, c))
        ((out * out).sum() + 2 * (hn * hn).sum() + (cn * cn).sum()).backward()
        assert out.grad_fn.name() in ("MkldnnRnnLayerBackward0", "CatBackward0", "TransposeBackward0")
        found.append([out, hn, cn, *(t.grad for t in (x, h, c, *net.parameters()))])
    close(*found)
    assert [t.stride() for t in found[0][:3]] == [t.stride() for t in found[1][:3]]


@pytest.mark.parametrize("of", [0, 1, 2])
def test_gradients_of_one_result(of):
    found = []
    for lib in libraries():
        lib.manual_seed(0)
        net, x = lib.nn.LSTM(3, 4).eval(), lib.randn(5, 2, 3, requires_grad=True)
        results = flat(net(x))
        found.append(lib.autograd.grad(results[of].exp().sum(), [x, *net.parameters()]))
    close(*found)


def test_saturated_gates_have_small_gradients_and_not_none():
    """Sigmoids near 0 are exact in relation to their own size."""
    found = []
    for lib in libraries():
        lib.manual_seed(0)
        net = lib.nn.LSTM(3, 4)
        with lib.no_grad():
            net.bias_ih_l0[:4] = -20.0
        net(lib.randn(5, 2, 3))[0].sum().backward()
        found.append(net.weight_ih_l0.grad[:4].numpy())
    assert 0 < np.abs(found[1]).max() < 1e-7
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4)


def test_second_derivatives():
    found = []
    for lib in libraries():
        lib.manual_seed(0)
        net, x = lib.nn.LSTM(3, 4, bidirectional=True), lib.randn(5, 2, 3, requires_grad=True)
        out, (h, c) = net(x)
        first = lib.autograd.grad((out * out).sum() + (h * c).sum(), [x, net.weight_hh_l0, net.bias_ih_l0], create_graph=True)
        sum((g * g).sum() for g in first).backward()
        found.append([*first, x.grad, *(p.grad for p in net.parameters())])
    close(*found)


def taken(lib, call):
    """Whether a call runs a layer as one operator, or the error that it raises."""
    with lib.profiler.profile(activities=[lib.profiler.ProfilerActivity.CPU]) as prof:
        try:
            call(lib)
        except Exception as error:
            return type(error)
    return LAYER in {event.name for event in prof.events()}


def switched_off(lib):
    with lib.backends.mkldnn.flags(enabled=False):
        lib.nn.LSTM(3, 4)(lib.ones(5, 2, 3))


def by_attribute(lib):
    with pytest.MonkeyPatch.context() as patch:
        if (
            lib is torch
        ):  # importing PyTorch's tests forbids it; torch.backends itself is a stand-in for the module that has the flag
            patch.setitem(torch.backends.flags_frozen.__globals__, "__allow_nonbracketed_mutation_flag", True)
        patch.setattr(lib.backends.mkldnn, "enabled", False)
        lib.nn.LSTM(3, 4)(lib.ones(5, 2, 3))


def without_grad(lib, mode):
    with getattr(lib, mode)():
        lib.nn.LSTM(3, 4)(lib.ones(5, 2, 3))


def packed(lib):
    lib.nn.LSTM(3, 4)(lib.nn.utils.rnn.pack_padded_sequence(lib.ones(5, 2, 3), [5, 3]))


WHEN = {
    "float32": lambda lib: lib.nn.LSTM(3, 4)(lib.ones(5, 2, 3)),
    "float64": lambda lib: lib.nn.LSTM(3, 4).double()(lib.ones(5, 2, 3).double()),
    "float16": lambda lib: lib.nn.LSTM(3, 4).half()(lib.ones(5, 2, 3).half()),
    "unbatched": lambda lib: lib.nn.LSTM(3, 4)(lib.ones(5, 3)),
    "one step": lambda lib: lib.nn.LSTM(3, 4)(lib.ones(1, 2, 3)),
    "no sequences": lambda lib: lib.nn.LSTM(3, 4)(lib.ones(5, 0, 3)),
    "no steps": lambda lib: lib.nn.LSTM(3, 4)(lib.ones(0, 2, 3)),
    "projected": lambda lib: lib.nn.LSTM(3, 4, proj_size=2)(lib.ones(5, 2, 3)),
    "packed": packed,
    "without grad": lambda lib: without_grad(lib, "no_grad"),
    "inference": lambda lib: without_grad(lib, "inference_mode"),
    "meta": lambda lib: lib.nn.LSTM(3, 4, device="meta")(lib.ones(5, 2, 3, device="meta")),
    "switched off": switched_off,
    "switched off by attribute": by_attribute,
    "cell": lambda lib: lib.nn.LSTMCell(3, 4)(lib.ones(2, 3)),
    "GRU": lambda lib: lib.nn.GRU(3, 4)(lib.ones(5, 2, 3)),
}


@pytest.mark.parametrize("call", WHEN.values(), ids=WHEN)
def test_when_it_is_taken(call):
    ours, theirs = (taken(lib, call) for lib in libraries())
    assert ours == theirs


def step_of(lib, options):
    lib.manual_seed(0)
    net, x = lib.nn.LSTM(3, 4, **options), lib.randn(5, 2, 3)

    def step():
        net(x)[0].sum().backward()

    step()
    return step


# rows of kernels that are one here, see docs/compatibility.md, and a question about CUDA
BOOKKEEPING = {"as_strided", "empty", "empty_like", "empty_strided", "copy_", "clone", "zero_", "fill_", "to", "_to_copy", "view", "slice", "detach",
               "cudnn_is_acceptable", "_cat", "cat", "narrow", "bernoulli_", "div_", "mul"}  # fmt: skip


def rows_of(lib, step):
    """Name, parent, shapes and plain arguments of what a step runs."""
    with lib.profiler.profile(activities=[lib.profiler.ProfilerActivity.CPU], record_shapes=True) as prof:
        step()
    found = []
    for event in prof.events():
        parent = event.cpu_parent.name if event.cpu_parent is not None else None
        if event.name.removeprefix("aten::") in BOOKKEEPING or (parent or "").startswith("aten::mkldnn_rnn_layer"):
            continue
        is_layer = event.name.startswith(LAYER)
        # the last argument of the backward operator is memory that either library uses as it likes
        facts = (event.input_shapes[:-1], event.concrete_inputs[:-1]) if is_layer else None
        found.append((event.name, parent, facts))
    return found


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_rows_of_a_training_step(options):
    ours, theirs = (rows_of(lib, step_of(lib, options)) for lib in libraries())
    about = ("lstm", "mkldnn", "Mkldnn")
    listed = [[row for row in rows if any(word in row[0] or word in (row[1] or "") for word in about)] for rows in (ours, theirs)]
    assert sum(row[0] == LAYER for row in listed[0]) == options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    assert listed[0] == listed[1]


def test_bfloat16_and_autocast():
    for wide in (False, True):
        found = []
        for lib in libraries():
            lib.manual_seed(0)
            net, x = lib.nn.LSTM(6, 8, 2), lib.randn(5, 4, 6)
            if not wide:
                net, x = net.bfloat16(), x.bfloat16()
            with lib.autocast("cpu", dtype=lib.bfloat16) if wide else contextlib.nullcontext():
                out, (h, c) = net(x)
            (out.float() ** 2).sum().backward()
            assert out.dtype is lib.bfloat16
            found.append([out, h, c, *(p.grad for p in net.parameters())])
        close(*found, tolerance=3e-2)


def layer(lib, **changed):
    arguments = {
        "input": lib.ones(5, 2, 3), "weight0": lib.ones(16, 3), "weight1": lib.ones(16, 4), "weight2": lib.ones(16), "weight3": lib.ones(16),
        "hx_": lib.zeros(2, 4), "cx_": lib.zeros(2, 4), "reverse": False, "batch_sizes": [], "mode": 2, "hidden_size": 4, "num_layers": 1,
        "has_biases": True, "bidirectional": False, "batch_first": False, "train": True,
    }  # fmt: skip
    return lib.mkldnn_rnn_layer(**{**arguments, **changed})


def test_the_operator_by_itself():
    ours, theirs = (layer(lib) for lib in libraries())
    close(ours[:3], theirs[:3])
    assert str(ours[3].dtype).endswith("uint8")
    assert theirs[3].dtype is libraries()[1].uint8
    assert ours[3].ndim == theirs[3].ndim == 1


@pytest.mark.parametrize(
    "changed",
    [
        lambda lib: {"mode": 3},
        lambda lib: {"input": lib.ones(5, 3)},
        lambda lib: {
            name: lib.ones(4, dtype=lib.float64).expand(shape) for name, shape in (("input", (5, 2, 4)), ("weight0", (16, 4)))
        },
        lambda lib: {"weight2": lib.ones(3)},
    ],
)
def test_refusals(changed):
    raised = []
    for lib in libraries():
        with pytest.raises(Exception) as caught:
            layer(lib, **changed(lib))
        raised.append(caught.type)
    assert raised[0] is raised[1]


def carried(lib):
    """Gradients of two calls, of which the second has the state of the first, with and without a graph."""
    lib.manual_seed(0)
    layer, x = lib.nn.LSTM(5, 6), lib.randn(3, 4, 5)

    def gradients(create_graph):
        out, state = layer(x)
        out, _ = layer(x, state)
        return lib.autograd.grad(out.pow(2).sum(), list(layer.parameters()), create_graph=create_graph)

    return [g.tolist() for create_graph in (False, True) for g in gradients(create_graph)]


def expanded(lib):
    lib.manual_seed(0)
    layer, x, h = lib.nn.LSTM(5, 6), lib.randn(3, 4, 5), lib.randn(1, 1, 6).expand(1, 4, 6)
    layer(x, (h, h))[0].sum().backward()
    return [p.grad.tolist() for p in layer.parameters()]


def transposed(lib):
    lib.manual_seed(0)
    layer, x = lib.nn.LSTM(5, 6), lib.randn(3, 4, 5)
    layer.weight_ih_l0 = lib.nn.Parameter(lib.randn(5, 24).t())
    layer(x)[0].sum().backward()
    return [p.grad.tolist() for p in layer.parameters()]


@pytest.mark.parametrize("call", [carried, expanded, transposed])
def test_gradients_of_other_programs(call):
    for mine, theirs in zip(call(mt), call(torch), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_a_gradient_of_an_input_that_is_laid_out_otherwise():
    x = mt.randn(4, 7, 5, requires_grad=True)
    weights = [mt.randn(24, 5), mt.randn(24, 6), mt.randn(24), mt.randn(24)]
    h = mt.randn(4, 6)

    def gradient(given):
        out = mt.mkldnn_rnn_layer(given, *weights, h, h, False, [], 2, 6, 1, True, False, False, True)[0]
        return mt.autograd.grad(out.sum(), x)[0]

    assert mt.equal(gradient(x.transpose(0, 1)), gradient(x.transpose(0, 1).contiguous()))


def test_tangents_of_the_state():
    layer, x, h = mt.nn.LSTM(5, 6), mt.randn(3, 4, 5), mt.randn(1, 4, 6)

    def tangent():
        return mt.func.jvp(lambda h: layer(x, (h, h))[0], (h,), (mt.ones_like(h),))[1]

    with mt.backends.mkldnn.flags(enabled=False):
        by_steps = tangent()
    assert mt.allclose(tangent(), by_steps)
