"""Convolutions. `convolution` carries the derivative; what is above it sorts out arguments, what is below it chooses the kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..._tensor import Tensor
from ..machinery.declare import op, public
from ..machinery.lookup import aten
from .convolution_checks import (
    check_bias_dtype,
    check_grouped_bias,
    check_groups,
    check_shapes,
    check_unbatched,
    check_weight_kind,
    expand_sizes,
    hashable,
)
from .convolution_kernels import (
    grouped,
    slow_conv3d,
    slow_conv_dilated2d,
    slow_conv_dilated3d,
    slow_conv_transpose2d,
    slow_conv_transpose3d,
    thnn_conv2d,
    transposed_shape,
    without_channels,
)

if TYPE_CHECKING:
    from ..._types import Ints

Sizes = tuple[int, ...]


# --- what users call ------------------------------------------------------------------------------------------------


def _batched(n: int, name: str, input: Tensor, call: Callable[..., Tensor]) -> Tensor:
    """Call with a batch dimension, which is taken away again when the input had none."""
    if input.dim() == n + 1:
        return call(input.unsqueeze(0)).squeeze(0)
    check_unbatched(n, name, input)
    return call(input)


def _of_parts(call: Callable[..., Tensor], input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """A convolution of complex numbers as three of real ones: its kernels take only those."""
    if not input.dtype.is_complex:
        return call(input, weight, bias)
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
    return reals - imaginaries + turned


def _parts(x: Tensor) -> tuple[Tensor, Tensor]:
    pairs = aten.view_as_real(x.resolve_conj())
    return pairs.select(-1, 0), pairs.select(-1, 1)


def _conv(n: int) -> Callable[..., Any]:
    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        stride: Sequence[int] | int,
        padding: Ints,
        dilation: Sequence[int] | int,
        groups: int,
    ) -> Tensor:
        zero = (0,) * n
        check_bias_dtype(input, bias)
        if weight.dtype.is_complex:

            def call(x: Tensor, w: Tensor, b: Tensor | None) -> Tensor:
                return convolution(x, w, b, stride, padding, dilation, False, zero, groups)

            return _batched(n, f"conv{n}d", input, lambda x: _of_parts(call, x, weight, bias))
        return _batched(
            n, f"conv{n}d", input, lambda x: convolution(x, weight, bias, stride, padding, dilation, False, zero, groups)
        )

    return conv


def _conv_with_mode(n: int) -> Callable[..., Any]:
    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        stride: Sequence[int] | int,
        padding: str,
        dilation: Sequence[int] | int,
        groups: int,
    ) -> Tensor:
        def call(x: Tensor, w: Tensor, b: Tensor | None) -> Tensor:
            return _convolution_mode(x, w, b, stride, padding, dilation, groups)

        return _batched(n, f"conv{n}d", input, lambda x: _of_parts(call, x, weight, bias))

    return conv


def _conv_transpose(n: int) -> Callable[..., Any]:
    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        stride: Sequence[int] | int,
        padding: Ints,
        output_padding: Sequence[int] | int,
        groups: int,
        dilation: Sequence[int] | int,
    ) -> Tensor:
        def call(x: Tensor, w: Tensor, b: Tensor | None) -> Tensor:
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


def _export(n: int, plain: Callable[..., Tensor], with_mode: Callable[..., Tensor]) -> None:
    """Tell the overloads apart by the padding alone: choosing by all argument types takes several microseconds."""
    ones, zeros = (1,) * n, (0,) * n

    def conv(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] | None = ones, padding: Ints | str = zeros, dilation: int | Sequence[int] = ones,
        groups: int = 1,
    ) -> Tensor:  # fmt: skip
        chosen = with_mode if padding.__class__ is str else plain
        return chosen(input, weight, bias, stride, padding, dilation, groups)

    conv.__name__ = conv.__qualname__ = f"conv{n}d"
    conv.__module__ = "torch"
    conv.__doc__ = f"{plain.__doc__}\n{with_mode.__doc__}"
    public("function")(conv)


conv1d, conv_transpose1d = _declare_convolutions(1)
conv2d, conv_transpose2d = _declare_convolutions(2)
conv3d, conv_transpose3d = _declare_convolutions(3)


def _mode(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int], padding: str, dilation: Sequence[int], groups: int
) -> Tensor:
    n = weight.dim() - 2
    check_groups(input._array.shape, weight._array.shape, groups)
    if padding == "valid":
        return convolution(input, weight, bias, stride, (0,) * n, dilation, False, (0,) * n, groups)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    stride, dilation = expand_sizes(stride, n, "stride"), expand_sizes(dilation, n, "dilation")
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for d, k in zip(dilation, weight._array.shape[2:], strict=True)]
    if any(t % 2 for t in total):
        extra = [v for t in reversed(total) for v in (0, t % 2)]
        input = aten.constant_pad_nd(input, extra, 0)
    return convolution(input, weight, bias, stride, tuple(t // 2 for t in total), dilation, False, (0,) * n, groups)


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
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    return _convolution(
        input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, False, False, True, True
    )


def _gradients(
    grad: Tensor, input: Tensor, weight: Tensor, bias_shape: Sequence[int] | None, stride: int | Sequence[int] | None, padding: int | Sequence[int], dilation: int | Sequence[int], transposed: bool,
    output_padding: int | Sequence[int], groups: int, needs: tuple[bool, bool, bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
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
    bias: Tensor | None,
    stride: int | Sequence[int] | None,
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    transposed: bool,
    output_padding: int | Sequence[int],
    groups: int,
) -> Tensor:
    n = weight._array.ndim - 2
    stride, padding, dilation, output_padding = check_shapes(
        input._array.shape, weight._array.shape, None if bias is None else bias._array.shape, hashable(stride), hashable(padding),
        hashable(dilation), transposed, hashable(output_padding), groups,
    )  # fmt: skip
    if not input._array.shape[1]:
        return without_channels(input, weight, stride, padding, dilation, transposed, output_padding)
    if groups > 1:
        check_grouped_bias(input, bias)
    if n == 1:
        input, weight = input.unsqueeze(2), weight.unsqueeze(2)
        stride, padding, dilation, output_padding = (1, *stride), (0, *padding), (1, *dilation), (0, *output_padding)
    if groups == 1 or (n == 3 and not transposed and all(d == 1 for d in dilation)):
        out = _by_operator(input, weight, bias, stride, padding, dilation, transposed, output_padding)
    else:
        # torch calls a kernel's operator for each group; here one kernel takes them all
        out = grouped(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    return out.squeeze(2) if n == 1 else out


def _by_operator(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
) -> Tensor:
    kernel = weight._array.shape[2:]
    result: Tensor
    flat = len(kernel) == 2
    if transposed:
        if not len(x._array):
            return x.new_zeros(transposed_shape(x, weight, stride, padding, output_padding, dilation))
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
