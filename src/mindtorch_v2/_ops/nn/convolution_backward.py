"""Gradients of convolutions, and theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._backends.cpu.machinery.floating_errors import IGNORED, state_variable
from ..._backends.cpu.machinery.layout import has_channels_last, in_channels_last
from ..._backends.cpu.nn.convolution import conv_forward, conv_grad_input, conv_grad_weight
from ..._backends.cpu.reductions.sums import sum_dims
from ..._backends.meta.adapter import meta_tensor
from ..._dispatch import keys
from ..._tensor import Tensor, wrap
from ..machinery.computing import computed
from ..machinery.declare import op
from .convolution import convolution
from .convolution_checks import expand_sizes

Array = np.ndarray[Any, Any]
Sizes = tuple[int, ...]


# --- by arrays ------------------------------------------------------------------------------------------------------


def _array_gradients(
    grad: Array, x: Array, weight: Array, stride: Sizes, padding: Sizes, dilation: Sizes, transposed: bool, mask: Sequence[bool],
    groups: int = 1,
) -> tuple[Array | None, Array | None]:  # fmt: skip
    """Gradients of the input and the weight, those that the mask asks for."""
    given = (stride, padding, dilation)
    kernel = weight.shape[2:]
    if not transposed and weight.shape[1]:
        groups = x.shape[1] // weight.shape[1]  # torch: the volume's kernel finds them by itself
    grad_input = grad_weight = None
    if mask[0]:
        if transposed:
            backward = weight.conj() if weight.dtype.kind == "c" else weight
            grad_input = conv_forward(grad, backward, None, *given)
            reached: Any = [slice(n) for n in x.shape[2:]]
            grad_input = grad_input[(..., *reached)]
        else:
            grad_input = conv_grad_input(grad, weight, x.shape[2:], *given, groups)
    if mask[1]:
        if transposed:
            # as of the convolution that maps `grad` to `x`
            grad_weight = conv_grad_weight(grad, x, kernel, *given, groups)
            grad_weight = grad_weight.conj() if grad_weight.dtype.kind == "c" else grad_weight
        else:
            grad_weight = conv_grad_weight(x, grad, kernel, *given, groups)
    if x.ndim == 4 and (has_channels_last(x) or has_channels_last(weight)):
        grad_input, grad_weight = (None if a is None else in_channels_last(a) for a in (grad_input, grad_weight))
    return grad_input, grad_weight


def _dilated_gradients(grad: Array, x: Array, weight: Array, *given: Any) -> tuple[Array | None, Array | None, Array]:
    """The same, and that of the bias: added up sample by sample, rounded each time."""
    found = _array_gradients(grad, x, weight, *given)
    if not grad.size:
        return (*found, np.zeros(grad.shape[1], grad.dtype))
    grad, axes = np.ascontiguousarray(grad), tuple(range(2, grad.ndim))
    sums = sum_dims(grad, axes, False, None) if grad.dtype.itemsize == 2 else np.add.reduce(grad, axes)
    grad_bias: Array = np.add.accumulate(sums, axis=0)[-1]
    grad_bias += grad_bias.dtype.type(0)  # as if started from zero, which is not negative
    return (*found, grad_bias)


# --- by operators ---------------------------------------------------------------------------------------------------


def _backward(
    grad_output: Tensor, input: Tensor, weight: Tensor, bias_sizes: Sequence[int] | None, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], transposed: bool,
    output_padding: Sequence[int], groups: int, output_mask: Sequence[bool],
) -> tuple[Any, Any, Any]:  # fmt: skip
    if groups <= 0:
        raise RuntimeError(f"expected groups to be greater than 0, but got groups={groups}")
    n = weight.dim() - 2
    stride, padding = expand_sizes(stride, n, "stride"), expand_sizes(padding, n, "padding")
    dilation = expand_sizes(dilation, n, "dilation")
    mask = tuple(output_mask)
    if not input._array.shape[1]:
        shapes = (input._array.shape, weight._array.shape, tuple(bias_sizes or ()))
        return tuple(grad_output.new_zeros(s) if m else None for s, m in zip(shapes, mask, strict=True))  # type: ignore[return-value]
    if n == 1:
        grad_output, input, weight = grad_output.unsqueeze(2), input.unsqueeze(2), weight.unsqueeze(2)
        stride, padding, dilation = (1, *stride), (0, *padding), (1, *dilation)
    found: tuple[Any, ...] = _kernel_backward(grad_output, input, weight, stride, padding, dilation, transposed, mask, groups)
    if n == 1:
        found = tuple(t.squeeze(2) if i < 2 and t is not None else t for i, t in enumerate(found))
        for t in found[:2]:
            if t is not None:
                t._base = None  # nobody holds what it is a view of
    return found


def _kernel_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    mask: Sequence[bool],
    groups: int,
) -> tuple[Any, Any, Any]:
    kernel = weight._array.shape[2:]
    dilated = dilation.count(1) != len(dilation)
    if groups == 1 and not dilated and not transposed and len(kernel) == 2:
        return _slow_conv2d_backward(grad, x, weight, kernel, stride, padding, mask)
    if grad._keys & keys.META:
        shapes = (x._array.shape, weight._array.shape, (grad._array.shape[1],))
        return tuple(meta_tensor(s, grad.dtype) if m else None for s, m in zip(shapes, mask, strict=True))  # type: ignore[return-value]
    given = (grad, x, weight, stride, padding, dilation, transposed, mask, groups)
    by_samples = mask[2] and dilated and not transposed
    if by_samples:
        return _wrapped(_dilated_gradients, *given)  # type: ignore[return-value]
    return (*_wrapped(_array_gradients, *given), _bias_gradient(grad) if mask[2] else None)  # type: ignore[return-value]


def _wrapped(kernel: Callable[..., Any], grad: Tensor, x: Tensor, weight: Tensor, *given: Any) -> tuple[Tensor | None, ...]:
    """Call a kernel without NumPy's warnings: `computed`, which looks through all arguments, takes 3 µs more."""
    before = state_variable.get()
    try:
        state_variable.set(IGNORED)
        found = kernel(grad._array, x._array, weight._array, *given)
    finally:
        state_variable.set(before)
    return tuple([None if a is None else wrap(a) for a in found])


def _bias_gradient(grad: Tensor) -> Tensor:
    return grad.sum([0, *range(2, grad.ndim)])


def _conv2d_gradients(
    grad_output: Tensor,
    self: Tensor,
    weight: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    output_mask: Sequence[bool],
) -> tuple[Any, Any, Any]:
    """The kernel, with the bias's gradient by an operator, as in torch."""
    given = stride, padding, (1, 1), False, output_mask
    grad_input, grad_weight = computed(_array_gradients, grad_output, self, weight, *given)
    return grad_input, grad_weight, _bias_gradient(grad_output) if output_mask[2] else None


_slow_conv2d_backward = op(
    "_slow_conv2d_backward.output_mask(Tensor grad_output, Tensor self, Tensor weight, SymInt[2] kernel_size, SymInt[2] stride, "
    "SymInt[2] padding, bool[3] output_mask) -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)",
    over_tensors=_conv2d_gradients,
    grad={
        ("grad_output", "self", "weight"): lambda grads, grad_output, self, weight, stride, padding, needs: _double_backward(
            grads, grad_output, self, weight, stride, padding, (1, 1), False, (0, 0), 1, needs
        )
    },
    node="SlowConv2DBackwardBackward0",
    variants="",
)


def _double_backward(
    grads: Sequence[Tensor | None], grad_output: Tensor, input: Tensor, weight: Tensor, stride: int | Sequence[int] | None, padding: int | Sequence[int], dilation: int | Sequence[int], transposed: bool,
    output_padding: int | Sequence[int], groups: int, needs: tuple[bool, bool, bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    return _convolution_double_backward(
        grads[0],
        grads[1],
        grads[2],
        grad_output,
        weight,
        input,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        needs,
    )


convolution_backward = op(
    "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, "
    "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    composite=_backward,
    grad={("grad_output", "input", "weight"): _double_backward},
    variants="",
)


def _second_gradients(
    ggI: Tensor | None, ggW: Tensor | None, ggb: Tensor | None, gO: Tensor, weight: Tensor, self: Tensor, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int, output_mask: Sequence[bool],
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Gradients of the backward pass: it is linear in each of its three arguments."""
    rest = (stride, padding, dilation, transposed, output_padding, groups)
    terms = []
    grad_output = grad_input = grad_weight = None
    if output_mask[0]:
        if ggI is not None:
            terms.append(convolution(ggI, weight, None, *rest))
        if ggW is not None:
            terms.append(convolution(self, ggW, None, *rest))
        if ggb is not None:
            terms.append(ggb.reshape(1, -1, *(1,) * (gO.dim() - 2)).expand(gO._array.shape))
        for term in terms:
            grad_output = term if grad_output is None else grad_output + term
    if output_mask[1] and ggW is not None:
        grad_input = convolution_backward(gO, self, ggW, None, *rest, (True, False, False))[0]
    if output_mask[2] and ggI is not None:
        grad_weight = convolution_backward(gO, ggI, weight, None, *rest, (False, True, False))[1]
    return grad_output, grad_input, grad_weight


_convolution_double_backward = op(
    "_convolution_double_backward(Tensor? ggI, Tensor? ggW, Tensor? ggb, Tensor gO, Tensor weight, Tensor self, SymInt[] stride, "
    "SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) "
    "-> (Tensor, Tensor, Tensor)",
    composite=_second_gradients,
    variants="",
)
