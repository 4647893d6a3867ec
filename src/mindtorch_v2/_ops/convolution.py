"""Convolutions. `convolution` carries the derivative; what is above it sorts out arguments, what is below it computes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._backends.cpu.convolution import conv_forward, conv_grad_input, conv_output_size, transposed_output_size
from .._backends.cpu.layout import has_channels_last, in_channels_last
from .._tensor import Tensor
from .computing import computed, empty_sized, memory_by_operators
from .convolution_checks import (
    check_bias_dtype,
    check_dtypes,
    check_grouped_bias,
    check_groups,
    check_kernel,
    check_shapes,
    check_transposed,
    check_unbatched,
    check_weight_kind,
    expand_sizes,
)
from .declare import op, public
from .lookup import aten

Array = np.ndarray[Any, Any]
Sizes = tuple[int, ...]


# --- what users call ------------------------------------------------------------------------------------------------


def _batched(n: int, name: str, input: Tensor, call: Any) -> Tensor:
    """Call with a batch dimension, which is taken away again when the input had none."""
    if input.dim() == n + 1:
        return call(input.unsqueeze(0)).squeeze(0)  # type: ignore[no-any-return]
    check_unbatched(n, name, input)
    return call(input)  # type: ignore[no-any-return]


def _of_parts(call: Any, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """A convolution of complex numbers as three of real ones: its kernels take only those."""
    if not input.dtype.is_complex:
        return call(input, weight, bias)  # type: ignore[no-any-return]
    check_weight_kind(input, weight)
    real, imaginary = _parts(input)
    weight_real, weight_imaginary = _parts(weight)
    bias_real = bias_imaginary = bias_sum = None
    if bias is not None:
        bias_real, bias_imaginary = _parts(bias)
    reals = call(real, weight_real, bias_real)
    imaginaries = call(imaginary, weight_imaginary, None)
    if bias_real is not None:
        bias_sum = bias_real + bias_imaginary
    sums = call(real + imaginary, weight_real + weight_imaginary, bias_sum)
    turned = (sums - reals - imaginaries) * 1j  # torch: before the real part
    return reals - imaginaries + turned  # type: ignore[no-any-return]


def _parts(x: Tensor) -> tuple[Tensor, Tensor]:
    pairs = aten.view_as_real(x.resolve_conj())
    return pairs.select(-1, 0), pairs.select(-1, 1)


def _conv(n: int) -> Any:
    def conv(input: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Tensor:
        zero = (0,) * n
        check_bias_dtype(input, bias)
        if weight.dtype.is_complex:

            def call(x: Tensor, w: Tensor, b: Any) -> Any:
                return convolution(x, w, b, stride, padding, dilation, False, zero, groups)

            return _batched(n, f"conv{n}d", input, lambda x: _of_parts(call, x, weight, bias))
        return _batched(
            n, f"conv{n}d", input, lambda x: convolution(x, weight, bias, stride, padding, dilation, False, zero, groups)
        )

    return conv


def _conv_with_mode(n: int) -> Any:
    def conv(input: Tensor, weight: Tensor, bias: Any, stride: Any, padding: str, dilation: Any, groups: int) -> Tensor:
        def call(x: Tensor, w: Tensor, b: Any) -> Any:
            return _convolution_mode(x, w, b, stride, padding, dilation, groups)

        return _batched(n, f"conv{n}d", input, lambda x: _of_parts(call, x, weight, bias))

    return conv


def _conv_transpose(n: int) -> Any:
    def conv(
        input: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, output_padding: Any, groups: int, dilation: Any
    ) -> Tensor:
        def call(x: Tensor, w: Tensor, b: Any) -> Any:
            return convolution(x, w, b, stride, padding, dilation, True, output_padding, groups)

        return _batched(n, f"conv_transpose{n}d", input, lambda x: _of_parts(call, x, weight, bias))

    return conv


def _declare_convolutions(n: int) -> tuple[Any, Any]:
    ones, zeros = f"[{', '.join(['1'] * n)}]", f"[{', '.join(['0'] * n)}]"
    plain = op(
        f"conv{n}d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[{n}] stride={ones}, SymInt[{n}] padding={zeros}, "
        f"SymInt[{n}] dilation={ones}, SymInt groups=1) -> Tensor",
        composite=_conv(n),
        variants="function",
    )
    with_mode = op(
        f"conv{n}d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[{n}] stride={ones}, "
        f'str padding="valid", SymInt[{n}] dilation={ones}, SymInt groups=1) -> Tensor',
        composite=_conv_with_mode(n),
        variants="function",
    )
    overload = "" if n == 1 else ".input"
    transposed = op(
        f"conv_transpose{n}d{overload}(Tensor input, Tensor weight, Tensor? bias=None, SymInt[{n}] stride={ones}, "
        f"SymInt[{n}] padding={zeros}, SymInt[{n}] output_padding={zeros}, SymInt groups=1, SymInt[{n}] dilation={ones}) -> Tensor",
        composite=_conv_transpose(n),
        variants="function",
    )
    _export(n, plain, with_mode)
    return plain, transposed


def _export(n: int, plain: Any, with_mode: Any) -> None:
    """Tell the overloads apart by the padding alone: choosing by all argument types takes several microseconds."""
    ones, zeros = (1,) * n, (0,) * n

    def conv(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = ones, padding: Any = zeros, dilation: Any = ones,
        groups: int = 1,
    ) -> Tensor:  # fmt: skip
        chosen = with_mode if padding.__class__ is str else plain
        return chosen(input, weight, bias, stride, padding, dilation, groups)  # type: ignore[no-any-return]

    conv.__name__ = conv.__qualname__ = f"conv{n}d"
    conv.__module__ = "torch"
    conv.__doc__ = f"{plain.__doc__}\n{with_mode.__doc__}"
    public("function")(conv)


conv1d, conv_transpose1d = _declare_convolutions(1)
conv2d, conv_transpose2d = _declare_convolutions(2)
conv3d, conv_transpose3d = _declare_convolutions(3)


def _mode(input: Tensor, weight: Tensor, bias: Any, stride: Any, padding: str, dilation: Any, groups: int) -> Tensor:
    n = weight.dim() - 2
    check_groups(input._array.shape, weight._array.shape, groups)
    if padding == "valid":
        return convolution(input, weight, bias, stride, (0,) * n, dilation, False, (0,) * n, groups)  # type: ignore[no-any-return]
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    stride, dilation = expand_sizes(stride, n, "stride"), expand_sizes(dilation, n, "dilation")
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for d, k in zip(dilation, weight._array.shape[2:], strict=True)]
    if any(t % 2 for t in total):
        extra = [v for t in reversed(total) for v in (0, t % 2)]
        input = aten.constant_pad_nd(input, extra, 0)
    return convolution(input, weight, bias, stride, tuple(t // 2 for t in total), dilation, False, (0,) * n, groups)  # type: ignore[no-any-return]


_convolution_mode = op(
    "_convolution_mode(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, str padding, SymInt[] dilation, "
    "SymInt groups) -> Tensor",
    composite=_mode,
    variants="function",
)


# --- the operator with the derivative -------------------------------------------------------------------------------


def _forward(
    input: Tensor,
    weight: Tensor,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Tensor:
    return _convolution(  # type: ignore[no-any-return]
        input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, False, False, True, True
    )


def _gradients(
    grad: Tensor, input: Tensor, weight: Tensor, bias_shape: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, needs: tuple[bool, bool, bool],
) -> Any:  # fmt: skip
    return aten.convolution_backward(
        grad, input, weight, bias_shape, stride, padding, dilation, transposed, output_padding, groups, needs
    )


convolution = op(
    "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
    "bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
    composite=_forward,
    grad={("input", "weight", "bias"): _gradients},
    variants="function",
)


def _select_kernel(
    input: Tensor,
    weight: Tensor,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Tensor:
    n = weight._array.ndim - 2
    stride, padding, dilation, output_padding = check_shapes(
        input._array.shape, weight._array.shape, None if bias is None else bias._array.shape, _hashable(stride), _hashable(padding),
        _hashable(dilation), transposed, _hashable(output_padding), groups,
    )  # fmt: skip
    if groups > 1:
        check_grouped_bias(input, bias)
    if n == 1:
        input, weight = input.unsqueeze(2), weight.unsqueeze(2)
        stride, padding, dilation, output_padding = (1, *stride), (0, *padding), (1, *dilation), (0, *output_padding)
    if groups == 1 or runs_groups(n, transposed, dilation):
        out = _one_group(input, weight, bias, stride, padding, dilation, transposed, output_padding)
    else:
        parts = [
            _one_group(
                group_of(input, g, groups, 1), group_of(weight, g, groups, 0), None if bias is None else group_of(bias, g, groups, 0),
                stride, padding, dilation, transposed, output_padding,
            )
            for g in range(groups)
        ]  # fmt: skip
        out = aten.cat(parts, 1)
    return out.squeeze(2) if n == 1 else out


def _hashable(value: Any) -> Any:
    return tuple(value) if value.__class__ is list else value


def runs_groups(n: int, transposed: bool, dilation: Sizes) -> bool:
    """Whether the kernel takes all groups at once, which only the one for volumes does."""
    return n == 3 and not transposed and all(d == 1 for d in dilation)


def group_of(x: Tensor, index: int, groups: int, dim: int) -> Tensor:
    """The channels of one group."""
    n = x._array.shape[dim] // groups
    return x.narrow(dim, n * index, n)  # type: ignore[no-any-return]


def _one_group(
    x: Tensor, weight: Tensor, bias: Any, stride: Sizes, padding: Sizes, dilation: Sizes, transposed: bool, output_padding: Sizes
) -> Tensor:
    kernel = weight._array.shape[2:]
    result: Tensor
    flat = len(kernel) == 2
    if transposed:
        if not len(x._array):
            return x.new_zeros(_transposed_shape(x, weight, stride, padding, output_padding, dilation))  # type: ignore[no-any-return]
        chosen = slow_conv_transpose2d if flat else slow_conv_transpose3d
        result = chosen(x, weight, kernel, bias, stride, padding, output_padding, dilation)
    elif any(d != 1 for d in dilation):
        chosen = slow_conv_dilated2d if flat else slow_conv_dilated3d
        result = chosen(x, weight, kernel, bias, stride, padding, dilation)
    else:
        result = (thnn_conv2d if flat else slow_conv3d)(x, weight, kernel, bias, stride, padding)
    return result


_convolution = op(
    "_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
    "bool transposed, SymInt[] output_padding, SymInt groups, bool benchmark, bool deterministic, bool cudnn_enabled, "
    "bool allow_tf32) -> Tensor",
    composite=lambda input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, benchmark, deterministic,
    cudnn_enabled, allow_tf32: _select_kernel(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups),
    grad={("input", "weight", "bias"): _gradients},
    node="ConvolutionBackward1",
    variants="function",
)  # fmt: skip


# --- kernels --------------------------------------------------------------------------------------------------------


def _forward_shape(self: Tensor, weight: Tensor, stride: Sizes, padding: Sizes, dilation: Sizes | None = None) -> Sizes:
    kernel = weight._array.shape[2:]
    size = conv_output_size(self._array.shape[2:], kernel, stride, padding, dilation or (1,) * len(kernel))
    return (len(self._array), len(weight._array), *size)


def _forward_gradients(
    grad: Tensor, self: Tensor, weight: Tensor, bias_shape: Any, stride: Any, padding: Any, needs: tuple[bool, bool, bool]
) -> Any:
    ones = (1,) * (weight.dim() - 2)
    return aten.convolution_backward(grad, self, weight, bias_shape, stride, padding, ones, False, (0,) * len(ones), 1, needs)


def _correlated(
    name: str,
    self: Array,
    weight: Array,
    kernel_size: Any,
    bias: Array | None,
    stride: Any,
    padding: Any,
    dilation: Sizes | None = None,
    empty: Any = np.empty,
) -> Array:
    """The kernel of the convolutions that are not transposed; `name` is torch's for it."""
    check_dtypes(name, self, weight)
    steps = (_hashable(stride), _hashable(padding), _hashable(dilation))
    check_kernel(self.shape, weight.shape, _hashable(kernel_size), None if bias is None else bias.shape, *steps)
    if bias is not None and bias.dtype != self.dtype:
        bias = bias.real.astype(self.dtype)
    dilation = dilation or (1,) * (weight.ndim - 2)
    if self.shape[1] == weight.shape[1]:
        return conv_forward(self, weight, bias, stride, padding, dilation, empty=empty)
    groups = self.shape[1] // weight.shape[1]
    biases = [None] * groups if bias is None else np.split(bias, groups)
    pairs = zip(np.split(self, groups, 1), np.split(weight, groups), biases, strict=True)
    return np.concatenate([conv_forward(x, w, b, stride, padding, dilation) for x, w, b in pairs], 1)


_BOTH = ("self", "weight", "bias")
_slow_conv2d_forward = op(
    "_slow_conv2d_forward(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias, SymInt[2] stride, "
    "SymInt[2] padding) -> Tensor",
    cpu=lambda self, weight, kernel_size, bias, stride, padding, *, empty=np.empty: _correlated(
        "slow_conv2d_cpu", self, weight, kernel_size, bias, stride, padding, empty=empty
    ),
    format_of=("self", "weight"),
    shape=lambda self, weight, stride, padding: _forward_shape(self, weight, stride, padding),
    grad={_BOTH: _forward_gradients},
    node="SlowConv2DBackward0",
    variants="",
)
memory_by_operators(_slow_conv2d_forward, empty=empty_sized)
slow_conv3d_forward = op(
    "slow_conv3d_forward(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias, SymInt[3] stride, "
    "SymInt[3] padding) -> Tensor",
    cpu=lambda self, weight, kernel_size, bias, stride, padding: _correlated(
        "slow_conv3d_cpu", self, weight, kernel_size, bias, stride, padding
    ),
    shape=lambda self, weight, stride, padding: _forward_shape(self, weight, stride, padding),
    grad={_BOTH: _forward_gradients},
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
    bias_shape: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    needs: tuple[bool, bool, bool],
) -> Any:
    return aten.convolution_backward(
        grad, self, weight, bias_shape, stride, padding, dilation, False, (0,) * len(dilation), 1, needs
    )


def _transposed_kernel(
    self: Array, weight: Array, kernel_size: Any, bias: Array | None, stride: Sizes, padding: Sizes, output_padding: Sizes,
    dilation: Sizes,
) -> Array:  # fmt: skip
    name = f"slow_conv_transpose{len(kernel_size)}d_out_cpu"
    check_transposed(self.shape, weight.shape, None if bias is None else bias.shape, len(kernel_size))
    check_dtypes(name, self, weight)
    if bias is not None:
        check_dtypes(name, self, bias)
    steps = (_hashable(stride), _hashable(padding), _hashable(dilation), _hashable(output_padding))
    check_kernel(self.shape, weight.shape, _hashable(kernel_size), None if bias is None else bias.shape, *steps)
    size = transposed_output_size(self.shape[2:], weight.shape[2:], stride, padding, dilation, output_padding)
    if min(size) < 1:
        given, got = (" x ".join(map(str, sizes)) for sizes in (self.shape[2:], size))
        raise RuntimeError(
            f"Given input size per channel: ({given}). Calculated output size per channel: ({got}). Output size is too small"
        )
    out = _spread(self, weight, size, stride, padding, dilation, output_padding)
    if bias is not None:
        out += bias.reshape(-1, *(1,) * len(size))
    return in_channels_last(out) if out.ndim == 4 and (has_channels_last(self) or has_channels_last(weight)) else out


def _spread(
    x: Array, weight: Array, size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, output_padding: Sizes
) -> Array:  # fmt: skip
    """A transposed convolution of this size; padding below zero puts zeros around it."""
    if min(padding) >= 0:
        return conv_grad_input(x, weight, size, stride, padding, dilation, conjugate=False)
    kept = tuple(max(p, 0) for p in padding)
    inner = transposed_output_size(x.shape[2:], weight.shape[2:], stride, kept, dilation, output_padding)
    out = np.zeros((len(x), weight.shape[1], *size), x.dtype)
    inside: Any = [slice(-min(p, 0), n - min(p, 0)) for n, p in zip(inner, padding, strict=True)]
    out[(..., *inside)] = conv_grad_input(x, weight, inner, stride, kept, dilation, conjugate=False)
    return out


def _transposed(
    self: Tensor,
    weight: Tensor,
    kernel_size: Any,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    output_padding: Any,
    dilation: Any,
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
    return out if bias is None else out.add_(bias.reshape((-1, *(1,) * (out.ndim - 2))))  # type: ignore[no-any-return]


def _transposed_shape(self: Tensor, weight: Tensor, stride: Sizes, padding: Sizes, output_padding: Sizes, dilation: Sizes) -> Sizes:
    size = transposed_output_size(self._array.shape[2:], weight._array.shape[2:], stride, padding, dilation, output_padding)
    return (len(self._array), weight._array.shape[1], *size)


def _transposed_gradients(
    grad: Tensor, self: Tensor, weight: Tensor, bias_shape: Any, stride: Any, padding: Any, output_padding: Any, dilation: Any,
    needs: tuple[bool, bool, bool],
) -> Any:  # fmt: skip
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
        grad={_BOTH: _dilated_gradients},
        variants="",
    )
    transposed = op(
        f"slow_conv_transpose{n}d{head}SymInt[{n}] padding={zeros}, SymInt[{n}] output_padding={zeros}, "
        f"SymInt[{n}] dilation={ones}) -> Tensor",
        # torch: a bias is added by an operator in two dimensions, in the kernel in three
        cpu=_transposed_kernel if n == 3 else None,
        over_tensors=_transposed if n == 2 else None,
        shape=_transposed_shape,
        grad={_BOTH: _transposed_gradients},
        variants="",
    )
    return dilated, transposed


slow_conv_dilated2d, slow_conv_transpose2d = _declare_slow(2)
slow_conv_dilated3d, slow_conv_transpose3d = _declare_slow(3)
