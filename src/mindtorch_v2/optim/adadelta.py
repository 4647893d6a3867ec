"""Adadelta: steps in proportion to the running size of past steps."""

from __future__ import annotations

from typing import Any

from .._functions import functions
from .._tensor import Tensor
from .group_optimizer import GroupOptimizer, State, beside, columns, pick
from .optimizer import ParamsT, check_number, check_rate
from .steps import Prepared, each, plain, run, scalar_dtype, to_scalar

__all__ = ["Adadelta", "adadelta"]


class Adadelta(GroupOptimizer):
    """`p -= lr * grad * rms(steps) / rms(gradients)`, both running averages that forget by `rho`."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_number("epsilon value", eps)
        check_number("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> State:
        return {
            "step": functions["zeros"]((), dtype=scalar_dtype(), device=beside(p, group)),
            "square_avg": functions["zeros_like"](p),
            "acc_delta": functions["zeros_like"](p),
        }

    def _update(self, params: list[Tensor], grads: list[Tensor], states: list[State], group: dict[str, Any]) -> None:
        options = pick(group, "lr rho eps weight_decay foreach maximize differentiable capturable")
        adadelta(params, grads, *columns(states, "square_avg", "acc_delta", "step"), **options)


def adadelta(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    acc_deltas: list[Tensor],
    state_steps: list[Tensor],
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """One step for lists of parameters, gradients and state."""
    run(
        _single, _foreach, params, grads, (square_avgs, acc_deltas), state_steps,
        foreach=foreach, maximize=maximize, differentiable=differentiable, capturable=capturable, weight_decay=weight_decay,
        lr=to_scalar(lr), rho=rho, eps=eps, count_first=(True, True), xla=(False, False),
    )  # fmt: skip


def _single(prepared: Prepared, *, lr: float | Tensor, rho: float, eps: float, differentiable: bool) -> None:
    for param, grad, square_avg, acc_delta, _ in prepared:
        square_avg.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        root = square_avg.add(eps).sqrt_()
        delta = acc_delta.add(eps).sqrt_()
        if differentiable:
            delta = delta.clone()  # the root's derivative needs its result
        delta.div_(root).mul_(grad)
        acc_delta.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        param.add_(delta, alpha=-lr)


def _foreach(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    acc_deltas: list[Tensor],
    steps: list[Tensor],
    *,
    lr: float | Tensor,
    rho: float,
    eps: float,
) -> None:
    each("mul_")(square_avgs, rho)
    each("addcmul_")(square_avgs, grads, grads, value=1 - rho)
    roots = each("add")(square_avgs, eps)
    each("sqrt_")(roots)
    deltas = each("add")(acc_deltas, eps)
    each("sqrt_")(deltas)
    each("div_")(deltas, roots)
    each("mul_")(deltas, grads)
    each("mul_")(acc_deltas, rho)
    each("addcmul_")(acc_deltas, deltas, deltas, value=1 - rho)
    each("add_")(params, deltas, alpha=-plain(lr))
