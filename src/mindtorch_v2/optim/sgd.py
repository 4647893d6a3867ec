"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._autograd.leaf import with_gradients
from .._functions import functions
from .._tensor import Tensor
from .optimizer import Optimizer, check_fused, check_number, check_rate_size, plain, use_grad_for_differentiable

__all__ = ["SGD", "sgd"]


class SGD(Optimizer):
    """`p -= lr * (momentum * buffer + grad)`, the buffer being the sum in brackets of the step before."""

    def __init__(
        self,
        params: Any,
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
        check_rate_size(lr)
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
        check_fused(self, fused, foreach, differentiable)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._set_group_defaults(nesterov=False, maximize=False, foreach=None, differentiable=False, fused=False)

    @use_grad_for_differentiable
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters once."""
        loss = self._loss_of(closure)
        for group in self.param_groups:
            pairs = list(with_gradients(group["params"]))
            params, grads = [p for p, _ in pairs], [g for _, g in pairs]
            keeps = group["momentum"] != 0
            buffers = [self.state[p].get("momentum_buffer") for p in params] if keeps else []
            sgd(
                params,
                grads,
                buffers,
                foreach=group["foreach"],
                fused=group["fused"],
                weight_decay=group["weight_decay"],
                momentum=group["momentum"],
                lr=group["lr"],
                dampening=group["dampening"],
                nesterov=group["nesterov"],
                maximize=group["maximize"],
            )
            if keeps:
                for p, buffer in zip(params, buffers, strict=True):
                    self.state[p]["momentum_buffer"] = buffer
        return loss


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
    if not params:
        return
    implementation = _fused if fused else _foreach if foreach else _single
    if implementation is not _fused and (grad_scale is not None or found_inf is not None):
        raise AssertionError("Expected grad_scale and found_inf to be None")
    implementation(
        params,
        d_p_list,
        momentum_buffer_list,
        grad_scale,
        found_inf,
        weight_decay=weight_decay,
        momentum=momentum,
        lr=lr,
        dampening=dampening,
        nesterov=nesterov,
        maximize=maximize,
    )


def _single(params: Any, grads: Any, buffers: Any, grad_scale: Any, found_inf: Any, **o: Any) -> None:
    """Parameter by parameter: the default on the CPU."""
    lr, momentum, weight_decay = o["lr"], o["momentum"], o["weight_decay"]
    if isinstance(lr, Tensor) and not lr.requires_grad:
        lr = lr.item()
    for i, param in enumerate(params):
        grad = -grads[i] if o["maximize"] else grads[i]
        if isinstance(weight_decay, Tensor):
            grad = grad.addcmul(param, weight_decay) if weight_decay.requires_grad else grad.add(param, alpha=weight_decay.item())
        elif weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        if momentum != 0:
            buffer = buffers[i]
            if buffer is None:
                buffer = buffers[i] = grad.detach().clone()
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - o["dampening"])
            grad = grad.add(buffer, alpha=momentum) if o["nesterov"] else buffer
        if isinstance(lr, Tensor):
            param.addcmul_(grad, lr, value=-1)
        else:
            param.add_(grad, alpha=-lr)


def _foreach(params: Any, grads: Any, buffers: Any, grad_scale: Any, found_inf: Any, **o: Any) -> None:
    """With operators over lists of tensors."""
    each: Any = {name: functions["_foreach_" + name] for name in ("neg", "add", "add_", "mul_", "mul")}
    momentum, weight_decay = o["momentum"], plain(o["weight_decay"])
    owned = False
    if o["maximize"]:
        grads, owned = each["neg"](grads), True
    if weight_decay != 0:
        if owned:
            each["add_"](grads, params, alpha=weight_decay)
        else:
            grads, owned = each["add"](grads, params, alpha=weight_decay), True
    if momentum != 0:
        if all(b is not None for b in buffers):
            each["mul_"](buffers, momentum)
            each["add_"](buffers, grads, alpha=1 - o["dampening"])
        else:
            for i, grad in enumerate(grads):
                if buffers[i] is None:
                    buffers[i] = grad.detach().clone()
                else:
                    buffers[i].mul_(momentum).add_(grad, alpha=1 - o["dampening"])
        if not o["nesterov"]:
            grads = buffers
        elif owned:
            each["add_"](grads, buffers, alpha=momentum)
        else:
            grads = each["add"](grads, buffers, alpha=momentum)
    each["add_"](params, grads, alpha=-plain(o["lr"]))


def _fused(params: Any, grads: Any, buffers: Any, grad_scale: Any, found_inf: Any, **o: Any) -> None:
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
