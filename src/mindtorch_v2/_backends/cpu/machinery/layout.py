"""Memory layouts of results: kernels over images answer in the format of their argument, as torch promises."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...._dispatch import dispatcher, keys
from ...._dispatch.op import parameter_names

__all__ = [
    "channels_last_like",
    "follow_channels_last",
    "followed",
    "has_channels_last",
    "in_channels_last",
    "in_rows",
    "laid_out_like",
]

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
    follow_channels_last()
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


_following = False


def follow_channels_last() -> None:
    """From now on, results of several operands follow the order of dimensions of the first: a tensor in another format is about to be."""
    global _following
    if not _following:
        _following = True
        dispatcher.activate(keys.LAYOUT)


def followed(result: Array, *operands: Array) -> Array:
    """A pointwise result of images or volumes with its dimensions in the order that torch's iterator goes through them.

    The first operand that has two dimensions at different distances decides about these two. NumPy goes row by row where operands disagree.
    """
    first = operands[0]
    if result.ndim not in (4, 5):
        return result
    if first.flags.c_contiguous and first.shape == result.shape:
        return result if result.flags.c_contiguous else np.ascontiguousarray(result)
    strides = [_broadcast_strides(x, result.ndim) for x in operands]
    order = iteration_order(result.shape, strides)
    wanted, step = [0] * result.ndim, result.itemsize
    for d in order:
        wanted[d] = step
        step *= max(result.shape[d], 1)
    if all(n <= 1 or a == b for n, a, b in zip(result.shape, result.strides, wanted, strict=True)) or not result.size:
        return result
    out: Array = np.ndarray(result.shape, result.dtype, None, 0, wanted)
    out[...] = result
    return out


def _broadcast_strides(x: Array, ndim: int) -> list[int]:
    own = [0 if n == 1 else s for n, s in zip(x.shape, x.strides, strict=True)]
    return [0] * (ndim - x.ndim) + own


def iteration_order(shape: tuple[int, ...], strides: list[list[int]]) -> list[int]:
    """The dimensions from the fastest to the slowest, by the strides of several operands."""
    order = list(range(len(shape)))[::-1]
    for i in range(1, len(order)):
        at = i
        for j in range(i - 1, -1, -1):
            found = _compared(shape, strides, order[j], order[at])
            if found > 0:
                order[j], order[at] = order[at], order[j]
                at = j
            elif found < 0:
                break
    return order


def _compared(shape: tuple[int, ...], strides: list[list[int]], inner: int, outer: int) -> int:
    """Positive where the two dimensions are to change places, negative where they are right, 0 where nothing decides."""
    for of_operand in strides:
        a, b = of_operand[inner], of_operand[outer]
        if a and b:
            if a != b:
                return 1 if a > b else -1
            if shape[inner] > shape[outer]:
                return 1
    return 0


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
