"""Optimiser steps over arrays, in place."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["adam", "sgd"]

Array = np.ndarray[Any, Any]


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
    work = g - exp_avg
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
