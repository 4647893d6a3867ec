"""Adagrad: steps divided by the root of the sum of all squared gradients."""

from __future__ import annotations

from functools import partial
from typing import Any

from .._functions import functions
from .._tensor import Tensor
from .group_optimizer import GroupOptimizer, State, columns, new_count, pick
from .optimizer import ParamsT, check_fused, check_fused_params, check_number, check_rate
from .steps import Prepared, each, group_by_device_and_dtype, plain, run, to_scalar

__all__ = ["Adagrad", "adagrad"]


class Adagrad(GroupOptimizer):
    """`p -= lr * grad / (sqrt(sum of squares) + eps)`, with a rate that falls by `lr_decay`; gradients may be sparse."""

    _later_options = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}
    _refused_gradients = ()

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_rate(lr)
        check_number("lr_decay value", lr_decay)
        check_number("weight_decay value", weight_decay)
        check_number("initial_accumulator_value value", initial_accumulator_value)
        check_number("epsilon value", eps)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p].update(self._new_state(p, p, group))

    def share_memory(self) -> None:
        """Move the sums to memory that processes share."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def _new_state(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> State:
        first = self.defaults["initial_accumulator_value"]
        return {
            "step": new_count(0.0, p, group),
            "sum": functions["full_like"](p, complex(first, first) if p.dtype.is_complex else first),
        }

    def _update(self, params: list[Tensor], grads: list[Tensor], states: list[State], group: dict[str, Any]) -> None:
        if group["fused"]:
            check_fused_params(params)
        sums, steps = columns(states, "sum", "step")
        adagrad(
            params, grads, sums, steps,
            has_sparse_grad=any(grad.is_sparse for grad in grads), has_complex=any(p.dtype.is_complex for p in params),
            **pick(group, "lr weight_decay lr_decay eps foreach maximize differentiable fused"),
        )  # fmt: skip


def adagrad(
    params: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    state_steps: list[Tensor],
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step for lists of parameters, gradients and state."""
    options: Any = {"lr": to_scalar(lr), "lr_decay": lr_decay, "eps": eps}
    if fused:
        if has_sparse_grad or has_complex:
            raise RuntimeError("`fused` does not support sparse grad or complex param")
        if differentiable:
            raise RuntimeError("adagrad with fused=True does not support differentiable=True")
        options |= {"weight_decay": weight_decay, "maximize": maximize, "grad_scale": grad_scale, "found_inf": found_inf}
        _fused(params, grads, state_sums, state_steps, **options)
        return
    if grad_scale is not None or found_inf is not None:
        raise AssertionError("Expected grad_scale and found_inf to be None")
    if weight_decay != 0 and any(grad.is_sparse for grad in grads):
        raise RuntimeError("weight_decay option is not compatible with sparse gradients")
    owned = maximize or weight_decay != 0
    run(
        _single, partial(_foreach, owned=owned), params, grads, (state_sums,), state_steps,
        # torch: lists with a sparse gradient among them are stepped one by one
        foreach=foreach and not has_sparse_grad, maximize=maximize, differentiable=differentiable, weight_decay=weight_decay,
        count_first=(True, False), **options,
    )  # fmt: skip


def _rate(lr: float | Tensor, lr_decay: float, step: Tensor) -> float | Tensor:
    return lr / (1 + (step.item() - 1) * lr_decay)


def _single(prepared: Prepared, *, lr: float | Tensor, lr_decay: float, eps: float, differentiable: bool) -> None:
    for param, grad, state_sum, step in prepared:
        rate = _rate(lr, lr_decay, step)
        if grad.is_sparse:
            _sparse(param, grad, state_sum, rate, eps)
            continue
        state_sum.addcmul_(grad, grad, value=1)
        root = state_sum.sqrt() + eps if differentiable else state_sum.sqrt().add_(eps)
        param.addcdiv_(grad, root, value=-rate)


def _sparse(param: Tensor, grad: Tensor, state_sum: Tensor, rate: float | Tensor, eps: float) -> None:
    """A step at the coordinates of a sparse gradient."""
    grad = grad.coalesce()  # squares of sums, not sums of squares
    values = grad._values()
    state_sum.add_(_make_sparse(grad, grad._indices(), values.pow(2)))
    roots = state_sum.sparse_mask(grad)._values().sqrt_().add_(eps)
    param.add_(_make_sparse(grad, grad._indices(), values / roots), alpha=-rate)


def _make_sparse(grad: Tensor, grad_indices: Tensor, values: Tensor) -> Tensor:
    """A sparse tensor as large as the gradient."""
    made: Tensor = functions["sparse_coo_tensor"](grad_indices, values, grad.size())
    return made


def _foreach(
    params: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    steps: list[Tensor],
    *,
    lr: float | Tensor,
    lr_decay: float,
    eps: float,
    owned: bool,
) -> None:
    rates = [-_rate(plain(lr), lr_decay, step) for step in steps]
    each("addcmul_")(state_sums, grads, grads, value=1)
    roots = each("sqrt")(state_sums)
    each("add_")(roots, eps)
    if owned:
        each("mul_")(grads, rates)
    else:
        grads = each("mul")(grads, rates)
    each("addcdiv_")(params, grads, roots)


def _fused(
    params: list[Tensor], grads: list[Tensor], sums: list[Tensor], steps: list[Tensor], found_inf: Tensor | None, **options: Any
) -> None:
    for lists, _ in group_by_device_and_dtype([params, grads, sums, steps]).values():
        counts = lists[-1]
        each("add_")(counts, 1)
        functions["_fused_adagrad_"](*lists, found_inf=found_inf, **options)
        if found_inf is not None:
            each("sub_")(counts, [found_inf] * len(counts))
