"""Adam's step: parameter by parameter, over lists, or as one operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._functions import functions
from .._tensor import Tensor
from .steps import Prepared, each, plain, run, to_scalar

__all__ = ["adam"]


def adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step for lists of parameters, gradients and running averages."""
    rates: Any = {"lr": to_scalar(lr), "beta1": to_scalar(beta1), "beta2": to_scalar(beta2), "eps": eps, "amsgrad": amsgrad}
    states = (exp_avgs, exp_avg_sqs, max_exp_avg_sqs if amsgrad else [])
    if fused:
        if not all(isinstance(t, Tensor) for t in state_steps):
            raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")
        if differentiable:
            raise RuntimeError("Adam with fused=True does not support differentiable=True")
        rates |= {"weight_decay": weight_decay, "maximize": maximize, "grad_scale": grad_scale, "found_inf": found_inf}
        if params:
            _fused(params, grads, states, state_steps, decoupled=decoupled_weight_decay, **rates)
        return
    if foreach and not capturable:
        _check_numbers(lr, beta1, beta2)
    if grad_scale is not None or found_inf is not None:
        raise AssertionError("Expected grad_scale and found_inf to be None")
    shrink = 1 - rates["lr"] * weight_decay if decoupled_weight_decay and weight_decay != 0 else None
    run(
        _single, _foreach, params, grads, states if amsgrad else states[:2], state_steps,
        foreach=foreach, maximize=maximize, differentiable=differentiable, capturable=capturable,
        weight_decay=0 if decoupled_weight_decay else weight_decay, shrink=shrink, **rates,
    )  # fmt: skip


def _check_numbers(lr: float | Tensor, beta1: float | Tensor, beta2: float | Tensor) -> None:
    """Refuse rates that are tensors, which steps over lists do not take."""
    for name, value, error in (("lr", lr, RuntimeError), ("beta1", beta1, ValueError), ("beta2", beta2, ValueError)):
        if isinstance(value, Tensor):
            raise error(f"{name} as a Tensor is not supported for capturable=False and foreach=True")


def _single(
    prepared: Prepared,
    *,
    lr: float | Tensor,
    beta1: float | Tensor,
    beta2: float | Tensor,
    eps: float,
    amsgrad: bool,
    shrink: float | Tensor | None,
    differentiable: bool,
) -> None:
    """Parameter by parameter: the default on the CPU."""
    of_tensor = beta1 if isinstance(beta1, Tensor) else None
    for param, grad, exp_avg, exp_avg_sq, *maximum, step in prepared:
        if shrink is not None:
            param.mul_(shrink)
        exp_avg.lerp_(grad, 1 - (beta1 if of_tensor is None else of_tensor.to(param.dtype)))
        if differentiable and _differentiates(beta2):
            # beta2's own gradient needs an operation that is differentiable in the weight
            exp_avg_sq.lerp_(functions["square"](grad), weight=1 - beta2)
        else:
            exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if differentiable:
            _move_differentiably(param, exp_avg, exp_avg_sq, step, beta1, beta2, lr, eps, *maximum)
            continue
        count = step.item()
        step_size = lr / (1 - beta1**count)
        root = (1 - beta2**count) ** 0.5
        square = exp_avg_sq
        if amsgrad:
            (square,) = maximum
            functions["maximum"](square, exp_avg_sq, out=square)
        param.addcdiv_(exp_avg, (square.sqrt() / root).add_(eps), value=-step_size)


def _move_differentiably(
    param: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    step: Tensor,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    eps: float,
    maximum: Tensor | None = None,
) -> None:
    """The move as operators that can be differentiated, in the rates too; what they need later is not written to again."""
    count = step.clone() if _differentiates(beta1) or _differentiates(beta2) else step
    negated = (lr / (1 - beta1**count)).neg()
    root = (1 - beta2**count).sqrt()
    square = exp_avg_sq
    if maximum is not None:
        square = maximum.copy_(functions["maximum"](maximum.clone(), exp_avg_sq))
    denominator = (square.sqrt() / (root * negated)).add_(eps / negated)
    param.addcdiv_(exp_avg.clone(), denominator)


def _differentiates(rate: float | Tensor) -> bool:
    return isinstance(rate, Tensor) and rate.requires_grad


def _foreach(
    params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor], *rest: Any,
    lr: float | Tensor, beta1: float, beta2: float, eps: float, amsgrad: bool, shrink: Any,
) -> None:  # fmt: skip
    """With operators over lists of tensors."""
    *maxima, steps = rest
    if shrink is not None:
        each("mul_")(params, shrink)
    each("lerp_")(exp_avgs, grads, 1 - beta1)
    each("mul_")(exp_avg_sqs, beta2)
    each("addcmul_")(exp_avg_sqs, grads, grads, 1 - beta2)
    counts = [step.item() for step in steps]
    squares = exp_avg_sqs
    if amsgrad:
        (squares,) = maxima
        each("maximum_")(squares, exp_avg_sqs)
    denominators = each("sqrt")(squares)
    each("div_")(denominators, [(1 - beta2**n) ** 0.5 for n in counts])
    each("add_")(denominators, eps)
    each("addcdiv_")(params, exp_avgs, denominators, [-lr / (1 - beta1**n) for n in counts])


def _fused(
    params: list[Tensor],
    grads: list[Tensor],
    states: Sequence[list[Tensor]],
    steps: list[Tensor],
    *,
    decoupled: bool,
    lr: float | Tensor,
    beta1: float | Tensor,
    beta2: float | Tensor,
    found_inf: Tensor | None,
    **options: Any,
) -> None:
    """With one operator for everything."""
    each("add_")(steps, 1)
    functions["_fused_adamw_" if decoupled else "_fused_adam_"](
        params, grads, *states, steps, lr=plain(lr), beta1=plain(beta1), beta2=plain(beta2), found_inf=found_inf, **options
    )
    if found_inf is not None:
        each("sub_")(steps, [found_inf] * len(steps))
