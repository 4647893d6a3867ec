"""Adam: steps scaled by running averages of the gradient and of its square."""

from __future__ import annotations

from typing import Any, NoReturn

from .._functions import functions
from .._tensor import Tensor
from .adam_steps import adam
from .group_optimizer import GroupOptimizer, State, columns, new_count, pick
from .optimizer import ParamsT, check_betas, check_fused, check_fused_params, check_number, check_rate
from .steps import to_scalar

__all__ = ["Adam", "adam"]


class Adam(GroupOptimizer):
    """Adam; with `decoupled_weight_decay` it is AdamW."""

    _later_options = {**GroupOptimizer._later_options, "amsgrad": False, "decoupled_weight_decay": False, "fused": None}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        _check_lr(lr, foreach=foreach, capturable=capturable)
        check_number("epsilon value", eps)
        check_betas(betas)
        check_number("weight_decay value", weight_decay)
        _check_kinds(betas, foreach=foreach, capturable=capturable)
        defaults = {
            "lr": lr,
            "betas": tuple(map(to_scalar, betas)),
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)

    def _refuse_gradient(self) -> NoReturn:
        raise RuntimeError("Adam does not support sparse gradients, please consider SparseAdam instead")

    def _new_state(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> State:
        if group["fused"]:
            check_fused_params([p])
        zeros_like = functions["zeros_like"]
        state = {"step": new_count(0.0, p, group), "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_like(p)
        return state

    def _update(self, params: list[Tensor], grads: list[Tensor], states: list[State], group: dict[str, Any]) -> None:
        exp_avgs, exp_avg_sqs, steps = columns(states, "exp_avg", "exp_avg_sq", "step")
        if group["differentiable"] and any(step.requires_grad for step in steps):
            raise RuntimeError("`requires_grad` is not supported for `step` in differentiable mode")
        (maxima,) = columns(states, "max_exp_avg_sq") if group["amsgrad"] else ([],)
        beta1, beta2 = group["betas"]
        names = "foreach capturable differentiable fused amsgrad lr weight_decay eps maximize decoupled_weight_decay"
        adam(params, grads, exp_avgs, exp_avg_sqs, maxima, steps, beta1=beta1, beta2=beta2, **pick(group, names))


def _check_lr(lr: float | Tensor, *, foreach: bool | None, capturable: bool) -> None:
    if isinstance(lr, Tensor) and foreach and not capturable:
        raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
    check_rate(lr)


def _check_kinds(betas: tuple[Any, Any], *, foreach: bool | None, capturable: bool) -> None:
    tensors = [isinstance(b, Tensor) for b in betas]
    if not ((isinstance(betas[0], float) and isinstance(betas[1], float)) or all(tensors)):
        raise ValueError("betas must be either both floats or both Tensors")
    for i, beta in enumerate(betas):
        if isinstance(beta, Tensor):
            if foreach and not capturable:
                raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
            if beta.numel() != 1:
                raise ValueError(f"Tensor betas[{i}] must be 1-element")
