"""Adam: steps scaled by running averages of the gradient and of its square."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._autograd.leaf import with_gradients
from .._dtype import float32, float64, get_default_dtype
from .._functions import functions
from .._tensor import Tensor
from .adam_steps import adam
from .optimizer import Optimizer, check_fused, check_number, check_rate_size, use_grad_for_differentiable

__all__ = ["Adam", "adam"]


class Adam(Optimizer):
    """Adam; with `decoupled_weight_decay` it is AdamW."""

    def __init__(
        self,
        params: Any,
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
        for i in (0, 1):
            if not 0.0 <= betas[i] < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")
        check_number("weight_decay value", weight_decay)
        _check_betas(betas, foreach=foreach, capturable=capturable)
        defaults = {
            "lr": lr,
            "betas": betas,
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
        check_fused(self, fused, foreach, differentiable)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        switches = ("amsgrad", "maximize", "capturable", "differentiable", "decoupled_weight_decay")
        self._set_group_defaults(foreach=None, fused=None, **dict.fromkeys(switches, False))
        for group in self.param_groups:
            for p in group["params"]:
                kept = self.state.get(p, {})
                if kept and not isinstance(kept["step"], Tensor):
                    kept["step"] = _step_count(p, group, float(kept["step"]))

    @use_grad_for_differentiable
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters once."""
        loss = self._loss_of(closure)
        for group in self.param_groups:
            pairs = list(with_gradients(group["params"]))
            states = [self._state_of(p, grad, group) for p, grad in pairs]
            beta1, beta2 = group["betas"]
            adam(
                [p for p, _ in pairs],
                [g for _, g in pairs],
                [s["exp_avg"] for s in states],
                [s["exp_avg_sq"] for s in states],
                [s["max_exp_avg_sq"] for s in states] if group["amsgrad"] else [],
                [s["step"] for s in states],
                foreach=group["foreach"],
                capturable=group["capturable"],
                differentiable=group["differentiable"],
                fused=group["fused"],
                amsgrad=group["amsgrad"],
                beta1=beta1,
                beta2=beta2,
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                maximize=group["maximize"],
                decoupled_weight_decay=group["decoupled_weight_decay"],
            )
        return loss

    def _state_of(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        kept: dict[str, Any] = self.state[p]
        if not kept:
            kept["step"] = _step_count(p, group, 0.0)
            zeros_like = functions["zeros_like"]
            kept["exp_avg"] = zeros_like(p)
            kept["exp_avg_sq"] = zeros_like(p)
            if group["amsgrad"]:
                kept["max_exp_avg_sq"] = zeros_like(p)
        if group["differentiable"] and kept["step"].requires_grad:
            raise RuntimeError("`requires_grad` is not supported for `step` in differentiable mode")
        if group["foreach"] and isinstance(group["lr"], Tensor) and not group["capturable"]:
            raise RuntimeError("lr as a Tensor is not supported for capturable=False and foreach=True")
        return kept


def _step_count(p: Tensor, group: dict[str, Any], value: float) -> Tensor:
    """torch: a step count is a tensor, next to the parameter only where the implementation needs it there."""
    dtype = float64 if get_default_dtype() is float64 else float32
    count: Tensor
    if group["capturable"] or group["fused"]:
        count = functions["full"]((), value, dtype=float32 if group["fused"] else dtype, device=p.device)
    else:
        from .._creation import tensor

        count = tensor(value, dtype=dtype)
    return count


def _check_lr(lr: Any, *, foreach: bool | None, capturable: bool) -> None:
    if isinstance(lr, Tensor) and foreach and not capturable:
        raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
    check_rate_size(lr)
    check_number("learning rate", lr)


def _check_betas(betas: tuple[Any, Any], *, foreach: bool | None, capturable: bool) -> None:
    tensors = [isinstance(b, Tensor) for b in betas]
    if not ((isinstance(betas[0], float) and isinstance(betas[1], float)) or all(tensors)):
        raise ValueError("betas must be either both floats or both Tensors")
    for i, beta in enumerate(betas):
        if isinstance(beta, Tensor):
            if foreach and not capturable:
                raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
            if beta.numel() != 1:
                raise ValueError(f"Tensor betas[{i}] must be 1-element")
