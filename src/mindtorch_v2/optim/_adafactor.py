"""Adafactor: mean squares kept as a row and a column for each matrix."""

from __future__ import annotations

from typing import Any

from .._dtype_info import finfo
from .._functions import functions
from .._tensor import Tensor
from .group_optimizer import GroupOptimizer, State, columns, new_count, pick
from .optimizer import ParamsT
from .steps import each, group_by_device_and_dtype, to_scalar

__all__ = ["Adafactor", "adafactor"]


class Adafactor(GroupOptimizer):
    """Steps relative to the size of a parameter, scaled by mean squares of which only means of rows and columns are kept."""

    _later_options = {"foreach": None}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for refused, text in (
            (not lr >= 0.0, f"Learning rate should be >= 0 but is: {lr}"),
            (not beta2_decay <= 0.0, f"beta2_decay should be <= 0 but is: {beta2_decay}"),
            (eps[0] is not None and not eps[0] >= 0.0, f"epsilon1 should be >= 0 but is: {eps[0]}"),
            (not eps[1] >= 0.0, f"epsilon2 should be >= 0 but is: {eps[1]}"),
            (not d >= 1.0, f"Clipping threshold d should be >= 1 but is: {d}"),
            (not weight_decay >= 0.0, f"weight_decay should be >= 0 but is: {weight_decay}"),
        ):
            if refused:
                raise ValueError(text)
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> State:
        if p.dtype.is_complex:
            raise RuntimeError("Adafactor does not support complex parameters")
        state: State = {"step": new_count(0.0, p, group)}
        if grad.dim() > 1:
            *batch, rows, cols = grad.shape
            state["row_var"] = grad.new_zeros([*batch, rows, 1])
            state["col_var"] = grad.new_zeros([*batch, 1, cols])
        else:
            state["variance"] = functions["zeros_like"](grad)
        return state

    def _update(self, params: list[Tensor], grads: list[Tensor], states: list[State], group: dict[str, Any]) -> None:
        eps1, eps2 = group["eps"]
        variances: list[Any] = [[state.get(name) for state in states] for name in ("row_var", "col_var", "variance")]
        options = pick(group, "d lr beta2_decay weight_decay foreach maximize")
        adafactor(params, grads, *variances, *columns(states, "step"), eps1=eps1, eps2=eps2, **options)


def adafactor(
    params: list[Tensor],
    grads: list[Tensor],
    row_vars: list[Tensor | None],
    col_vars: list[Tensor | None],
    variances: list[Tensor | None],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    *,
    d: float,
    lr: float | Tensor,
    beta2_decay: float,
    weight_decay: float,
    eps1: float | None,
    eps2: float,
    maximize: bool,
) -> None:
    """One step for lists of parameters, gradients and state: row and column means, or variances of what is no matrix."""
    if not all(isinstance(t, Tensor) for t in state_steps):
        raise RuntimeError("`state_steps` argument must contain a list of singleton tensors")
    if grad_scale is not None or found_inf is not None:
        raise AssertionError("Grad scaling should occur outside of optimizer.step()")
    if not params:
        return
    # torch: the first parameter's dtype decides for all of them
    eps1 = finfo(params[0].dtype).eps if eps1 is None else eps1
    rates: dict[str, Any] = {
        "d": d,
        "lr": to_scalar(lr),
        "beta2_decay": beta2_decay,
        "weight_decay": weight_decay,
        "eps1": eps1,
        "eps2": eps2,
    }
    if foreach:
        for lists, _ in group_by_device_and_dtype([params, grads, row_vars, col_vars, variances, state_steps]).values():
            for matrices in (True, False):
                found = [i for i, grad in enumerate(lists[1]) if (grad.dim() > 1) == matrices]
                if found:
                    _foreach(*([tensors[i] for i in found] for tensors in lists), maximize=maximize, **rates)
    else:
        for tensors in zip(params, grads, row_vars, col_vars, variances, state_steps, strict=True):
            _single(*tensors, maximize=maximize, **rates)


def _step_size(param: Tensor, step: float, lr: float | Tensor, eps2: float) -> float | Tensor:
    """The rate relative to the parameter's root mean square."""
    return max(eps2, param.norm(2).item() / (param.numel() ** 0.5)) * min(lr, 1 / (step**0.5))


def _clipping(update: Tensor, d: float) -> float:
    """By how much an update is too large."""
    return max(1.0, update.norm(2).item() / ((update.numel() ** 0.5) * d))


def _single(
    param: Tensor, grad: Tensor, row_var: Tensor | None, col_var: Tensor | None, variance: Tensor | None, step: Tensor,
    *, maximize: bool, d: float, lr: float | Tensor, beta2_decay: float, weight_decay: float, eps1: float, eps2: float,
) -> None:  # fmt: skip
    if maximize:
        grad = -grad
    step += 1
    count = step.item()
    weight = count**beta2_decay
    step_size = _step_size(param, count, lr, eps2)
    if weight_decay != 0:
        param.mul_(1 - lr * weight_decay)
    if grad.dim() > 1:
        if row_var is None or col_var is None:
            raise AssertionError("row_var and col_var should be defined when grad is multidimensional")
        for mean, dim in ((row_var, -1), (col_var, -2)):
            mean.lerp_(functions["norm"](grad, dim=dim, keepdim=True).square_().div_(grad.size(dim)), weight)
        update = row_var @ col_var
        update.div_(row_var.mean(dim=-2, keepdim=True).clamp_(min=eps1))
    else:
        if variance is None:
            raise AssertionError("variance should be defined when grad is a vector")
        variance.lerp_(grad * grad, weight)
        update = variance.clone()
    update.clamp_(min=eps1 * eps1).rsqrt_()
    update.mul_(grad)
    param.add_(update, alpha=-step_size / _clipping(update, d))


def _foreach(
    params: list[Tensor], grads: list[Tensor], row_vars: list[Any], col_vars: list[Any], variances: list[Any], steps: list[Tensor],
    *, maximize: bool, d: float, lr: float | Tensor, beta2_decay: float, weight_decay: float, eps1: float, eps2: float,
) -> None:  # fmt: skip
    if maximize:
        grads = each("neg")(grads)
    each("add_")(steps, 1.0)
    counts = [step.item() for step in steps]
    weights = [count**beta2_decay for count in counts]
    step_sizes = [_step_size(p, count, lr, eps2) for p, count in zip(params, counts, strict=True)]
    if weight_decay != 0:
        each("mul_")(params, 1 - lr * weight_decay)
    if grads[0].dim() > 1:
        if row_vars[0] is None or col_vars[0] is None:
            raise AssertionError("row_var and col_var should be defined when grad is multidimensional")
        for means, dim in ((row_vars, -1), (col_vars, -2)):
            norms = [functions["norm"](grad, dim=dim, keepdim=True) for grad in grads]
            each("mul_")(norms, norms)
            each("div_")(norms, [grad.size(dim) for grad in grads])
            each("lerp_")(means, norms, weights)
        updates = [row_var @ col_var for row_var, col_var in zip(row_vars, col_vars, strict=True)]
        totals = [row_var.mean(dim=-2, keepdim=True) for row_var in row_vars]
        each("clamp_min_")(totals, eps1)
        each("div_")(updates, totals)
    else:
        if variances[0] is None:
            raise AssertionError("variance should be defined when grad is a vector")
        each("lerp_")(variances, each("mul")(grads, grads), weights)
        updates = [variance.clone() for variance in variances]
    each("clamp_min_")(updates, eps1 * eps1)
    each("rsqrt_")(updates)
    each("mul_")(updates, grads)
    each("mul_")(updates, [-size / _clipping(update, d) for size, update in zip(step_sizes, updates, strict=True)])
    each("add_")(params, updates)
