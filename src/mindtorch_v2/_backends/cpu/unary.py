"""Kernels of one operand that NumPy has no ufunc for, or a slow one."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import scipy.special

Array = np.ndarray[Any, Any]
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def sign(self: Array) -> Array:
    if self.dtype.kind == "b":
        return self.copy("K")
    if self.dtype.kind == "c":
        raise RuntimeError("Unlike NumPy, torch.sign doesn't allow complex inputs. Use torch.sgn.")
    return np.sign(self)


def sgn(self: Array) -> Array:
    """The direction of each number: its sign, or a complex number of length one."""
    if self.dtype.kind == "b":
        return self.copy("K")
    if self.dtype.kind != "c":
        return np.sign(self)
    length = np.abs(self)
    return np.where(length == 0, 0, self / np.where(length == 0, 1, length)).astype(self.dtype)


def rsqrt(self: Array) -> Array:
    out = np.asarray(np.sqrt(self))
    return np.reciprocal(out, out=out)


def sigmoid(self: Array) -> Array:
    """`1 / (1 + exp(-x))` in passes over one array; `scipy.special.expit` takes three times as long in float32."""
    if self.dtype.kind == "c":
        return 1 / (1 + np.exp(-self))
    if self.dtype == np.float64:
        return scipy.special.expit(self)
    out = np.asarray(np.negative(self))
    if out.dtype != np.float32:
        wide = out.astype(np.float32)
        np.exp(wide, out=wide)
        wide += 1
        np.reciprocal(wide, out=wide)
        return wide.astype(out.dtype)
    np.exp(out, out=out)
    out += 1
    return np.reciprocal(out, out=out)


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
