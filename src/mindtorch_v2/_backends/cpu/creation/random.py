"""Filling arrays with random numbers in the order and precision of torch's CPU kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...._random import Generator, default_generator
from ..machinery.dtype_rules import refuse
from ..machinery.floating_errors import quiet
from . import random_normal

Array = np.ndarray[Any, Any]

_TWO_PI = 2 * math.pi
_FEW = 256  # numbers that are taken of those made ahead
_CHUNK = 14976  # 24 blocks of the twister: the temporaries stay in the cache


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
    else:
        target[...] = in_order_of(target, values)


def in_order_of(target: Array, values: Array) -> Array:
    """Values drawn one after another, placed as an iteration over `target` by memory places them."""
    if target.flags.c_contiguous:
        return values.reshape(target.shape)
    order = sorted(range(target.ndim), key=lambda dim: -target.strides[dim])
    back = np.argsort(order)
    return values.reshape([target.shape[dim] for dim in order]).transpose(back)


def multiply_add(x: Array, factor: float, term: float) -> Array:
    """`x * factor + term`, rounded once as the processor's fused instruction does."""
    if x.dtype == np.float32:
        wide = x.astype(np.float64)
        wide *= np.float32(factor)
        wide += np.float32(term)
        return wide.astype(np.float32)
    product = x * factor
    # the product's rounding error, exactly: both factors in halves of 26 bits (Dekker)
    high = x * 134217729.0
    high -= high - x
    low = x - high
    scaled = factor * 134217729.0
    factor_high = scaled - (scaled - factor)
    factor_low = factor - factor_high
    error = ((high * factor_high - product) + high * factor_low + low * factor_high) + low * factor_low
    total = product + term
    back = total - product
    error += (product - (total - back)) + (term - back)
    total += error
    return total


def uniform_(self: Array, from_: float, to: float, generator: Generator | None) -> None:
    draw = stream(generator)
    if from_ == 0.0 and to == 1.0 and self.dtype == np.float32 and self.flags.c_contiguous:
        draw.uniform32(self.size, self.reshape(-1))
        return
    if self.dtype.kind == "c":
        self = _parts(self)
    n = self.size
    if self.dtype == np.float64:
        values = draw.uniform64(n)
        span = to - from_
        if abs(from_) > 1e150 or abs(to) > 1e150:  # beyond what a product split in two for one rounding can hold
            fill(self, values * span + from_)
            return
    elif self.dtype == np.float32:
        values = draw.uniform32(n)
        span = float(np.float32(to) - np.float32(from_))
    else:
        values = draw.uniform32(n)
        span = to - from_
    values = values if from_ == 0.0 and to == 1.0 else multiply_add(values, span, from_)
    if self.itemsize == 2:
        values = values.astype(self.dtype)
        values[values == self.dtype.type(to)] = from_  # rounding must not reach the excluded end
    fill(self, values)


def _parts(array: Array) -> Array:
    """The real and imaginary parts of complex numbers, as a last dimension."""
    real = np.dtype(f"f{array.itemsize // 2}")
    return np.ndarray((*array.shape, 2), real, array, 0, (*array.strides, real.itemsize))


def normal_(self: Array, mean: float, std: float, generator: Generator | None) -> None:
    draw = stream(generator)
    if self.dtype.kind == "c":
        self, std = _parts(self), std / math.sqrt(2)  # torch: each part has half of the variance
    if self.size >= 16 and self.flags.c_contiguous:
        _normal_blocks(self.reshape(-1), mean, std, draw)
    else:
        fill(self, multiply_add(normal_pairs(self.size, draw, self.dtype), std, mean))


def normal_pairs(n: int, draw: Generator, dtype: np.dtype[Any]) -> Array:
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
    theta, radius = u[0::2] * _TWO_PI, np.sqrt(-2.0 * _mapped("log1p", -u[1::2], dtype))
    values = np.empty(2 * pairs)
    values[0::2] = radius * _mapped("cos", theta, dtype)
    values[1::2] = radius * _mapped("sin", theta, dtype)
    out[at:] = values[: n - at]
    if (n - at) % 2:
        draw.next_normal = float(values[-1])
    return out


def _standard_normals(uniforms: Array) -> Array:
    random_normal.box_muller(uniforms.reshape(-1, 2, 8), 0.0, 1.0)
    return uniforms


def _normal_blocks(flat: Array, mean: float, std: float, draw: Generator) -> None:
    """Box-Muller over blocks of 16; the last 16 are drawn afresh when the size is no multiple of 16."""
    n = flat.size
    if n <= _FEW and n % 16 == 0 and flat.dtype == np.float32:
        values = draw.normals(n, _standard_normals)
        flat[...] = values if mean == 0 and std == 1 else multiply_add(values, std, mean)
        return
    whole = n - n % 16
    uniform = draw.uniform64 if flat.dtype == np.float64 else draw.uniform32
    box_muller = _box_muller if flat.dtype == np.float64 else random_normal.box_muller
    if flat.itemsize >= 4:
        values = uniform(n)
    else:  # torch: the kernel of the narrow types does not draw for an unfinished block
        values = np.empty(n, np.float32)
        values[:whole] = uniform(whole)
    box_muller(values[:whole].reshape(-1, 2, 8), mean, std)
    if n % 16:
        tail = uniform(16)
        box_muller(tail.reshape(1, 2, 8), mean, std)
        values[-16:] = tail
    flat[...] = values


def _box_muller(blocks: Array, mean: float, std: float) -> None:
    """The same in float64, with the C library's functions."""
    radius = 1 - blocks[:, 0]
    np.log(radius, out=radius)
    radius *= -2.0
    np.sqrt(radius, out=radius)
    theta = blocks[:, 1] * _TWO_PI
    np.cos(theta, out=blocks[:, 0])
    np.sin(theta, out=blocks[:, 1])
    blocks *= radius[:, None]
    if mean != 0 or std != 1:
        blocks[...] = multiply_add(blocks, std, mean)


def random_(self: Array, low: int, span: int, generator: Generator | None, *, wide: bool) -> None:
    """Integers low ≤ x < low + span; `wide` spans take 64 bits a number."""
    draw = stream(generator)
    if not self.flags.c_contiguous:
        values = np.empty(self.size, self.dtype)
        random_(values, low, span, generator, wide=wide)
        fill(self, values)
        return
    flat = self.reshape(-1)
    if flat.size <= _CHUNK:
        flat[...] = _integers(flat.size, low, span, draw, wide=wide)
        return
    for start in range(0, len(flat), _CHUNK):
        piece = flat[start : start + _CHUNK]
        piece[...] = _integers(len(piece), low, span, draw, wide=wide)


def _integers(n: int, low: int, span: int, draw: Generator, *, wide: bool) -> Array:
    if wide:
        words = draw.long_words(n)
        values = words.view(np.int64)
        if span < 1 << 64:
            words %= np.uint64(span)
            values += low
    else:
        small = draw.words(n)
        if span & (span - 1) == 0:
            small &= np.uint32(span - 1)
        else:
            # as a quotient, which NumPy computes with vector instructions, unlike the remainder: a fifth of the time
            quotient = small // np.uint32(span)
            quotient *= np.uint32(span)
            small -= quotient
        values = small.view(np.int32) if span <= 1 << 31 else small  # signed integers convert faster
        if low:
            values = values + np.int64(low)
    return values


def bernoulli_scalar(self: Array, p: float, generator: Generator | None) -> None:
    fill(self, stream(generator).bernoulli(self.size, p))


def _expanded(p: Array, shape: tuple[int, ...]) -> Array:
    try:
        return np.broadcast_to(p, shape)
    except ValueError:
        raise RuntimeError(f"bernoulli_(): probabilities of shape {list(p.shape)} do not expand to {list(shape)}") from None


def bernoulli_tensor(self: Array, p: Array, generator: Generator | None) -> None:
    refuse("bernoulli_tensor_cpu_p_", p, "bic")
    draw = stream(generator)
    uniforms = draw.uniform64(self.size) if p.dtype == np.float64 else draw.uniform32(self.size)
    if p.shape != self.shape:
        p = _expanded(p, self.shape)
    if p.size and not (p.item(p.argmin()) >= 0 and p.item(p.argmax()) <= 1):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    self[...] = in_order_of(self, uniforms) < p


def _mapped(name: str, values: Array, dtype: np.dtype[Any]) -> Array:
    """A function of float64 numbers. For results in float64 it is the C library's, number by number, as in torch.

    NumPy's own differs in the last bit on processors with AVX-512, which the rounding to other dtypes hides. It takes a tenth of the time.
    """
    if dtype != np.float64:
        return getattr(np, name)(values)
    try:
        return np.fromiter(map(getattr(math, name), values.tolist()), np.float64, len(values))
    except OverflowError:  # of `exp`, where the result is infinite
        return getattr(np, name)(values)


def exponential_(self: Array, lambd: float, generator: Generator | None) -> None:
    values = stream(generator).uniform64(self.size)
    values = _mapped("log1p", np.negative(values, out=values), self.dtype)
    values *= -1.0 / lambd
    fill(self, values)


def geometric_(self: Array, p: float, generator: Generator | None) -> None:
    values = stream(generator).uniform64(self.size)
    with quiet():
        np.log(values, out=values)
    values /= math.log1p(-p)
    fill(self, np.ceil(values, out=values))


def log_normal_(self: Array, mean: float, std: float, generator: Generator | None) -> None:
    fill(self, _mapped("exp", multiply_add(normal_pairs(self.size, stream(generator), self.dtype), std, mean), self.dtype))


def cauchy_(self: Array, median: float, sigma: float, generator: Generator | None) -> None:
    values = stream(generator).uniform64(self.size)
    values -= 0.5
    values *= math.pi
    fill(self, multiply_add(_mapped("tan", values, self.dtype), sigma, median))


def with_replacement(weights: Array, n: int, generator: Generator | None) -> Array:
    """Indices drawn from rows of weights: uniforms searched in the cumulated, normalised weights."""
    draw = stream(generator)
    rows = weights.reshape(-1, weights.shape[-1])
    wide = rows.astype(np.float32) if rows.itemsize < 4 else rows
    cumulated = np.cumsum(wide, axis=1, dtype=wide.dtype)
    totals = cumulated[:, -1:]
    if not (totals > 0).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    cumulated /= totals
    cumulated[:, -1] = 1
    uniforms = draw.uniform64(rows.shape[0] * n).reshape(-1, n)
    out = np.empty((rows.shape[0], n), np.int64)
    if rows.shape[0] <= 8 or rows.shape[1] > 512:
        for row, wanted, target in zip(cumulated, uniforms, out, strict=True):
            target[:] = np.searchsorted(row, wanted, side="left")
    else:
        # many short rows: counting the smaller ones is what the search finds
        step = max(1, (1 << 20) // (n * rows.shape[1]))
        for i in range(0, len(out), step):
            out[i : i + step] = (cumulated[i : i + step, None, :] < uniforms[i : i + step, :, None]).sum(-1)
    return out.reshape(*weights.shape[:-1], n)


def randperm(n: int, generator: Generator | None) -> Array:
    """Fisher-Yates from the front, one output a step: step i exchanges the elements at i and at picks[i], which is not below i."""
    draw = stream(generator)
    if n < 2:
        return np.arange(n)
    steps = np.arange(n, dtype=np.uint32)
    picks = draw.words(n - 1) % (n - steps[:-1])
    picks += steps[:-1]
    if n >= 256:
        return _exchanged(np.append(picks, steps[-1:]).astype(np.int64))
    order = list(range(n))
    for i, j in enumerate(picks.tolist()):
        order[i], order[j] = order[j], order[i]
    return np.array(order, np.int64)


def _exchanged(picks: Array) -> Array:
    """The numbers 0, 1, … after exchanging those at i and at picks[i] for each i in turn, where picks[i] ≥ i.

    What is at position p when step i comes was put there by the last step k < i that picked p: the element that position k held at
    step k. Following k from step to step, down to a position that nothing was put into, ends at the element itself. Nobody waits
    for the steps in between, so that all chains are followed at once, halving their lengths in each round: a tenth of the loop's time.
    """
    n = len(picks)
    steps = np.arange(n)
    moved = picks != steps
    origin = steps.copy()
    origin[picks[moved]] = steps[moved]  # the last step that put something into each position; of equal picks the last one counts
    while True:
        further = origin[origin]
        if np.array_equal(further, origin):
            break
        origin = further
    order = np.sort(picks * n + steps) % n  # steps by what they picked, in their own order
    picked = picks[order]
    out = np.empty(n, np.int64)
    again = np.empty(n, bool)
    again[0] = False
    np.equal(picked[1:], picked[:-1], out=again[1:])
    out[order] = picked
    out[order[again]] = origin[order[:-1][again[1:]]]
    return out
