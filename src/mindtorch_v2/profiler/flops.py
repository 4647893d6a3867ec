"""Floating point operations of a call, estimated from its arguments as torch does: products of matrices, convolution, `add`, `mul`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .session import TensorInput

__all__ = ["flops"]


def flops(name: str, inputs: Sequence[Any]) -> int:
    """How many operations a call of `name` takes; 0 when that is not known."""
    count = _COUNTS.get(name)
    return count(inputs) if count is not None else 0


def _product(left: int, right: int) -> Callable[[Sequence[Any]], int]:
    """Of matrices, or batches of them, at these places among the arguments."""

    def count(inputs: Sequence[Any]) -> int:
        tensors = inputs[left : right + 1]
        if not all(isinstance(tensor, TensorInput) and len(tensor.shape) >= 2 for tensor in tensors) or len(tensors) < 2:
            return 0
        return 2 * math.prod(tensors[0].shape) * tensors[1].shape[-1]

    return count


def _elements(inputs: Sequence[Any]) -> int:
    # torch: counts the first operand even where the second is the larger one
    return math.prod(inputs[0].shape) if inputs and isinstance(inputs[0], TensorInput) else 0


def _conv2d(inputs: Sequence[Any]) -> int:
    image, weight = inputs[:2]
    stride, padding, dilation, groups = inputs[3:7]
    if not all(isinstance(pair, list | tuple) and len(pair) in (1, 2) for pair in (stride, padding, dilation)):
        return 0  # padding can be a word
    if len(image.shape) != 4 or len(weight.shape) != 4 or not groups or not all(stride):
        return 0
    (batch, channels, *size), (out_channels, _, *kernel) = image.shape, weight.shape
    out = [
        (size[i] + 2 * padding[i % len(padding)] - dilation[i % len(dilation)] * (kernel[i] - 1) - 1) // stride[i % len(stride)] + 1
        for i in (0, 1)
    ]
    return int(2 * batch * math.prod(out) * math.prod(kernel) * channels * out_channels // groups)


_COUNTS: dict[str, Callable[[Sequence[Any]], int]] = {
    "aten::conv2d": _conv2d,
    "aten::mm": _product(0, 1),
    "aten::addmm": _product(1, 2),
    "aten::bmm": _product(0, 1),
    "aten::baddbmm": _product(1, 2),
    "aten::mul": _elements,
    "aten::add": _elements,
}
