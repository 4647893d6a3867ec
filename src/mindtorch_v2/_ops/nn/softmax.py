"""Softmax and its logarithm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _checks
from ..._backends.cpu.machinery.dtype_rules import refusal, unimplemented
from ..._backends.cpu.machinery.dtypes import BFLOAT, FLOAT
from ..._backends.cpu.machinery.floating_errors import silent
from ..._backends.cpu.nn import softmax as kernels
from ..._backends.cpu.nn.softmax import log_softmax as log_softmax_kernel
from ..._backends.cpu.nn.softmax import softmax as softmax_kernel
from ..._backends.meta.adapter import meta_tensor
from ..._tensor import Tensor
from ..._types import OptionalDType
from ..machinery.declare import op
from ..machinery.lookup import aten

if TYPE_CHECKING:
    from ..._dispatch.op import Table

Array = np.ndarray[Any, Any]


def _check(name: str, self: Tensor, dim: int) -> int:
    if not self.dtype.inexact or self.dtype.is_complex:
        raise refusal(name, self.dtype)
    return _checks.wrap_dim(dim, self._array.ndim)


def _sum(x: Tensor, dim: int) -> Tensor:
    return x.sum(dim, True)


def _softmax_output_grad(grad: Tensor, grad_output: Tensor, dim: int, output: Tensor) -> Tensor:
    return grad_output * grad - _sum(output * grad_output, dim) * grad - grad_output * _sum(grad * output, dim)


_softmax_backward_data = op(
    "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    cpu=kernels.softmax_backward,
    shape=lambda grad_output, input_dtype: meta_tensor(grad_output._array.shape, input_dtype),
    variants="function",
    grad={
        "grad_output": lambda grad, output, dim, input_dtype: _softmax_backward_data(
            grad.to(output.dtype), output, dim, input_dtype
        ),
        "output": lambda grad, grad_output, dim, output: _softmax_output_grad(grad.to(output.dtype), grad_output, dim, output),
    },
)
_log_softmax_backward_data = op(
    "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    cpu=kernels.log_softmax_backward,
    shape=lambda grad_output, input_dtype: meta_tensor(grad_output._array.shape, input_dtype),
    variants="function",
    grad={
        "grad_output": lambda grad, output, dim: grad.to(output.dtype) - _sum(grad.to(output.dtype) * output.exp(), dim),
        "output": lambda grad, grad_output, dim, output: -(output.exp() * _sum(grad_output, dim) * grad.to(output.dtype)),
    },
)


def _kernel_dim(name: str, self: Array, dim: int, half_to_float: bool) -> int:
    if self.dtype is FLOAT and not half_to_float and -(ndim := self.ndim) <= dim < ndim:
        return dim if dim >= 0 else dim + ndim
    if half_to_float:
        raise RuntimeError(f"{name.split('_lastdim')[0]} with half to float conversion is not supported on CPU")
    dim = _checks.wrap_dim(dim, self.ndim)
    if self.dtype.kind != "f" and self.dtype != BFLOAT and self.size:
        raise unimplemented(name, self)
    return dim


_softmax = op(
    "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    cpu=silent(
        lambda self, dim, half_to_float: softmax_kernel(self, _kernel_dim("softmax_lastdim_kernel_impl", self, dim, half_to_float))
    ),
    grad={"self": lambda grad, result, dim, self_dtype: _softmax_backward_data(grad, result, dim, self_dtype)},
    shape=lambda self: self.shape,
    variants="function",
)
_log_softmax = op(
    "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    cpu=silent(
        lambda self, dim, half_to_float: log_softmax_kernel(
            self, _kernel_dim("log_softmax_lastdim_kernel_impl", self, dim, half_to_float)
        )
    ),
    grad={"self": lambda grad, result, dim, self_dtype: _log_softmax_backward_data(grad, result, dim, self_dtype)},
    shape=lambda self: self.shape,
    variants="function",
)


_softmax_table, _log_softmax_table = _softmax.op.table, _log_softmax.op.table


def _call(table: Table, self: Tensor, dim: int, dtype: OptionalDType) -> Tensor:
    if dtype is not None:
        self = self.to(dtype)
    return table[self._keys](self, dim, False)


softmax = op(
    "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    tags=("exact_out",),
    composite=lambda self, dim, dtype: _call(_softmax_table, self, dim, dtype),
)
log_softmax = op(
    "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    tags=("exact_out",),
    composite=lambda self, dim, dtype: _call(_log_softmax_table, self, dim, dtype),
)
special_softmax = op(
    "special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    composite=lambda self, dim, dtype: softmax(self, dim, dtype),
    variants="function",
)
special_log_softmax = op(
    "special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    composite=lambda self, dim, dtype: log_softmax(self, dim, dtype),
    variants="function",
)
_safe_softmax = op(
    "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    composite=lambda self, dim, dtype: _rows_of_zeros(self, softmax(self, dim, dtype), dim),
    variants="function",
    grad={"self": lambda grad, result, dim, self_dtype: _softmax_backward_data(grad, result, dim, self_dtype)},
)


def _rows_of_zeros(self: Tensor, out: Tensor, dim: int) -> Tensor:
    """Zeros where a row is masked out wholly, instead of softmax's NaN."""
    masked = aten.isneginf(self).all(dim, True)
    return aten.where(masked, aten.scalar_tensor(0.0, dtype=out.dtype, device=out.device), out)
