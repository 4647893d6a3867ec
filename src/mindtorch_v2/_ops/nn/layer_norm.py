"""Layer and root-mean-square normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _dtype
from ..._backends.cpu.machinery.dtype_rules import refuse
from ..._backends.cpu.nn import layer_norm as kernels
from ..._dispatch import keys
from ..._dispatch.tls import state
from ..._tensor import Tensor
from ..machinery.computing import computed
from ..machinery.declare import not_implemented, op
from .normalization_gradients import Grads, by_differentiating, normalized_gradient


def _layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    cudnn_enable: bool,
) -> Tensor:
    return native_layer_norm(input, normalized_shape, weight, bias, eps)[0]


def _layer_norm_shapes(x: Tensor, normalized_shape: Sequence[int]) -> Any:
    kernels.check_normalized_shape(x, normalized_shape, None, None)
    moments = [*x.shape[: x.dim() - len(normalized_shape)], *[1] * len(normalized_shape)]
    return x.shape, moments, moments


def _layer_norm_grads(
    grad: Tensor,
    x: Tensor,
    normalized_shape: Sequence[int],
    mean: Tensor | None,
    rstd: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float | Tensor,
    needs: Sequence[bool],
) -> Grads:
    """The kernel, or a formula that can be differentiated again when a graph is being made."""
    if not state.grad_enabled:
        return native_layer_norm_backward(grad, x, normalized_shape, mean, rstd, weight, bias, list(needs))
    dims = list(range(x.dim() - len(normalized_shape), x.dim()))
    lead = list(range(x.dim() - len(normalized_shape)))
    centred = x - x.mean(dims, True)
    rstd = ((centred * centred).mean(dims, True) + eps).rsqrt()
    x_hat = centred * rstd
    scaled = grad if weight is None else grad * weight
    return (
        normalized_gradient(scaled, x_hat, rstd, dims) if needs[0] else None,
        _summed(grad * x_hat, lead) if needs[1] else None,
        _summed(grad, lead) if needs[2] else None,
    )


def _summed(x: Tensor, dims: list[int]) -> Tensor:
    return x.sum(dims) if dims else x


layer_norm = op(
    "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
    "bool cudnn_enable=True) -> Tensor",
    composite=_layer_norm,
    variants="function",
)
native_layer_norm = op(
    "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
    cpu=kernels.native_layer_norm,
    shape=lambda input, normalized_shape: _layer_norm_shapes(input, normalized_shape),
    grad={
        ("input", "weight", "bias"): lambda grad, input, normalized_shape, result1, result2, weight, bias, eps, needs: (
            _layer_norm_grads(grad, input, normalized_shape, result1, result2, weight, bias, eps, needs)
        )
    },
    nondifferentiable=("result1", "result2"),
    variants="function",
)


def _layer_norm_second(
    grads: Sequence[Tensor | None],
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    rstd: Tensor,
    weight: Tensor | None,
    output_mask: Sequence[bool],
    needs: Sequence[bool],
) -> tuple[Any, ...]:
    """The first gradients, differentiated; what was added to the variance follows from `rstd`."""
    dims = list(range(input.dim() - len(normalized_shape), input.dim()))
    x = input.detach()
    eps = rstd.detach().pow(-2) - x.var(dims, correction=0, keepdim=True)
    return by_differentiating(
        lambda g, x, w: _layer_norm_grads(g, x, normalized_shape, None, None, w, None, eps, output_mask),
        [grad_out, input, weight],
        grads,
        needs,
    )


native_layer_norm_backward = op(
    "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, "
    "Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    cpu=kernels.native_layer_norm_backward,
    shape=lambda input, normalized_shape: (input.shape, normalized_shape, normalized_shape),
    grad={
        ("grad_out", "input", "weight"): _layer_norm_second,
        "mean": not_implemented("native_layer_norm_backward mean"),
        "rstd": not_implemented("native_layer_norm_backward rstd"),
    },
    variants="",
    rows=True,
)


def _rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, eps: float | None) -> Tensor:
    if input.dim() < len(normalized_shape) and (weight is None or tuple(weight.shape) == tuple(normalized_shape)):
        raise ValueError(f"Input tensor must have at least {len(normalized_shape)} dimensions, but got {input.dim()}")
    kernels.check_normalized_shape(input, normalized_shape, weight, None, star="*")
    if not input.dtype.inexact:
        refuse("rms_norm", input, "bi")
    return _fused_rms_norm(input, normalized_shape, weight, eps)[0]


def _in_rows(x: Tensor) -> Tensor:
    return x if x._array.flags.c_contiguous or x._keys & keys.TRACKED else computed(np.ascontiguousarray, x)


def _rms_norm_composite(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    eps: float | None,
) -> tuple[Tensor, Tensor]:
    dims = list(range(input.dim() - len(normalized_shape), input.dim()))
    wide = _dtype.float32 if input.dtype.itemsize == 2 else input.dtype
    x = input.to(wide)
    if eps is None:
        eps = _EPSILON[wide]
    rstd = x.pow(2).mean(dims, True).add_(eps).rsqrt()
    out = x * rstd
    if weight is not None:
        out = out * weight
    return _in_rows(out.type_as(input)), rstd


_EPSILON = {_dtype.float32: 2.0**-23, _dtype.float64: 2.0**-52, _dtype.complex64: 2.0**-23, _dtype.complex128: 2.0**-52}

rms_norm = op(
    "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
    composite=_rms_norm,
    variants="function",
)
_fused_rms_norm = op(
    "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)",
    composite=_rms_norm_composite,
    variants="function",
)
