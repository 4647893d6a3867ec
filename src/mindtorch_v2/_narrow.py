"""Elements that are kept as bits (float8, complex32): from bits to values, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _dtype
from ._backends.cpu.machinery.floating_errors import quiet

__all__ = ["decoded", "encoded"]

Array = np.ndarray[Any, Any]


def _codec(d: _dtype.NarrowDtype) -> np.dtype[Any]:
    if d.decoded is None:
        raise NotImplementedError(
            f"\"copy_kernel\" not implemented for '{d.scalar_name}': its elements have no value here, only bits"
        )
    return d.decoded


def decoded(bits: Array, d: _dtype.NarrowDtype) -> Array:
    """The values, as float32 or complex64."""
    codec = _codec(d)
    if d is _dtype.complex32:
        parts = np.ascontiguousarray(bits).view(codec).reshape(*bits.shape, 2).astype(np.float32)
        return parts.view(np.complex64).reshape(bits.shape)
    return np.ascontiguousarray(bits).view(codec).reshape(bits.shape).astype(np.float32)


def encoded(values: Array, d: _dtype.NarrowDtype) -> Array:
    """The bits of values, rounded to the nearest."""
    codec = _codec(d)
    with quiet():
        if d is _dtype.complex32:
            parts = np.ascontiguousarray(values.astype(np.complex64)).view(np.float32).astype(codec)
            return parts.view(d.bits).reshape(values.shape)
        real = np.ascontiguousarray((values.real if np.iscomplexobj(values) else values).astype(np.float32))
        bits = _prepared(real, d.name).astype(codec).view(d.bits).reshape(values.shape)
        if d.name == "float8_e5m2":
            bits |= np.isnan(real).reshape(values.shape)  # torch: all bits of a NaN's mantissa are set
        if d.name == "float8_e8m0fnu":
            bits[(real == 0).reshape(values.shape)] = 0
    return bits


def _prepared(real: Array, name: str) -> Array:
    """Values whose conversion by `ml_dtypes` is torch's."""
    if name == "float8_e4m3fn":
        return np.clip(real, -448, 448)  # torch: what is too large becomes the largest, and infinity as well
    return np.abs(real) if name == "float8_e8m0fnu" else real  # torch: the sign is dropped
