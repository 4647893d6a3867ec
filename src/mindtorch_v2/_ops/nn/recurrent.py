"""Recurrent layers and cells, made of `linear` and pointwise operators step by step, as ATen's own are without oneDNN."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..._checks import dimension_error, no_dimensions
from ..._dtype import int64
from ..._tensor import Tensor
from ..linalg.matmul import linear
from ..machinery.declare import op
from ..shapes.joining import cat, stack
from .dropout import dropout as drop

State = Any  # a hidden tensor, or (hidden, cell) for an LSTM


class Weights(NamedTuple):
    """The parameters of one layer in one direction."""

    w_ih: Tensor
    w_hh: Tensor
    b_ih: Tensor | None = None
    b_hh: Tensor | None = None
    w_hr: Tensor | None = None

    def input_gates(self, x: Tensor) -> Tensor:
        return _linear(x, self.w_ih, self.b_ih)

    def hidden_gates(self, h: Tensor) -> Tensor:
        return _linear(h, self.w_hh, self.b_hh)


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return linear(x, weight, bias)


# --- one step: gates of the input, the state before, the weights → the state after ------------------------------------


def _lstm_step(gates: Tensor, state: State, weights: Weights) -> State:
    h, c = state
    i, f, g, o = weights.hidden_gates(h).add_(gates).unsafe_chunk(4, 1)
    # torch's order of calls: the input and forget gates, the candidate, the output gate
    i, f, g, o = i.sigmoid_(), f.sigmoid_(), g.tanh_(), o.sigmoid_()
    c = (f * c).add_(i * g)
    h = o * c.tanh()
    return (h if weights.w_hr is None else h.matmul(weights.w_hr.t())), c


def _gru_step(gates: Tensor, state: State, weights: Weights) -> State:
    from_input = gates.unsafe_chunk(3, 1)
    from_hidden = weights.hidden_gates(state).unsafe_chunk(3, 1)
    reset = from_hidden[0].add_(from_input[0]).sigmoid_()
    update = from_hidden[1].add_(from_input[1]).sigmoid_()
    new = from_input[2].add(from_hidden[2].mul_(reset)).tanh_()
    return (state - new).mul_(update).add_(new)


def _tanh_step(gates: Tensor, state: State, weights: Weights) -> State:
    return weights.hidden_gates(state).add_(gates).tanh()


def _relu_step(gates: Tensor, state: State, weights: Weights) -> State:
    return weights.hidden_gates(state).add_(gates).relu()


Step = Callable[[Tensor, State, Weights], State]


def _hidden(state: State) -> Tensor:
    return state[0] if isinstance(state, tuple) else state


# --- one layer, one direction -----------------------------------------------------------------------------------------


def _run_layer(step: Step, x: Tensor, state: State, weights: Weights, *, reverse: bool) -> tuple[Tensor, State]:
    gates = weights.input_gates(x).unbind(0)
    outputs = []
    for g in reversed(gates) if reverse else gates:
        state = step(g, state, weights)
        outputs.append(_hidden(state))
    if reverse:
        outputs.reverse()
    return stack(outputs, 0), state


def _map(function: Callable[[Tensor], Tensor], state: State) -> State:
    return tuple(function(s) for s in state) if isinstance(state, tuple) else function(state)


def _join(parts: list[State]) -> State:
    if isinstance(parts[0], tuple):
        return tuple(cat([p[i] for p in parts], 0) for i in range(len(parts[0])))
    return cat(parts, 0)


def _run_packed(step: Step, x: Tensor, sizes: list[int], state: State, weights: Weights, *, reverse: bool) -> tuple[Tensor, State]:
    """A layer over packed sequences, longest first: step t has the first `sizes[t]` of them."""
    gates = weights.input_gates(x)
    ends = list(itertools.accumulate(sizes))
    outputs: list[Tensor] = []
    if reverse:
        initial, state = state, _map(lambda s: s.narrow(0, 0, sizes[-1]), state)
        active = sizes[-1]
        for end, size in zip(reversed(ends), reversed(sizes), strict=True):
            if size > active:
                started = _map(lambda s, at=active, n=size - active: s.narrow(0, at, n), initial)  # type: ignore[misc]
                state, active = _join([state, started]), size
            state = step(gates.narrow(0, end - size, size), state, weights)
            outputs.append(_hidden(state))
        outputs.reverse()
        return cat(outputs, 0), state
    ended: list[State] = []
    active = sizes[0]
    for end, size in zip(ends, sizes, strict=True):
        own = gates.narrow(0, end - size, size)
        if size < active:
            ended.append(_map(lambda s, at=size, n=active - size: s.narrow(0, at, n), state))  # type: ignore[misc]
            state, active = _map(lambda s, n=size: s.narrow(0, 0, n), state), size  # type: ignore[misc]
        state = step(own, state, weights)
        outputs.append(_hidden(state))
    ended.append(state)
    return cat(outputs, 0), _join(ended[::-1])


# --- all layers -------------------------------------------------------------------------------------------------------


def _weights(params: Sequence[Tensor], has_biases: bool, projected: bool) -> list[Weights]:
    per = (4 if has_biases else 2) + projected
    if len(params) % per:
        raise RuntimeError(f"got an incorrect number of RNN parameters: {len(params)}")
    if not params:
        raise RuntimeError("Expected more weights in stacked_rnn")
    made = []
    for at in range(0, len(params), per):
        own = list(params[at : at + per])
        b_ih, b_hh = own[2:4] if has_biases else (None, None)
        made.append(Weights(own[0], own[1], b_ih, b_hh, own[-1] if projected else None))
    return made


def _run(
    step: Step, x: Tensor, states: list[State], weights: list[Weights], *, layers: int, dropout: float, train: bool,
    bidirectional: bool, sizes: list[int] | None,
) -> tuple[Tensor, list[State]]:  # fmt: skip
    directions = 2 if bidirectional else 1
    finals: list[State] = []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            at = layer * directions + direction
            if sizes is None:
                out, final = _run_layer(step, x, states[at], weights[at], reverse=direction == 1)
            else:
                out, final = _run_packed(step, x, sizes, states[at], weights[at], reverse=direction == 1)
            outputs.append(out)
            finals.append(final)
        x = outputs[0] if directions == 1 else cat(outputs, -1)
        if dropout and train and layer < layers - 1:
            x = drop(x, dropout, True)
    return x, finals


def _size(x: Tensor, dim: int) -> int:
    if not x.ndim:
        raise no_dimensions(dim)
    if dim >= x.ndim:
        raise dimension_error(dim, x.ndim)
    return int(x.shape[dim])


def _check_layers(states: int, weights: int, wanted: int) -> None:
    if states < wanted:
        raise RuntimeError("Expected more hidden states in stacked_rnn")
    if weights < wanted:
        raise RuntimeError("Expected more weights in stacked_rnn")


def _listed(batch_sizes: Tensor) -> list[int]:
    """Count the sequences of each step."""
    if not batch_sizes.ndim:
        raise no_dimensions(0)
    if batch_sizes.dtype is not int64:
        raise RuntimeError(f"expected scalar type Long but found {batch_sizes.dtype.scalar_name}")
    if batch_sizes.ndim != 1 or not len(batch_sizes):
        raise RuntimeError(f"batch_sizes should be a vector with an element for each step, but got size {list(batch_sizes.shape)}")
    return batch_sizes.tolist()


def _lstm(
    x: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool = False, sizes: list[int] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    if len(hx) != 2:
        raise RuntimeError("lstm expects two hidden states")
    projected = _size(hx[0], 2) != _size(hx[1], 2)
    if not x.ndim and sizes is None:
        raise no_dimensions(0)
    if batch_first:
        x = x.transpose(0, 1)
    weights = _weights(params, has_biases, projected)
    for states in hx:
        if not len(states) and sizes is None:
            raise IndexError(f"select(): index 0 out of range for tensor of size {list(states.shape)} at dimension 0")
        _check_layers(len(states), len(weights), num_layers * (1 + bidirectional))
    out, finals = _run(
        _lstm_step, x, list(zip(hx[0].unbind(0), hx[1].unbind(0), strict=False)), weights, layers=num_layers, dropout=dropout, train=train,
        bidirectional=bidirectional, sizes=sizes,
    )  # fmt: skip
    h, c = stack([f[0] for f in finals], 0), stack([f[1] for f in finals], 0)
    return (out.transpose(0, 1) if batch_first else out), h, c


def _simple(
    step: Step, x: Tensor, hx: Tensor, params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool = False, sizes: list[int] | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    if batch_first:
        x = x.transpose(0, 1)
    weights = _weights(params, has_biases, False)
    _check_layers(_size(hx, 0), len(weights), num_layers * (1 + bidirectional))
    out, finals = _run(
        step, x, list(hx.unbind(0)), weights, layers=num_layers, dropout=dropout, train=train,
        bidirectional=bidirectional, sizes=sizes,
    )  # fmt: skip
    return (out.transpose_(0, 1) if batch_first else out), stack(finals, 0)


_OPTIONS = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"

lstm_input = op(
    f"lstm.input(Tensor input, Tensor[] hx, {_OPTIONS}, bool batch_first) -> (Tensor, Tensor, Tensor)",
    composite=lambda input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first: _lstm(
        input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
    ),
    variants="function",
)
lstm_data = op(
    f"lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, {_OPTIONS}) -> (Tensor, Tensor, Tensor)",
    composite=lambda data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional: _lstm(
        data, hx, params, has_biases, num_layers, dropout, train, bidirectional, sizes=_listed(batch_sizes)
    ),
    variants="function",
)


def _declare_simple(name: str, step: Step) -> None:
    op(
        f"{name}.input(Tensor input, Tensor hx, {_OPTIONS}, bool batch_first) -> (Tensor, Tensor)",
        composite=lambda input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first: _simple(
            step, input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
        ),
        variants="function",
    )
    op(
        f"{name}.data(Tensor data, Tensor batch_sizes, Tensor hx, {_OPTIONS}) -> (Tensor, Tensor)",
        composite=lambda data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional: _simple(
            step, data, hx, params, has_biases, num_layers, dropout, train, bidirectional, sizes=_listed(batch_sizes)
        ),
        variants="function",
    )


_declare_simple("gru", _gru_step)
_declare_simple("rnn_tanh", _tanh_step)
_declare_simple("rnn_relu", _relu_step)


# --- cells ------------------------------------------------------------------------------------------------------------

_CELL = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"


def _cell(step: Step, gates: int, x: Tensor, state: State, weights: Weights) -> State:
    hidden = state if isinstance(state, Tensor) else state[0]
    if not (x.ndim and hidden.ndim and weights.w_ih.ndim):
        raise no_dimensions(0 if x.ndim else 1)
    if x.ndim == hidden.ndim == 2:
        for name, given, weight in (("input has inconsistent input_size: got {}", x, weights.w_ih),
                                    ("hidden0 has inconsistent hidden_size: got {},", hidden, weights.w_hh)):  # fmt: skip
            if given.shape[1] != _size(weight, 1):
                raise RuntimeError(f"{name.format(given.shape[1])} expected {weight.shape[1]}")
    if x.shape[0] != hidden.shape[0]:
        raise RuntimeError(f"Input batch size {x.shape[0]} doesn't match hidden0 batch size {hidden.shape[0]}")
    expected = gates * hidden.shape[-1]
    for name, weight in (("weight_ih", weights.w_ih), ("weight_hh", weights.w_hh)):
        if weight.shape[0] != expected:
            raise RuntimeError(f"{name} first dim must be {gates} * hidden_size = {expected}, but got {weight.shape[0]}")
    return step(weights.input_gates(x), state, weights)


def _lstm_cell(x: Tensor, hx: Sequence[Tensor], *parameters: Any) -> tuple[Tensor, Tensor]:
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    h, c = _cell(_lstm_step, 4, x, (hx[0], hx[1]), Weights(*parameters))
    return h, c


lstm_cell = op(
    f"lstm_cell(Tensor input, Tensor[] hx, {_CELL}) -> (Tensor, Tensor)",
    composite=lambda input, hx, w_ih, w_hh, b_ih, b_hh: _lstm_cell(input, hx, w_ih, w_hh, b_ih, b_hh),
    variants="function",
)
gru_cell = op(
    f"gru_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor",
    composite=lambda input, hx, w_ih, w_hh, b_ih, b_hh: _cell(_gru_step, 3, input, hx, Weights(w_ih, w_hh, b_ih, b_hh)),
    variants="function",
)
rnn_tanh_cell = op(
    f"rnn_tanh_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor",
    composite=lambda input, hx, w_ih, w_hh, b_ih, b_hh: _cell(_tanh_step, 1, input, hx, Weights(w_ih, w_hh, b_ih, b_hh)),
    variants="function",
)
rnn_relu_cell = op(
    f"rnn_relu_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor",
    composite=lambda input, hx, w_ih, w_hh, b_ih, b_hh: _cell(_relu_step, 1, input, hx, Weights(w_ih, w_hh, b_ih, b_hh)),
    variants="function",
)
