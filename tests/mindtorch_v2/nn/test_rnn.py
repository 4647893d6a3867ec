"""Recurrent modules and packed sequences: what holds between them, without another library to compare with."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.nn.utils import rnn
from mindtorch_v2.utils.flop_counter import FlopCounterMode


def close(a: Any, b: Any) -> bool:
    return bool(torch.allclose(a, b, atol=1e-6))


@pytest.mark.parametrize(("layer", "cell"), [(nn.RNN, nn.RNNCell), (nn.LSTM, nn.LSTMCell), (nn.GRU, nn.GRUCell)])
def test_a_layer_is_its_cell_step_by_step(layer: Any, cell: Any) -> None:
    net, step, x = layer(3, 4), cell(3, 4), torch.randn(5, 2, 3)
    for name, weight in step.named_parameters():
        weight.data.copy_(getattr(net, f"{name}_l0"))
    state = None
    outputs = []
    for part in x:
        state = step(part, state)
        outputs.append(state[0] if isinstance(state, tuple) else state)
    assert close(net(x)[0], torch.stack(outputs))


@pytest.mark.parametrize("layer", [nn.RNN, nn.LSTM, nn.GRU])
def test_packed_sequences_are_the_sequences_one_by_one(layer: Any) -> None:
    net = layer(3, 4, num_layers=2, bidirectional=True)
    sequences = [torch.randn(n, 3) for n in (2, 4, 1)]
    out, state = net(rnn.pack_sequence(sequences, enforce_sorted=False))
    parts = rnn.unpack_sequence(out)
    hidden = state[0] if isinstance(state, tuple) else state
    for i, sequence in enumerate(sequences):
        alone, last = net(sequence)
        assert close(parts[i], alone)
        assert close(hidden[:, i], last[0] if isinstance(last, tuple) else last)


def test_names_and_shapes_of_weights() -> None:
    net = nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2)
    assert {n: tuple(p.shape) for n, p in net.named_parameters() if "l1" in n and "reverse" in n} == {
        "weight_ih_l1_reverse": (16, 4),
        "weight_hh_l1_reverse": (16, 2),
        "bias_ih_l1_reverse": (16,),
        "bias_hh_l1_reverse": (16,),
        "weight_hr_l1_reverse": (2, 4),
    }
    assert repr(net) == "LSTM(3, 4, proj_size=2, num_layers=2, bidirectional=True)"
    assert [len(weights) for weights in net.all_weights] == [5] * 4


def test_copies_and_pickles_use_their_own_weights() -> None:
    net, x = nn.GRU(3, 4), torch.randn(5, 2, 3)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert close(other(x)[0], net(x)[0])
        with torch.no_grad():
            other.weight_ih_l0.zero_()
        assert not close(other(x)[0], net(x)[0])


def test_dropout_is_between_layers_and_only_in_training() -> None:
    net, x = nn.RNN(3, 4, 2, dropout=1.0), torch.randn(5, 2, 3)
    assert not close(net(x)[0], net.eval()(x)[0])
    with pytest.warns(UserWarning, match="num_layers greater than 1"):
        nn.RNN(3, 4, dropout=0.5)


def test_padding_and_packing_are_undone() -> None:
    sequences = [torch.randn(n, 2) for n in (4, 2, 1)]
    padded = rnn.pad_sequence(sequences, batch_first=True)
    assert padded.shape == (3, 4, 2)
    packed = rnn.pack_padded_sequence(padded, [4, 2, 1], batch_first=True)
    assert packed.batch_sizes.tolist() == [3, 2, 1, 1]
    back, lengths = rnn.pad_packed_sequence(packed, batch_first=True)
    assert torch.equal(back, padded)
    assert lengths.tolist() == [4, 2, 1]
    assert all(torch.equal(a, b) for a, b in zip(rnn.unpad_sequence(back, lengths, True), sequences, strict=True))


def test_gradients_of_padding_are_zero() -> None:
    x = torch.ones(4, 2, 1, requires_grad=True)
    rnn.pack_padded_sequence(x, [4, 2]).data.sum().backward()
    assert x.grad.squeeze(-1).T.tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"num_layers": 2, "bidirectional": True, "batch_first": True}], ids=str)
@pytest.mark.parametrize("steps", [1, 4, 7])
def test_a_layer_in_one_operator_is_its_steps(options: Any, steps: int) -> None:
    net, x = nn.LSTM(6, 40, **options), torch.randn(steps, steps, 6, requires_grad=True)
    found = []
    for enabled in (False, True):
        with torch.backends.mkldnn.flags(enabled=enabled):
            out, (h, c) = net(x)
        grads = torch.autograd.grad((out * out).sum() + (h * c).sum(), [x, *net.parameters()])
        found.append([out, h, c, *grads])
    for mine, other in zip(*found, strict=True):
        assert torch.allclose(mine, other, rtol=1e-4, atol=1e-5)
        assert mine.stride() == other.stride()


def test_a_layer_in_one_operator_keeps_what_backward_needs() -> None:
    net, x = nn.LSTM(3, 4), torch.randn(5, 2, 3, requires_grad=True)
    out, (h, _) = net(x)
    first = torch.autograd.grad(out.sum(), x, retain_graph=True)[0]
    h.mul_(2)  # a result of its own
    assert torch.equal(torch.autograd.grad(out.sum(), x, retain_graph=True)[0], first)
    out.detach().mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(out.sum(), x)


def test_a_layer_in_one_operator_is_differentiated_under_a_mode() -> None:
    """Kernels run without gradients there."""
    net, x = nn.LSTM(3, 4), torch.randn(5, 2, 3)
    net(x)[0].sum().backward()
    expected = net.weight_hh_l0.grad
    net.zero_grad()
    with FlopCounterMode(display=False) as counter:
        net(x)[0].sum().backward()
    assert torch.equal(net.weight_hh_l0.grad, expected)
    assert counter.get_total_flops() == 3 * 2 * 5 * 2 * 16 * (3 + 4)


def test_transforms_take_layers_apart() -> None:
    net, x = nn.LSTM(3, 4), torch.randn(2, 5, 2, 3)
    with pytest.warns(UserWarning, match="batching rule for aten::lstm"):
        found = torch.vmap(lambda one: net(one)[0])(x)
    assert close(found, torch.stack([net(one)[0] for one in x]))
    _, tangent = torch.func.jvp(lambda one: net(one)[0], (x[0],), (x[1],))
    step = 1e-3
    assert torch.allclose(tangent, (net(x[0] + step * x[1])[0] - net(x[0] - step * x[1])[0]) / (2 * step), atol=1e-3)
