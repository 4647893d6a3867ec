"""Adam's step: parameter by parameter, over lists, or as one operator."""

from __future__ import annotations

from typing import Any

from .._functions import functions
from .._tensor import Tensor
from .optimizer import plain

__all__ = ["adam"]

CAPTURABLE_DEVICES = ["cuda", "xpu", "hpu", "privateuseone", "xla"]


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
    if not all(isinstance(t, Tensor) for t in state_steps):
        raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")
    if not params:
        return
    if capturable and any(p.device.type not in CAPTURABLE_DEVICES for p in params):
        raise AssertionError(f"If capturable=True, params and state_steps must be on supported devices: {CAPTURABLE_DEVICES}.")
    implementation = _fused if fused else _foreach if foreach else _single
    if implementation is not _fused and (grad_scale is not None or found_inf is not None):
        raise AssertionError("Expected grad_scale and found_inf to be None")
    implementation(
        params,
        grads,
        (exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps),
        amsgrad=amsgrad,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
        maximize=maximize,
        differentiable=differentiable,
        decoupled=decoupled_weight_decay,
        grad_scale=grad_scale,
        found_inf=found_inf,
    )


def _single(params: Any, grads: Any, states: Any, **o: Any) -> None:
    """Parameter by parameter: the default on the CPU."""
    exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps = states
    lr, weight_decay, differentiable = o["lr"], o["weight_decay"], o["differentiable"]
    if not isinstance(lr, Tensor):
        beta1, beta2 = plain(o["beta1"]), plain(o["beta2"])
    else:
        beta1, beta2 = o["beta1"], o["beta2"]
    for i, param in enumerate(params):
        grad = -grads[i] if o["maximize"] else grads[i]
        exp_avg, exp_avg_sq, step_t = exp_avgs[i], exp_avg_sqs[i], steps[i]
        step_t += 1
        if weight_decay != 0:
            if o["decoupled"]:
                param.mul_(1 - lr * weight_decay)
            elif differentiable and isinstance(weight_decay, Tensor):
                grad = (
                    grad.addcmul_(param.clone(), weight_decay)
                    if weight_decay.requires_grad
                    else grad.add(param, alpha=weight_decay)
                )
            else:
                grad = grad.add(param, alpha=weight_decay)
        is_complex = param.dtype.is_complex
        if is_complex:
            grad, exp_avg, exp_avg_sq, param = (_as_real(t) for t in (grad, exp_avg, exp_avg_sq, param))
        exp_avg.lerp_(grad, 1 - beta1)
        _average_square(exp_avg_sq, grad, beta2, differentiable)
        maximum = None
        if o["amsgrad"]:
            maximum = _as_real(max_exp_avg_sqs[i]) if is_complex else max_exp_avg_sqs[i]
        if differentiable:
            _move_differentiably(
                param, exp_avg, exp_avg_sq, step_t, beta1, beta2, lr, o["eps"], max_exp_avg_sqs if o["amsgrad"] else None, i
            )
            continue
        step = step_t.item()
        step_size = lr / (1 - beta1**step)
        root = (1 - beta2**step) ** 0.5
        if maximum is not None:
            functions["maximum"](maximum, exp_avg_sq, out=maximum)
            denominator = (maximum.sqrt() / root).add_(o["eps"])
        else:
            denominator = (exp_avg_sq.sqrt() / root).add_(o["eps"])
        param.addcdiv_(exp_avg, denominator, value=plain(-step_size))


def _as_real(t: Tensor) -> Tensor:
    return functions["view_as_real"](t) if t.dtype.is_complex else t


def _average_square(exp_avg_sq: Tensor, grad: Tensor, beta2: Any, differentiable: bool) -> None:
    if differentiable and isinstance(beta2, Tensor) and beta2.requires_grad:
        # beta2's own gradient needs an operation that is differentiable in the weight
        exp_avg_sq.lerp_(functions["square"](grad), weight=1 - beta2)
    else:
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=plain(1 - beta2))


def _move_differentiably(
    param: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    step: Tensor,
    beta1: Any,
    beta2: Any,
    lr: Any,
    eps: float,
    maxima: Any,
    i: int,
) -> None:
    """The step as operators that can be differentiated, in the step count too."""
    step_size = lr / (1 - beta1**step)
    negated = step_size.neg()
    root = (1 - beta2**step).sqrt()
    square = exp_avg_sq
    if maxima is not None:
        maxima[i].copy_(functions["maximum"](maxima[i].clone(), exp_avg_sq))
        square = maxima[i]
    denominator = (square.sqrt() / (root * negated)).add_(eps / negated)
    param.addcdiv_(exp_avg, denominator)


def _foreach(params: Any, grads: Any, states: Any, **o: Any) -> None:
    """With operators over lists of tensors."""
    exp_avgs, exp_avg_sqs, maxima, steps = states
    if o["differentiable"]:
        raise AssertionError("_foreach ops don't support autograd")
    names = ("neg", "add", "add_", "lerp_", "mul_", "addcmul_", "maximum_", "sqrt", "div_", "addcdiv_")
    each: Any = {name: functions["_foreach_" + name] for name in names}
    lr, weight_decay = plain(o["lr"]), o["weight_decay"]
    beta1, beta2 = plain(o["beta1"]), plain(o["beta2"])
    if any(p.dtype.is_complex for p in params):
        params, grads, exp_avgs, exp_avg_sqs, maxima = (
            [_as_real(t) for t in ts] for ts in (params, grads, exp_avgs, exp_avg_sqs, maxima)
        )
    if o["maximize"]:
        grads = each["neg"](grads)
    each["add_"](steps, 1.0)
    if weight_decay != 0:
        if o["decoupled"]:
            each["mul_"](params, 1 - lr * weight_decay)
        elif o["maximize"]:
            each["add_"](grads, params, alpha=weight_decay)
        else:
            grads = each["add"](grads, params, alpha=weight_decay)
    each["lerp_"](exp_avgs, grads, 1 - beta1)
    each["mul_"](exp_avg_sqs, beta2)
    each["addcmul_"](exp_avg_sqs, grads, grads, 1 - beta2)
    counts = [step.item() for step in steps]
    step_sizes = [-lr / (1 - beta1**n) for n in counts]
    roots = [(1 - beta2**n) ** 0.5 for n in counts]
    if o["amsgrad"]:
        each["maximum_"](maxima, exp_avg_sqs)
    denominators = each["sqrt"](maxima if o["amsgrad"] else exp_avg_sqs)
    each["div_"](denominators, roots)
    each["add_"](denominators, o["eps"])
    each["addcdiv_"](params, exp_avgs, denominators, step_sizes)


def _fused(params: Any, grads: Any, states: Any, **o: Any) -> None:
    """With one operator for everything."""
    exp_avgs, exp_avg_sqs, maxima, steps = states
    if o["differentiable"]:
        raise RuntimeError("Adam with fused=True does not support differentiable=True")
    functions["_foreach_add_"](steps, 1)
    functions["_fused_adamw_" if o["decoupled"] else "_fused_adam_"](
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        maxima,
        steps,
        lr=plain(o["lr"]),
        beta1=plain(o["beta1"]),
        beta2=plain(o["beta2"]),
        weight_decay=o["weight_decay"],
        eps=o["eps"],
        amsgrad=o["amsgrad"],
        maximize=o["maximize"],
        grad_scale=o["grad_scale"],
        found_inf=o["found_inf"],
    )
    if o["found_inf"] is not None:
        functions["_foreach_sub_"](steps, [o["found_inf"]] * len(steps))
