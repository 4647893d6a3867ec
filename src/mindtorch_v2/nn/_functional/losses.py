"""Loss functions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..._autograd.grad_mode import no_grad
from ..._checks import broadcast_shapes
from ..._ops.machinery.lookup import aten
from ..._tensor import Tensor
from .. import _reduction

if TYPE_CHECKING:
    from ..modules.linear_cross_entropy_options import LinearCrossEntropyOptions

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy", "ctc_loss",
    "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "linear_cross_entropy",
    "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss",
    "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss",
]  # fmt: skip


def _number(size_average: bool | None, reduce: bool | None, reduction: str) -> int:
    if size_average is not None or reduce is not None:
        return _reduction.legacy_get_enum(size_average, reduce)
    return _reduction.get_enum(reduction)


def _name(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    if size_average is not None or reduce is not None:
        return _reduction.legacy_get_string(size_average, reduce)
    return reduction


def _warn_sizes(input: Tensor, target: Tensor, stacklevel: int = 4) -> None:
    if target.shape != input.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely lead "
            "to incorrect results due to broadcasting. Please ensure they have the same size.",
            stacklevel=stacklevel,
        )


def _broadcast(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    a, b = aten.broadcast_tensors([input, target])
    return a, b


def _weighted(loss: Tensor, weight: Tensor, reduction: str, *, by_weight: bool) -> Tensor:
    """Elements times their weights, reduced; a mean divides by the weights' sum, or by the number of elements."""
    loss = loss * weight
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    if reduction == "mean":
        return loss.sum() / weight.sum() if by_weight else loss.mean()
    raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")


def _check_weight_size(weight: Tensor, input: Tensor) -> None:
    if weight.shape != input.shape:
        raise ValueError("Weights and input must have the same size.")


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared error."""
    _warn_sizes(input, target)
    name = _name(size_average, reduce, reduction)
    a, b = _broadcast(input, target)
    if weight is None:
        return aten.mse_loss(a, b, _reduction.get_enum(name))
    _check_weight_size(weight, input)
    return _weighted((a - b).pow(2), weight, name, by_weight=True)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The absolute error."""
    _warn_sizes(input, target)
    name = _name(size_average, reduce, reduction)
    a, b = _broadcast(input, target)
    if weight is None:
        return aten.l1_loss(a, b, _reduction.get_enum(name))
    _check_weight_size(weight, input)
    return _weighted((a - b).abs(), weight, name, by_weight=True)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """The squared error below `beta`, the absolute error above."""
    _warn_sizes(input, target)
    number = _number(size_average, reduce, reduction)
    a, b = _broadcast(input, target)
    if beta == 0.0:
        return aten.l1_loss(a, b, number)
    return aten.smooth_l1_loss(a, b, number, beta)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None) -> Tensor:
    """The squared error below `delta`, `delta` times the absolute error above."""
    _warn_sizes(input, target)
    a, b = _broadcast(input, target)
    if weight is None:
        return aten.huber_loss(a, b, _reduction.get_enum(reduction), delta)
    _check_weight_size(weight, input)
    return _weighted(aten.huber_loss(a, b, 0, delta), weight, reduction, by_weight=False)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Cross entropy of two classes, from probabilities."""
    number = _number(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(_common_shape(weight, target))
    return aten.binary_cross_entropy(input, target, weight, number)


def _common_shape(a: Tensor, b: Tensor) -> tuple[int, ...]:
    return broadcast_shapes(a.shape, b.shape)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Cross entropy of two classes, from scores."""
    number = _number(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    return aten.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log probability of the target classes."""
    return aten.nll_loss_nd(input, target, weight, _number(size_average, reduce, reduction), ignore_index)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy of scores with target classes, or with class probabilities."""
    return aten.cross_entropy_loss(input, target, weight, _number(size_average, reduce, reduction), ignore_index, label_smoothing)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> Tensor:
    """Cross entropy of the scores that a linear layer gives."""
    if options is not None:
        raise NotImplementedError(
            "linear_cross_entropy(options=...): there is no computation in chunks here; leave options out, the values are the same"
        )
    if not 1 <= input.dim() <= 2:
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    features = input.shape[-1]
    if features != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{features} and {linear_weight.shape[-1]}, respectively"
        )
    scores = tuple(linear_weight.shape[:-1])
    if linear_bias is not None and tuple(linear_bias.shape) != scores:
        raise RuntimeError(f"expected linear_bias shape {scores}, got {tuple(linear_bias.shape)}")
    if len(scores) > 1 and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {features}), got unbatched input with shape {tuple(input.shape)}"
        )
    shape = (*input.shape[:-1], *scores)
    if ignore_index is not None and tuple(target.shape) == shape:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    if len(scores) > 1:
        linear_weight = linear_weight.reshape(math.prod(scores), features)
        linear_bias = None if linear_bias is None else linear_bias.reshape(math.prod(scores))
    logits = aten.linear(input, linear_weight, linear_bias).reshape(shape)
    return cross_entropy(
        logits,
        target,
        weight=weight,
        reduction=reduction,
        ignore_index=-100 if ignore_index is None else ignore_index,
        label_smoothing=label_smoothing,
    )


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The divergence of distributions: `input` holds log probabilities."""
    name = _name(size_average, reduce, reduction)
    if name == "mean" and size_average is None and reduce is None:
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides only by "
            "the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the same as "
            "'batchmean' in the next major release.",
            stacklevel=3,
        )
    number = 2 if name == "batchmean" else _reduction.get_enum(name)
    loss: Tensor = aten.kl_div(input, target, number, log_target=log_target)
    return loss / input.shape[0] if name == "batchmean" and input.dim() else loss


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log likelihood of counts."""
    name = _name(size_average, reduce, reduction)
    if name not in ("none", "mean", "sum"):
        raise ValueError(name + " is not a valid value for reduction")
    return aten.poisson_nll_loss(input, target, log_input, full, eps, _reduction.get_enum(name))


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """The negative log likelihood of normal distributions with these variances."""
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        variance: Tensor = var * aten.ones_like(input)
    else:
        if (var < 0).any():
            raise ValueError("var has negative entry/entries")
        variance = _fitted(var, input)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    variance = variance.clone()
    with no_grad():
        variance.clamp_(min=eps)
    loss = (variance.log() + (input - target) ** 2 / variance) * 0.5
    if full:
        loss += 0.5 * math.log(2 * math.pi)
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


def _fitted(var: Tensor, input: Tensor) -> Tensor:
    """Variances that broadcast with the input: its shape, one dimension short, or with one dimension of extent 1."""
    if var.shape == input.shape:
        return var
    if input.shape[:-1] == var.shape:
        return var.unsqueeze(-1)
    if input.dim() == var.dim() and sum(v for n, v in zip(input.shape, var.shape, strict=True) if n != v) == 1:
        return var
    raise ValueError("var is of incorrect size")


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    return aten.hinge_embedding_loss(input, target, margin, _number(size_average, reduce, reduction))


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    number = _number(size_average, reduce, reduction)
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(
            f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: {input1.shape}, "
            f"input2: {input2.shape}, target: {target.shape} "
        )
    return aten.margin_ranking_loss(input1, input2, target, margin, number)


def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    return aten.soft_margin_loss(input, target, _number(size_average, reduce, reduction))


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    number = _number(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return aten.multi_margin_loss(input, target, p, margin, weight, number)


def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    return aten.multilabel_margin_loss(input, target, _number(size_average, reduce, reduction))


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Cross entropy of every label by itself, averaged over the labels."""
    name = _name(size_average, reduce, reduction)
    loss = -(target * aten.log_sigmoid(input) + (1 - target) * aten.log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(input.dim() - 1) / input.size(input.dim() - 1)
    if name == "none":
        return loss
    if name == "mean":
        return loss.mean()
    if name == "sum":
        return loss.sum()
    raise ValueError(name + " is not valid")


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    number = _number(size_average, reduce, reduction)
    return aten.cosine_embedding_loss(input1, input2, target, margin, number)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    number = _number(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return aten.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Triplet loss by any measure of distance."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs"
        )
    distance = aten.pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    loss = (near + margin - far).clamp_min(0)
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.mean()


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification: the likelihood of a label sequence over all of its alignments."""
    return aten.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _reduction.get_enum(reduction), zero_infinity)
