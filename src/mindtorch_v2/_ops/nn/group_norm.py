"""Group normalisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..._backends.cpu.nn import group_norm as kernels
from ..._checks import dimension_error, no_dimensions
from ..._dispatch.tls import state
from ..._tensor import Tensor
from ..machinery.declare import op
from ..reductions.statistics import var_mean_backward
from .normalization_gradients import Grads


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
    grads: Sequence[Any],
    x: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    sizes: tuple[int, int, int, int],
    eps: float,
    needs: Sequence[bool],
) -> Grads:
    """The kernel, or a formula that can be differentiated again when a graph is being made or the moments have gradients."""
    n, c, hw, group = sizes
    grad, grad_mean, grad_rstd = grads
    if not state.grad_enabled and grad_mean is None and grad_rstd is None:
        return native_group_norm_backward(grad, x, mean, rstd, weight, n, c, hw, group, list(needs))
    x4, mean, rstd = x.reshape([n, group, c // group, hw]), mean.reshape([n, group, 1, 1]), rstd.reshape([n, group, 1, 1])
    sums: tuple[Tensor, Tensor] | None = None
    if grad is not None:
        grad = grad.reshape([n, group, c // group, hw])
        sums = (grad * x4).sum(3).unsqueeze_(-1), grad.sum(3).unsqueeze_(-1)
    to_input = to_weight = to_bias = None
    if needs[0]:
        weight4 = None if weight is None else weight.reshape([1, group, c // group, 1])
        cube = rstd * rstd * rstd
        grad_var = None if grad_rstd is None else -0.5 * cube * grad_rstd.view([n, group, 1, 1])
        if sums is not None:
            to_input = _input_gradient(grad, x4, mean, rstd, cube, weight4, *sums)
        if grad_mean is not None:
            grad_mean = grad_mean.view([n, group, 1, 1])
        moments = var_mean_backward((grad_var, grad_mean), x4, (2, 3), 0, True)
        if moments is not None:
            to_input = moments if to_input is None else to_input.add_(moments)
        to_input = None if to_input is None else to_input.reshape_as(x)
    if sums is not None and weight is not None:
        with_x, alone = sums
        to_weight = ((with_x - alone * mean) * rstd).sum(0).reshape_as(weight) if needs[1] else None
    if sums is not None and needs[2]:
        to_bias = sums[1].sum(0).reshape([c]) if weight is None else sums[1].sum(0).reshape_as(weight)
    return to_input, to_weight, to_bias


def _input_gradient(
    grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, cube: Tensor, weight: Tensor | None, with_x: Tensor, alone: Tensor
) -> Tensor:
    """As a·grad + b·x + c: what a group's elements share is found from the channels' sums of the gradient, with x and alone."""
    size = max(math.prod(x._array.shape[2:]), 1)
    factor = rstd if weight is None else rstd * weight
    b = (with_x if weight is None else with_x * weight).sum(2).unsqueeze_(-2)
    c = (alone if weight is None else alone * weight).sum(2).unsqueeze_(-2)
    b = (c * mean - b) * cube * (1.0 / size)
    c = -b * mean - c * rstd * (1.0 / size)
    return factor * grad + b * x + c


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
