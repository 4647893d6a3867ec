"""RMSprop: steps divided by the running root mean square of the gradients."""

from __future__ import annotations

from typing import Any

from .._functions import functions
from .._tensor import Tensor
from .group_optimizer import GroupOptimizer, State, beside, columns, pick
from .optimizer import ParamsT, check_number, check_rate
from .steps import Prepared, each, plain, run, scalar_dtype, to_scalar

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(GroupOptimizer):
    """`p -= lr * grad / (sqrt(mean square) + eps)`, with momentum if asked for; `centered` subtracts the mean's own square."""

    _later_options = {**GroupOptimizer._later_options, "momentum": 0, "centered": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        check_number("epsilon value", eps)
        check_number("momentum value", momentum)
        check_number("weight_decay value", weight_decay)
        check_number("alpha value", alpha)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> State:
        zeros_like = functions["zeros_like"]
        state = {
            "step": functions["zeros"]((), dtype=scalar_dtype(), device=beside(p, group)),
            "square_avg": zeros_like(p),
        }
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(p)
        if group["centered"]:
            state["grad_avg"] = zeros_like(p)
        return state

    def _update(self, params: list[Tensor], grads: list[Tensor], states: list[State], group: dict[str, Any]) -> None:
        names = "lr alpha eps weight_decay momentum centered foreach maximize differentiable capturable"
        square_avgs, steps = columns(states, "square_avg", "step")
        (grad_avgs,) = columns(states, "grad_avg") if group["centered"] else ([],)
        (buffers,) = columns(states, "momentum_buffer") if group["momentum"] > 0 else ([],)
        rmsprop(params, grads, square_avgs, grad_avgs, buffers, steps, **pick(group, names))


def rmsprop(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    grad_avgs: list[Tensor],
    momentum_buffer_list: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """One step for lists of parameters, gradients and state."""
    states = [square_avgs, *([grad_avgs] if centered else []), *([momentum_buffer_list] if momentum > 0 else [])]
    run(
        _single, _foreach, params, grads, states, state_steps,
        foreach=foreach, maximize=maximize, differentiable=differentiable, capturable=capturable, weight_decay=weight_decay,
        lr=to_scalar(lr), alpha=alpha, eps=eps, momentum=momentum, centered=centered, xla=(True, True),
    )  # fmt: skip


def _single(
    prepared: Prepared, *, lr: float | Tensor, alpha: float, eps: float, momentum: float, centered: bool, differentiable: bool
) -> None:
    for param, grad, square_avg, *rest in prepared:
        square_avg.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if centered:
            grad_avg = rest[0]
            grad_avg.lerp_(grad, 1 - alpha)
            root = square_avg.addcmul(grad_avg, grad_avg, value=-1).sqrt_()
        else:
            root = square_avg.sqrt()
        root = root.add(eps) if differentiable else root.add_(eps)
        if momentum > 0:
            buffer = rest[-2]
            buffer.mul_(momentum).addcdiv_(grad, root)
            param.add_(buffer, alpha=-lr)
        else:
            param.addcdiv_(grad, root, value=-lr)


def _foreach(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    *rest: Any,
    lr: float | Tensor,
    alpha: float,
    eps: float,
    momentum: float,
    centered: bool,
) -> None:
    each("mul_")(square_avgs, alpha)
    each("addcmul_")(square_avgs, grads, grads, value=1 - alpha)
    if centered:
        grad_avgs = rest[0]
        each("lerp_")(grad_avgs, grads, 1 - alpha)
        roots = each("addcmul")(square_avgs, grad_avgs, grad_avgs, value=-1)
        each("sqrt_")(roots)
    else:
        roots = each("sqrt")(square_avgs)
    each("add_")(roots, eps)
    if momentum > 0:
        buffers = rest[-2]
        each("mul_")(buffers, momentum)
        each("addcdiv_")(buffers, grads, roots)
        each("add_")(params, buffers, alpha=-plain(lr))
    else:
        each("addcdiv_")(params, grads, roots, value=-plain(lr))
