"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from typing import Any

from .._autograd.leaf import with_gradients
from .._functions import functions
from .._tensor import Tensor
from .group_optimizer import GroupOptimizer, pick
from .optimizer import ParamsT, check_fused, check_fused_params, check_number
from .steps import decayed, each, group_by_device_and_dtype, plain, to_scalar

__all__ = ["SGD", "sgd"]


class SGD(GroupOptimizer):
    """`p -= lr * (momentum * buffer + grad)`, the buffer being the sum in brackets of the step before."""

    _later_options = {"nesterov": False, "maximize": False, "foreach": None, "differentiable": False, "fused": False}
    _counts = ()

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for what, value in (("learning rate", lr), ("momentum value", momentum), ("weight_decay value", weight_decay)):
            if value < 0.0:  # torch: here, other than in Adam, NaN passes
                raise ValueError(f"Invalid {what}: {value}")
        if nesterov and (dampening != 0 or momentum <= 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)

    def _step_group(self, group: dict[str, Any]) -> None:
        pairs = with_gradients(group["params"])
        params, grads = [p for p, _ in pairs], [grad for _, grad in pairs]
        sparse = False
        if group["fused"]:
            check_fused_params(params)
            sparse = any(grad.is_sparse for grad in grads)
        keeps = group["momentum"] != 0  # torch: without it no state is made, not even an empty one
        buffers = [self.state[p].get("momentum_buffer") for p in params] if keeps else []
        options = pick(group, "foreach fused weight_decay momentum lr dampening nesterov maximize")
        sgd(params, grads, buffers, has_sparse_grad=sparse, **options)
        if keeps:
            for p, buffer in zip(params, buffers, strict=True):
                self.state[p]["momentum_buffer"] = buffer


def sgd(
    params: list[Tensor],
    d_p_list: list[Tensor],
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float | Tensor,
    momentum: float,
    lr: float | Tensor,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """One step for lists of parameters, gradients and momentum buffers; missing buffers are filled in."""
    if not fused and (grad_scale is not None or found_inf is not None):
        raise AssertionError("Expected grad_scale and found_inf to be None")
    if not params:
        return
    options: Any = {
        "weight_decay": weight_decay, "momentum": momentum, "lr": to_scalar(lr), "dampening": dampening, "nesterov": nesterov,
        "maximize": maximize,
    }  # fmt: skip
    if fused:
        if has_sparse_grad:
            raise RuntimeError("`_fused_sgd` does not support sparse gradients")
        _fused(params, d_p_list, momentum_buffer_list, grad_scale=grad_scale, found_inf=found_inf, **options)
    elif foreach:
        lists: list[list[Any]] = [params, d_p_list, momentum_buffer_list]
        for (group, grads, buffers), places in group_by_device_and_dtype(lists, with_indices=True).values():
            _foreach(group, grads, buffers, **options)
            for place, buffer in zip(places, buffers, strict=False):
                momentum_buffer_list[place] = buffer
    else:
        _single(params, d_p_list, momentum_buffer_list, **options)


def _single(params: list[Tensor], grads: list[Tensor], buffers: list[Tensor | None], **o: Any) -> None:
    """Parameter by parameter: the default on the CPU."""
    lr, momentum, weight_decay = o["lr"], o["momentum"], o["weight_decay"]
    for i, param in enumerate(params):
        grad = -grads[i] if o["maximize"] else grads[i]
        if weight_decay != 0:
            grad = decayed(grad, param, weight_decay)
        if momentum != 0:
            buffer = buffers[i]
            if buffer is None:
                buffer = buffers[i] = grad.detach().clone()
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - o["dampening"])
            grad = grad.add(buffer, alpha=momentum) if o["nesterov"] else buffer
        if isinstance(lr, Tensor) and lr.requires_grad:
            param.addcmul_(grad, lr, value=-1)
        else:
            param.add_(grad, alpha=-lr)


def _foreach(params: list[Tensor], grads: list[Tensor], buffers: list[Any], **o: Any) -> None:
    """With operators over lists of tensors."""
    momentum, weight_decay = o["momentum"], plain(o["weight_decay"])
    sparse = any(grad.is_sparse for grad in grads)
    if o["maximize"]:
        grads = each("neg")(grads)
    if weight_decay != 0:
        if o["maximize"]:
            each("add_")(grads, params, alpha=weight_decay)
        else:
            grads = each("add")(grads, params, alpha=weight_decay)
    if momentum != 0:
        _average(grads, buffers, momentum, o["dampening"])
        if o["nesterov"]:
            each("add_")(grads, buffers, alpha=momentum)  # torch: also when they are the parameters' own
        else:
            grads = buffers
    rate = -plain(o["lr"])
    if sparse:
        for param, grad in zip(params, grads, strict=True):
            param.add_(grad, alpha=rate)
    else:
        each("add_")(params, grads, alpha=rate)


def _average(grads: list[Tensor], buffers: list[Tensor | None], momentum: float, dampening: float) -> None:
    """Add gradients to the momenta; those that are missing begin as the gradients."""
    if all(buffer is not None for buffer in buffers):
        each("mul_")(buffers, momentum)
        each("add_")(buffers, grads, alpha=1 - dampening)
        return
    for i, grad in enumerate(grads):
        if (buffer := buffers[i]) is None:
            buffers[i] = grad.detach().clone()
        else:
            buffer.mul_(momentum).add_(grad, alpha=1 - dampening)


def _fused(
    params: list[Tensor],
    grads: list[Tensor],
    buffers: list[Tensor | None],
    *,
    grad_scale: Tensor | None,
    found_inf: Tensor | None,
    **o: Any,
) -> None:
    """With one operator for everything."""
    check_number("learning rate", plain(o["lr"]))
    first = o["momentum"] != 0 and all(b is None for b in buffers)
    if first:
        for i, grad in enumerate(grads):
            buffers[i] = functions["empty_like"](grad)
    functions["_fused_sgd_"](
        params,
        grads,
        list(buffers),
        weight_decay=plain(o["weight_decay"]),
        momentum=o["momentum"],
        lr=plain(o["lr"]),
        dampening=o["dampening"],
        nesterov=o["nesterov"],
        maximize=o["maximize"],
        is_first_step=first,
        grad_scale=grad_scale,
        found_inf=found_inf,
    )
