"""Counts (Poisson, binomial): rejection samplers that take as many uniforms as they happen to need, one element after another."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...._random import Generator
from .random import stream

Array = np.ndarray[Any, Any]

# log(k!) minus Stirling's formula, for small k
_STIRLING_TAILS = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
    0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
)  # fmt: skip


class Uniforms:
    """float64 uniforms one by one, drawn in chunks; `finish` gives back to the generator what was not used."""

    def __init__(self, generator: Generator, chunk: int) -> None:
        self.generator = generator
        self.start = generator.get_state()
        self.chunk = max(chunk, 16)
        self.used = 0
        self.values: list[float] = []
        self.at = 0

    def __call__(self) -> float:
        if self.at == len(self.values):
            self.values = self.generator.uniform64(self.chunk).tolist()
            self.at = 0
        self.at += 1
        self.used += 1
        return self.values[self.at - 1]

    def finish(self) -> None:
        self.generator.set_state(self.start)
        self.generator.words(2 * self.used)


def poisson(self: Array, generator: Generator | None) -> Array:
    if not (self >= 0).all():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    uniform = Uniforms(stream(generator), 4 * self.size)
    values = [_poisson(rate, uniform) for rate in self.astype(np.float64).ravel().tolist()]
    uniform.finish()
    return np.array(values, np.float64).reshape(self.shape).astype(self.dtype)


def _poisson(rate: float, uniform: Callable[[], float]) -> float:
    if rate >= 10:
        return _poisson_by_rejection(rate, uniform)
    if rate == 0:
        return 0.0
    limit, product, k = math.exp(-rate), 1.0, 0
    while True:
        product *= uniform()
        if product <= limit:
            return float(k)
        k += 1


def _poisson_by_rejection(rate: float, uniform: Callable[[], float]) -> float:
    """Transformed rejection (Hörmann 1993)."""
    root, log_rate = math.sqrt(rate), math.log(rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    accept = 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = uniform() - 0.5, uniform()
        us = 0.5 - abs(u)
        k = float(math.floor((2 * a / us + b) * u + rate + 0.43))
        if us >= 0.07 and v <= accept:
            return k
        if k < 0 or (us < 0.013 and v > us):
            continue
        if math.log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b) <= -rate + k * log_rate - math.lgamma(k + 1):
            return k


def binomial(count: Array, prob: Array, generator: Generator | None) -> Array:
    counts, probs = np.broadcast_arrays(count, prob)
    uniform = Uniforms(stream(generator), 4 * counts.size)
    pairs = zip(counts.astype(np.float64).ravel().tolist(), probs.astype(np.float64).ravel().tolist(), strict=True)
    values = [_binomial(n, p, uniform) for n, p in pairs]
    uniform.finish()
    return np.array(values, np.float64).reshape(counts.shape).astype(count.dtype)


def _binomial(n: float, p: float, uniform: Callable[[], float]) -> float:
    if n <= 0 or p <= 0:
        return 0.0
    if p >= 1:
        return n
    if math.isnan(p) or math.isnan(n):
        return math.nan
    if p > 0.5:
        return n - _binomial_below_half(n, 1 - p, uniform)
    return _binomial_below_half(n, p, uniform)


def _binomial_below_half(n: float, p: float, uniform: Callable[[], float]) -> float:
    if n * p >= 10:
        return _binomial_by_rejection(n, p, uniform)
    log_q, total, k = math.log1p(-p), 0.0, 0
    while True:
        total += math.ceil(math.log(uniform()) / log_q)
        if total > n:
            return float(k)
        k += 1


def _binomial_by_rejection(n: float, p: float, uniform: Callable[[], float]) -> float:
    """Transformed rejection with squeeze (Hörmann 1993)."""
    deviation = math.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c, accept, r = n * p + 0.5, 0.92 - 4.2 / b, p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    m = math.floor((n + 1) * p)
    while True:
        u, v = uniform() - 0.5, uniform()
        us = 0.5 - abs(u)
        k = float(math.floor((2 * a / us + b) * u + c))
        if us >= 0.07 and v <= accept:
            return k
        if k < 0 or k > n:
            continue
        bound = (
            (m + 0.5) * math.log((m + 1) / (r * (n - m + 1)))
            + (n + 1) * math.log((n - m + 1) / (n - k + 1))
            + (k + 0.5) * math.log(r * (n - k + 1) / (k + 1))
            + _stirling_tail(m) + _stirling_tail(n - m) - _stirling_tail(k) - _stirling_tail(n - k)
        )  # fmt: skip
        if math.log(v * alpha / (a / (us * us) + b)) <= bound:
            return k


def _stirling_tail(k: float) -> float:
    if k <= 9:
        return _STIRLING_TAILS[int(k)]
    square = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)
