"""Tests of single elements, and of whole tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def _of_floats(ufunc: Any, otherwise: bool, name: str) -> Any:
    """The kernel for floats; integers and bools all have the same answer."""

    def kernel(self: Array) -> Array:
        if self.dtype.kind in "iub":
            return np.full(self.shape, otherwise)
        return ufunc(self)  # type: ignore[no-any-return]

    kernel.__name__ = name
    return kernel


isnan = _of_floats(np.isnan, False, "isnan")
isinf = _of_floats(np.isinf, False, "isinf")
isfinite = _of_floats(np.isfinite, True, "isfinite")


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
        raise RuntimeError("signbit is not supported for complex tensors.")
    if self.dtype.kind in "iub":
        return np.less(self, 0) if self.dtype.kind == "i" else np.full(self.shape, False)
    return np.signbit(self)


def isreal(self: Array) -> Array:
    return np.equal(self.imag, 0) if self.dtype.kind == "c" else np.full(self.shape, True)


def equal(self: Array, other: Array) -> bool:
    """Whether two tensors have the same shape and elements."""
    if self.dtype != other.dtype:
        from ... import _dtype

        names = [str(_dtype.FROM_NUMPY[x.dtype]).removeprefix("torch.") for x in (self, other)]
        raise RuntimeError(f"Expected object of data type {names[0]} but got data type {names[1]} for argument 'other' in call to equal")
    return self.shape == other.shape and bool(np.equal(self, other).all())
