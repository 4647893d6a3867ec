"""The operators that compute convolutions: plain, dilated and transposed, of images and of volumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._backends.cpu.machinery.layout import has_channels_last, in_channels_last
from ..._backends.cpu.nn.convolution import conv_forward, conv_grad_input, conv_output_size, transposed_output_size
from ..._backends.meta.adapter import meta_tensor
from ..._dispatch import keys
from ..._tensor import Tensor
from ..machinery.computing import computed
from ..machinery.declare import op
from ..machinery.lookup import aten
from .convolution_checks import check_dtypes, check_kernel, check_transposed, hashable

Array = np.ndarray[Any, Any]
Sizes = tuple[int, ...]


def _forward_shape(self: Tensor, weight: Tensor, stride: Sizes, padding: Sizes, dilation: Sizes | None = None) -> Sizes:
    kernel = weight._array.shape[2:]
    size = conv_output_size(self._array.shape[2:], kernel, stride, padding, dilation or (1,) * len(kernel))
    return (len(self._array), len(weight._array), *size)


def without_channels(
    x: Tensor, weight: Tensor, stride: Sizes, padding: Sizes, dilation: Sizes, transposed: bool, output_padding: Sizes
) -> Tensor:
    """torch: of an image without channels the result has none either, whatever the weight says."""
    if transposed:
        size = transposed_shape(x, weight, stride, padding, output_padding, dilation)
    else:
        size = _forward_shape(x, weight, stride, padding, dilation)
    return x.new_empty((size[0], 0, *size[2:]))


def _forward_gradients(
    grad: Tensor,
    self: Tensor,
    weight: Tensor,
    bias_shape: Sequence[int] | None,
    stride: int | Sequence[int] | None,
    padding: int | Sequence[int],
    needs: tuple[bool, bool, bool],
) -> tuple[Tensor | None, ...]:
    ones = (1,) * (weight.dim() - 2)
    return aten.convolution_backward(grad, self, weight, bias_shape, stride, padding, ones, False, (0,) * len(ones), 1, needs)


def _correlated(
    name: str,
    self: Array,
    weight: Array,
    kernel_size: int | Sequence[int],
    bias: Array | None,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: Sizes | None = None,
) -> Array:
    """The kernel of the convolutions that are not transposed; `name` is torch's for it."""
    check_dtypes(name, self, weight)
    steps = (hashable(stride), hashable(padding), hashable(dilation))
    check_kernel(self.shape, weight.shape, hashable(kernel_size), None if bias is None else bias.shape, *steps)
    if bias is not None and bias.dtype != self.dtype:
        bias = bias.real.astype(self.dtype)
    return conv_forward(self, weight, bias, stride, padding, dilation or (1,) * (weight.ndim - 2))


_DIFFERENTIABLE = ("self", "weight", "bias")
_slow_conv2d_forward = op(
    "_slow_conv2d_forward(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias, SymInt[2] stride, "
    "SymInt[2] padding) -> Tensor",
    cpu=lambda self, weight, kernel_size, bias, stride, padding: _correlated(
        "slow_conv2d_cpu", self, weight, kernel_size, bias, stride, padding
    ),
    format_of=("self", "weight"),
    shape=lambda self, weight, stride, padding: _forward_shape(self, weight, stride, padding),
    grad={_DIFFERENTIABLE: _forward_gradients},
    node="SlowConv2DBackward0",
    variants="",
)
slow_conv3d_forward = op(
    "slow_conv3d_forward(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias, SymInt[3] stride, "
    "SymInt[3] padding) -> Tensor",
    cpu=lambda self, weight, kernel_size, bias, stride, padding: _correlated(
        "slow_conv3d_cpu", self, weight, kernel_size, bias, stride, padding
    ),
    shape=lambda self, weight, stride, padding: _forward_shape(self, weight, stride, padding),
    grad={_DIFFERENTIABLE: _forward_gradients},
    node="SlowConv3DBackward0",
    variants="",
)
thnn_conv2d = op(
    "thnn_conv2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] stride=[1, 1], "
    "SymInt[2] padding=[0, 0]) -> Tensor",
    composite=lambda self, weight, kernel_size, bias, stride, padding: _slow_conv2d_forward(
        self, weight, kernel_size, bias, stride, padding
    ),
    variants="",
)
slow_conv3d = op(
    "slow_conv3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], "
    "SymInt[3] padding=[0, 0, 0]) -> Tensor",
    composite=lambda self, weight, kernel_size, bias, stride, padding: slow_conv3d_forward(
        self, weight, kernel_size, bias, stride, padding
    ),
    variants="",
)


def _dilated_gradients(
    grad: Tensor,
    self: Tensor,
    weight: Tensor,
    bias_shape: Sequence[int] | None,
    stride: int | Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    needs: tuple[bool, bool, bool],
) -> tuple[Tensor | None, ...]:
    return aten.convolution_backward(
        grad, self, weight, bias_shape, stride, padding, dilation, False, (0,) * len(dilation), 1, needs
    )


def _transposed_kernel(
    self: Array, weight: Array, kernel_size: Sequence[int], bias: Array | None, stride: Sizes, padding: Sizes, output_padding: Sizes,
    dilation: Sizes,
) -> Array:  # fmt: skip
    name = f"slow_conv_transpose{len(kernel_size)}d_out_cpu"
    check_transposed(self.shape, weight.shape, None if bias is None else bias.shape, len(kernel_size))
    check_dtypes(name, self, weight)
    if bias is not None:
        check_dtypes(name, self, bias)
    steps = (hashable(stride), hashable(padding), hashable(dilation), hashable(output_padding))
    check_kernel(self.shape, weight.shape, hashable(kernel_size), None if bias is None else bias.shape, *steps)
    size = transposed_output_size(self.shape[2:], weight.shape[2:], stride, padding, dilation, output_padding)
    if min(size) < 1:
        given, got = (" x ".join(map(str, sizes)) for sizes in (self.shape[2:], size))
        raise RuntimeError(
            f"Given input size per channel: ({given}). Calculated output size per channel: ({got}). Output size is too small"
        )
    out = _spread(self, weight, size, stride, padding, dilation, output_padding)
    if bias is not None:
        out += bias.reshape(-1, *(1,) * len(size))
    return _as_laid_out(out, self, weight)


def _as_laid_out(out: Array, x: Array, weight: Array) -> Array:
    """The result in the memory format of what it is made of."""
    return in_channels_last(out) if out.ndim == 4 and (has_channels_last(x) or has_channels_last(weight)) else out


def _spread(
    x: Array, weight: Array, size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, output_padding: Sizes, groups: int = 1
) -> Array:  # fmt: skip
    """A transposed convolution of this size; padding below zero puts zeros around it."""
    if min(padding) >= 0:
        return conv_grad_input(x, weight, size, stride, padding, dilation, groups, conjugate=False)
    kept = tuple(max(p, 0) for p in padding)
    inner = transposed_output_size(x.shape[2:], weight.shape[2:], stride, kept, dilation, output_padding)
    out = np.zeros((len(x), weight.shape[1] * groups, *size), x.dtype)
    inside: Any = [slice(-min(p, 0), n - min(p, 0)) for n, p in zip(inner, padding, strict=True)]
    out[(..., *inside)] = conv_grad_input(x, weight, inner, stride, kept, dilation, groups, conjugate=False)
    return out


def _transposed(
    self: Tensor,
    weight: Tensor,
    kernel_size: Sequence[int],
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    output_padding: Sequence[int],
    dilation: Sequence[int],
) -> Tensor:
    """The kernel, with the bias added by an operator, as in torch."""
    if bias is not None:
        check_transposed(self._array.shape, weight._array.shape, bias._array.shape, len(kernel_size))
    out: Tensor = computed(
        _transposed_kernel,
        self,
        weight,
        kernel_size=kernel_size,
        bias=None,
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        dilation=dilation,
    )
    return out if bias is None else out.add_(bias.reshape((-1, *(1,) * (out.ndim - 2))))


def transposed_shape(
    self: Tensor, weight: Tensor, stride: Sizes, padding: Sizes, output_padding: Sizes, dilation: Sizes, *, groups: int = 1
) -> Sizes:
    size = transposed_output_size(self._array.shape[2:], weight._array.shape[2:], stride, padding, dilation, output_padding)
    return (len(self._array), weight._array.shape[1] * groups, *size)


def grouped(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Sizes, padding: Sizes, dilation: Sizes, transposed: bool,
    output_padding: Sizes, groups: int,
) -> Tensor:  # fmt: skip
    """A convolution of several groups of channels, plain, dilated or transposed, of arguments that were checked."""
    if x._keys & keys.META:
        shape = _forward_shape(x, weight, stride, padding, dilation)
        if transposed:
            shape = transposed_shape(x, weight, stride, padding, output_padding, dilation, groups=groups)
        return meta_tensor(shape, x.dtype)
    given = (stride, padding, dilation, transposed, output_padding, groups)
    result: Tensor = computed(_grouped_kernel, x, weight, bias, *given)
    return result


def _grouped_kernel(
    x: Array, weight: Array, bias: Array | None, stride: Sizes, padding: Sizes, dilation: Sizes, transposed: bool,
    output_padding: Sizes, groups: int,
) -> Array:  # fmt: skip
    n = weight.ndim - 2
    dilated = any(d != 1 for d in dilation)
    check_dtypes(
        f"slow_conv_transpose{n}d_out_cpu" if transposed else "slow_conv_dilated<>" if dilated else "slow_conv2d_cpu", x, weight
    )
    if bias is not None and bias.dtype != x.dtype:
        bias = bias.real.astype(x.dtype)
    if not transposed:
        return _as_laid_out(conv_forward(x, weight, bias, stride, padding, dilation), x, weight)
    size = transposed_output_size(x.shape[2:], weight.shape[2:], stride, padding, dilation, output_padding)
    out = _spread(x, weight, size, stride, padding, dilation, output_padding, groups)
    if bias is not None:
        out += bias.reshape(-1, *(1,) * n)
    return _as_laid_out(out, x, weight)


def _transposed_gradients(
    grad: Tensor, self: Tensor, weight: Tensor, bias_shape: Sequence[int] | None, stride: int | Sequence[int] | None, padding: int | Sequence[int], output_padding: int | Sequence[int], dilation: int | Sequence[int],
    needs: tuple[bool, bool, bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    return aten.convolution_backward(grad, self, weight, bias_shape, stride, padding, dilation, True, output_padding, 1, needs)


def _declare_slow(n: int) -> tuple[Any, Any]:
    ones, zeros = f"[{', '.join(['1'] * n)}]", f"[{', '.join(['0'] * n)}]"
    head = f"(Tensor self, Tensor weight, SymInt[{n}] kernel_size, Tensor? bias=None, SymInt[{n}] stride={ones}, "
    dilated = op(
        f"slow_conv_dilated{n}d{head}SymInt[{n}] padding={zeros}, SymInt[{n}] dilation={ones}) -> Tensor",
        cpu=lambda self, weight, kernel_size, bias, stride, padding, dilation: _correlated(
            "slow_conv_dilated<>", self, weight, kernel_size, bias, stride, padding, dilation
        ),
        shape=_forward_shape,
        grad={_DIFFERENTIABLE: _dilated_gradients},
        variants="",
    )
    transposed = op(
        f"slow_conv_transpose{n}d{head}SymInt[{n}] padding={zeros}, SymInt[{n}] output_padding={zeros}, "
        f"SymInt[{n}] dilation={ones}) -> Tensor",
        # torch: a bias is added by an operator in two dimensions, in the kernel in three
        cpu=_transposed_kernel if n == 3 else None,
        over_tensors=_transposed if n == 2 else None,
        shape=transposed_shape,
        grad={_DIFFERENTIABLE: _transposed_gradients},
        variants="",
    )
    return dilated, transposed


slow_conv_dilated2d, slow_conv_transpose2d = _declare_slow(2)
slow_conv_dilated3d, slow_conv_transpose3d = _declare_slow(3)
