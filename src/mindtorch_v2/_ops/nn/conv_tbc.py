"""A convolution over sequences in the order time, batch, channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._dtype import FROM_NUMPY
from ..._tensor import Tensor
from ..machinery.declare import op
from ..machinery.lookup import aten

Array = np.ndarray[Any, Any]


def _check(self: Array, weight: Array, bias: Array) -> None:
    for failed, text in (
        (self.ndim != 3, "Input must have 3 dims: time, batch, in_channel"),
        (weight.ndim != 3, "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels."),
        (bias.ndim != 1, "Bias must be 1-D"),
    ):
        if failed:
            raise RuntimeError(text)
    if self.shape[2] != weight.shape[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if weight.shape[2] != bias.shape[0]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    if self.dtype != weight.dtype:
        kinds = " and ".join(FROM_NUMPY[x.dtype].scalar_name for x in (self, weight))
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {kinds}")
    if self.dtype == np.bool_:
        raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Bool'")


def _overlaps(steps: int, width: int, pad: int) -> list[tuple[slice, slice]]:
    """For each place of the kernel, the steps of the output that see a step of the input, and those that they see."""
    length = steps + 2 * pad - width + 1
    found = []
    for k in range(width):
        first, last = max(0, pad - k), min(length, steps + pad - k)
        found.append((slice(first, max(first, last)), slice(first + k - pad, max(first, last) + k - pad)))
    return found


def _forward(self: Array, weight: Array, bias: Array, pad: int) -> Array:
    _check(self, weight, bias)
    width = weight.shape[0]
    shape = [self.shape[0] + 2 * pad - width + 1, self.shape[1], weight.shape[2]]
    if shape[0] < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {shape[0]}: {shape}")
    out = np.empty(shape, self.dtype)
    out[:] = bias
    for k, (outputs, inputs) in enumerate(_overlaps(self.shape[0], width, pad)):
        out[outputs] += self[inputs] @ weight[k]
    return out


def _gradients(grad: Tensor, self: Tensor, weight: Tensor, pad: int) -> tuple[Tensor, ...]:
    """The gradients of input, weight and bias: those of a convolution in the order batch, channels, time."""
    x, w, g = self.permute(1, 2, 0), weight.permute(2, 1, 0), grad.permute(1, 2, 0)
    of_x, of_w, of_bias = aten.convolution_backward(g, x, w, [weight.shape[2]], [1], [pad], [1], False, [0], 1, [True, True, True])
    return of_x.permute(2, 0, 1), of_w.permute(2, 1, 0), of_bias


def _shape(self: Tensor, weight: Tensor, pad: int) -> tuple[int, ...]:
    return (self.shape[0] + 2 * pad - weight.shape[0] + 1, self.shape[1], weight.shape[2])


conv_tbc = op(
    "conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor",
    cpu=_forward,
    shape=_shape,
    rows=True,
    grad={("self", "weight", "bias"): lambda grad, self, weight, pad: _gradients(grad, self, weight, pad)},
    variants="function",
)
