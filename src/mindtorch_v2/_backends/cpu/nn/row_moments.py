"""Mean and deviation of the rows of a matrix, for normalisations of a sample by itself: layer and group."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
LARGE = 1 << 16  # elements from which blocks and BLAS pay


def row_sums(x: Array) -> Array:
    """Sums along rows as a product with ones: BLAS takes 0.09 ms a million, `np.add.reduce` 0.22."""
    if x.size < 4096:
        return np.add.reduce(x, 1, keepdims=True)
    return (x @ np.ones(x.shape[1], x.dtype))[:, None]


def row_moments(x: Array, eps: float) -> tuple[Array, Array, Array]:
    """Rows minus their mean (a new array), the means, and the reciprocal standard deviations."""
    n = max(x.shape[1], 1)
    mean = row_sums(x)
    mean /= n
    centred = x - mean
    var = np.vecdot(centred, centred)
    var /= n
    var += eps
    np.sqrt(var, out=var)
    return centred, mean, np.reciprocal(var, out=var)[:, None]


def quick_moments(x: Array, ones: Array, mean: Array, var: Array) -> bool:
    """Mean and variance of each row, the latter as mean(x²) - mean². False when a row's mean is so large that digits cancel."""
    n = x.shape[1]
    np.matmul(x, ones, out=mean)
    mean /= n
    square = mean * mean
    np.vecdot(x, x, out=var)
    var /= n
    var -= square
    square *= 0.125
    return bool((square <= var).all())
