"""Gamma and Dirichlet variates: the rejection sampler of Marsaglia and Tsang, one element after another."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...._random import Generator
from ..machinery.floating_errors import quiet
from .random import stream
from .random_counts import Uniforms

Array = np.ndarray[Any, Any]

_TWO_PI = 2 * math.pi
# torch writes these as float32 numbers, whatever the dtype
_THIRD = np.float32(1) / np.float32(3)
_SQUEEZE = float(np.float32(0.0331))


class _Normals:
    """Standard normal numbers one by one, in pairs as the generator makes them: the second of a pair waits for the next call."""

    def __init__(self, uniform: Uniforms, waiting: float | None) -> None:
        self.uniform = uniform
        self.waiting = waiting

    def __call__(self) -> float:
        if self.waiting is not None:
            value, self.waiting = self.waiting, None
            return value
        theta = _TWO_PI * self.uniform()
        radius = math.sqrt(-2.0 * math.log1p(-self.uniform()))
        self.waiting = radius * math.sin(theta)
        return radius * math.cos(theta)


def standard_gamma(self: Array, generator: Generator | None) -> Array:
    """Gamma variates of rate one. Results are at least the smallest normal number of their dtype, also where the shape has no sense."""
    values = np.array(_variates(self, stream(generator)), np.float64).reshape(self.shape)
    with quiet():
        return np.fmax(values.astype(self.dtype), np.finfo(self.dtype).tiny)


def dirichlet(self: Array, generator: Generator | None) -> Array:
    """Points of the simplex: gamma variates in float64, whatever the dtype, so that small ones do not vanish before they are normalised."""
    info = np.finfo(self.dtype)
    gammas = np.array(_variates(self.astype(np.float64), stream(generator)), np.float64).reshape(self.shape)
    gammas = np.fmax(gammas, np.finfo(np.float64).tiny)
    points = (gammas / gammas.sum(-1, keepdims=True)).astype(self.dtype)
    return np.clip(points, info.tiny, np.nextafter(self.dtype.type(1), self.dtype.type(0)))


def _variates(alpha: Array, generator: Generator) -> list[float]:
    waiting = generator.next_normal
    uniform = Uniforms(generator, 4 * alpha.size)
    normal = _Normals(uniform, waiting)
    values = [_variate(*parameters, uniform, normal) for parameters in _parameters(alpha.reshape(-1))]
    uniform.finish()
    generator.next_normal = normal.waiting
    return values


def _parameters(alpha: Array) -> Iterator[tuple[float, float, float]]:
    """For each shape the exponent of the boost for small ones (NaN for others), and the sampler's two constants; d is 0 for a shape of 0."""
    small = alpha < 1
    with quiet():
        exponents = np.where(small, 1 / alpha, math.nan).astype(np.float64)
        d = (np.where(small, alpha + 1, alpha) - alpha.dtype.type(_THIRD)).astype(np.float64)
        d[alpha == 0] = 0
        c = 1.0 / np.sqrt(9.0 * d)
    return zip(exponents.tolist(), d.tolist(), c.tolist(), strict=True)


def _power(x: float, exponent: float) -> float:
    """x**exponent; infinite where it overflows, as it does for negative shapes."""
    try:
        return math.pow(x, exponent)
    except OverflowError:
        return math.inf


def _variate(exponent: float, d: float, c: float, uniform: Uniforms, normal: _Normals) -> float:
    if d == 0:
        return 0.0
    scale = 1.0 if math.isnan(exponent) else _power(1 - uniform(), exponent)
    while True:
        x = normal()
        y = 1.0 + c * x
        if y <= 0:
            continue
        v = y * y * y
        u = 1 - uniform()
        square = x * x
        if u < 1.0 - _SQUEEZE * square * square or math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
            return scale * d * v
