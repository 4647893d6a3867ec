"""Pooling: maxima with indices, averages, adaptive and fractional windows, and unpooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._backends.cpu.machinery.dtype_rules import refuse, unimplemented
from ..._backends.cpu.machinery.dtypes import scalar_name
from ..._backends.cpu.nn import pooling as kernels
from ..._dispatch import keys
from ..._dispatch.tls import state
from ..._settings import alert_not_deterministic
from ..._tensor import Tensor
from ..machinery.computing import computed
from ..machinery.declare import op
from ..machinery.lookup import aten
from .pooling_checks import (
    adaptive_size,
    check_adaptive,
    check_average_gradient,
    check_extents,
    check_maximum_gradient,
    check_one,
    check_window_gradient,
    expand,
    window,
)

Array = np.ndarray[Any, Any]
Sizes = tuple[int, ...]


def pick_by_index(grad: Tensor, indices: Tensor, n: int) -> Tensor:
    """The elements at flat positions of the last n dimensions: the derivative of spreading gradients by index."""
    if not indices.numel():
        return grad.new_zeros(indices._array.shape)
    return grad.flatten(-n).gather(-1, indices.flatten(-n)).view(indices._array.shape)


def _unpool_backward(grad: Tensor, indices: Tensor, n: int) -> Tensor:
    rows = (*indices._array.shape[: indices.ndim - n], -1)
    if not indices.numel():
        return grad.new_zeros(indices._array.shape)
    found = grad.contiguous().view(rows).gather(-1, indices.contiguous().view(rows))
    return found.view(indices._array.shape)


def _zeros(grad: Tensor) -> Tensor:
    return aten.zeros_like(grad)


def _refuse_dtype(x: Array, name: str) -> None:
    if x.dtype.kind in "bc":
        raise unimplemented(name, x)


# --- maxima ---------------------------------------------------------------------------------------------------------


def _declare_max_pool(n: int) -> tuple[Any, Any]:
    name = f"max_pool{n}d"

    def kernel(
        self: Array,
        kernel_size: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        ceil_mode: bool,
    ) -> tuple[Array, Array]:
        w = window(name, self.shape, kernel_size, stride, padding, dilation, ceil_mode=ceil_mode, n=n)
        _refuse_dtype(self, name)
        return kernels.max_pool(self, w.out, w.kernel, w.stride, w.padding, w.dilation)

    def backward(
        grad_output: Array, self: Array, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], ceil_mode: bool, indices: Array,
    ) -> Array:  # fmt: skip
        w = window(name, self.shape, kernel_size, stride, padding, dilation, ceil_mode=ceil_mode, n=n)
        check_window_gradient((indices.shape, grad_output.shape), self.shape, w.out)
        return kernels.max_pool_backward(grad_output, indices, self.shape, w.kernel, w.stride, w.dilation)

    ints = f"int[{n}]"
    spread = op(
        f"{name}_with_indices_backward(Tensor grad_output, Tensor self, {ints} kernel_size, {ints} stride, {ints} padding, "
        f"{ints} dilation, bool ceil_mode, Tensor indices) -> Tensor",
        cpu=backward,
        format_of=("self",),
        shape=lambda self: self.shape,
        grad={
            "grad_output": lambda grad, indices: pick_by_index(grad, indices, n),
            "self": lambda grad, self_shape: aten.zeros(tuple(self_shape), dtype=grad.dtype, device=grad.device),
        },
        variants="",
    )
    arguments = f"(Tensor self, {ints} kernel_size, {ints} stride=[], {ints} padding=0, {ints} dilation=1, bool ceil_mode=False)"
    with_indices = op(
        f"{name}_with_indices{arguments} -> (Tensor, Tensor)",
        cpu=kernel,
        format_of=("self",),
        grad={
            "self": lambda grad, self, kernel_size, stride, padding, dilation, ceil_mode, result1: spread(
                grad, self, kernel_size, stride, padding, dilation, ceil_mode, result1
            )
        },
        nondifferentiable=("result1",),
        variants="",
    )
    values = op(
        f"{name}{arguments} -> Tensor",
        composite=lambda self, kernel_size, stride, padding, dilation, ceil_mode: with_indices(
            self, kernel_size, stride, padding, dilation, ceil_mode
        )[0],
        variants="function",
    )
    return with_indices, values


max_pool2d_with_indices, max_pool2d = _declare_max_pool(2)
max_pool3d_with_indices, max_pool3d = _declare_max_pool(3)


def _max_pool1d_arguments(
    kernel_size: int | Sequence[int], stride: int | Sequence[int], padding: int | Sequence[int], dilation: int | Sequence[int]
) -> tuple[int, int, int, int]:
    kernel = check_one(kernel_size, "max_pool1d", "kernel_size")
    step = kernel if not isinstance(stride, int) and not len(stride) else check_one(stride, "max_pool1d", "stride")
    return kernel, step, check_one(padding, "max_pool1d", "padding"), check_one(dilation, "max_pool1d", "dilation")


def _check_max_pool1d_input(self: Tensor) -> None:
    shape = self._array.shape
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            f"max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:{list(shape)}"
        )


def _check_max_pool1d(self: Tensor, kernel: int, step: int, pad: int, gap: int) -> None:
    _check_max_pool1d_input(self)
    for name, value in (("kernel_size", kernel), ("stride", step)):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {name} must be greater than zero, but got {value}")
    if pad < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {pad}")
    if pad > kernel // 2:
        raise RuntimeError(
            f"max_pool1d() padding should be at most half of kernel size, but got padding={pad} and kernel_size={kernel}"
        )
    if gap <= 0:
        raise RuntimeError(f"max_pool1d() dilation must be greater than zero, but got {gap}")


def _max_pool1d_with_indices(
    self: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int],
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    ceil_mode: bool,
) -> tuple[Tensor, Tensor]:
    kernel, step, pad, gap = _max_pool1d_arguments(kernel_size, stride, padding, dilation)
    _check_dims_1d(self, "max_pool1d")
    _check_max_pool1d_input(self)
    values, indices = max_pool2d_with_indices(self.unsqueeze(-2), (1, kernel), (1, step), (0, pad), (1, gap), ceil_mode)
    return values.squeeze(-2), indices.squeeze(-2)


def _max_pool1d(
    self: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int],
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    ceil_mode: bool,
) -> Tensor:
    kernel, step, pad, gap = _max_pool1d_arguments(kernel_size, stride, padding, dilation)
    _check_max_pool1d(self, kernel, step, pad, gap)
    size = self._array.shape[-1]
    out = (size + 2 * pad - gap * (kernel - 1) - 1 + (step - 1 if ceil_mode else 0)) // step + 1
    if out <= 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {out}")
    if self._keys & keys.TRACKED and (state.grad_enabled or not self._keys & keys.AUTOGRAD):
        return max_pool1d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]
    refuse("max_pool1d_impl", self, "bic")
    # torch: without a gradient to keep indices for, there is a kernel of its own under this name
    if self._keys & keys.CPU:
        return computed(_pooled_rows, self, kernel, step, pad, gap, ceil_mode)
    return max_pool2d_with_indices(self.unsqueeze(-2), (1, kernel), (1, step), (0, pad), (1, gap), ceil_mode)[0].squeeze(-2)


def _pooled_rows(self: Array, kernel: int, step: int, pad: int, gap: int, ceil_mode: bool) -> Array:
    pool = max_pool2d_with_indices.op.array_kernels[keys.CPU]
    values: Array = pool(self[..., None, :], (1, kernel), (1, step), (0, pad), (1, gap), ceil_mode)[0]
    return values[..., 0, :]


_ARGUMENTS_1D = "(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], bool ceil_mode=False)"
max_pool1d_with_indices = op(
    f"max_pool1d_with_indices{_ARGUMENTS_1D} -> (Tensor, Tensor)", composite=_max_pool1d_with_indices, variants="function"
)
max_pool1d = op(f"max_pool1d{_ARGUMENTS_1D} -> Tensor", composite=_max_pool1d, variants="function")


# --- averages -------------------------------------------------------------------------------------------------------


def _declare_avg_pool(n: int) -> Callable[..., Any]:
    name = f"avg_pool{n}d"

    def kernel(
        self: Array,
        kernel_size: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Array:
        w = window(name, self.shape, kernel_size, stride, padding, 1, ceil_mode=ceil_mode, n=n)
        if divisor_override == 0:
            raise RuntimeError("divisor must be not zero")
        _refuse_dtype(self, name)
        return kernels.average_pool(
            self, w.out, w.kernel, w.stride, w.padding, include_padding=count_include_pad, override=divisor_override
        )

    def backward(
        grad_output: Array, self: Array, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int], ceil_mode: bool, count_include_pad: bool,
        divisor_override: int | None,
    ) -> Array:  # fmt: skip
        w = window(name, self.shape, kernel_size, stride, padding, 1, ceil_mode=ceil_mode, n=n)
        return kernels.average_pool_backward(
            grad_output, self.shape, w.kernel, w.stride, w.padding, include_padding=count_include_pad, override=divisor_override
        )

    ints = f"int[{n}]"
    spread = op(
        f"{name}_backward(Tensor grad_output, Tensor self, {ints} kernel_size, {ints} stride, {ints} padding, bool ceil_mode, "
        "bool count_include_pad, int? divisor_override) -> Tensor",
        cpu=backward,
        format_of=("self",) if n == 2 else (),
        shape=lambda self: self.shape,
        grad={
            "grad_output": lambda grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: pool(
                grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
            ),
            "self": lambda grad: _zeros(grad),
        },
        variants="",
    )
    pool = op(
        f"{name}(Tensor self, {ints} kernel_size, {ints} stride=[], {ints} padding=0, bool ceil_mode=False, "
        "bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        cpu=kernel,
        format_of=("self",) if n == 2 else (),
        grad={
            "self": lambda grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: spread(
                grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
            )
        },
        variants="",
    )
    return pool


avg_pool2d = _declare_avg_pool(2)
avg_pool3d = _declare_avg_pool(3)


def _check_dims_1d(self: Tensor, name: str) -> None:
    if self.dim() not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {self.dim()}-dimensional tensor for argument #1 'self' "
            f"(while checking arguments for {name})"
        )


def _avg_pool1d(
    self: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int],
    padding: int | Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
) -> Tensor:
    kernel = check_one(kernel_size, "avg_pool1d", "kernel_size")
    step = kernel if not isinstance(stride, int) and not len(stride) else check_one(stride, "avg_pool1d", "stride")
    pad = check_one(padding, "avg_pool1d", "padding")
    _check_dims_1d(self, "avg_pool1d")
    return avg_pool2d(self.unsqueeze(-2), (1, kernel), (1, step), (0, pad), ceil_mode, count_include_pad).squeeze(-2)


avg_pool1d = op(
    "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool ceil_mode=False, "
    "bool count_include_pad=True) -> Tensor",
    composite=_avg_pool1d,
    variants="function",
)


def _declare_adaptive_avg_pool(n: int) -> tuple[Any, Any]:
    name = f"adaptive_avg_pool{n}d"

    def kernel(self: Array, output_size: Sequence[int]) -> Array:
        check_adaptive(self.shape, n, name)
        return kernels.adaptive_average(self, adaptive_size(output_size, n, name))

    def backward(grad_output: Array, self: Array) -> Array:
        check_average_gradient(grad_output.shape, self.shape, n)
        return kernels.adaptive_average_backward(grad_output, self.shape[-n:])

    def composite(self: Tensor, output_size: Sequence[int]) -> Tensor:
        size = adaptive_size(output_size, n, name)
        if all(s == 1 for s in size) and self.dim() > n and all(self._array.shape[-n:]):
            # torch: a global average is a mean
            return self.mean(tuple(range(-1, -n - 1, -1)), keepdim=True)
        return inner(self, size)

    spread = op(
        f"_{name}_backward(Tensor grad_output, Tensor self) -> Tensor",
        cpu=backward,
        format_of=("self",) if n == 2 else (),
        shape=lambda self: self.shape,
        grad={
            "grad_output": lambda grad, grad_output_shape: inner(grad, grad_output_shape[-n:]),
            "self": lambda grad: _zeros(grad),
        },
        variants="",
    )
    inner = op(
        f"_{name}(Tensor self, SymInt[{n}] output_size) -> Tensor",
        cpu=kernel,
        refuses=(name, "bic0") if n == 2 else (f"{name}_cpu", "bic"),
        format_of=("self",) if n == 2 else (),
        grad={"self": lambda grad, self: spread(grad, self)},
        variants="",
    )
    return inner, op(f"{name}(Tensor self, SymInt[{n}] output_size) -> Tensor", composite=composite, variants="")


_adaptive_avg_pool2d, adaptive_avg_pool2d = _declare_adaptive_avg_pool(2)
_adaptive_avg_pool3d, adaptive_avg_pool3d = _declare_adaptive_avg_pool(3)


def _adaptive_avg_pool1d(self: Tensor, output_size: int | Sequence[int]) -> Tensor:
    size = check_one(output_size, "adaptive_avg_pool1d", "output_size")
    _check_dims_1d(self, "adaptive_avg_pool1d")
    return adaptive_avg_pool2d(self.unsqueeze(-2), (1, size)).squeeze(-2)


adaptive_avg_pool1d = op(
    "adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor", composite=_adaptive_avg_pool1d, variants="function"
)


# --- adaptive and fractional maxima ---------------------------------------------------------------------------------


def _spread_by_index(n: int, schema: str, format_of: tuple[str, ...] = ()) -> Callable[..., Any]:
    name = schema.partition("_backward")[0]

    def kernel(grad_output: Array, self: Array, indices: Array) -> Array:
        check_maximum_gradient(grad_output.shape, self.shape, indices.shape, name)
        return kernels.scatter_by_index(grad_output, indices, self.shape, n, distinct=False)

    return op(
        schema,
        cpu=kernel,
        format_of=format_of,
        shape=lambda self: self.shape,
        grad={"grad_output": lambda grad, indices: pick_by_index(grad, indices, n), "self": lambda grad: _zeros(grad)},
        variants="",
    )


def _declare_adaptive_max_pool(n: int) -> Callable[..., Any]:
    name = f"adaptive_max_pool{n}d"

    def kernel(self: Array, output_size: Sequence[int]) -> tuple[Array, Array]:
        size = adaptive_size(output_size, n, name)
        check_adaptive(self.shape, n, name)
        check_extents(self.shape[:-n], size)
        return kernels.adaptive_max(self, size)

    spread = _spread_by_index(
        n, f"{name}_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor", ("self",) if n == 2 else ()
    )
    return op(
        f"{name}(Tensor self, int[{n}] output_size) -> (Tensor, Tensor)",
        cpu=kernel,
        refuses=(name if n == 2 else f"{name}_cpu", "bic"),
        format_of=("self",) if n == 2 else (),
        grad={"self": lambda grad, self, result1: spread(grad, self, result1)},
        nondifferentiable=("result1",),
        variants="",
    )


adaptive_max_pool2d = _declare_adaptive_max_pool(2)
adaptive_max_pool3d = _declare_adaptive_max_pool(3)


def _adaptive_max_pool1d(self: Tensor, output_size: int | Sequence[int]) -> tuple[Tensor, Tensor]:
    size = check_one(output_size, "adaptive_max_pool1d", "output_size")
    _check_dims_1d(self, "adaptive_max_pool1d")
    values, indices = adaptive_max_pool2d(self.unsqueeze(-2), (1, size))
    return values.squeeze(-2), indices.squeeze(-2)


adaptive_max_pool1d = op(
    "adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)", composite=_adaptive_max_pool1d, variants="function"
)


def _check_fractional(shape: Sizes, kernel: Sizes, out: Sizes, samples: Sizes, n: int) -> None:
    name = f"fractional_max_pool{n}d"
    if len(shape) not in (n + 1, n + 2):
        raise RuntimeError(f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got: {list(shape)}")
    function = f"{name}()" if n == 2 else f"{name}_out()"
    for i in range(len(shape) - n - 1, len(shape)):
        if not shape[i]:
            raise RuntimeError(
                f"{function}: Expected input to have non-zero size for non-batch dimensions, but got{list(shape)} with dimension {i} being "
                "empty."
            )
    for i, word in enumerate(("time", "height", "width")[-n:]):
        if out[i] + kernel[i] - 1 > shape[i - n]:
            raise RuntimeError(f"{function}: pool {word} {kernel[i]} too large relative to input {word} {shape[i - n]}")
    if len(samples) != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {len(samples)}")
    if samples[2] != n:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {n}; got {samples[2]}.")
    batch = shape[0] if len(shape) == n + 2 else 1
    if samples[0] < batch:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples[1] != shape[-n - 1]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")


def _declare_fractional(n: int) -> Callable[..., Any]:
    name = f"fractional_max_pool{n}d"

    def kernel(self: Array, kernel_size: Sequence[int], output_size: Sequence[int], random_samples: Array) -> tuple[Array, Array]:
        size = expand(kernel_size, n, name, "kernel_size")
        out = expand(output_size, n, name, "output_size")
        _check_fractional(self.shape, size, out, random_samples.shape, n)
        if self.dtype != random_samples.dtype:
            raise RuntimeError("Expect _random_samples to have the same dtype as input")
        refuse(f"{name}_out_frame", self, "bic")
        if min(size) <= 0:
            raise RuntimeError(f"{name}: kernel_size should be greater than zero, but got {list(size)}")
        check_extents(self.shape[:-n], out)
        samples = random_samples[0] if self.ndim == n + 1 else random_samples[: len(self)]
        return kernels.fractional_max(self, size, out, samples)

    ints = f"int[{n}]"
    spread = _spread_by_index(
        n, f"{name}_backward(Tensor grad_output, Tensor self, {ints} kernel_size, {ints} output_size, Tensor indices) -> Tensor"
    )
    return op(
        f"{name}(Tensor self, {ints} kernel_size, {ints} output_size, Tensor random_samples) -> (Tensor, Tensor)",
        cpu=kernel,
        grad={"self": lambda grad, self, kernel_size, output_size, result1: spread(grad, self, kernel_size, output_size, result1)},
        nondifferentiable=("result1",),
        fixed=("random_samples",),
        variants="",
    )


fractional_max_pool2d = _declare_fractional(2)
fractional_max_pool3d = _declare_fractional(3)


# --- unpooling ------------------------------------------------------------------------------------------------------


def _check_unpool(x: Array, indices: Array, out: Sequence[int], n: int) -> None:
    if indices.dtype != np.int64:
        raise RuntimeError(f"elements in indices should be type int64 but got: {scalar_name(indices)}")
    if x.ndim not in (n + 1, n + 2):
        raise RuntimeError(
            f"Input to max_unpooling{n}d should be a {n + 1}d or {n + 2}d Tensor, but got a tensor with {x.ndim} dimensions."
        )
    if len(out) != n:
        raise RuntimeError(
            f"There should be exactly {'two' if n == 2 else 'three'} elements ({'height, width' if n == 2 else 'depth, height, width'}) "
            f"in output_size, but got {len(out)} elements."
        )
    if x.shape != indices.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(x.shape)}) "
            f"but got indices tensor with shape: {list(indices.shape)}"
        )


def _unpool(self: Array, indices: Array, output_size: Sequence[int], n: int) -> Array:
    _check_unpool(self, indices, output_size, n)
    alert_not_deterministic(f"max_unpooling{n}d_forward_out")
    return kernels.unpool(self, indices, tuple(output_size))


max_unpool2d = op(
    "max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor",
    cpu=lambda self, indices, output_size: _unpool(self, indices, output_size, 2),
    format_of=("self",),
    grad={"self": lambda grad, indices: _unpool_backward(grad, indices, 2)},
    variants="",
    refuses=("max_unpool2d", "bic"),
)


def _unpool3d(self: Array, indices: Array, output_size: Sequence[int], stride: Sequence[int], padding: Sequence[int]) -> Array:
    for argument, values in (("stride", stride), ("padding", padding)):
        if len(values) != 3:
            raise RuntimeError(
                f"There should be exactly three elements (depth, height, width) in {argument}, but got: {len(values)} elements."
            )
    if min(stride) <= 0:
        raise RuntimeError(f"strides should be greater than zero, but got stride: {list(stride)}")
    return _unpool(self, indices, output_size, 3)


max_unpool3d = op(
    "max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor",
    cpu=_unpool3d,
    grad={"self": lambda grad, indices: _unpool_backward(grad, indices, 3)},
    variants="",
    refuses=("max_unpool3d", "bic"),
)
