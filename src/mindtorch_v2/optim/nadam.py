"""NAdam: Adam with Nesterov's momentum."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .._functions import functions
from .._tensor import Tensor
from .group_optimizer import GroupOptimizer, State, columns, new_count, pick
from .optimizer import ParamsT, check_betas, check_number, check_rate
from .steps import Prepared, each, plain, run, to_scalar

__all__ = ["NAdam", "nadam"]


class NAdam(GroupOptimizer):
    """Adam that looks one step ahead, with a momentum that grows by `momentum_decay`."""

    _later_options = {**GroupOptimizer._later_options, "decoupled_weight_decay": False}
    _counts = ("step", "mu_product")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        check_number("momentum_decay value", momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> State:
        zeros_like = functions["zeros_like"]
        return {
            "step": new_count(0.0, p, group),
            "mu_product": new_count(1.0, p, group),
            "exp_avg": zeros_like(p),
            "exp_avg_sq": zeros_like(p),
        }

    def _update(self, params: list[Tensor], grads: list[Tensor], states: list[State], group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        names = "lr weight_decay momentum_decay eps decoupled_weight_decay foreach maximize differentiable capturable"
        lists = columns(states, "exp_avg", "exp_avg_sq", "mu_product", "step")
        nadam(params, grads, *lists, beta1=beta1, beta2=beta2, **pick(group, names))


def nadam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    mu_products: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """One step for lists of parameters, gradients and state."""
    if not all(isinstance(t, Tensor) for t in mu_products):
        raise RuntimeError("API has changed, `mu_products` argument must contain a list of singleton tensors")
    rate = to_scalar(lr)
    shrink = 1 - rate * weight_decay if decoupled_weight_decay and weight_decay != 0 else None
    run(
        _single, _foreach, params, grads, (exp_avgs, exp_avg_sqs, mu_products), state_steps,
        foreach=foreach, maximize=maximize, differentiable=differentiable, capturable=capturable,
        weight_decay=0 if decoupled_weight_decay else weight_decay,
        lr=rate, beta1=beta1, beta2=beta2, eps=eps, shrink=shrink, momentum=partial(_momentum, beta1, momentum_decay),
        tensors="params, mu_products, and state_steps" if foreach else "params, mu_products and state_steps",
    )  # fmt: skip


def _momentum(beta1: float, momentum_decay: float, step: float) -> float:
    return beta1 * (1.0 - 0.5 * (0.96 ** (step * momentum_decay)))


def _single(
    prepared: Prepared,
    *,
    lr: float | Tensor,
    beta1: float,
    beta2: float,
    eps: float,
    shrink: float | Tensor | None,
    momentum: Callable[[Tensor], Tensor],
    differentiable: bool,
) -> None:
    for param, grad, exp_avg, exp_avg_sq, mu_product, step in prepared:
        count = step.item()
        if shrink is not None:
            param.mul_(shrink)
        mu, ahead = momentum(count), momentum(count + 1)
        mu_product *= mu
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        root = exp_avg_sq.div(1 - beta2**count).sqrt()
        product = mu_product if differentiable else mu_product.item()
        of_grad = -lr * (1.0 - mu) / (1.0 - product)
        of_average = -lr * ahead / (1.0 - product * ahead)
        if differentiable:
            root = root.add(eps)
            param.addcdiv_(grad * of_grad, root)
            param.addcdiv_(exp_avg * of_average, root)
        else:
            root.add_(eps)
            param.addcdiv_(grad, root, value=of_grad)
            param.addcdiv_(exp_avg, root, value=of_average)


def _foreach(
    params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor], mu_products: list[Tensor], steps: list[Tensor],
    *, lr: float | Tensor, beta1: float, beta2: float, eps: float, shrink: Any, momentum: Callable[[Tensor], Tensor],
) -> None:  # fmt: skip
    if shrink is not None:
        each("mul_")(params, shrink)
    each("lerp_")(exp_avgs, grads, 1 - beta1)
    each("mul_")(exp_avg_sqs, beta2)
    each("addcmul_")(exp_avg_sqs, grads, grads, 1 - beta2)
    roots = each("sqrt")(exp_avg_sqs)
    counts = [step.item() for step in steps]
    mus, aheads = [momentum(n) for n in counts], [momentum(n + 1) for n in counts]
    each("mul_")(mu_products, mus)
    each("div_")(roots, [(1 - beta2**n) ** 0.5 for n in counts])
    each("add_")(roots, eps)
    rate, products = plain(lr), [product.item() for product in mu_products]
    of_grads = [-(rate * (1.0 - mu) / (1.0 - product)) for mu, product in zip(mus, products, strict=True)]
    of_averages = [-(rate * ahead / (1.0 - product * ahead)) for ahead, product in zip(aheads, products, strict=True)]
    each("addcdiv_")(params, grads, roots, of_grads)
    each("addcdiv_")(params, exp_avgs, roots, of_averages)
