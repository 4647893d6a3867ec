"""Batch and instance normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _dtype
from ..._backends.cpu.nn import batch_norm as kernels
from ..._checks import dimension_error, no_dimensions
from ..._dispatch.tls import state
from ..._tensor import Tensor
from ..machinery.declare import Gradients, not_implemented, op
from ..machinery.lookup import aten
from .normalization_gradients import Grads, by_differentiating, normalized_gradient


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
    needs: Sequence[bool],
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
        to_input = normalized_gradient(scaled, x_hat, rstd, dims) if training else scaled * rstd
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


_GRADIENTS: Gradients = {
    ("input", "weight", "bias"): lambda grad, input, weight, running_mean, running_var, training, eps, result1, result2, needs: (
        _batch_norm_grads(grad, input, weight, running_mean, running_var, training, eps, result1, result2, needs)
    )
}
native_batch_norm_op = op(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, "
    "float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    cpu=kernels.native_batch_norm,
    shape=lambda input, training: _batch_norm_shapes(input, training),
    grad=_GRADIENTS,
    nondifferentiable=("result1", "result2"),
    variants="function",
    fixed=("running_mean", "running_var"),
)
native_batch_norm_legit = op(
    "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, "
    "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    cpu=kernels.native_batch_norm,
    shape=lambda input, training: _batch_norm_shapes(input, training),
    grad=_GRADIENTS,
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
    grad={
        ("input", "weight", "bias"): lambda grad, input, weight, training, eps, result1, result2, needs: _batch_norm_grads(
            grad, input, weight, None, None, training, eps, result1, result2, needs
        )
    },
    node="NativeBatchNormLegitBackward1",
    nondifferentiable=("result1", "result2"),
    variants="function",
)


def _batch_norm_second(
    grads: Sequence[Tensor | None],
    grad_out: Tensor,
    input: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    train: bool,
    eps: float,
    output_mask: Sequence[bool],
    needs: Sequence[bool],
) -> tuple[Any, ...]:
    return by_differentiating(
        lambda g, x, w: _batch_norm_grads(g, x, w, running_mean, running_var, train, eps, None, None, output_mask),
        [grad_out, input, weight],
        grads,
        needs,
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
