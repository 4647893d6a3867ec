"""Rprop: steps by the signs of gradients, longer while a sign stays and shorter when it changes."""

from __future__ import annotations

from functools import partial
from typing import Any

from .._functions import functions
from .._tensor import Tensor
from .group_optimizer import GroupOptimizer, State, beside, columns, pick
from .optimizer import ParamsT, check_rate
from .steps import Prepared, each, run, scalar_dtype, to_scalar

__all__ = ["Rprop", "rprop"]


class Rprop(GroupOptimizer):
    """`p -= sign(grad) * step_size` with a step size for each element, times one of `etas` after each step."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> State:
        lr = to_scalar(group["lr"])
        return {
            "step": functions["zeros"]((), dtype=scalar_dtype(), device=beside(p, group)),
            "prev": functions["zeros_like"](p),
            "step_size": functions["full_like"](grad, complex(lr, lr) if p.dtype.is_complex else lr),
        }

    def _update(self, params: list[Tensor], grads: list[Tensor], states: list[State], group: dict[str, Any]) -> None:
        (etaminus, etaplus), (least, most) = group["etas"], group["step_sizes"]
        rprop(
            params, grads, *columns(states, "prev", "step_size", "step"), step_size_min=least, step_size_max=most, etaminus=etaminus,
            etaplus=etaplus, **pick(group, "foreach maximize differentiable capturable"),
        )  # fmt: skip


def rprop(
    params: list[Tensor],
    grads: list[Tensor],
    prevs: list[Tensor],
    step_sizes: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """One step for lists of parameters, gradients and state."""
    run(
        _single, partial(_foreach, maximize=maximize), params, grads, (prevs, step_sizes), state_steps,
        # torch: lists of gradients are negated where they are written down
        foreach=foreach, maximize=maximize and not foreach, differentiable=differentiable, capturable=capturable,
        limits=(step_size_min, step_size_max), etaminus=etaminus, etaplus=etaplus, count_first=(False, True), xla=(True, True),
    )  # fmt: skip


def _set_factors(signs: Tensor, etaminus: float, etaplus: float) -> None:
    """Replace signs by the factors of the step sizes."""
    signs[signs.gt(0)] = etaplus
    signs[signs.lt(0)] = etaminus
    signs[signs.eq(0)] = 1


def _single(prepared: Prepared, *, limits: tuple[float, float], etaminus: float, etaplus: float, differentiable: bool) -> None:
    for param, grad, prev, step_size, _ in prepared:
        factors = grad.mul(prev.clone() if differentiable else prev).sign()
        _set_factors(factors, etaminus, etaplus)
        step_size.mul_(factors).clamp_(*limits)
        grad = grad.clone()
        grad[factors.eq(etaminus)] = 0
        param.addcmul_(grad.sign(), step_size, value=-1)
        prev.copy_(grad)


def _foreach(
    params: list[Tensor], grads: list[Tensor], prevs: list[Tensor], step_sizes: list[Tensor], steps: list[Tensor],
    *, limits: tuple[float, float], etaminus: float, etaplus: float, maximize: bool,
) -> None:  # fmt: skip
    factors = each("mul")(grads, prevs)
    if maximize:
        each("neg_")(factors)
    each("copy_")(prevs, grads)
    if maximize:
        each("neg_")(prevs)
    each("sign_")(factors)
    for of_param in factors:
        _set_factors(of_param, etaminus, etaplus)
    each("mul_")(step_sizes, factors)
    for step_size in step_sizes:
        step_size.clamp_(*limits)
    for prev, of_param in zip(prevs, factors, strict=True):
        prev.copy_(functions["where"](of_param.eq(etaminus), 0, prev))
    each("addcmul_")(params, [prev.sign() for prev in prevs], step_sizes, value=-1)
