"""Kernels of one operand that NumPy has no ufunc for, or a slow one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ...._scipy import ufuncs
from ..machinery.dtype_rules import unimplemented
from ..machinery.floating_errors import silent

Array = np.ndarray[Any, Any]
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
ONE = np.asarray(1, np.float32)


def sign(self: Array) -> Array:
    if self.dtype.kind == "b":
        return self.copy("K")
    if self.dtype.kind == "c":
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )
    return np.sign(self)


def sgn(self: Array) -> Array:
    """The direction of each number: its sign, or a complex number of length one."""
    if self.dtype.kind == "b":
        return self.copy("K")
    if self.dtype.kind != "c":
        return np.sign(self)
    length = np.abs(self)
    return np.where(length == 0, 0, self / np.where(length == 0, 1, length)).astype(self.dtype)


def abs_(self: Array) -> Array:
    if self.dtype.kind == "c":
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return np.absolute(self)


@silent
def rsqrt(self: Array) -> Array:
    out = np.asarray(np.sqrt(self))
    return np.divide(1, out, out=out)  # half the time of np.reciprocal


@silent
def sigmoid(self: Array) -> Array:
    """`1 / (1 + exp(-x))` in passes over one array: a third of the time of `scipy.special.expit` for large float32 arrays."""
    d = self.dtype
    if d == np.float64 or (d == np.float32 and self.size < 512):
        return ufuncs.expit(self)
    if d.kind == "c":
        return 1 / (1 + np.exp(-self))
    out = np.asarray(np.negative(self if d == np.float32 else self.astype(np.float32)))
    np.exp(out, out=out)
    np.add(out, ONE, out=out)
    np.divide(ONE, out, out=out)
    return out if d == np.float32 else out.astype(d)


def sigmoid_backward(grad_output: Array, output: Array) -> Array:
    """`grad * (1 - y) * y`."""
    out = np.asarray(np.subtract(1, output, dtype=output.dtype))
    if output.dtype.kind == "c":
        return grad_output * np.conj(out * output)
    if out.shape != np.broadcast_shapes(out.shape, grad_output.shape):
        return grad_output * (out * output)
    out *= output
    out *= grad_output
    return out


def tanh_backward(grad_output: Array, output: Array) -> Array:
    """`grad * (1 - y²)`."""
    out = np.asarray(np.multiply(output, output))
    np.subtract(1, out, out=out)
    if output.dtype.kind == "c":
        return grad_output * np.conj(out)
    if out.shape != np.broadcast_shapes(out.shape, grad_output.shape):
        return grad_output * out
    out *= grad_output
    return out


@silent
def log1p(self: Array) -> Array:
    """`log(1 + x)` corrected for the rounding of `1 + x`: in float32 a third of the time of NumPy's, which is not vectorised."""
    if self.dtype != np.float32 or self.size < 512:
        return np.log1p(self)
    rounded = np.add(self, ONE)
    lost = np.subtract(rounded, ONE)
    np.subtract(self, lost, out=lost)
    np.divide(lost, rounded, out=lost)
    np.log(rounded, out=rounded)
    # at -1 and infinity there is nothing to correct, and the correction is nan
    return np.add(rounded, lost, out=rounded, where=np.isfinite(lost))


def exp2(self: Array) -> Array:
    if self.dtype.kind == "c":
        return np.exp(self * self.dtype.type(np.log(2)))
    return np.exp2(self)


def sinc(self: Array) -> Array:
    """`sin(πx) / (πx)`, one at zero."""
    if (self.dtype.kind == "f" and self.dtype.itemsize == 2) or self.dtype == BFLOAT16:
        return sinc(self.astype(np.float32)).astype(self.dtype)
    x = np.asarray(self * self.dtype.type(np.pi))
    zero = x == 0
    out = np.asarray(np.sin(x))
    np.copyto(x, 1, where=zero)
    np.copyto(out, 1, where=zero)
    return np.divide(out, x, out=out)


def _integers_as_they_are(ufunc: np.ufunc, name: str) -> Callable[..., Any]:
    def kernel(self: Array) -> Array:
        if self.dtype.kind in "iu":
            return self.copy("K")
        if self.dtype.kind in "bc":
            raise unimplemented(f"{name}_vml_cpu", self)
        return ufunc(self)

    kernel.__name__ = name
    return silent(kernel)


floor = _integers_as_they_are(np.floor, "floor")
ceil = _integers_as_they_are(np.ceil, "ceil")
trunc = _integers_as_they_are(np.trunc, "trunc")
round = _integers_as_they_are(np.rint, "round")


def round_decimals(self: Array, decimals: int) -> Array:
    if self.dtype.kind not in "fV" and self.dtype != BFLOAT16:
        raise unimplemented("round_cpu", self)
    scale = self.dtype.type(10.0 ** abs(decimals))
    if decimals == 0:
        return np.rint(self)
    if decimals > 0:
        return np.rint(self * scale) / scale
    return np.rint(self / scale) * scale


def frac(self: Array) -> Array:
    if self.dtype.kind in "iubc":
        raise unimplemented("frac_cpu", self)
    out = np.asarray(np.trunc(self))
    return np.subtract(self, out, out=out)


def nan_to_num(self: Array, nan: float | None, posinf: float | None, neginf: float | None) -> Array:
    kind = self.dtype.kind
    if kind in "iub":
        return self.copy("K")
    if kind == "c":
        out = self.copy("K")
        out.real, out.imag = (nan_to_num(x, nan, posinf, neginf) for x in (self.real, self.imag))
        return out
    info: Any = ml_dtypes.finfo(self.dtype) if self.dtype == BFLOAT16 else np.finfo(self.dtype)  # type: ignore[no-untyped-call]
    high, low = info.max if posinf is None else posinf, info.min if neginf is None else neginf
    out = self.copy("K")
    np.copyto(out, np.asarray(0.0 if nan is None else nan).astype(self.dtype), where=np.isnan(self))
    np.copyto(out, np.asarray(high).astype(self.dtype), where=self == np.inf)
    np.copyto(out, np.asarray(low).astype(self.dtype), where=self == -np.inf)
    return out


def logit(self: Array, eps: float | None) -> Array:
    if self.dtype.kind == "c":
        raise unimplemented("logit_cpu", self)
    if eps is not None:
        self = np.clip(self, self.dtype.type(eps), self.dtype.type(1 - eps))
    out = np.asarray(np.subtract(self.dtype.type(1), self))
    np.divide(self, out, out=out)
    return np.log(out, out=out)


def logit_backward(grad_output: Array, self: Array, eps: float | None) -> Array:
    one = self.dtype.type(1)
    out = np.asarray(grad_output / (self * (one - self)))
    if eps is None:
        # torch: outside of [0, 1] the derivative is nan
        return np.where((self < 0) | (self > 1), self.dtype.type(np.nan), out)
    return np.where((self < eps) | (self > 1 - eps), self.dtype.type(0), out)


def frexp(self: Array) -> tuple[Array, Array]:
    if self.dtype.kind in "iubc":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    mantissa, exponent = np.frexp(self)
    return np.asarray(mantissa), np.asarray(exponent).astype(np.int32)
