"""Tests of single elements, and of whole tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._dtype import FROM_NUMPY
from ...._promotion import promote_types

Array = np.ndarray[Any, Any]


def isposinf(self: Array) -> Array:
    if self.dtype.kind == "c":
        raise RuntimeError("isposinf does not support complex inputs.")
    return np.full(self.shape, False) if self.dtype.kind in "iub" else np.equal(self, np.inf)


def isneginf(self: Array) -> Array:
    if self.dtype.kind == "c":
        raise RuntimeError("isneginf does not support complex inputs.")
    return np.full(self.shape, False) if self.dtype.kind in "iub" else np.equal(self, -np.inf)


def signbit(self: Array) -> Array:
    if self.dtype.kind == "c":
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    if self.dtype.kind in "iub":
        return np.less(self, 0) if self.dtype.kind == "i" else np.full(self.shape, False)
    return np.signbit(self)


def equal(self: Array, other: Array) -> bool:
    """Whether two tensors have the same shape and elements."""
    if self.dtype != other.dtype:
        d = promote_types(FROM_NUMPY[self.dtype], FROM_NUMPY[other.dtype]).np
        self, other = self.astype(d), other.astype(d)
    return self.shape == other.shape and bool(np.equal(self, other).all())
