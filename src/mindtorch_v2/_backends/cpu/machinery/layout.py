"""Memory layouts of results: kernels over images answer in the format of their argument, as torch promises."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...._dispatch.op import parameter_names

__all__ = ["channels_last_like", "has_channels_last", "in_channels_last", "in_rows", "laid_out_like"]

Array = np.ndarray[Any, Any]


def has_channels_last(x: Array) -> bool:
    """Whether an image's channels lie next to each other, by torch's reading of the strides."""
    if x.ndim not in (4, 5) or x.flags.c_contiguous or x.strides[1] == 0:
        return False
    least = 0
    for d in (1, *range(x.ndim - 1, 1, -1), 0):
        step = x.strides[d]
        if x.shape[d] == 0 or step < least or (d == 0 and least == x.strides[1]):
            return False
        least = step * max(x.shape[d], 1)
    return True


def in_channels_last(x: Array) -> Array:
    """An image with its channels next to each other."""
    order = (0, *range(2, x.ndim), 1)
    return np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))


def channels_last_like(kernel: Callable[..., Any], *names: str) -> Callable[..., Any]:
    """A kernel whose images are in channels-last format when one of the named arguments is."""
    parameters = parameter_names(kernel)
    positions = [parameters.index(n) for n in names]

    @functools.wraps(kernel)
    def run(*arguments: Any, **options: Any) -> Any:
        result = kernel(*arguments, **options)
        if not any(has_channels_last(arguments[i]) for i in positions):
            return result
        if isinstance(result, tuple):
            return tuple(in_channels_last(a) if a is not None and a.ndim in (4, 5) else a for a in result)
        return in_channels_last(result)

    return run


def in_rows(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel whose results are row by row, whatever the layout of the arguments."""

    @functools.wraps(kernel)
    def run(*arguments: Any) -> Any:
        result = kernel(*arguments)
        if isinstance(result, tuple):
            return tuple(None if a is None else np.asarray(a, order="C") for a in result)
        return np.asarray(result, order="C")

    return run


def laid_out_like(result: Array, *operands: Any) -> Array:
    """A result of rows in the order of the first operand of its shape, as pointwise operators have it."""
    for x in operands:
        if isinstance(x, np.ndarray) and x.shape == result.shape:
            if x.flags.c_contiguous:
                return result
            out = np.empty_like(x, dtype=result.dtype)
            out[...] = result
            return out
    return result
