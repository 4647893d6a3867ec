"""Recurrent layers step by step: the step of each kind of network, and a layer of them in one direction, of `linear` and pointwise operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..._tensor import Tensor
from ..linalg.matmul import linear
from ..shapes.joining import stack

__all__ = ["State", "Step", "Weights", "gru_step", "hidden", "lstm_step", "relu_step", "run_layer", "tanh_step"]

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


def lstm_step(gates: Tensor, state: State, weights: Weights) -> State:
    h, c = state
    i, f, g, o = weights.hidden_gates(h).add_(gates).unsafe_chunk(4, 1)
    # torch's order of calls: the input and forget gates, the candidate, the output gate
    i, f, g, o = i.sigmoid_(), f.sigmoid_(), g.tanh_(), o.sigmoid_()
    c = (f * c).add_(i * g)
    h = o * c.tanh()
    return (h if weights.w_hr is None else h.matmul(weights.w_hr.t())), c


def gru_step(gates: Tensor, state: State, weights: Weights) -> State:
    from_input = gates.unsafe_chunk(3, 1)
    from_hidden = weights.hidden_gates(state).unsafe_chunk(3, 1)
    reset = from_hidden[0].add_(from_input[0]).sigmoid_()
    update = from_hidden[1].add_(from_input[1]).sigmoid_()
    new = from_input[2].add(from_hidden[2].mul_(reset)).tanh_()
    return (state - new).mul_(update).add_(new)


def tanh_step(gates: Tensor, state: State, weights: Weights) -> State:
    return weights.hidden_gates(state).add_(gates).tanh()


def relu_step(gates: Tensor, state: State, weights: Weights) -> State:
    return weights.hidden_gates(state).add_(gates).relu()


Step = Callable[[Tensor, State, Weights], State]


def hidden(state: State) -> Tensor:
    return state[0] if isinstance(state, tuple) else state


# --- one layer, one direction -----------------------------------------------------------------------------------------


def run_layer(step: Step, x: Tensor, state: State, weights: Weights, reverse: bool) -> tuple[Tensor, State]:
    gates = weights.input_gates(x).unbind(0)
    outputs = []
    for g in reversed(gates) if reverse else gates:
        state = step(g, state, weights)
        outputs.append(hidden(state))
    if reverse:
        outputs.reverse()
    return stack(outputs, 0), state
