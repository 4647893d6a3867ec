"""Distances between rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
_BLOCK = 1 << 20  # differences held at a time


def _blocks(a: Array, b: Array) -> range:
    per_row = max(1, math.prod(b.shape[-2:]) * math.prod(a.shape[:-2]))
    return range(0, a.shape[-2], max(1, _BLOCK // per_row))


def norm_of(difference: Array, p: float) -> Array:
    """The p-norm over the last dimension; the argument is overwritten."""
    size = np.abs(difference, out=difference)
    if not size.shape[-1]:
        return np.zeros(size.shape[:-1], size.dtype)
    if p == 0:
        return np.add.reduce(size != 0, -1, dtype=size.dtype)
    if p == 1:
        return np.add.reduce(size, -1)
    if p == 2:
        return np.sqrt(np.add.reduce(np.multiply(size, size, out=size), -1))
    if math.isinf(p):
        return np.maximum.reduce(size, -1)
    return np.power(np.add.reduce(np.power(size, size.dtype.type(p), out=size), -1), size.dtype.type(1 / p))


def cdist(x1: Array, x2: Array, p: float) -> Array:
    """Distances of all rows of x1 to all rows of x2; leading dimensions broadcast."""
    batch = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    out = np.empty((*batch, x1.shape[-2], x2.shape[-2]), x1.dtype)
    blocks = _blocks(x1, x2)
    for i in blocks:
        rows = x1[..., i : i + blocks.step, None, :]
        out[..., i : i + blocks.step, :] = norm_of(rows - x2[..., None, :, :], p)
    return out


def slope(difference: Array, distance: Array, p: float) -> Array:
    """The derivative of the p-norm by each difference; distances have a last dimension of one."""
    if p == 0:
        return np.zeros_like(difference)
    if p == 1:
        return np.sign(difference)
    if p == 2:
        return np.where(distance == 0, 0, difference / np.where(distance == 0, 1, distance)).astype(difference.dtype)
    if math.isinf(p):
        return (np.sign(difference) * (np.abs(difference) == distance)).astype(difference.dtype)
    safe = np.where(distance == 0, 1, distance)
    size = np.abs(difference)
    power = np.power(np.where(size == 0, 1, size), p - 1) if p < 1 else np.power(size, p - 1)
    out = np.sign(difference) * power / np.power(safe, p - 1)
    return np.where((distance == 0) | (size == 0), 0, out).astype(difference.dtype)


def cdist_backward(grad: Array, x1: Array, x2: Array, p: float, cdist: Array) -> Array:
    """The gradient by x1, summed to its batch dimensions by the caller."""
    batch = grad.shape[:-2]
    out = np.zeros((*batch, *x1.shape[-2:]), x1.dtype)
    blocks = _blocks(x1, x2)
    for i in blocks:
        part = slice(i, i + blocks.step)
        difference = x1[..., part, None, :] - x2[..., None, :, :]
        out[..., part, :] = np.add.reduce(slope(difference, cdist[..., part, :, None], p) * grad[..., part, :, None], -2)
    return out


def pairs(n: int) -> tuple[Array, Array]:
    return np.triu_indices(n, 1)


def pdist(self: Array, p: float) -> Array:
    i, j = pairs(self.shape[0])
    return norm_of(self[i] - self[j], p)


def pdist_backward(grad: Array, self: Array, p: float, pdist: Array) -> Array:
    i, j = pairs(self.shape[0])
    part = slope(self[i] - self[j], pdist[:, None], p) * grad[:, None]
    out = np.zeros_like(self)
    np.add.at(out, i, part)
    np.subtract.at(out, j, part)
    return out
