"""Kernels of the activation functions and of their derivatives."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ...._checks import wrap_dim
from ...._scipy import ufuncs
from ...._types import Number
from ..elementwise.choosing import keep, select
from ..machinery.dtypes import FLOAT, scalar_name
from ..machinery.floating_errors import quiet, silent
from ..machinery.half_precision import floating

Array = np.ndarray[Any, Any]
_SQRT_HALF = 0.7071067811865476
_INV_SQRT_2PI = 0.3989422804014327
_SQRT_2_OVER_PI = 0.7978845608028654
_CUBIC = 0.044715


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) in one buffer; the overflow of exp is the right answer's way to 0."""
    out: Array = np.asarray(np.negative(x))
    np.exp(out, out=out)
    out += 1
    return np.divide(1, out, out=out)  # half the time of np.reciprocal


def log1p_of_exp(x: Array) -> Array:
    """log(1 + exp(x)) for x <= 0, overwriting x.

    NumPy's `log1p` takes 35 ms a million elements; the logarithm of the rounded sum, plus what rounding lost, takes 4 ms.
    """
    return log1p_of_small(np.exp(x, out=x))


def log1p_of_small(e: Array) -> Array:
    """log(1 + e) for 0 <= e <= 1, overwriting e."""
    u = np.asarray(e + 1)
    lost = u - 1
    np.subtract(e, lost, out=e)
    e /= u
    e += np.log(u, out=u)
    return e


def expm1_of_negative(x: Array) -> Array:
    """exp(x) - 1 for x <= 0, overwriting x, from tanh(x / 2), which NumPy has vectorised (`expm1` takes ten times as long)."""
    x *= 0.5
    t = np.tanh(x, out=x)
    t /= np.asarray(1 - t)
    t *= 2
    return t


def threshold(self: Array, threshold: Number, value: Number) -> Array:
    return select(self <= threshold, np.broadcast_to(np.asarray(value, self.dtype), self.shape), self)


def threshold_backward(grad_output: Array, self: Array, threshold: Number) -> Array:
    if grad_output.shape != self.shape:
        return np.where(self <= threshold, np.zeros((), grad_output.dtype), grad_output)
    mask = np.asarray(self <= threshold)
    return keep(np.logical_not(mask, out=mask), grad_output)


# erfc(z) = t (c1 + t (c2 + …)) exp(-z²) with t = 1 / (1 + _TAIL z) for z >= 0, error 1.5e-7 (Abramowitz and Stegun 7.1.26)
_TAIL = 0.3275911
_TAIL_COEFFICIENTS = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)


def _half_tail(x: Array, gauss: Array) -> Array:
    """The probability that a normal variable exceeds |x|, in float32; `gauss` is exp(-x² / 2)."""
    t = np.asarray(np.abs(x))
    t *= _TAIL * _SQRT_HALF
    t += 1
    np.divide(1, t, out=t)
    out = np.asarray(t * (0.5 * _TAIL_COEFFICIENTS[0]))
    for c in _TAIL_COEFFICIENTS[1:]:
        out += 0.5 * c
        out *= t
    out *= gauss
    return out


def _gauss(x: Array) -> Array:
    out = np.asarray(x * x)
    out *= -0.5
    return np.exp(out, out=out)


# p(t)^-32 is the probability that a normal variable exceeds t >= 0: a polynomial fitted for the least |t| times error, 1.5e-7
_POWER_COEFFICIENTS = (
    2.0322187069120312e-05,
    -8.19305782297497e-05,
    0.0014213186659712239,
    0.010482659194181251,
    0.025479540289440755,
    1.021897168294633,
)


def _gelu_by_powers(x: Array) -> Array:
    """x Φ(x) = max(x, 0) - |x| Φ(-|x|) in float32, with an error below 1e-6.

    19 passes of 0.12 ms a million elements: 2.3 ms. Anything with an exponential takes 3 and more, SciPy's erf 12.
    """
    t = np.asarray(np.abs(x))
    out = np.asarray(t * _POWER_COEFFICIENTS[0])
    for c in _POWER_COEFFICIENTS[1:-1]:
        out += c
        out *= t
    out += _POWER_COEFFICIENTS[-1]
    for _ in range(5):
        np.square(out, out=out)
    np.divide(t, out, out=out)
    np.clip(x, 0, np.inf, out=t)
    np.subtract(t, out, out=out)
    if np.isnan(np.maximum.reduce(out, None, initial=-1)):  # infinity met the infinite power
        np.copyto(out, np.inf, where=x == np.inf)
    return out


@floating("GeluKernelImpl")
def _gelu(self: Array, approximate: str) -> Array:
    if _is_tanh(approximate):
        out = _tanh_inner(self)
        np.tanh(out, out=out)
        out += 1
        out *= self
        out *= 0.5
        return out
    if self.dtype == np.float32:
        return _gelu_by_powers(self)
    out = ufuncs.erf(self * _SQRT_HALF)
    out += 1
    out *= self
    out *= 0.5
    return out


@silent
def gelu(self: Array, approximate: str) -> Array:
    if self.dtype is FLOAT and self.ndim and self.size <= 512 and approximate == "none":
        out = ufuncs.ndtr(self)  # 20 ns an element, which the passes of the others cost too from 1000 on
        return np.multiply(out, self, out)
    with quiet():
        return _gelu(self, approximate)


def _is_tanh(approximate: str) -> bool:
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return approximate == "tanh"


def _tanh_inner(x: Array) -> Array:
    inner: Array = np.asarray(x * x)
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
        return slope
    pdf = _gauss(x)
    if x.dtype == np.float32:
        # Φ(x) is the tail where x is negative, and 1 minus it elsewhere
        cdf = _half_tail(x, pdf)
        cdf -= np.asarray(x > 0)
        np.abs(cdf, out=cdf)
    else:
        cdf = np.asarray(ufuncs.erf(x * _SQRT_HALF))
        cdf += 1
        cdf *= 0.5
    pdf *= _INV_SQRT_2PI
    pdf *= x
    cdf += pdf
    cdf *= grad_output
    return cdf


@floating("silu_cpu")
def _silu(self: Array) -> Array:
    out = np.asarray(np.negative(self))
    np.exp(out, out=out)
    out += 1
    return np.divide(self, out, out=out)


@silent
def silu(self: Array) -> Array:
    if self.dtype is FLOAT and self.ndim and self.size <= 256:
        out = ufuncs.expit(self)
        return np.multiply(out, self, out)
    with quiet():
        if self.dtype.kind == "c":
            return self / (1 + np.exp(-self))
        return _silu(self)


@floating("silu_backward_cpu")
def silu_backward(grad_output: Array, self: Array) -> Array:
    s = sigmoid(self)
    out = np.asarray(1 - s)
    out *= self
    out += 1
    out *= s
    out *= grad_output
    return out


def _tanh_of_softplus(x: Array) -> Array:
    """tanh(log(1 + exp(x))) = n / (n + 2) with n = e (e + 2) and e = exp(x); 1 in float64 from x = 20 on."""
    e = np.asarray(np.clip(x, -np.inf, 20))
    np.exp(e, out=e)
    n = np.asarray(e + 2)
    n *= e
    np.add(n, 2, out=e)
    n /= e
    return n


@floating("mish_cpu")
def mish(self: Array) -> Array:
    out = _tanh_of_softplus(self)
    out *= self
    return out


@floating("mish_backward_cpu")
def mish_backward(grad_output: Array, self: Array) -> Array:
    t = _tanh_of_softplus(self)
    out = sigmoid(self)
    out *= self
    out *= np.asarray(1 - t * t)
    out += t
    out *= grad_output
    return out


@floating("leaky_relu_cpu")
def leaky_relu(self: Array, negative_slope: float) -> Array:
    out: Array = np.asarray(self * negative_slope)
    if 0 <= negative_slope <= 1:
        return np.maximum(out, self, out=out)
    return select(self > 0, self, out)


@floating("leaky_relu_backward_cpu")
def leaky_relu_backward(grad_output: Array, self: Array, negative_slope: float, self_is_result: bool) -> Array:
    if self_is_result and negative_slope < 0:
        raise RuntimeError(
            "In-place leakyReLu backward calculation is triggered with a negative slope which is not supported. This is caused by "
            "calling in-place forward function with a negative slope, please call out-of-place version instead."
        )
    return select(self > 0, grad_output, grad_output * negative_slope)


@floating("elu_cpu")
def elu(self: Array, alpha: Number, scale: Number, input_scale: Number) -> Array:
    low = np.asarray(np.clip(self, -np.inf, 0))
    if input_scale != 1:
        low *= input_scale
    low = expm1_of_negative(low)
    low *= alpha * scale
    high = np.asarray(np.clip(self, 0, np.inf))
    if scale != 1:
        high *= scale
    low += high
    return low


@floating("elu_backward_cpu")
def elu_backward(
    grad_output: Array, alpha: float, scale: Number, input_scale: Number, is_result: bool, self_or_result: Array
) -> Array:
    x = self_or_result
    if is_result:
        if alpha < 0:
            raise RuntimeError(
                "In-place elu backward calculation is triggered with a negative slope which is not supported. This is caused by "
                "calling in-place forward function with a negative slope, please call out-of-place version instead."
            )
        slope = np.asarray(x + alpha * scale)
        slope *= input_scale
    else:
        slope = np.asarray(np.clip(x, -np.inf, 0))
        if input_scale != 1:
            slope *= input_scale
        np.exp(slope, out=slope)
        slope *= alpha * scale * input_scale
    slope = select(x <= 0, slope, np.asarray(scale, x.dtype))
    return grad_output * slope


@floating("softplus_cpu")
def softplus(self: Array, beta: float, threshold: Number) -> Array:
    """log(1 + exp(beta x)) / beta as max(x, 0) + log(1 + exp(-|beta x|)) / beta; the input itself above the threshold."""
    z = np.asarray(self * beta)
    above = z > threshold
    np.abs(z, out=z)
    out = log1p_of_exp(np.negative(z, out=z))
    if beta != 1:
        out /= beta
    out += np.clip(self, 0, np.inf) if beta > 0 else np.clip(self, -np.inf, 0)
    return select(above, self, out) if above.any() else out


@floating("softplus_backward_cpu")
def softplus_backward(grad_output: Array, self: Array, beta: Number, threshold: Number) -> Array:
    z = np.asarray(self * beta) if beta != 1 else self
    above = z > threshold
    out = sigmoid(z)
    out *= grad_output
    return select(above, grad_output, out) if above.any() else out


def softshrink(self: Array, lambd: float) -> Array:
    if self.dtype.kind not in "biuc" and not 0 <= lambd <= _finite_limit(self.dtype):
        raise RuntimeError(
            f"lambda must be in range [0, {_finite_limit(self.dtype):g}] for input dtype {scalar_name(self)}, but found {lambd:g}"
        )
    return _softshrink(self, lambd)


def _finite_limit(dtype: np.dtype[Any]) -> float:
    return float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]


@floating("softshrink_check")
def _softshrink(self: Array, lambd: float) -> Array:
    return self - np.clip(self, -lambd, lambd)


@floating("hardshrink_cpu")
def hardshrink(self: Array, lambd: Number) -> Array:
    return keep(~(np.abs(self) <= lambd), self)


@floating("shrink_backward_cpu")
def shrink_backward(grad: Array, self: Array, lambd: float) -> Array:
    return keep(~(np.abs(self) <= lambd), grad)


@floating("hardtanh_backward_cpu")
def hardtanh_backward(grad_output: Array, self: Array, min_val: Number, max_val: Number) -> Array:
    outside = np.asarray(self <= min_val)
    outside |= self >= max_val
    return keep(np.logical_not(outside, out=outside), grad_output)


@floating("hardsigmoid_cpu")
def hardsigmoid(self: Array) -> Array:
    out = np.asarray(self + 3)
    np.clip(out, 0, 6, out=out)
    out /= 6
    return out


@floating("hardsigmoid_backward_cpu")
def hardsigmoid_backward(grad_output: Array, self: Array) -> Array:
    # torch: the factor is of single precision for every dtype
    return keep(np.abs(self) < 3, grad_output * float(np.float32(1 / 6)))


@floating("hardswish_cpu")
def hardswish(self: Array) -> Array:
    out = np.asarray(self + 3)
    np.clip(out, 0, 6, out=out)
    out *= self
    out *= 1 / 6
    return out


@floating("hardswish_backward_cpu")
def hardswish_backward(grad_output: Array, self: Array) -> Array:
    out = np.asarray(self / 3)
    out += 0.5
    out = select(self >= 3, np.broadcast_to(np.ones((), out.dtype), out.shape), out)
    out *= grad_output
    return keep(~(self <= -3), out)


@floating("log_sigmoid_cpu")
def log_sigmoid_forward(self: Array) -> tuple[Array, Array]:
    """min(x, 0) - log(1 + exp(-|x|)), and exp(-|x|) for the derivative."""
    buffer = np.asarray(np.abs(self))
    np.negative(buffer, out=buffer)
    np.exp(buffer, out=buffer)
    out = log1p_of_small(buffer.copy())
    return np.subtract(np.clip(self, -np.inf, 0), out, out=out), np.asarray(buffer, order="C")


@floating("log_sigmoid_backward_cpu")
def log_sigmoid_backward(grad_output: Array, self: Array, buffer: Array) -> Array:
    """grad * (1 - sigmoid(x)), from z = exp(-|x|): z / (1 + z) where x >= 0, and 1 / (1 + z) elsewhere."""
    denominator = np.asarray(buffer + 1)
    out = select(self < 0, np.broadcast_to(np.ones((), buffer.dtype), buffer.shape), buffer)
    out = np.asarray(out / denominator)
    out *= grad_output
    return out


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
    return select(self > 0, self, np.asarray(weight * self))


@floating("prelu_backward_cpu")
def prelu_backward(grad_output: Array, self: Array, weight: Array) -> tuple[Array, Array]:
    positive = self > 0
    zero = np.zeros((), self.dtype)
    return np.where(positive, grad_output, weight * grad_output), np.where(positive, zero, self * grad_output)
