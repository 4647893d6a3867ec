"""Layer, batch, group, instance and root-mean-square normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dtype
from .._backends.cpu import normalization as kernels
from .._backends.cpu.dtype_rules import refuse
from .._checks import dimension_error, no_dimensions
from .._dispatch import keys
from .._dispatch.tls import state
from .._tensor import Tensor
from .computing import computed
from .declare import not_implemented, op
from .lookup import aten

Grads = tuple[Tensor | None, Tensor | None, Tensor | None]


def _normalized_gradient(g: Tensor, x_hat: Tensor, rstd: Tensor, dims: list[int]) -> Tensor:
    """The gradient of (x - mean) * rstd with both taken over `dims`, as differentiable operators."""
    return rstd * (g - g.mean(dims, True) - x_hat * (g * x_hat).mean(dims, True))


# --- layer ----------------------------------------------------------------------------------------------------------


def _layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    cudnn_enable: bool,
) -> Tensor:
    return native_layer_norm(input, normalized_shape, weight, bias, eps)[0]


def _layer_norm_shapes(x: Tensor, normalized_shape: Any) -> Any:
    kernels.check_normalized_shape(x, normalized_shape, None, None)
    moments = [*x.shape[: x.dim() - len(normalized_shape)], *[1] * len(normalized_shape)]
    return x.shape, moments, moments


def _layer_norm_grads(
    grad: Tensor,
    x: Tensor,
    normalized_shape: Any,
    mean: Tensor | None,
    rstd: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: Any,
    needs: Any,
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
        _normalized_gradient(scaled, x_hat, rstd, dims) if needs[0] else None,
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


def _by_differentiating(function: Any, inputs: list[Tensor | None], grads: Any, needs: Any) -> tuple[Any, ...]:
    """Gradients of a function's results by way of its own graph."""
    from ..autograd import enable_grad, grad

    again = state.grad_enabled
    with enable_grad():
        given = (
            inputs if again else [None if t is None else t.detach().requires_grad_(n) for t, n in zip(inputs, needs, strict=True)]
        )
        results = function(*given)
        pairs = [(r, g) for r, g in zip(results, grads, strict=True) if r is not None and g is not None and r.requires_grad]
        wanted = [t for t, n in zip(given, needs, strict=True) if n and t is not None]
        found = iter(grad([r for r, _ in pairs], wanted, [g for _, g in pairs], allow_unused=True, create_graph=again))
    return tuple(next(found) if n and t is not None else None for t, n in zip(given, needs, strict=True))


def _layer_norm_second(
    grads: Any,
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Any,
    rstd: Tensor,
    weight: Tensor | None,
    output_mask: Any,
    needs: Any,
) -> tuple[Any, ...]:
    """The first gradients, differentiated; what was added to the variance follows from `rstd`."""
    dims = list(range(input.dim() - len(normalized_shape), input.dim()))
    x = input.detach()
    eps = rstd.detach().pow(-2) - x.var(dims, correction=0, keepdim=True)
    return _by_differentiating(
        lambda g, x, w: _layer_norm_grads(g, x, normalized_shape, None, None, w, None, eps, output_mask),
        [grad_out, input, weight],
        grads,
        needs,
    )


def _batch_norm_second(
    grads: Any,
    grad_out: Tensor,
    input: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    train: bool,
    eps: float,
    output_mask: Any,
    needs: Any,
) -> tuple[Any, ...]:
    return _by_differentiating(
        lambda g, x, w: _batch_norm_grads(g, x, w, running_mean, running_var, train, eps, None, None, output_mask),
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


def _rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None, eps: float | None) -> Tensor:
    if input.dim() < len(normalized_shape) and (weight is None or tuple(weight.shape) == tuple(normalized_shape)):
        raise ValueError(f"Input tensor must have at least {len(normalized_shape)} dimensions, but got {input.dim()}")
    kernels.check_normalized_shape(input, normalized_shape, weight, None, star="*")
    if not input.dtype.inexact:
        refuse("rms_norm", input, "bi")
    return _fused_rms_norm(input, normalized_shape, weight, eps)[0]


def _in_rows(x: Tensor) -> Tensor:
    return x if x._array.flags.c_contiguous or x._keys & keys.AUTOGRAD else computed(np.ascontiguousarray, x)


def _rms_norm_composite(
    input: Tensor,
    normalized_shape: Any,
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

# --- batch ----------------------------------------------------------------------------------------------------------


def _check_batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
) -> None:
    channels = x.shape[1] if x.dim() > 1 else 0
    if not training:
        for name, value in (("running_mean", running_mean), ("running_var", running_var)):
            if value is None:
                raise RuntimeError(f"{name} must be defined in evaluation mode")
    named = (("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias))
    for name, value in named:
        if value is not None and value.numel() != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {value.numel()}")
    if x.dim() < 2:
        raise dimension_error(1, 1)


def _batch_norm_impl_index(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, int]:
    reserve = aten.empty([0], dtype=_dtype.uint8, device=input.device)
    if not input._array.size:
        # torch: depends on the parameters, so that they get gradients
        out = input.clone()
        out = out if weight is None else out * weight[0]
        out = out if bias is None else out + bias[0]
        return (
            out,
            *(aten.empty(list(input.shape[1:2]) or [0], dtype=input.dtype, device=input.device) for _ in range(2)),
            reserve,
            0,
        )
    _check_batch_norm(input, weight, bias, running_mean, running_var, training)
    made = native_batch_norm_op(input, weight, bias, running_mean, running_var, training, momentum, eps)
    return (*made, reserve, 0)


def _batch_norm_shapes(x: Tensor, training: bool) -> Any:
    saved = [x.shape[1]] if training else [0]
    return x.shape, saved, saved


def _batch_norm_grads(
    grad: Tensor,
    x: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    eps: float,
    save_mean: Tensor | None,
    save_invstd: Tensor | None,
    needs: Any,
) -> Grads:
    """The kernel, or a formula that can be differentiated again when a graph is being made."""
    if not state.grad_enabled:
        return native_batch_norm_backward(
            grad, x, weight, running_mean, running_var, save_mean, save_invstd, training, eps, list(needs)
        )
    dims = [0, *range(2, x.dim())]
    shape = [1, -1, *[1] * (x.dim() - 2)]
    if training:
        centred = x - x.mean(dims, True)
        rstd = ((centred * centred).mean(dims, True) + eps).rsqrt()
    else:
        assert running_mean is not None
        assert running_var is not None
        centred = x - running_mean.view(shape)
        rstd = (running_var.view(shape) + eps).rsqrt()
    x_hat = centred * rstd
    scaled = grad if weight is None else grad * weight.view(shape)
    to_input = None
    if needs[0]:
        to_input = _normalized_gradient(scaled, x_hat, rstd, dims) if training else scaled * rstd
    return to_input, (grad * x_hat).sum(dims) if needs[1] else None, grad.sum(dims) if needs[2] else None


batch_norm = op(
    "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, "
    "float momentum, float eps, bool cudnn_enabled) -> Tensor",
    composite=lambda input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled: batch_norm_impl_index(
        input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled
    )[0],
    variants="function",
)
batch_norm_impl_index = op(
    "_batch_norm_impl_index(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, "
    "float momentum, float eps, bool cudnn_enabled) -> (Tensor, Tensor, Tensor, Tensor, int)",
    composite=_batch_norm_impl_index,
    variants="function",
)


def _batch_norm_grad_dict(stats: bool = True) -> dict[Any, Any]:
    if stats:
        return {
            (
                "input",
                "weight",
                "bias",
            ): lambda grad, input, weight, running_mean, running_var, training, eps, result1, result2, needs: _batch_norm_grads(
                grad, input, weight, running_mean, running_var, training, eps, result1, result2, needs
            )
        }
    return {
        ("input", "weight", "bias"): lambda grad, input, weight, training, eps, result1, result2, needs: _batch_norm_grads(
            grad, input, weight, None, None, training, eps, result1, result2, needs
        )
    }


native_batch_norm_op = op(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, "
    "float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    cpu=kernels.native_batch_norm,
    shape=lambda input, training: _batch_norm_shapes(input, training),
    grad=_batch_norm_grad_dict(),
    nondifferentiable=("result1", "result2"),
    variants="function",
    fixed=("running_mean", "running_var"),
)
native_batch_norm_legit = op(
    "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, "
    "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    cpu=kernels.native_batch_norm,
    shape=lambda input, training: _batch_norm_shapes(input, training),
    grad=_batch_norm_grad_dict(),
    node="NativeBatchNormLegitBackward0",
    nondifferentiable=("result1", "result2"),
    variants="function",
    fixed=("running_mean", "running_var"),
)
native_batch_norm_legit_no_stats = op(
    "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) "
    "-> (Tensor, Tensor, Tensor)",
    cpu=lambda input, weight, bias, training, momentum, eps: kernels.native_batch_norm(
        input, weight, bias, None, None, training, momentum, eps
    ),
    grad=_batch_norm_grad_dict(stats=False),
    node="NativeBatchNormLegitBackward1",
    nondifferentiable=("result1", "result2"),
    variants="function",
)
native_batch_norm_backward = op(
    "native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var, "
    "Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    cpu=kernels.native_batch_norm_backward,
    shape=lambda input: (input.shape, [input.shape[1]], [input.shape[1]]),
    grad={
        ("grad_out", "input", "weight"): _batch_norm_second,
        "save_mean": not_implemented("native_batch_norm_backward save_mean"),
        "save_invstd": not_implemented("native_batch_norm_backward save_invstd"),
    },
    variants="",
)


def _instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """Batch normalisation with every channel of every sample as a channel of its own."""
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    if input.dim() < 2:
        raise dimension_error(1, 1) if input.dim() else no_dimensions(0)
    n, c = input.shape[:2]

    def repeated(t: Tensor | None) -> Tensor | None:
        return None if t is None else t.repeat([n])

    running = (running_mean, running_var)
    if running_mean is not None and running_mean.dtype is not input.dtype:
        running = tuple(None if t is None else t.to(input.dtype) for t in running)  # type: ignore[assignment]
    mean, var = repeated(running[0]), repeated(running[1])
    out = batch_norm(
        input.contiguous().view([1, n * c, *input.shape[2:]]),
        repeated(weight),
        repeated(bias),
        mean,
        var,
        use_input_stats,
        momentum,
        eps,
        cudnn_enabled,
    )
    for kept, new in ((running_mean, mean), (running_var, var)):
        if kept is not None and new is not None:
            kept.copy_(new.view([n, c]).mean(0, False))
    return out.view(input.shape)


instance_norm = op(
    "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, "
    "float momentum, float eps, bool cudnn_enabled) -> Tensor",
    composite=_instance_norm,
    variants="function",
)

# --- group ----------------------------------------------------------------------------------------------------------


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
    hw = 1
    for s in shape[2:]:
        hw *= s
    return native_group_norm(input.contiguous(), weight, bias, n, c, hw, num_groups, eps)[0]


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
        to_input = _normalized_gradient(scaled.reshape(rows.shape), x_hat, r, [2])
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
