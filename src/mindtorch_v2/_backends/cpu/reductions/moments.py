"""Variance and vector-norm kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..machinery.dtypes import FLOAT, HALVES
from ..machinery.floating_errors import silent
from .sums import ONES, SQUARES, add_up, row_major

Array = np.ndarray[Any, Any]
_maximum: Any = np.maximum.reduce
_minimum: Any = np.minimum.reduce


@silent
def few_var(self: Array, correction: float) -> float | None:
    """The variance of all of a few float32 elements, 3 µs instead of 20; None for other arrays."""
    n = self.size
    if self.dtype is not FLOAT or not correction < n < len(ONES):
        return None
    flat = self.ravel()
    centred = np.subtract(flat, np.array(ONES[n].dot(flat).item() / n, FLOAT))
    return centred.dot(centred).item() / (n - correction)


@silent
def few_row_vars(self: Array, correction: float) -> Array | None:
    """The variances of a few short rows of float32 numbers, 3 µs instead of 10; None for other arrays."""
    n = self.shape[-1]
    if not correction < n < len(SQUARES) or self.size > 1024:
        return None
    centred = self.dot(SQUARES[n])
    np.divide(centred, np.array(n, FLOAT), centred)
    np.subtract(self, centred, centred)
    var = np.multiply(centred, centred, centred).dot(ONES[n])
    return np.divide(var, np.array(n - correction, FLOAT))


def var_mean(self: Array, gone: tuple[int, ...], correction: float, keepdim: bool) -> tuple[Array, Array]:
    """Variance and mean over some dimensions, in two passes: the second is about the mean of the first."""
    d = self.dtype
    x = self.astype(FLOAT) if d in HALVES else self
    number = x.real.dtype.type
    n = math.prod([x.shape[a] for a in gone])
    mean = np.divide(add_up(x, gone, True), number(n))
    centred = np.subtract(x, mean)
    if x.dtype.kind == "c":
        squares = np.square(centred.real) + np.square(centred.imag)
    else:
        squares = np.multiply(centred, centred, centred) if x.ndim else np.multiply(centred, centred)
    var = np.divide(add_up(np.asarray(squares), gone, keepdim), number(max(n - correction, 0)))
    if not keepdim:
        mean = mean.reshape(np.shape(var))
    if x is not self:
        return np.asarray(var).astype(d), np.asarray(mean).astype(d)
    return var, mean if x.ndim < 3 else row_major(mean)


def single(shape: tuple[int, ...], gone: tuple[int, ...]) -> bool:
    """Whether there is but one element along these dimensions."""
    return math.prod([shape[d] for d in gone]) == 1


def vector_norm(self: Array, ord: float, gone: tuple[int, ...], keepdim: bool) -> Array:
    """The norm over some dimensions; half precision is added up in float32."""
    shape = self.shape
    if ord == 2 and self.dtype is FLOAT and not keepdim and self.size > 1 and self.flags.c_contiguous:
        if len(gone) == self.ndim:
            flat = self.ravel()
            return np.asarray(np.sqrt(np.dot(flat, flat)))
        if gone == (self.ndim - 1,) and shape[-1] > 1:
            return np.sqrt(np.vecdot(self, self))
    if (1 in shape or not shape) and ord and single(shape, gone):
        size = np.asarray(np.abs(self))
        return row_major(size if keepdim else size.squeeze(gone))
    d = self.dtype
    x = self.astype(FLOAT) if d in HALVES else self
    out = np.asarray(_vector_norm(x, ord, gone, keepdim))
    return row_major(out.astype(d) if x is not self else out)


def _vector_norm(x: Array, ord: float, gone: tuple[int, ...], keepdim: bool) -> Any:
    if ord == 2 and x.dtype.kind == "f":
        if len(gone) == x.ndim and x.flags.forc:
            flat = x.ravel(order="K")
            norm = np.sqrt(np.dot(flat, flat))
            return norm.reshape((1,) * x.ndim) if keepdim else norm
        if gone == (x.ndim - 1,) and x.flags.c_contiguous:
            norm = np.sqrt(np.vecdot(x, x))
            return norm[..., None] if keepdim else norm
        return np.sqrt(add_up(np.square(x), gone, keepdim))
    size = np.abs(x)
    if not size.ndim:
        size = np.asarray(size)
    if ord == math.inf:
        return _maximum(size, gone, keepdims=keepdim, initial=0)
    if ord == -math.inf:
        return _minimum(size, gone, keepdims=keepdim, **({} if size.size else {"initial": math.inf}))
    if ord == 0:
        return add_up((size != 0).astype(size.dtype), gone, keepdim)
    if ord == 1:
        return add_up(size, gone, keepdim)
    if ord == 2:
        return np.sqrt(add_up(np.square(size), gone, keepdim))
    return np.power(add_up(np.power(size, size.dtype.type(ord)), gone, keepdim), size.dtype.type(1 / ord))
