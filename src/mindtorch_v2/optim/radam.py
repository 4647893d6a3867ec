"""RAdam: Adam that waits with its scaling until the variance is known well enough."""

from __future__ import annotations

from typing import Any

from .._functions import functions
from .._tensor import Tensor
from .group_optimizer import GroupOptimizer, State, columns, new_count, pick
from .optimizer import ParamsT, check_betas, check_number, check_rate
from .steps import Prepared, each, plain, run, to_scalar

__all__ = ["RAdam", "radam"]


class RAdam(GroupOptimizer):
    """Adam whose first steps are those of momentum alone; later ones are scaled by a factor that tends to one."""

    _later_options = {**GroupOptimizer._later_options, "decoupled_weight_decay": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
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
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> State:
        zeros_like = functions["zeros_like"]
        return {"step": new_count(0.0, p, group), "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}

    def _update(self, params: list[Tensor], grads: list[Tensor], states: list[State], group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        names = "lr weight_decay eps decoupled_weight_decay foreach maximize differentiable capturable"
        radam(params, grads, *columns(states, "exp_avg", "exp_avg_sq", "step"), beta1=beta1, beta2=beta2, **pick(group, names))


def radam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    eps: float,
) -> None:
    """One step for lists of parameters, gradients and state."""
    rate = to_scalar(lr)
    shrink = 1 - rate * weight_decay if decoupled_weight_decay and weight_decay != 0 else None
    run(
        _single, _foreach, params, grads, (exp_avgs, exp_avg_sqs), state_steps,
        foreach=foreach, maximize=maximize, differentiable=differentiable, capturable=capturable,
        weight_decay=0 if decoupled_weight_decay else weight_decay,
        lr=rate, beta1=beta1, beta2=beta2, eps=eps, shrink=shrink, count_first=(False, True),
    )  # fmt: skip


def _rectification(beta2: float, step: float) -> float | None:
    """The factor by which a step is scaled; None as long as the variance of the mean square is out of bounds."""
    limit = 2 / (1 - beta2) - 1
    length = limit - 2 * step * (beta2**step) / (1 - beta2**step)
    if length <= 5.0:
        return None
    factor: float = ((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)) ** 0.5
    return factor


def _single(
    prepared: Prepared,
    *,
    lr: float | Tensor,
    beta1: float,
    beta2: float,
    eps: float,
    shrink: float | Tensor | None,
    differentiable: bool,
) -> None:
    for param, grad, exp_avg, exp_avg_sq, step in prepared:
        count = step.item()
        if shrink is not None:
            param.mul_(shrink)
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        change = exp_avg / (1 - beta1**count) * lr
        rectification = _rectification(beta2, count)
        if rectification is not None:
            root = exp_avg_sq.sqrt()
            root = root.add(eps) if differentiable else root.add_(eps)
            change = change * ((1 - beta2**count) ** 0.5 / root) * rectification
        param.add_(change, alpha=-1.0)


def _foreach(
    params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor], steps: list[Tensor],
    *, lr: float | Tensor, beta1: float, beta2: float, eps: float, shrink: Any,
) -> None:  # fmt: skip
    if shrink is not None:
        each("mul_")(params, shrink)
    each("lerp_")(exp_avgs, grads, 1 - beta1)
    each("mul_")(exp_avg_sqs, beta2)
    each("addcmul_")(exp_avg_sqs, grads, grads, 1 - beta2)
    scaled, unscaled = [], []  # one of each pair is zero
    for step in steps:
        count = step.item()
        rectification, rate = _rectification(beta2, count), plain(lr) / (1 - beta1**count)
        scaled.append(0.0 if rectification is None else -((1 - beta2**count) ** 0.5) * rate * rectification)
        unscaled.append(-rate if rectification is None else 0.0)
    factors = each("sqrt")(exp_avg_sqs)
    each("add_")(factors, eps)
    each("div_")(factors, scaled)
    each("reciprocal_")(factors)
    each("add_")(factors, unscaled)
    each("addcmul_")(params, exp_avgs, factors)
