"""Group normalisation."""

from __future__ import annotations

import math
from typing import Any

from .._backends.cpu import group_norm as kernels
from .._checks import dimension_error, no_dimensions
from .._dispatch.tls import state
from .._tensor import Tensor
from .declare import op
from .normalization_gradients import Grads, normalized_gradient


def _group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    shape = list(input.shape)
    if input.dim() < 2:
        raise dimension_error(1, 1) if shape else no_dimensions(0)
    n, c = shape[:2]
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if c % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{shape} and num_groups={num_groups}"
        )
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and (value.dim() != 1 or value.numel() != c):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape "
                f"{list(value.shape)} and input of shape {shape}"
            )
    return native_group_norm(input.contiguous(), weight, bias, n, c, math.prod(shape[2:]), num_groups, eps)[0]


def _group_norm_grads(
    grads: Any,
    x: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    sizes: tuple[int, int, int, int],
    eps: float,
    needs: Any,
) -> Grads:
    """The kernel, or a formula that can be differentiated again when a graph is being made or the moments have gradients."""
    n, c, hw, group = sizes
    grad, grad_mean, grad_rstd = grads
    if not state.grad_enabled and grad_mean is None and grad_rstd is None:
        return native_group_norm_backward(grad, x, mean, rstd, weight, n, c, hw, group, list(needs))
    rows = x.reshape([n, group, c // group * hw])
    centred = rows - rows.mean([2], True)
    r = ((centred * centred).mean([2], True) + eps).rsqrt()
    x_hat = centred * r
    to_input = to_weight = to_bias = None
    if grad is not None:
        g = grad.reshape([n, c, hw])
        scaled = g if weight is None else g * weight.view([1, c, 1])
        to_input = normalized_gradient(scaled.reshape(rows.shape), x_hat, r, [2])
        to_weight = (g * x_hat.reshape([n, c, hw])).sum([0, 2]) if needs[1] else None
        to_bias = g.sum([0, 2]) if needs[2] else None
    size = max(c // group * hw, 1)
    if grad_mean is not None:
        part = (grad_mean.reshape([n, group, 1]) / size).expand(rows.shape)
        to_input = part if to_input is None else to_input + part
    if grad_rstd is not None:
        part = grad_rstd.reshape([n, group, 1]) * r * r * x_hat / -size
        to_input = part if to_input is None else to_input + part
    return None if to_input is None or not needs[0] else to_input.reshape(x.shape), to_weight, to_bias


group_norm = op(
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True) "
    "-> Tensor",
    composite=_group_norm,
    variants="function",
)
native_group_norm = op(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps) "
    "-> (Tensor, Tensor, Tensor)",
    cpu=kernels.native_group_norm,
    shape=lambda input, N, group: (input.shape, [N, group], [N, group]),
    grad={
        ("input", "weight", "bias"): lambda grads, input, result1, result2, weight, N, C, HxW, group, eps, needs: _group_norm_grads(
            grads, input, result1, result2, weight, (N, C, HxW, group), eps, needs
        )
    },
    variants="function",
)
native_group_norm_backward = op(
    "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, SymInt C, SymInt HxW, "
    "int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    cpu=kernels.native_group_norm_backward,
    shape=lambda input, C: (input.shape, [C], [C]),
    variants="",
)
