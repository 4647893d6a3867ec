"""Filling arrays with random numbers in the order and precision of torch's CPU kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._random import Generator, default_generator

Array = np.ndarray[Any, Any]

_TWO_PI = 2 * math.pi


def stream(generator: Generator | None) -> Generator:
    """The generator to draw from."""
    if generator is None:
        return default_generator
    if generator.__class__ is not Generator:
        raise TypeError(f"argument 'generator' must be torch.Generator, not {type(generator).__name__}")
    return generator


def fill(target: Array, values: Array) -> None:
    """Write values drawn one after another, in the order in which torch visits elements: by memory, not by index."""
    if target.flags.c_contiguous:
        target.reshape(-1)[...] = values
        return
    order = sorted(range(target.ndim), key=lambda dim: -target.strides[dim])
    view = target.transpose(order)
    view[...] = values.reshape(view.shape)


def uniform_(self: Array, from_: float, to: float, generator: Generator | None) -> None:
    draw = stream(generator)
    n = self.size
    if self.dtype == np.float64:
        values = draw.uniform64(n)
        if from_ != 0.0 or to != 1.0:
            values *= to - from_
            values += from_
    elif self.dtype == np.float32:
        values = draw.uniform32(n)
        if from_ != 0.0 or to != 1.0:
            low = np.float32(from_)
            values *= np.float32(to) - low
            values += low
    else:
        values = _narrow_uniform(self.dtype, n, from_, to, draw)
    fill(self, values)


def _narrow_uniform(dtype: Any, n: int, low: float, high: float, draw: Generator) -> Array:
    """float16 has 11 bits of precision and bfloat16 8: as many random bits are used."""
    digits = 11 if dtype == np.float16 else 8
    words = draw.words(n) & np.uint32((1 << digits) - 1)
    values = (words.astype(np.float32) * np.float32(2.0**-digits)).astype(dtype)
    span = dtype.type(dtype.type(high) - dtype.type(low))
    return (values * span).astype(dtype) + dtype.type(low)


def normal_(self: Array, mean: float, std: float, generator: Generator | None) -> None:
    draw = stream(generator)
    if self.size >= 16 and self.flags.c_contiguous:
        _normal_blocks(self.reshape(-1), mean, std, draw)
    else:
        values = normal_pairs(self.size, draw)
        values *= std
        values += mean
        fill(self, values)


def normal_pairs(n: int, draw: Generator) -> Array:
    """Standard normal float64 numbers in pairs; the second of an unfinished pair waits in the generator."""
    out = np.empty(n)
    at = 0
    if n and draw.next_normal is not None:
        out[0] = draw.next_normal
        draw.next_normal = None
        at = 1
    pairs = (n - at + 1) // 2
    if not pairs:
        return out
    u = draw.uniform64(2 * pairs)
    theta, radius = u[0::2] * _TWO_PI, np.sqrt(-2.0 * np.log1p(-u[1::2]))
    values = np.empty(2 * pairs)
    values[0::2] = radius * np.cos(theta)
    values[1::2] = radius * np.sin(theta)
    out[at:] = values[: n - at]
    if (n - at) % 2:
        draw.next_normal = float(values[-1])
    return out


def _normal_blocks(flat: Array, mean: float, std: float, draw: Generator) -> None:
    """Box-Muller over blocks of 16: eight radii, eight angles. torch: the last 16 are drawn afresh when the size is no multiple."""
    n = flat.size
    uniforms = draw.uniform64(n) if flat.dtype == np.float64 else draw.uniform32(n)
    whole = n - n % 16
    _box_muller(uniforms[:whole].reshape(-1, 2, 8), mean, std)
    if n % 16:
        tail = draw.uniform64(16) if flat.dtype == np.float64 else draw.uniform32(16)
        _box_muller(tail.reshape(1, 2, 8), mean, std)
        uniforms[-16:] = tail
    flat[...] = uniforms


def _box_muller(blocks: Array, mean: float, std: float) -> None:
    kind = blocks.dtype.type
    radius = 1 - blocks[:, 0]
    np.log(radius, out=radius)
    radius *= kind(-2)
    np.sqrt(radius, out=radius)
    theta = blocks[:, 1] * kind(_TWO_PI)
    np.cos(theta, out=blocks[:, 0])
    np.sin(theta, out=blocks[:, 1])
    blocks *= radius[:, None]
    if std != 1:
        blocks *= kind(std)
    if mean != 0:
        blocks += kind(mean)


def random_(self: Array, low: int, span: int, generator: Generator | None) -> None:
    """Integers low ≤ x < low + span; spans from 2**32 take 64 bits a number."""
    draw = stream(generator)
    if span >= 1 << 32:
        words = draw.long_words(self.size)
        if span < 1 << 64:
            words %= np.uint64(span)
        values = words.view(np.int64) + low if -(1 << 63) <= low else words.view(np.int64)
    else:
        small = draw.words(self.size)
        small %= np.uint32(span)
        values = small.astype(np.int64)
        values += low
    fill(self, values)


def bernoulli_scalar(self: Array, p: float, generator: Generator | None) -> None:
    fill(self, stream(generator).uniform64(self.size) < p)


def bernoulli_tensor(self: Array, p: Array, generator: Generator | None) -> None:
    draw = stream(generator)
    uniforms = draw.uniform64(self.size) if p.dtype == np.float64 else draw.uniform32(self.size)
    p = np.broadcast_to(p, self.shape)
    if not np.all((p >= 0) & (p <= 1)):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    self[...] = uniforms.reshape(self.shape) < p


def randperm(n: int, generator: Generator | None) -> Array:
    """Fisher-Yates from the front, one output a step."""
    draw = stream(generator)
    order = list(range(n))
    if n > 1:
        picks = draw.words(n - 1) % np.arange(n, 1, -1, dtype=np.uint32)
        for i, z in enumerate(picks.tolist()):
            j = i + z
            order[i], order[j] = order[j], order[i]
    return np.array(order, np.int64)
