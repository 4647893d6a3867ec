"""Connectionist temporal classification."""

from __future__ import annotations

from collections.abc import Sequence

from ..._backends.cpu.nn import ctc as kernels
from ..._dtype import INTEGER, int64
from ..._tensor import Tensor
from ..machinery.declare import op
from ..machinery.lookup import aten
from .loss import MEAN, reduce


def _ctc_loss_of_lists(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Sequence[int],
    target_lengths: Sequence[int],
    blank: int,
    reduction: int,
    zero_infinity: bool,
) -> Tensor:
    batched = log_probs.dim() == 3
    if not batched:
        log_probs = log_probs.unsqueeze(1)
    loss = _ctc_loss(log_probs, targets, list(input_lengths), list(target_lengths), blank, zero_infinity)[0]
    if zero_infinity:
        loss = _without_infinities(loss)
    if reduction == MEAN:
        lengths = aten.empty([len(target_lengths)], dtype=loss.dtype, device=loss.device)
        lengths._array[...] = list(target_lengths)
        return (loss / lengths.clamp_min(1)).mean()
    loss = reduce(loss, reduction)
    return loss if batched or loss.dim() == 0 else loss.squeeze(0)


def _without_infinities(loss: Tensor) -> Tensor:
    """Losses with zero for those of impossible alignments."""
    zero = aten.zeros((), dtype=loss.dtype, device=loss.device)
    return aten.where(loss == float("inf"), zero, loss)


def _ctc_loss_of_tensors(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int,
    reduction: int,
    zero_infinity: bool,
) -> Tensor:
    if input_lengths.dtype.category != INTEGER:
        raise RuntimeError("input_lengths must be integral")
    if target_lengths.dtype.category != INTEGER:
        raise RuntimeError("target_lengths must be integral")
    as_lists = [t.to(int64)._array.reshape(-1).tolist() for t in (input_lengths, target_lengths)]
    return _ctc_loss_of_lists(log_probs, targets, as_lists[0], as_lists[1], blank, reduction, zero_infinity)


ctc_loss_intlist = op(
    "ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, int reduction=1, "
    "bool zero_infinity=False) -> Tensor",
    composite=_ctc_loss_of_lists,
    variants="function",
)
ctc_loss = op(
    "ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, int reduction=1, "
    "bool zero_infinity=False) -> Tensor",
    composite=_ctc_loss_of_tensors,
    variants="function",
)
_ctc_loss = op(
    "_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, bool zero_infinity=False) "
    "-> (Tensor, Tensor)",
    cpu=kernels.ctc_loss,
    grad={
        "log_probs": lambda grad, log_probs, targets, input_lengths, target_lengths, result0, result1, blank, zero_infinity: (
            _ctc_loss_backward(grad, log_probs, targets, input_lengths, target_lengths, result0, result1, blank, zero_infinity)
        )
    },
    node="CtcLossBackward0",
    nondifferentiable=("result1",),
    variants="function",
)
_ctc_loss_backward = op(
    "_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, "
    "Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor",
    cpu=kernels.ctc_loss_backward,
    variants="",
)
