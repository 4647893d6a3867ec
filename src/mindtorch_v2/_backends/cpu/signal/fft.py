"""Discrete Fourier transforms over NumPy arrays, in the precision of the input.

`normalization` is torch's code, which pocketfft shares: 0 none, 1 by the root of the number of points, 2 by that number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._scipy import fft

Array = np.ndarray[Any, Any]

_FORWARD = {0: "backward", 1: "ortho", 2: "forward"}
_INVERSE = {0: "forward", 1: "ortho", 2: "backward"}


def _norm(normalization: int, forward: bool) -> Any:
    return (_FORWARD if forward else _INVERSE)[normalization]


def c2c(x: Array, axes: tuple[int, ...], normalization: int, forward: bool) -> Array:
    """Complex to complex; of a real array, all of its spectrum."""
    kind = np.result_type(x.dtype, np.complex64)
    if not x.size or not axes:
        return x.astype(kind)
    of_extension = getattr(
        fft, "c2c", None
    )  # without what scipy.fft wraps around it: 1.1 µs instead of 5.3 for eight rows of eight points
    if of_extension is not None:
        return of_extension(x, axes, forward, normalization, None, 1)
    transform = fft.fftn if forward else fft.ifftn
    return transform(x, axes=axes, norm=_norm(normalization, forward))


def r2c(x: Array, axes: tuple[int, ...], normalization: int, onesided: bool) -> Array:
    """Real to complex; the last axis keeps the non-negative frequencies when one-sided."""
    if not onesided:
        return c2c(x, axes, normalization, True)
    if not x.size:
        shape = list(x.shape)
        shape[axes[-1]] = shape[axes[-1]] // 2 + 1
        return np.empty(shape, np.result_type(x.dtype, np.complex64))
    of_extension = getattr(
        fft, "r2c", None
    )  # without what scipy.fft wraps around it: 1.1 µs instead of 5.3 for eight rows of eight points
    if of_extension is not None:
        return of_extension(x, axes, True, normalization, None, 1)
    return fft.rfftn(x, axes=axes, norm=_norm(normalization, True))


def c2r(x: Array, axes: tuple[int, ...], normalization: int, points: int) -> Array:
    """Complex to real, from the non-negative frequencies along the last axis, which gets `points` values."""
    if not x.size:
        shape = list(x.shape)
        shape[axes[-1]] = points
        return np.empty(shape, x.real.dtype)
    of_extension = getattr(
        fft, "c2r", None
    )  # without what scipy.fft wraps around it: 1.1 µs instead of 5.3 for eight rows of eight points
    if of_extension is not None:
        return of_extension(x, axes, points, False, normalization, None, 1)
    sizes = [x.shape[a] for a in axes[:-1]] + [points]
    return fft.irfftn(x, s=sizes, axes=axes, norm=_norm(normalization, False))
