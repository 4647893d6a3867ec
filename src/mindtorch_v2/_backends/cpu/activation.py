"""Kernels of the activation functions and of their derivatives."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

Array = np.ndarray[Any, Any]

_HALF = "eE"  # type characters of float16 and of ml_dtypes' bfloat16
_SQRT_HALF = 0.7071067811865476
_INV_SQRT_2PI = 0.3989422804014327
_SQRT_2_OVER_PI = 0.7978845608028654
_CUBIC = 0.044715


def widened(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that computes 16-bit floats in float32 and rounds once, as torch does."""

    @functools.wraps(kernel)
    def wide(*args: Any) -> Any:
        dtype = args[0].dtype
        if dtype.char not in _HALF:
            return kernel(*args)
        made = kernel(*[a.astype(np.float32) if isinstance(a, np.ndarray) and a.dtype.char in _HALF else a for a in args])
        if isinstance(made, tuple):
            return tuple(m.astype(dtype) if m.dtype.char == "f" else m for m in made)
        return made.astype(dtype)

    return wide


def floating(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A kernel for floating inputs only; 16-bit ones are computed in float32."""

    def decorate(kernel: Callable[..., Any]) -> Callable[..., Any]:
        inner = widened(kernel)

        @functools.wraps(kernel)
        def checked(*args: Any) -> Any:
            char = args[0].dtype.char
            if char not in "fd":
                if char not in _HALF:
                    raise unimplemented(name, args[0])
                return inner(*args)
            return kernel(*args)

        return checked

    return decorate


def unimplemented(name: str, array: Array) -> NotImplementedError:
    from ..._dtype import FROM_NUMPY

    return NotImplementedError(f"\"{name}\" not implemented for '{FROM_NUMPY[array.dtype].scalar_name}'")


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) in one buffer; the overflow of exp is the right answer's way to 0."""
    out: Array = np.asarray(np.negative(x))
    with np.errstate(over="ignore"):
        np.exp(out, out=out)
    out += 1
    return np.reciprocal(out, out=out)


def threshold(self: Array, threshold: Any, value: Any) -> Array:
    return np.where(self <= threshold, np.asarray(value, self.dtype), self)


def threshold_backward(grad_output: Array, self: Array, threshold: Any) -> Array:
    mask = self <= threshold
    if not mask.ndim:
        return np.where(mask, np.zeros((), grad_output.dtype), grad_output)
    np.logical_not(mask, out=mask)
    if grad_output.dtype.kind == "f" and np.isfinite(grad_output).all():
        return grad_output * mask
    return np.where(mask, grad_output, np.zeros((), grad_output.dtype))


def _erf(x: Array) -> Array:
    return special.erf(x)  # type: ignore[no-any-return]


@floating("GeluKernelImpl")
def gelu(self: Array, approximate: str) -> Array:
    if _is_tanh(approximate):
        out = _tanh_inner(self)
        np.tanh(out, out=out)
    else:
        out = _erf(self * np.asarray(_SQRT_HALF, self.dtype))
    out += 1
    out *= self
    out *= 0.5
    return out


def _is_tanh(approximate: str) -> bool:
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return approximate == "tanh"


def _tanh_inner(x: Array) -> Array:
    inner: Array = x * x
    inner *= _CUBIC
    inner += 1
    inner *= x
    inner *= _SQRT_2_OVER_PI
    return inner


@floating("GeluBackwardKernelImpl")
def gelu_backward(grad_output: Array, self: Array, approximate: str) -> Array:
    x = self
    if _is_tanh(approximate):
        tanh = np.tanh(_tanh_inner(x))
        slope = x * x
        slope *= 3 * _CUBIC
        slope += 1
        slope *= _SQRT_2_OVER_PI
        slope *= 1 - tanh * tanh
        slope *= x
        slope += tanh
        slope += 1
        slope *= 0.5
        slope *= grad_output
        return slope  # type: ignore[no-any-return]
    cdf = _erf(x * np.asarray(_SQRT_HALF, x.dtype))
    cdf += 1
    cdf *= 0.5
    pdf = x * x
    pdf *= -0.5
    np.exp(pdf, out=pdf)
    pdf *= _INV_SQRT_2PI
    pdf *= x
    cdf += pdf
    cdf *= grad_output
    return cdf


@floating("silu_cpu")
def silu(self: Array) -> Array:
    out = sigmoid(self)
    out *= self
    return out


@floating("silu_backward_cpu")
def silu_backward(grad_output: Array, self: Array) -> Array:
    s = sigmoid(self)
    out = np.subtract(1, s)
    out *= self
    out += 1
    out *= s
    out *= grad_output
    return out  # type: ignore[no-any-return]


@floating("mish_cpu")
def mish(self: Array) -> Array:
    return self * np.tanh(np.logaddexp(0, self, dtype=self.dtype))  # type: ignore[no-any-return]


@floating("mish_backward_cpu")
def mish_backward(grad_output: Array, self: Array) -> Array:
    s = sigmoid(self)
    t = np.tanh(np.logaddexp(0, self, dtype=self.dtype))
    return grad_output * (t + self * s * (1 - t * t))  # type: ignore[no-any-return]


@floating("leaky_relu_cpu")
def leaky_relu(self: Array, negative_slope: Any) -> Array:
    out: Array = self * negative_slope
    if 0 <= negative_slope <= 1:
        return np.maximum(out, self, out=out) if out.ndim else np.maximum(out, self)
    return np.where(self > 0, self, out)


@floating("leaky_relu_backward_cpu")
def leaky_relu_backward(grad_output: Array, self: Array, negative_slope: Any) -> Array:
    return np.where(self > 0, grad_output, grad_output * negative_slope)


@floating("elu_cpu")
def elu(self: Array, alpha: Any, scale: Any, input_scale: Any) -> Array:
    low = np.minimum(self, 0)
    if input_scale != 1:
        low *= input_scale
    low = np.expm1(low)
    low *= alpha * scale
    return np.where(self < 0, low, self if scale == 1 else self * scale)


@floating("elu_backward_cpu")
def elu_backward(grad_output: Array, alpha: Any, scale: Any, input_scale: Any, is_result: bool, self_or_result: Array) -> Array:
    x = self_or_result
    if is_result:
        low = (x + alpha * scale) * input_scale
    else:
        low = np.exp(np.minimum(x, 0) * input_scale) * (alpha * scale * input_scale)
    return grad_output * np.where(x <= 0, low, np.asarray(scale, x.dtype))  # type: ignore[no-any-return]


@floating("softplus_cpu")
def softplus(self: Array, beta: Any, threshold: Any) -> Array:
    z = self * beta
    with np.errstate(over="ignore"):
        return np.where(z > threshold, self, np.log1p(np.exp(z)) / beta)


@floating("softplus_backward_cpu")
def softplus_backward(grad_output: Array, self: Array, beta: Any, threshold: Any) -> Array:
    z = self * beta
    return np.where(z > threshold, grad_output, grad_output * sigmoid(z))


def softshrink(self: Array, lambd: Any) -> Array:
    from ..._dtype import FROM_NUMPY

    if self.dtype.kind not in "biuc" and not 0 <= lambd <= _finite_limit(self.dtype):
        raise RuntimeError(
            f"lambda must be in range [0, {_finite_limit(self.dtype):g}] for input dtype {FROM_NUMPY[self.dtype].scalar_name}, "
            f"but found {lambd:g}"
        )
    return _softshrink(self, lambd)  # type: ignore[no-any-return]


def _finite_limit(dtype: Any) -> float:
    import ml_dtypes

    return float(ml_dtypes.finfo(dtype).max)


@floating("softshrink_check")
def _softshrink(self: Array, lambd: Any) -> Array:
    # torch: NaN stays NaN
    return np.where(self > lambd, self - lambd, np.where(self < -lambd, self + lambd, self * 0))


@floating("hardshrink_cpu")
def hardshrink(self: Array, lambd: Any) -> Array:
    return np.where((self >= -lambd) & (self <= lambd), np.zeros((), self.dtype), self)


@floating("shrink_backward_cpu")
def shrink_backward(grad: Array, self: Array, lambd: Any) -> Array:
    return np.where((self >= -lambd) & (self <= lambd), np.zeros((), grad.dtype), grad)


@floating("hardtanh_backward_cpu")
def hardtanh_backward(grad_output: Array, self: Array, min_val: Any, max_val: Any) -> Array:
    return np.where((self <= min_val) | (self >= max_val), np.zeros((), grad_output.dtype), grad_output)


@floating("hardsigmoid_cpu")
def hardsigmoid(self: Array) -> Array:
    out = self + 3
    out = np.clip(out, 0, 6)
    out /= 6
    return out  # type: ignore[no-any-return]


@floating("hardsigmoid_backward_cpu")
def hardsigmoid_backward(grad_output: Array, self: Array) -> Array:
    return np.where((self > -3) & (self < 3), grad_output * (1 / 6), np.zeros((), grad_output.dtype))


@floating("hardswish_cpu")
def hardswish(self: Array) -> Array:
    out = np.clip(self + 3, 0, 6)
    out *= self
    out /= 6
    return out  # type: ignore[no-any-return]


@floating("hardswish_backward_cpu")
def hardswish_backward(grad_output: Array, self: Array) -> Array:
    slope = np.where(self <= -3, np.zeros((), self.dtype), np.where(self < 3, self / 3 + 0.5, np.ones((), self.dtype)))
    return grad_output * slope  # type: ignore[no-any-return]


@floating("log_sigmoid_cpu")
def log_sigmoid_forward(self: Array) -> tuple[Array, Array]:
    """min(x, 0) - log1p(exp(-|x|)), and exp(-|x|) for the derivative."""
    buffer = np.abs(self)
    buffer = np.exp(np.negative(buffer))
    return np.minimum(self, 0) - np.log1p(buffer), buffer


@floating("log_sigmoid_backward_cpu")
def log_sigmoid_backward(grad_output: Array, self: Array, buffer: Array) -> Array:
    negative = self < 0
    one = np.ones((), self.dtype)
    z = buffer / (1 + buffer)
    return grad_output * (np.where(negative, one, 0 * one) - np.where(negative, z, -z))  # type: ignore[no-any-return]


@floating("glu_cpu")
def glu(self: Array, dim: int) -> Array:
    a, b = _halves(self, dim)
    out = sigmoid(b)
    out *= a
    return out


@floating("glu_backward_cpu")
def glu_backward(grad_output: Array, self: Array, dim: int) -> Array:
    a, b = _halves(self, dim)
    s = sigmoid(b)
    out = np.empty_like(self)
    first, second = _halves(out, dim)
    np.multiply(grad_output, s, out=first)
    np.subtract(1, s, out=second)
    second *= first
    second *= a
    return out


def _halves(x: Array, dim: int) -> tuple[Array, Array]:
    from ..._checks import wrap_dim

    if not x.ndim:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    dim = wrap_dim(dim, x.ndim)
    n = x.shape[dim]
    if n % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {n}")
    at = (slice(None),) * dim
    return x[*at, : n // 2], x[*at, n // 2 :]


@floating("prelu_cpu")
def prelu(self: Array, weight: Array) -> Array:
    return np.where(self > 0, self, weight * self)


@floating("prelu_backward_cpu")
def prelu_backward(grad_output: Array, self: Array, weight: Array) -> tuple[Array, Array]:
    positive = self > 0
    zero = np.zeros((), self.dtype)
    return np.where(positive, grad_output, weight * grad_output), np.where(positive, zero, self * grad_output)
