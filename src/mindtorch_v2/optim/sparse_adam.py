"""SparseAdam: Adam for gradients that are sparse; averages change where the gradient has elements."""

from __future__ import annotations

from typing import Any, NoReturn

from .._functions import functions
from .._tensor import Tensor
from ._functional import sparse_adam
from .group_optimizer import GroupOptimizer, State, columns, pick
from .optimizer import ParamsT, check_betas
from .steps import to_scalar

__all__ = ["SparseAdam"]


class SparseAdam(GroupOptimizer):
    """Adam for parameters such as embeddings, of which each step touches a few rows."""

    _later_options = {"maximize": False}
    _counts = ()
    _refused_gradients = (0,)

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for what, value in (("learning rate", lr), ("epsilon value", eps)):
            if not value > 0.0:
                raise ValueError(f"Invalid {what}: {value}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        every = [([i, j], p) for i, group in enumerate(self.param_groups) for j, p in enumerate(group["params"])]
        sparse = [place for place, p in every if p.is_sparse]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        of_complex = [place for place, p in every if p.dtype.is_complex]
        if of_complex:
            raise ValueError(f"Complex params at indices {of_complex}: SparseAdam does not support complex parameters")

    def _refuse_gradient(self) -> NoReturn:
        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")

    def _new_state(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> State:
        zeros_like = functions["zeros_like"]
        return {"step": 0, "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}

    def _update(self, params: list[Tensor], grads: list[Tensor], states: list[State], group: dict[str, Any]) -> None:
        for state in states:
            state["step"] += 1
        beta1, beta2 = group["betas"]
        options = {**pick(group, "eps maximize"), "beta1": beta1, "beta2": beta2, "lr": to_scalar(group["lr"])}
        sparse_adam(params, grads, *columns(states, "exp_avg", "exp_avg_sq", "step"), **options)
