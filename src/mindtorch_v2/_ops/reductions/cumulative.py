"""Running sums, products, extrema and log-sum-exps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _checks
from ..._backends.cpu.reductions import cumulative as kernels
from ..._backends.meta.adapter import meta_tensor
from ..._dispatch import keys
from ..._dispatch.tls import state
from ..._tensor import Tensor
from ..machinery.computing import computed
from ..machinery.declare import op
from ..machinery.lookup import aten
from ..machinery.out import write_out
from .sums import accumulated


def _reversed_cumsum(x: Tensor, dim: int) -> Tensor:
    return x.flip(dim).cumsum(dim).flip(dim)


def _cumsum_backward(grad: Tensor, dim: int) -> Tensor:
    if grad._array.size <= 1 or grad._array.shape[dim] == 1:
        return grad
    return _reversed_cumsum(grad, dim)


cumsum = op(
    "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    cpu=lambda self, dim, dtype: kernels.accumulate(np.add, self, dim, dtype),
    tags=("dtype_of_out",),
    shape=lambda self, dtype: meta_tensor(self._array.shape, accumulated(self.dtype, dtype)),
    grad={"self": lambda grad, self_dtype, dim: _cumsum_backward(grad.to(self_dtype), dim)},
)
op(
    "cumsum_(Tensor(a!) self, int dim, *, ScalarType? dtype=None) -> Tensor(a!)",
    cpu=lambda self, dim, dtype: kernels.accumulate_in_place(np.add, self, dim, dtype, "cumsum_out_cpu"),
    grad={"self": lambda grad, self_dtype, dim: _cumsum_backward(grad.to(self_dtype), dim)},
    node="CumsumBackward0",
    variants="method",
)
cumprod = op(
    "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    cpu=lambda self, dim, dtype: kernels.accumulate(np.multiply, self, dim, dtype),
    tags=("dtype_of_out",),
    shape=lambda self, dtype: meta_tensor(self._array.shape, accumulated(self.dtype, dtype)),
    grad={"self": lambda grad, self, dim, result: cumprod_backward(grad.to(self.dtype), self, dim, result)},
)
op(
    "cumprod_(Tensor(a!) self, int dim, *, ScalarType? dtype=None) -> Tensor(a!)",
    cpu=lambda self, dim, dtype: kernels.accumulate_in_place(np.multiply, self, dim, dtype, "cumprod_out_cpu"),
    grad={"self": lambda grad, self, dim, result: cumprod_backward(grad.to(self.dtype), self, dim, result)},
    node="CumprodBackward0",
    variants="method",
)


def _conj(x: Tensor) -> Tensor:
    return x.conj() if x.dtype.is_complex else x


def _cumprod_backward(grad: Tensor, input: Tensor, dim: int, output: Tensor) -> Tensor:
    if input._array.size <= 1:
        return grad
    dim = _checks.wrap_dim(dim, input._array.ndim)
    if input._array.shape[dim] == 1:
        return grad
    w = _conj(output) * grad
    is_zero = input == 0
    if (input._keys | grad._keys) & keys.BATCHED:  # what holds for one sample may not for another
        return _differentiable_with_zeros(grad, input, dim)
    if not bool(is_zero.any().item()):
        return _reversed_cumsum(w, dim).div(_conj(input))
    if state.grad_enabled:
        return _differentiable_with_zeros(grad, input, dim)
    return _cumprod_backward_with_zeros(grad, input, dim, output, w, is_zero)


def _cumprod_backward_with_zeros(grad: Tensor, input: Tensor, dim: int, output: Tensor, w: Tensor, is_zero: Tensor) -> Tensor:
    """Elements before the first zero as if nothing followed it, the first zero by the products that omit it, and zero after it."""
    found = aten.zeros(input._array.shape, dtype=grad.dtype, device=grad.device)
    zeros_so_far = is_zero.cumsum(dim)
    before = zeros_so_far == 0
    found = aten.where(before, _reversed_cumsum(w.masked_fill(~before, 0.0), dim).div_(_conj(input)), found)
    between = zeros_so_far == 1
    first = between.max(dim, True)[1]
    at_first = aten.zeros_like(between).scatter_(dim, first, 1).logical_and_(between)
    between.bitwise_and_(~at_first)
    products = _conj(input).masked_fill(~between, 1.0).cumprod(dim)
    reached = grad.masked_fill(zeros_so_far != 1, 0.0)
    up_to_first = _conj(output).gather(dim, (first - 1).relu_()).masked_fill_(first == 0, 1.0)
    return aten.where(at_first, products.mul_(reached).sum(dim, True).mul_(up_to_first), found)


def _differentiable_with_zeros(grad: Tensor, input: Tensor, dim: int) -> Tensor:
    """For each position, the products that omit it, each multiplied up anew: right where elements are zero."""
    n = input._array.shape[dim]
    parts = []
    before = None
    for k in range(n):
        omitted = input.new_ones([1 if i == dim else s for i, s in enumerate(input._array.shape)])
        if k < n - 1:
            omitted = aten.cat([omitted, input.narrow(dim, k + 1, n - k - 1).cumprod(dim)], dim)
        if before is not None:
            omitted = omitted * before
        parts.append((grad.narrow(dim, k, n - k) * _conj(omitted)).sum(dim, True))
        here = input.narrow(dim, k, 1)
        before = here if before is None else before * here
    return aten.cat(parts, dim)


cumprod_backward = op(
    "cumprod_backward(Tensor grad, Tensor input, int dim, Tensor output) -> Tensor", composite=_cumprod_backward, variants=""
)


def _cummaxmin_backward(grad: Tensor, input: Tensor, indices: Tensor, dim: int) -> Tensor:
    if not input._array.size:
        return input
    made: Tensor = aten.zeros(input._array.shape, dtype=input.dtype, device=input.device)
    return made.scatter_add_(dim, indices, grad)


cummaxmin_backward = op(
    "cummaxmin_backward(Tensor grad, Tensor input, Tensor indices, int dim) -> Tensor", composite=_cummaxmin_backward, variants=""
)


def _running(name: str, ufunc: np.ufunc) -> Callable[..., Any]:
    """An operator for extrema so far, and its helper, which writes them to tensors that it is given."""

    def write(self: Tensor, values: Tensor, indices: Tensor, dim: int) -> None:
        found = computed(kernels.running_extremum, ufunc, self, dim)
        for target, value in zip((values, indices), found, strict=True):
            write_out(target, value)

    op(f"_{name}_helper(Tensor self, Tensor(a!) values, Tensor(b!) indices, int dim) -> ()", composite=write, variants="function")

    return op(
        f"{name}(Tensor self, int dim) -> (Tensor values, Tensor indices)",
        cpu=lambda self, dim: kernels.running_extremum(ufunc, self, dim),
        nondifferentiable=("indices",),
        tags=("exact_out",),
        grad={"self": lambda grad, self, indices, dim: cummaxmin_backward(grad, self, indices, dim)},
    )


cummax = _running("cummax", np.maximum)
cummin = _running("cummin", np.minimum)


def _logcumsumexp_backward(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    if grad._array.ndim == 0 or not grad._array.size:
        return grad

    def reverse(x: Tensor) -> Tensor:
        return x.flip(dim).logcumsumexp(dim).flip(dim)

    if grad.dtype.is_complex:
        return (reverse(grad.log() - _conj(result)) + _conj(self)).exp()
    lowest = aten.scalar_tensor(
        float(np.finfo(np.float32 if grad.dtype.itemsize < 8 else np.float64).min), dtype=grad.dtype, device=grad.device
    )
    logarithm = grad.abs().log()
    positive = aten.where(grad > 0, logarithm, lowest)
    negative = aten.where(grad < 0, logarithm, lowest)
    return (reverse(positive - result) + self).exp() - (reverse(negative - result) + self).exp()


_logcumsumexp = op("_logcumsumexp(Tensor self, int dim) -> Tensor", cpu=kernels.logcumsumexp)
logcumsumexp = op(
    "logcumsumexp(Tensor self, int dim) -> Tensor",
    composite=lambda self, dim: _logcumsumexp(self, dim),
    tags=("exact_out",),
    grad={"self": _logcumsumexp_backward},
)
