"""Complex kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import _checks, _dtype
from ..machinery.dtypes import scalar_name
from ..machinery.layout import laid_out_like

Array = np.ndarray[Any, Any]


_PARTS = {"F": np.float32, "D": np.float64}


def view_as_real(self: Array) -> Array:
    """The same memory with a last dimension of real and imaginary parts."""
    if self.dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return self[..., np.newaxis].view(_PARTS[self.dtype.char])


def view_as_complex(self: Array) -> Array:
    """The same memory, pairs along the last dimension as complex numbers."""
    if self.dtype == np.float16:
        raise RuntimeError(
            "view_as_complex: complex numbers of half precision (complex32) have no NumPy type; use float32 or float64"
        )
    if self.dtype.kind != "f":
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{scalar_name(self)}"
        )
    if not self.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if self.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    wide = np.dtype(f"c{2 * self.itemsize}")
    if not self.size:
        return np.empty(self.shape[:-1], wide)
    if self.strides[-1] != self.itemsize:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(n > 1 and s % (2 * self.itemsize) for n, s in zip(self.shape[:-1], self.strides[:-1], strict=True)):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    return self.view(wide)[..., 0]


def angle(self: Array) -> Array:
    if self.dtype.kind == "c":
        return np.angle(self)
    if self.dtype.kind in "iub":
        return np.where(self < 0, np.pi, 0.0).astype(_dtype.get_default_dtype().np)
    return np.where(np.isnan(self), self, np.where(np.less(self, 0), np.pi, 0.0).astype(self.dtype))


def _check_parts(first: Array, second: Array, function: str) -> None:
    for x in (first, second):
        if x.dtype.kind != "f":
            a, b = (scalar_name(y) for y in (first, second))
            raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {a} and {b}")
        if x.dtype == np.float16:
            raise RuntimeError(
                f"{function}: complex numbers of half precision (complex32) have no NumPy type; use float32 or float64"
            )
    if first.dtype != second.dtype:
        a, b = (scalar_name(y) for y in (first, second))
        raise RuntimeError(f"Expected object of scalar type {a} but got scalar type {b} for second argument")
    _checks.broadcast_shapes(first.shape, second.shape)


def make_complex(real: Array, imag: Array) -> Array:
    _check_parts(real, imag, "complex")
    wide = np.complex128 if real.dtype == np.float64 else np.complex64
    out = np.empty(np.broadcast_shapes(real.shape, imag.shape), wide)
    out.real = real
    out.imag = imag
    return laid_out_like(out, real, imag)


def polar(abs: Array, angle: Array) -> Array:
    _check_parts(abs, angle, "polar")
    return make_complex(np.asarray(abs * np.cos(angle)), np.asarray(abs * np.sin(angle)))
