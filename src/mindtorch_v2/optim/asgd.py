"""ASGD: gradient descent whose parameters are averaged from some step on."""

from __future__ import annotations

from functools import partial
from typing import Any

from .._creation import as_tensor
from .._functions import functions
from .._tensor import Tensor
from .group_optimizer import GroupOptimizer, State, columns, pick
from .optimizer import ParamsT, check_number, check_rate
from .steps import Prepared, each, run, scalar_dtype, to_scalar

__all__ = ["ASGD", "asgd"]


class ASGD(GroupOptimizer):
    """`p -= eta * grad` with a falling rate `eta`; the state's `ax` is the mean of the parameters since step `t0`."""

    _counts = ("step", "eta", "mu")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_rate(lr)
        check_number("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> State:
        dtype, device = scalar_dtype(), p.device
        return {
            "step": functions["zeros"]((), dtype=dtype, device=device),
            "eta": as_tensor(to_scalar(group["lr"]), dtype, device).clone().detach(),
            "mu": functions["ones"]((), dtype=dtype, device=device),
            "ax": functions["zeros_like"](p),
        }

    def _update(self, params: list[Tensor], grads: list[Tensor], states: list[State], group: dict[str, Any]) -> None:
        options = pick(group, "lambd lr t0 alpha weight_decay foreach maximize differentiable capturable")
        asgd(params, grads, *columns(states, "ax", "mu", "eta", "step"), **options)


def asgd(
    params: list[Tensor],
    grads: list[Tensor],
    axs: list[Tensor],
    mus: list[Tensor],
    etas: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: float,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """One step for lists of parameters, gradients and state."""
    run(
        _single, partial(_foreach, owned=weight_decay != 0), params, grads, (axs, mus, etas), state_steps,
        foreach=foreach, maximize=maximize, differentiable=differentiable, capturable=capturable, weight_decay=weight_decay,
        lambd=lambd, lr=to_scalar(lr), t0=t0, alpha=alpha, tensors="params, mus, etas, and state_steps",
    )  # fmt: skip


def _rate(step: float | Tensor, lambd: float, lr: float | Tensor, alpha: float) -> float | Tensor:
    return lr / ((1 + lambd * lr * step) ** alpha)


def _single(prepared: Prepared, *, lambd: float, lr: float | Tensor, t0: float, alpha: float, differentiable: bool) -> None:
    for param, grad, ax, mu, eta, step in prepared:
        rate = eta.item()
        param.mul_(1 - lambd * rate)
        param.add_(grad, alpha=-rate)
        if mu.item() != 1:
            ax.add_(param.sub(ax).mul_(mu))
        else:
            ax.copy_(param)
        count = step.item()
        eta.copy_(as_tensor(_rate(count, lambd, lr, alpha)))
        mu.copy_(as_tensor(1 / max(1, count - t0)))


def _foreach(
    params: list[Tensor],
    grads: list[Tensor],
    axs: list[Tensor],
    mus: list[Tensor],
    etas: list[Tensor],
    steps: list[Tensor],
    *,
    lambd: float,
    lr: float | Tensor,
    t0: float,
    alpha: float,
    owned: bool,
) -> None:
    if owned:
        each("add_")(grads, params, alpha=lambd)
    else:
        grads = each("add")(grads, params, alpha=lambd)
    each("addcmul_")(params, grads, etas, value=-1)
    changes = each("sub")(params, axs)
    each("addcmul_")(axs, changes, mus)
    device = params[0].device
    each("copy_")(etas, [as_tensor(_rate(step, lambd, lr, alpha), device=device) for step in steps])
    each("copy_")(mus, [as_tensor(1 / max(1, step.item() - t0), device=device) for step in steps])
