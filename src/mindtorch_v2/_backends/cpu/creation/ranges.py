"""Arithmetic and geometric progressions, rounded as torch's vectorised kernels round them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...._dtype import INTEGER, dtype
from ..machinery.floating_errors import quiet

if TYPE_CHECKING:
    pass

Array = np.ndarray[Any, Any]
_wide = np.longdouble


def _fused(i: Array, step: Any, start: Any, d: dtype) -> Array:
    """`start + step * i` with one rounding to the dtype: its product is exact in the next wider type, or nearly always."""
    if d.itemsize < 8:
        return i * float(step) + start
    return (i.astype(_wide) * _wide(step) + np.asarray(start, _wide)).astype(np.float64)


def progression(start: int | float, step: int | float, n: int, d: dtype, *, in_registers: bool = True) -> Array:
    """`start + i * step` for i < n.

    torch fills registers of 32 bytes: the first element of each is computed in double and rounded to the dtype, the others
    count from there. What is left after pairs of registers is computed one by one.
    """
    if d.category == INTEGER:
        return np.arange(start, start + n * step, step, dtype=np.int64).astype(d.np, copy=False)
    if float(start).is_integer() and float(step).is_integer():
        # whole numbers are exact whichever way they are computed
        return np.arange(start, start + n * step, step, dtype=np.float64)[:n].astype(d.np, copy=False)
    lanes = 32 // d.itemsize
    i = np.arange(n, dtype=np.float64)
    if not in_registers:
        return _rounded(_fused(i, step, start, d), d)
    lane = i % lanes
    out = _rounded(_fused(i - lane, step, start, d), d).astype(np.float64)
    out = _fused(lane, step, out, d)
    alone = n - n % (2 * lanes)
    out[alone:] = _fused(i[alone:], step, start, d)
    return _rounded(out, d)


def _rounded(x: Array, d: dtype) -> Array:
    """To the dtype; to the narrow ones by way of float32, as torch converts a double."""
    return (x.astype(np.float32) if d.itemsize == 2 else x).astype(d.np)


def spaced(start: Any, end: Any, steps: int, d: dtype) -> Array:
    """`steps` values from start to end, counted from both ends towards the middle."""
    if steps == 1:
        return np.full(1, start, d.np)
    if steps == 0:
        return np.empty(0, d.np)
    half = steps // 2
    from_start, from_end = np.arange(half), np.arange(steps - half)[::-1]
    if d.category == INTEGER:
        start, end = int(start), int(end)
        step: Any = (end - start) / (steps - 1)
        return np.concatenate([start + step * from_start, end - step * from_end]).astype(d.np)
    kind = d.np.type
    first, last = kind(start), kind(end)
    step = (last - first) / kind(steps - 1)
    if d.is_complex or d.itemsize == 2:
        real = np.dtype(kind(0).real.dtype) if d.is_complex else d.np
        low, high = step * from_start.astype(real), step * from_end.astype(real)
        return np.concatenate([first + low, last - high]).astype(d.np)
    low, high = _fused(from_start, step, float(first), d), _fused(from_end, -step, float(last), d)
    return np.concatenate([low, high]).astype(d.np)


def spaced_powers(start: Any, end: Any, steps: int, base: float, d: dtype) -> Array:
    """`base` raised to `steps` exponents from start to end."""
    if d.is_complex:
        return np.power(d.np.type(base), spaced(start, end, steps, d)).astype(d.np)
    if d.category == INTEGER:
        start, end = int(start), int(end)  # torch: the ends are whole numbers, the exponents between them are not
    exponents = spaced(start, end, steps, d).astype(np.float64)
    if d.category != INTEGER and d.itemsize < 8 and steps > 1:
        # torch: the exponents of narrow types are not rounded to the type before they are raised
        step = float((d.np.type(end) - d.np.type(start)) / d.np.type(steps - 1))
        half = steps // 2
        exponents[:half] = float(d.np.type(start)) + step * np.arange(half)
        exponents[half:] = float(d.np.type(end)) - step * np.arange(steps - half)[::-1]
    elif (d.itemsize == 8 or d.category == INTEGER) and steps > 1:
        step, half = (float(end) - float(start)) / (steps - 1), steps // 2
        exponents[:half] = start + step * np.arange(half)
        exponents[half:] = end - step * np.arange(steps - half)[::-1]
    with quiet():
        return _rounded(np.power(float(base), exponents), d)
