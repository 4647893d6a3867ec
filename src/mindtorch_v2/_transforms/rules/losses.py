"""Losses: computed for each element, then reduced over each sample."""

from __future__ import annotations

from typing import Any

from ..._dispatch.op import Op
from ..._ops.machinery.calling import call_op
from ..._tensor import Tensor
from ..batched import Level, unwrapped
from .loop import quietly_one_by_one
from .pointwise import aligned
from .values import bind, call, expanded, is_batched, rank, rule, use, with_front, wrapped

__all__: list[str] = []

NONE, MEAN, SUM = 0, 1, 2


def _loss(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    """The loss without a reduction, reduced over all dimensions but the batch."""
    given = bind(op, args)
    reduction = given["reduction"]
    tensors = [a.name for a in op.schema.arguments if a.is_tensor]
    for name, value in zip(tensors, aligned([given[n] for n in tensors], level), strict=True):
        shared = name in ("self", "target") and not is_batched(given[name], level)
        given[name] = expanded(value, level) if shared else value
    given["reduction"] = NONE
    found = call_op(op, tuple(given.values()))
    dims = list(range(1, found._array.ndim))
    if reduction != NONE and dims:
        found = call("mean.dim" if reduction == MEAN else "sum.dim_IntList", found, dims)
    return wrapped(found, level)


use("mse_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits soft_margin_loss".split(), _loss)


def _backward(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    """The gradient of each element; a mean divides by what a sample has, and not the batch."""
    given = bind(op, args)
    reduction, size = given["reduction"], given["self"]._array.size
    if reduction == MEAN:
        given["reduction"] = SUM
    tensors = [a.name for a in op.schema.arguments if a.is_tensor]
    if reduction != NONE:
        shape = [*given["grad_output"]._array.shape, *[1] * rank(given["self"])]
        given["grad_output"] = wrapped(
            call("reshape", with_front(given["grad_output"], level), [level.batch_size, *shape[rank(given["grad_output"]) :]]),
            level,
        )
    for name, value in zip(tensors, aligned([given[n] for n in tensors], level), strict=True):
        shared = given[name] is not None and not is_batched(given[name], level)
        given[name] = expanded(value, level) if shared else value
    given["reduction"] = NONE
    found = call_op(op, tuple(given.values()))
    return wrapped(found / size if reduction == MEAN else found, level)


use(
    "mse_loss_backward smooth_l1_loss_backward huber_loss_backward binary_cross_entropy_backward soft_margin_loss_backward".split(),
    _backward,
)


# --- of classes -----------------------------------------------------------------------------------------------------------


@rule("nll_loss_forward", "nll_loss2d_forward")
def _nll_loss(op: Op, level: Level, args: tuple[Any, ...]) -> tuple[Tensor, Tensor]:
    """Minus the score of the right class, weighted: over a dimension of scores that follows the batch."""
    x, target, weight, reduction, ignore = args
    if is_batched(weight, level):
        return quietly_one_by_one(op, level, args)
    has_batch = rank(x) > 1
    at = 2 if has_batch else 1
    scores, classes = with_front(x, level), with_front(target, level)
    counted = classes != ignore
    safe = call("where.self", counted, classes, call("zeros_like", classes))
    picked = call("squeeze.dim", call("gather", scores, at, call("unsqueeze", safe, at)), at)
    weights = counted.to(scores.dtype) if weight is None else call("take", _value(weight, level), safe) * counted
    losses = call("where.self", counted, -picked * weights, call("zeros_like", picked))
    dims = list(range(1, losses._array.ndim))
    total = call("sum.dim_IntList", weights, dims) if dims else weights
    if reduction == NONE and has_batch:
        return wrapped(losses, level), wrapped(call("zeros_like", total), level)
    summed = call("sum.dim_IntList", losses, dims) if dims else losses
    return wrapped(summed / total if reduction == MEAN else summed, level), wrapped(total, level)


def _value(t: Tensor, level: Level) -> Tensor:
    return unwrapped(t, level)[0]


@rule("nll_loss_backward", "nll_loss2d_backward")
def _nll_loss_backward(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    grad, x, target, weight, reduction, ignore, total = args
    if is_batched(weight, level):
        return quietly_one_by_one(op, level, args)
    has_batch = rank(x) > 1
    at = 2 if has_batch else 1
    classes = with_front(target, level)
    counted = classes != ignore
    safe = call("where.self", counted, classes, call("zeros_like", classes))
    g = with_front(grad, level)
    weights = counted.to(x.dtype) if weight is None else call("take", _value(weight, level), safe) * counted
    if reduction == MEAN:
        g = g / with_front(total, level)
    while g._array.ndim < weights._array.ndim:
        g = call("unsqueeze", g, -1)
    amounts = call("where.self", counted, -g * weights, call("zeros_like", weights))
    zeros = call("new_zeros", amounts, [level.batch_size, *x._array.shape])
    amounts = call("unsqueeze", amounts, at)
    return wrapped(call("scatter.src", zeros, at, call("unsqueeze", safe, at), amounts), level)


use(
    """multi_margin_loss multi_margin_loss_backward multilabel_margin_loss_forward multilabel_margin_loss_backward _ctc_loss
    _ctc_loss_backward""".split(),
    quietly_one_by_one,
)
