"""Optimiser steps over arrays, in place."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ...._dispatch.keys import LARGE_SIZE
from ..machinery.parallel import over_elements

__all__ = ["adagrad", "adam", "in_batches", "in_parts", "sgd"]

Array = np.ndarray[Any, Any]
Arrays = tuple[Array, ...]

# Elements. NumPy is called a dozen times for a step of Adam; gathering 100 parameters of 16 elements and writing them back makes
# the step 2.5 times as fast, of 2,048 elements 1.4 times. SGD calls it so rarely that nothing is gained.
SMALL = 2048
STEP_NS = 1.0  # for a large parameter's element of four bytes
BATCH = 1 << 16  # elements that are gathered at a time


def in_batches(of_params: Sequence[Arrays], keys: Sequence[Hashable], step: Callable[[Arrays, int], None]) -> None:
    """Call `step(arrays, i)` for the arrays of each parameter i (itself, its gradient, its state), or once for those of many.

    The arrays of small parameters with equal keys are gathered into one of each kind, and written back; `i` is one of these.
    """
    small: dict[Hashable, list[int]] = {}
    for i, arrays in enumerate(of_params):
        param = arrays[0]
        if param.size <= SMALL:
            small.setdefault((param.dtype, keys[i]), []).append(i)
        else:
            in_parts(arrays, lambda *parts, i=i: step(parts, i))
    for members in small.values():
        at = 0
        while at < len(members):
            size, first = 0, at
            while at < len(members) and size < BATCH:
                size += of_params[members[at]][0].size
                at += 1
            _together([of_params[i] for i in members[first:at]], members[first], step)


def in_parts(arrays: Arrays, step: Callable[..., None]) -> None:
    """Call `step` with the arrays of one parameter, or with parts of them on several threads."""
    if arrays[0].size < LARGE_SIZE:
        step(*arrays)
    else:
        over_elements(step, arrays, STEP_NS)


def _together(of_params: Sequence[Arrays], i: int, step: Callable[[Arrays, int], None]) -> None:
    if len({id(arrays[0]) for arrays in of_params}) < len(of_params) or len(of_params) == 1:
        for arrays in of_params:  # one that is there twice is changed twice
            step(arrays, i)
        return
    kinds = list(zip(*of_params, strict=True))
    gathered = tuple([np.concatenate([a.reshape(-1) for a in arrays]) for arrays in kinds])
    step(gathered, i)
    ends = np.cumsum([a.size for a in kinds[0]])[:-1].tolist()
    for arrays, flat in zip((kinds[0], *kinds[2:]), (gathered[0], *gathered[2:]), strict=True):  # gradients are only read
        begin = 0
        for a, end in zip(arrays, [*ends, flat.size], strict=True):
            a[...] = flat[begin:end] if a.ndim == 1 else flat[begin:end].reshape(a.shape)
            begin = end


def sgd(
    param: Array, grad: Array, buffer: Array | None, weight_decay: float, momentum: float, lr: float, dampening: float,
    *, nesterov: bool, maximize: bool, first: bool,
) -> None:  # fmt: skip
    g = -grad if maximize else grad
    if weight_decay:
        g = g + param * param.dtype.type(weight_decay)
    if buffer is not None:
        if first:
            buffer[...] = g
        else:
            buffer *= momentum
            buffer += g * g.dtype.type(1 - dampening)
        g = g + buffer * buffer.dtype.type(momentum) if nesterov else buffer
    param -= g * g.dtype.type(lr)


def adam(
    param: Array, grad: Array, exp_avg: Array, exp_avg_sq: Array, maximum: Array | None, step: float,
    lr: float, beta1: float, beta2: float, weight_decay: float, eps: float, *, maximize: bool, decoupled: bool,
) -> None:  # fmt: skip
    number = param.dtype.type
    g = -grad if maximize else grad
    if weight_decay:
        if decoupled:
            param *= number(1 - lr * weight_decay)
        else:
            g = g + param * number(weight_decay)
    work = np.subtract(g, exp_avg, out=np.empty_like(exp_avg))  # an array, also without dims
    work *= number(1 - beta1)
    exp_avg += work
    exp_avg_sq *= number(beta2)
    np.multiply(g, g, out=work)
    work *= number(1 - beta2)
    exp_avg_sq += work
    square = exp_avg_sq
    if maximum is not None:
        np.maximum(maximum, exp_avg_sq, out=maximum)
        square = maximum
    np.sqrt(square, out=work)
    work /= number((1 - beta2**step) ** 0.5)
    work += number(eps)
    np.divide(exp_avg, work, out=work)
    work *= number(lr / (1 - beta1**step))
    param -= work


def adagrad(param: Array, grad: Array, state_sum: Array, lr: float, weight_decay: float, eps: float, *, maximize: bool) -> None:
    number = param.dtype.type
    g = -grad if maximize else grad
    if weight_decay:
        g = g + param * number(weight_decay)
    work = np.multiply(g, g, out=np.empty_like(state_sum))  # an array, also without dims
    state_sum += work
    np.sqrt(state_sum, out=work)
    work += number(eps)
    np.divide(g, work, out=work)
    work *= number(lr)
    param -= work
