"""Gradients of convolutions for their inputs and weights, as functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .._ops.machinery.lookup import aten
from .._tensor import Tensor
from .modules.utils import ntuple

if TYPE_CHECKING:
    from .._types import Ints


def _gradient(
    n: int,
    wanted: int,
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Tensor:
    mask = [i == wanted for i in range(3)]
    sizes = [ntuple(x, n) for x in (stride, padding, dilation)]
    return aten.convolution_backward(grad_output, input, weight, None, *sizes, False, [0], groups, mask)[wanted]


def _of_input(n: int) -> Callable[..., Tensor]:
    def gradient(
        input_size: Sequence[int],
        weight: Tensor,
        grad_output: Tensor,
        stride: Ints = 1,
        padding: Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
    ) -> Tensor:
        input = grad_output.new_empty(1).expand(input_size)
        return _gradient(n, 0, grad_output, input, weight, stride, padding, dilation, groups)

    gradient.__name__ = gradient.__qualname__ = f"conv{n}d_input"
    gradient.__doc__ = f"The gradient of `conv{n}d` for its input."
    return gradient


def _of_weight(n: int) -> Callable[..., Tensor]:
    def gradient(
        input: Tensor,
        weight_size: Sequence[int],
        grad_output: Tensor,
        stride: Ints = 1,
        padding: Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
    ) -> Tensor:
        weight = grad_output.new_empty(1).expand(weight_size)
        return _gradient(n, 1, grad_output, input, weight, stride, padding, dilation, groups)

    gradient.__name__ = gradient.__qualname__ = f"conv{n}d_weight"
    gradient.__doc__ = f"The gradient of `conv{n}d` for its weight."
    return gradient


conv1d_input, conv2d_input, conv3d_input = (_of_input(n) for n in (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = (_of_weight(n) for n in (1, 2, 3))
