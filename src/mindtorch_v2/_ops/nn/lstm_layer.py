"""`mkldnn_rnn_layer`: an LSTM over all steps of a layer in one direction as one operator, by the name that it has in torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._backends.cpu.machinery.dtypes import scalar_name
from ..._backends.cpu.nn import lstm_layer as kernels
from ..._checks import dimension_error, no_dimensions
from ..._dispatch.tls import state
from ..._tensor import Tensor
from ..machinery.declare import op
from .normalization_gradients import by_differentiating
from .recurrent_steps import Weights, lstm_step, run_layer

__all__ = ["LSTM", "mkldnn_rnn_layer"]

Array = np.ndarray[Any, Any]
LSTM = 2  # the mode; torch's operator takes no other
_DTYPES = "feE"  # of float32, float16 and bfloat16


def _check(input: Array, shapes: dict[str, tuple[Array, tuple[int, ...]]], mode: int) -> None:
    if mode != LSTM:
        raise RuntimeError(f"mkldnn_rnn_layer: mode {mode} is not supported; it must be {LSTM}, for an LSTM")
    if input.dtype.char not in _DTYPES:
        raise RuntimeError(f"mkldnn_rnn_layer: unsupported data type {scalar_name(input)}; convert to float32, or call torch.lstm")
    for name, (array, shape) in shapes.items():
        if array.shape != shape:
            raise RuntimeError(f"mkldnn_rnn_layer: expected {name} of shape {list(shape)}, but got {list(array.shape)}")


def _layer(
    input: Array, weight0: Array, weight1: Array, weight2: Array, weight3: Array, hx_: Array, cx_: Array, reverse: bool, mode: int,
    hidden_size: int, has_biases: bool,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    if input.ndim != 3:
        raise dimension_error(2, input.ndim) if input.ndim else no_dimensions(2)
    _, sequences, inputs = input.shape
    gates = 4 * hidden_size
    shapes: dict[str, tuple[Array, tuple[int, ...]]] = {
        "weight0": (weight0, (gates, inputs)), "weight1": (weight1, (gates, hidden_size)),
        "hx_": (hx_, (sequences, hidden_size)), "cx_": (cx_, (sequences, hidden_size)),
    }  # fmt: skip
    if has_biases:
        shapes |= {"weight2": (weight2, (gates,)), "weight3": (weight3, (gates,))}
    _check(input, shapes, mode)
    biases = (weight2, weight3) if has_biases else (None, None)
    return kernels.lstm_layer(input, weight0, weight1, *biases, hx_, cx_, reverse)


def _layer_backward(
    input: Array, weight1: Array, weight2: Array, hx_: Array, cx_tmp: Array, output: Array, grad_output: Array | None,
    grad_hy: Array | None, grad_cy: Array | None, reverse: bool, workspace: Array,
) -> tuple[Array, ...]:  # fmt: skip
    dx, dw_ih, dw_hh, db, dh, dc = kernels.lstm_layer_backward(
        input, weight1, weight2, hx_, cx_tmp, output, grad_output, grad_hy, grad_cy, reverse, workspace
    )
    return dx, dw_ih, dw_hh, db, db.copy(), dh, dc


def _gradients(
    grads: Sequence[Tensor | None], input: Tensor, weight0: Tensor, weight1: Tensor, weight2: Tensor, weight3: Tensor, hx_: Tensor,
    cx_: Tensor, reverse: bool, batch_sizes: Sequence[int], mode: int, hidden_size: int, num_layers: int, has_biases: bool,
    bidirectional: bool, batch_first: bool, train: bool, result0: Tensor, result1: Tensor, result2: Tensor, result3: Tensor,
    needs: Sequence[bool],
) -> tuple[Any, ...]:  # fmt: skip
    """The kernel, or the steps one by one when a graph is being made."""
    if state.grad_enabled:

        def by_steps(x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, ...]:
            weights = Weights(w_ih, w_hh, *((b_ih, b_hh) if has_biases else ()))
            out, (h, c) = run_layer(lstm_step, x, (h, c), weights, reverse)
            return out, h, c

        return by_differentiating(by_steps, [input, weight0, weight1, weight2, weight3, hx_, cx_], grads[:3], needs)
    found: tuple[Any, ...] = mkldnn_rnn_layer_backward(
        input, weight0, weight1, weight2, weight3, hx_, cx_, result0, result1, result2, *grads[:3], reverse, mode, hidden_size,
        num_layers, has_biases, train, bidirectional, batch_sizes, batch_first, result3,
    )  # fmt: skip
    return found


mkldnn_rnn_layer = op(
    "mkldnn_rnn_layer(Tensor input, Tensor weight0, Tensor weight1, Tensor weight2, Tensor weight3, Tensor hx_, Tensor cx_, bool reverse, "
    "int[] batch_sizes, int mode, int hidden_size, int num_layers, bool has_biases, bool bidirectional, bool batch_first, bool train) "
    "-> (Tensor, Tensor, Tensor, Tensor)",
    cpu=_layer,
    same_dtype=("input", "weight0", "weight1", "weight2", "weight3", "hx_", "cx_"),
    grad={("input", "weight0", "weight1", "weight2", "weight3", "hx_", "cx_"): _gradients},
    nondifferentiable=("result3",),
    variants="function",
)
mkldnn_rnn_layer_backward = op(
    "mkldnn_rnn_layer_backward(Tensor input, Tensor weight1, Tensor weight2, Tensor weight3, Tensor weight4, Tensor hx_, Tensor cx_tmp, "
    "Tensor output, Tensor hy_, Tensor cy_, Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, bool reverse, int mode, "
    "int hidden_size, int num_layers, bool has_biases, bool train, bool bidirectional, int[] batch_sizes, bool batch_first, "
    "Tensor workspace) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    cpu=_layer_backward,
    variants="",
)
