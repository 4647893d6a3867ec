"""An LSTM over all steps of a layer in one direction: one product for the inputs of all steps, and one pass a step over its four gates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..linalg.matmul import product_into
from ..machinery.blas import threaded
from ..machinery.floating_errors import silent
from ..machinery.half_precision import widened

__all__ = ["lstm_layer", "lstm_layer_backward"]

Array = np.ndarray[Any, Any]

# A copy of 200×800 hidden weights costs 0.1 ms, and takes 4 µs off each step of four sequences, 60 of sixteen.
_STEPS_WORTH_A_COPY = 4


def _terms(out: Array, a: Array, b: Array) -> int:
    return a.size * b.shape[1]


_large_product = threaded(product_into, _terms)


class Workspace(NamedTuple):
    """What the forward pass leaves for the backward pass: the gates after their activations, in the order i, f, g, o, and the cells after each step."""

    gates: Array  # steps × sequences × 4 hidden
    cells: Array  # steps × sequences × hidden

    @classmethod
    def of(cls, memory: Array, steps: int, sequences: int, hidden: int) -> Workspace:
        flat = memory.view(np.float32)
        at = steps * sequences * 4 * hidden
        return cls(flat[:at].reshape(steps, sequences, 4 * hidden), flat[at:].reshape(steps, sequences, hidden))


@silent
def _step(gates: Array, h: Array, c: Array, weights: Array, cell: Array, out: Array, wide: Array, narrow: Array) -> None:
    """One step: `gates` has what the input adds to them, and gets their values; `cell` and `out` get the new state; the last two are scratch memory."""
    product_into(wide, h, weights)
    gates += wide
    i, f, g, o = gates.reshape(len(gates), 4, -1).swapaxes(0, 1)
    np.tanh(g, out=narrow)
    # sigmoids of the whole block, in contiguous passes: 7 µs for four sequences of 200, where those of three gates alone take 9
    np.negative(gates, out=gates)
    np.exp(gates, out=gates)
    gates += 1
    np.divide(1, gates, out=gates)
    g[...] = narrow
    np.multiply(f, c, out=cell)
    np.multiply(i, narrow, out=narrow)
    cell += narrow
    np.tanh(cell, out=narrow)
    np.multiply(o, narrow, out=out)


@widened
def lstm_layer(
    x: Array, w_ih: Array, w_hh: Array, b_ih: Array | None, b_hh: Array | None, h: Array, c: Array, reverse: bool
) -> tuple[Array, Array, Array, Array]:
    """The outputs of all steps, the state after the last, and the memory of the workspace."""
    (steps, sequences, inputs), hidden = x.shape, h.shape[1]
    memory = np.empty(steps * sequences * 5 * hidden * 4, np.uint8)
    gates, cells = Workspace.of(memory, steps, sequences, hidden)
    flat = gates.reshape(steps * sequences, 4 * hidden)
    _large_product(flat, x.reshape(steps * sequences, inputs), w_ih.T)
    if b_ih is not None and b_hh is not None:
        flat += b_ih + b_hh
    weights = np.ascontiguousarray(w_hh.T) if steps > _STEPS_WORTH_A_COPY else w_hh.T
    out = np.empty((steps, sequences, hidden), np.float32)
    wide, narrow = np.empty((sequences, 4 * hidden), np.float32), np.empty((sequences, hidden), np.float32)
    for t in range(steps)[:: -1 if reverse else 1]:
        _step(gates[t], h, c, weights, cells[t], out[t], wide, narrow)
        h, c = out[t], cells[t]
    return out, h.copy(), c.copy(), memory


@silent
def _derivatives(gates: Array, cells: Array, c: Array, reverse: bool) -> tuple[Array, Array]:
    """What a gradient is multiplied by: of each step's cell (of its output, for the last gate) for the four gates, and of its output for its cell."""
    steps, sequences, hidden = cells.shape
    before = np.empty_like(cells)
    if reverse:
        before[-1], before[:-1] = c, cells[1:]
    else:
        before[0], before[1:] = c, cells[:-1]
    by_gate = gates.reshape(steps, sequences, 4, hidden)
    factors = 1 - by_gate
    factors *= by_gate
    i, _, g, o = (by_gate[:, :, k] for k in range(4))
    tanh = np.tanh(cells)
    factors[:, :, 0] *= g
    factors[:, :, 1] *= before
    factors[:, :, 3] *= tanh
    for values, factor, target in ((g, i, factors[:, :, 2]), (tanh, o, tanh)):
        squares = values * values
        np.subtract(1, squares, out=squares)
        np.multiply(squares, factor, out=target)
    return factors, tanh


@widened
def lstm_layer_backward(
    x: Array, w_ih: Array, w_hh: Array, h: Array, c: Array, out: Array,
    grad_out: Array | None, grad_h: Array | None, grad_c: Array | None, reverse: bool, memory: Array,
) -> tuple[Array, Array, Array, Array, Array, Array]:  # fmt: skip
    """Gradients of the input, both weights, either bias, and the state before the first step."""
    (steps, sequences, inputs), hidden = x.shape, h.shape[1]
    gates, cells = Workspace.of(memory, steps, sequences, hidden)
    grads, of_cell = _derivatives(gates, cells, c, reverse)
    narrow = np.empty((sequences, hidden), np.float32)
    dh = np.zeros(h.shape, h.dtype) if grad_h is None else grad_h.copy()
    dc = np.zeros(c.shape, c.dtype) if grad_c is None else grad_c.copy()
    for t in range(steps)[:: 1 if reverse else -1]:
        if grad_out is not None:
            dh += grad_out[t]
        np.multiply(dh, of_cell[t], out=narrow)
        dc += narrow
        of_gates = grads[t]
        of_gates[:, :3] *= dc[:, None]
        of_gates[:, 3] *= dh
        dc *= gates[t, :, hidden : 2 * hidden]
        product_into(dh, of_gates.reshape(sequences, 4 * hidden), w_hh)
    flat = grads.reshape(steps * sequences, 4 * hidden)
    dx, dw_ih = np.empty(x.shape, x.dtype), np.empty(w_ih.shape, w_ih.dtype)  # not laid out as these: products are written to them
    _large_product(dx.reshape(-1, inputs), flat, w_ih)
    _large_product(dw_ih, flat.T, x.reshape(-1, inputs))
    return dx, dw_ih, _of_hidden_weights(grads, out, h, reverse), flat.sum(0), dh, dc


def _of_hidden_weights(grads: Array, out: Array, h: Array, reverse: bool) -> Array:
    """Each step's gates times the state before it, which is the output of another, and for one the first state."""
    hidden = h.shape[1]
    first, (later, earlier) = (-1, (grads[:-1], out[1:])) if reverse else (0, (grads[1:], out[:-1]))
    made: Array = grads[first].reshape(-1, 4 * hidden).T.dot(h)
    if len(later):
        rest = np.empty_like(made)
        _large_product(rest, later.reshape(-1, 4 * hidden).T, earlier.reshape(-1, hidden))
        made += rest
    return made
