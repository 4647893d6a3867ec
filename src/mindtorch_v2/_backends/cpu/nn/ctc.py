"""Connectionist temporal classification: forward and backward recursions over time, all samples of a batch at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..machinery.dtype_rules import unimplemented

Array = np.ndarray[Any, Any]

_WHERE = "(while checking arguments for ctc_loss_cpu)"


def _check(log_probs: Array, targets: Array, input_lengths: list[int], target_lengths: list[int], blank: int) -> None:
    if log_probs.ndim != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {log_probs.ndim}-dimensional tensor for argument #1 'log_probs' {_WHERE}"
        )
    time, batch, classes = log_probs.shape
    if log_probs.dtype.kind != "f" or log_probs.dtype.itemsize < 4:
        raise unimplemented("ctc_loss_cpu", log_probs)
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if len(lengths) != batch:
            raise RuntimeError(f"{name} must be of size batch_size")
        for value in lengths:
            if value < 0:
                raise RuntimeError(f"Expected {name} to have value at least 0, but got value {value} {_WHERE}")
    for value in input_lengths:
        if value > time:
            raise RuntimeError(f"Expected input_lengths to have value at most {time}, but got value {value} {_WHERE}")
    if targets.ndim not in (1, 2):
        raise RuntimeError(
            f"Expected 1 to 2 dimensions, but got {targets.ndim}-dimensional tensor for argument #2 'targets' {_WHERE}"
        )
    if targets.ndim == 1:
        if targets.shape[0] < sum(target_lengths):
            raise RuntimeError(
                f"Expected tensor to have size {sum(target_lengths)} at dimension 0, but got size {targets.shape[0]} for argument #2 "
                f"'targets' {_WHERE}"
            )
    elif targets.shape[0] != batch or (batch and targets.shape[1] < max(target_lengths)):
        raise RuntimeError(
            f"Expected tensor to have size at least {max(target_lengths)} at dimension 1, but got size {targets.shape[1]} for argument "
            f"#2 'targets' {_WHERE}"
        )


def _labels(targets: Array, target_lengths: list[int], blank: int) -> tuple[Array, Array, Array]:
    """Each target with blanks around its labels; where two steps forward are allowed; which positions exist."""
    batch, longest = len(target_lengths), max(target_lengths, default=0)
    labels = np.full((batch, 2 * longest + 1), blank, np.int64)
    lengths = np.asarray(target_lengths, np.int64)
    for n, (length, start) in enumerate(zip(target_lengths, np.cumsum([0, *target_lengths[:-1]]), strict=True)):
        row = targets[start : start + length] if targets.ndim == 1 else targets[n, :length]
        labels[n, 1 : 2 * length : 2] = row
    skip = np.zeros(labels.shape, bool)
    skip[:, 2:] = (labels[:, 2:] != blank) & (labels[:, 2:] != labels[:, :-2])
    exists = np.arange(labels.shape[1]) < 2 * lengths[:, None] + 1
    return labels, skip, exists


def _log_add(*terms: Array) -> Array:
    top = np.maximum.reduce(terms)
    safe = np.where(np.isneginf(top), np.zeros((), top.dtype), top)
    return np.log(sum(np.exp(t - safe) for t in terms)) + safe


def _shifted(x: Array, by: int, dtype: np.dtype[Any]) -> Array:
    """Row entries moved right (or left, when negative) with -inf moving in."""
    out = np.full(x.shape, -np.inf, dtype)
    if by > 0:
        out[:, by:] = x[:, :-by] if x.shape[1] > by else out[:, by:]
    elif x.shape[1] > -by:
        out[:, :by] = x[:, -by:]
    return out


def _emissions(log_probs: Array, labels: Array, exists: Array) -> Array:
    """Log probability of every position's label at every time: (time, batch, positions)."""
    index = np.broadcast_to(labels[None], (log_probs.shape[0], *labels.shape))
    picked = np.take_along_axis(log_probs, index, 2)
    return np.where(exists[None], picked, -np.inf).astype(log_probs.dtype, copy=False)


def ctc_loss(
    log_probs: Array, targets: Array, input_lengths: Sequence[int], target_lengths: Sequence[int], blank: int
) -> tuple[Array, Array]:
    """Negative log likelihoods, and the forward variables (batch, time, positions)."""
    input_lengths, target_lengths = [int(v) for v in input_lengths], [int(v) for v in target_lengths]
    _check(log_probs, targets, input_lengths, target_lengths, blank)
    time, batch, _ = log_probs.shape
    labels, skip, exists = _labels(targets, target_lengths, blank)
    emit = _emissions(log_probs, labels, exists)
    dtype = log_probs.dtype
    alpha = np.full((time, batch, labels.shape[1]), -np.inf, dtype)
    if time:
        alpha[0, :, :2] = emit[0, :, :2]
    no = np.asarray(-np.inf, dtype)
    for t in range(1, time):
        stay = alpha[t - 1]
        alpha[t] = _log_add(stay, _shifted(stay, 1, dtype), np.where(skip, _shifted(stay, 2, dtype), no)) + emit[t]
    return _likelihoods(alpha, input_lengths, target_lengths), np.ascontiguousarray(alpha.transpose(1, 0, 2))


def _likelihoods(alpha: Array, input_lengths: list[int], target_lengths: list[int]) -> Array:
    batch = alpha.shape[1]
    samples = np.arange(batch)
    last = np.asarray(input_lengths, np.int64) - 1
    lengths = np.asarray(target_lengths, np.int64)
    dtype = alpha.dtype
    if not alpha.shape[0]:
        return np.where(lengths == 0, 0, np.inf).astype(dtype)
    end = alpha[np.maximum(last, 0), samples, 2 * lengths]
    before = alpha[np.maximum(last, 0), samples, np.maximum(2 * lengths - 1, 0)]
    before = np.where(lengths > 0, before, -np.inf).astype(dtype)
    nll = -_log_add(end, before)
    empty = np.where(lengths == 0, 0, np.inf)
    return np.where(last >= 0, nll, empty).astype(dtype)


def ctc_loss_backward(
    grad: Array,
    log_probs: Array,
    targets: Array,
    input_lengths: Sequence[int],
    target_lengths: Sequence[int],
    neg_log_likelihood: Array,
    log_alpha: Array,
    blank: int,
    zero_infinity: bool,
) -> Array:
    input_lengths, target_lengths = [int(v) for v in input_lengths], [int(v) for v in target_lengths]
    time, batch, classes = log_probs.shape
    labels, skip, exists = _labels(targets, target_lengths, blank)
    emit = _emissions(log_probs, labels, exists)
    beta = _backward_variables(emit, skip, input_lengths, target_lengths)
    alpha = log_alpha.transpose(1, 0, 2)
    occupancy = np.exp(alpha + beta - np.where(exists[None], emit, 0) + neg_log_likelihood[None, :, None])
    occupancy[~np.isfinite(alpha + beta)] = 0
    # occupancies of positions with the same label belong to the same class
    at = np.arange(time * batch).reshape(time, batch, 1) * classes + labels[None]
    by_class = np.bincount(at.ravel(), occupancy.ravel(), minlength=time * batch * classes).reshape(log_probs.shape)
    out = np.exp(log_probs) - by_class.astype(log_probs.dtype)
    infinite = np.isinf(neg_log_likelihood)
    if infinite.any():
        out[:, infinite] = 0 if zero_infinity else np.nan
    out *= grad[None, :, None]
    out[np.arange(time)[:, None] >= np.asarray(input_lengths)[None]] = 0
    if zero_infinity and infinite.any():
        out[:, infinite] = 0
    return out


def _backward_variables(emit: Array, skip: Array, input_lengths: list[int], target_lengths: list[int]) -> Array:
    time, batch, positions = emit.shape
    dtype = emit.dtype
    beta = np.full(emit.shape, -np.inf, dtype)
    samples = np.arange(batch)
    last = np.asarray(input_lengths, np.int64) - 1
    end = 2 * np.asarray(target_lengths, np.int64)
    no = np.asarray(-np.inf, dtype)
    # two steps forward are allowed from a position when the position they lead to allows them
    ahead = np.zeros(skip.shape, bool)
    ahead[:, : max(positions - 2, 0)] = skip[:, 2:]
    current = np.full((batch, positions), -np.inf, dtype)
    for t in range(time - 1, -1, -1):
        step = _log_add(current, _shifted(current, -1, dtype), np.where(ahead, _shifted(current, -2, dtype), no)) + emit[t]
        starting = last == t
        if starting.any():
            n = samples[starting]
            step[n] = -np.inf
            step[n, end[n]] = emit[t, n, end[n]]
            before = np.maximum(end[n] - 1, 0)
            step[n, before] = np.where(end[n] > 0, emit[t, n, before], step[n, before])
        current = np.where((t <= last)[:, None], step, no)
        beta[t] = current
    return beta
