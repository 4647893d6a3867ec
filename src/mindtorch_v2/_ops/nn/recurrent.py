"""Recurrent layers and cells, made of `linear` and pointwise operators step by step; layers of an LSTM in one operator each where torch has one."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..._checks import dimension_error, no_dimensions
from ..._dispatch import keys
from ..._dtype import bfloat16, float32, int64
from ..._tensor import Tensor
from ...backends import mkldnn
from ..machinery.declare import op
from ..machinery.lookup import aten
from ..shapes.joining import cat, stack
from .dropout import dropout as drop
from .lstm_layer import LSTM, mkldnn_rnn_layer
from .recurrent_steps import State, Step, Weights, gru_step, hidden, lstm_step, relu_step, run_layer, tanh_step

Layer = Callable[
    [Tensor, State, Weights, bool], tuple[Tensor, State]
]  # the last says whether it goes from the last step to the first


# --- packed sequences -------------------------------------------------------------------------------------------------


def _map(function: Callable[[Tensor], Tensor], state: State) -> State:
    return tuple(function(s) for s in state) if isinstance(state, tuple) else function(state)


def _join(parts: list[State]) -> State:
    if isinstance(parts[0], tuple):
        return tuple(cat([p[i] for p in parts], 0) for i in range(len(parts[0])))
    return cat(parts, 0)


def _run_packed(step: Step, sizes: list[int], x: Tensor, state: State, weights: Weights, reverse: bool) -> tuple[Tensor, State]:
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
            outputs.append(hidden(state))
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
        outputs.append(hidden(state))
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


def _by_steps(step: Step, sizes: list[int] | None) -> Layer:
    return functools.partial(run_layer, step) if sizes is None else functools.partial(_run_packed, step, sizes)


def _run(
    layer_of: Layer, x: Tensor, states: Iterator[State], weights: list[Weights], *, layers: int, dropout: float, train: bool, bidirectional: bool
) -> tuple[Tensor, list[State]]:  # fmt: skip
    directions = 2 if bidirectional else 1
    finals: list[State] = []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            at = layer * directions + direction
            out, final = layer_of(x, next(states), weights[at], direction == 1)
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


def _has_layer_kernel(x: Tensor, others: Iterable[Tensor]) -> bool:
    """Whether layers over this input are one operator each, as in torch, whose oneDNN has one (for bfloat16 on newer processors).

    Where tangents or batches of tensors are followed, also those of the state and the weights, they are run step by step.
    """
    fits = mkldnn.enabled and x._keys & keys.CPU and x.ndim == 3 and x.numel() and x.dtype in (float32, bfloat16)
    return bool(fits and not any(t._keys & _FOLLOWED for t in (x, *others)))


def _lstm_layer(layers: int, has_biases: bool, bidirectional: bool, batch_first: bool, train: bool) -> Layer:
    def layer(x: Tensor, state: State, weights: Weights, reverse: bool) -> tuple[Tensor, State]:
        # torch: without biases there are zeros in their place, of the shapes of the weights
        biases = (weights.b_ih, weights.b_hh) if has_biases else [aten.zeros(w.shape, dtype=w.dtype) for w in weights[:2]]
        out, h, c, _ = mkldnn_rnn_layer(
            x, weights.w_ih, weights.w_hh, *biases, *state, reverse, [], LSTM, state[0].shape[1], layers, has_biases, bidirectional,
            batch_first, train,
        )  # fmt: skip
        return out, (h, c)

    return layer


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
    for given in hx:
        if not len(given) and sizes is None:
            raise IndexError(f"select(): index 0 out of range for tensor of size {list(given.shape)} at dimension 0")
        _check_layers(len(given), len(weights), num_layers * (1 + bidirectional))
    if sizes is None and not projected and _has_layer_kernel(x, (*hx, *params)):
        layer, x = _lstm_layer(num_layers, has_biases, bidirectional, batch_first, train), x.contiguous()
        states: Iterator[State] = ((hx[0].select(0, at), hx[1].select(0, at)) for at in range(len(hx[0])))
    else:
        layer, states = _by_steps(lstm_step, sizes), zip(hx[0].unbind(0), hx[1].unbind(0), strict=False)
    out, finals = _run(layer, x, states, weights, layers=num_layers, dropout=dropout, train=train, bidirectional=bidirectional)
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
    layer, states = _by_steps(step, sizes), iter(hx.unbind(0))
    out, finals = _run(layer, x, states, weights, layers=num_layers, dropout=dropout, train=train, bidirectional=bidirectional)
    return (out.transpose_(0, 1) if batch_first else out), stack(finals, 0)


_FOLLOWED = keys.TRACKED & ~keys.AUTOGRAD
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


_declare_simple("gru", gru_step)
_declare_simple("rnn_tanh", tanh_step)
_declare_simple("rnn_relu", relu_step)


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
    h, c = _cell(lstm_step, 4, x, (hx[0], hx[1]), Weights(*parameters))
    return h, c


lstm_cell = op(
    f"lstm_cell(Tensor input, Tensor[] hx, {_CELL}) -> (Tensor, Tensor)",
    composite=lambda input, hx, w_ih, w_hh, b_ih, b_hh: _lstm_cell(input, hx, w_ih, w_hh, b_ih, b_hh),
    variants="function",
)
gru_cell = op(
    f"gru_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor",
    composite=lambda input, hx, w_ih, w_hh, b_ih, b_hh: _cell(gru_step, 3, input, hx, Weights(w_ih, w_hh, b_ih, b_hh)),
    variants="function",
)
rnn_tanh_cell = op(
    f"rnn_tanh_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor",
    composite=lambda input, hx, w_ih, w_hh, b_ih, b_hh: _cell(tanh_step, 1, input, hx, Weights(w_ih, w_hh, b_ih, b_hh)),
    variants="function",
)
rnn_relu_cell = op(
    f"rnn_relu_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor",
    composite=lambda input, hx, w_ih, w_hh, b_ih, b_hh: _cell(relu_step, 1, input, hx, Weights(w_ih, w_hh, b_ih, b_hh)),
    variants="function",
)
