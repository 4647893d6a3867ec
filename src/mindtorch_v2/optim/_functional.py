"""Steps of optimisers as functions of lists of tensors."""

from __future__ import annotations

import math

from .._tensor import Tensor
from .adadelta import adadelta
from .adagrad import _make_sparse, adagrad
from .adam import adam
from .adamax import adamax
from .adamw import adamw
from .asgd import asgd
from .nadam import nadam
from .radam import radam
from .rmsprop import rmsprop
from .rprop import rprop
from .sgd import sgd

__all__ = [
    "adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop", "sgd", "sparse_adam",
]  # fmt: skip


def sparse_adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[int],
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    maximize: bool,
) -> None:
    """One step of Adam for lists of parameters, sparse gradients and running averages; steps are counted by the caller."""
    for param, grad, exp_avg, exp_avg_sq, step in zip(params, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True):
        grad = (-grad if maximize else grad).coalesce()  # the squares are of sums
        indices, values = grad._indices(), grad._values()
        if values.numel() == 0:
            continue
        average = _moved(exp_avg, grad, indices, values, 1 - beta1)
        square = _moved(exp_avg_sq, grad, indices, values.pow(2), 1 - beta2)
        step_size = lr * math.sqrt(1 - beta2**step) / (1 - beta1**step)
        change = average.div_(square.sqrt_().add_(eps))
        param.add_(_make_sparse(grad, indices, -step_size * change))


def _moved(average: Tensor, grad: Tensor, indices: Tensor, values: Tensor, weight: float) -> Tensor:
    """Move a running average towards `values` at the gradient's coordinates; its new values there."""
    old = average.sparse_mask(grad)._values()
    change = values.sub(old).mul_(weight)
    average.add_(_make_sparse(grad, indices, change))
    return change.add_(old)
