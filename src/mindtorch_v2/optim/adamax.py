"""Adamax: Adam with the largest gradient seen in place of the mean square."""

from __future__ import annotations

from functools import partial
from typing import Any

from .._functions import functions
from .._tensor import Tensor
from .group_optimizer import GroupOptimizer, State, columns, new_count, pick
from .optimizer import ParamsT, check_betas, check_number, check_rate
from .steps import Prepared, each, plain, run, to_scalar

__all__ = ["Adamax", "adamax"]


class Adamax(GroupOptimizer):
    """`p -= lr * average / largest`, where the largest gradient seen shrinks by `betas[1]` with each step."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_rate(lr)
        check_number("epsilon value", eps)
        check_betas(betas)
        check_number("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> State:
        zeros_like = functions["zeros_like"]
        return {"step": new_count(0.0, p, group), "exp_avg": zeros_like(p), "exp_inf": zeros_like(p)}

    def _update(self, params: list[Tensor], grads: list[Tensor], states: list[State], group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        options = pick(group, "lr eps weight_decay foreach maximize differentiable capturable")
        adamax(params, grads, *columns(states, "exp_avg", "exp_inf", "step"), beta1=beta1, beta2=beta2, **options)


def adamax(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_infs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
) -> None:
    """One step for lists of parameters, gradients and state."""
    owned = maximize or weight_decay != 0
    run(
        _single, partial(_foreach, owned=owned), params, grads, (exp_avgs, exp_infs), state_steps,
        foreach=foreach, maximize=maximize, differentiable=differentiable, capturable=capturable, weight_decay=weight_decay,
        lr=to_scalar(lr), beta1=beta1, beta2=beta2, eps=eps,
    )  # fmt: skip


def _single(prepared: Prepared, *, lr: float | Tensor, beta1: float, beta2: float, eps: float, differentiable: bool) -> None:
    for param, grad, exp_avg, exp_inf, step in prepared:
        exp_avg.lerp_(grad, 1 - beta1)
        if differentiable:
            both = functions["cat"]([exp_inf.mul_(beta2).unsqueeze(0), grad.abs().add_(eps).unsqueeze_(0)], 0)
            exp_inf.copy_(functions["amax"](both, 0, keepdim=False))
        else:
            functions["maximum"](exp_inf.mul_(beta2), grad.abs().add_(eps), out=exp_inf)
        param.addcdiv_(exp_avg, exp_inf, value=-(lr / (1 - beta1 ** step.item())))


def _foreach(
    params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor], exp_infs: list[Tensor], steps: list[Tensor],
    *, lr: float | Tensor, beta1: float, beta2: float, eps: float, owned: bool,
) -> None:  # fmt: skip
    each("lerp_")(exp_avgs, grads, 1 - beta1)
    each("mul_")(exp_infs, beta2)
    if owned:
        each("abs_")(grads)
    else:
        grads = each("abs")(grads)
    each("add_")(grads, eps)
    each("maximum_")(exp_infs, grads)
    step_sizes = [-plain(lr) / (1 - beta1 ** step.item()) for step in steps]
    each("addcdiv_")(params, exp_avgs, exp_infs, step_sizes)
