"""Normal numbers in float32, bit for bit as torch's vectorised kernel computes them.

torch takes logarithm, sine and cosine from Cephes' polynomials, each step a fused multiply-add. Here such a step is a product
and a sum in float64 rounded to float32: the product is exact there, and the sum's own rounding showed in no number tested.
Everything is kept in float64 arrays whose values are float32 numbers, because NumPy's mixed operations cost four times as much.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def _singles(*values: float) -> tuple[float, ...]:
    """Constants as torch has them: rounded to float32."""
    return tuple(float(np.float32(v)) for v in values)


_LOG = _singles(
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1,
    -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
_SIN = _singles(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COS = _singles(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_QUARTER_PI = _singles(-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)  # minus pi/4 in three parts
_LN2_LOW, _LN2_HIGH, _SQRT_HALF, _FOUR_OVER_PI, _TWO_PI = _singles(
    -2.12194440e-4, 0.693359375, 0.707106781186547524, 1.27323954473516, 2 * np.pi
)
_BLOCK = 16384  # numbers whose temporaries stay in the second-level cache


def box_muller(blocks: Array, mean: float, std: float) -> None:
    """Turn uniforms (n, 2, 8) into normals in place: eight radii and eight angles give sixteen numbers."""
    mean, std = _singles(mean, std)
    step = _BLOCK // 8
    for start in range(0, len(blocks), step):
        part = blocks[start : start + step]
        round32 = _Rounding(part[:, 0].size)
        radius = round32.log(1 - part[:, 0].reshape(-1))
        radius *= -2.0
        np.sqrt(radius, out=radius)
        round32(radius)
        angle = part[:, 1].reshape(-1).astype(np.float64)
        angle *= _TWO_PI
        sine, cosine = round32.sin_cos(round32(angle))
        for row, values in enumerate((cosine, sine)):
            values *= radius
            if mean != 0 or std != 1:
                round32(values)
                values *= std
                values += mean
            part[:, row] = values.reshape(-1, 8)


class _Rounding:
    """Rounds float64 arrays of one size to float32 numbers in place, by way of one buffer."""

    def __init__(self, n: int) -> None:
        self.buffer = np.empty(n, np.float32)

    def __call__(self, x: Array) -> Array:
        self.buffer[...] = x
        x[...] = self.buffer
        return x

    def polynomial(self, coefficients: tuple[float, ...], x: Array) -> Array:
        """Horner's scheme, rounded at each step."""
        y = x * coefficients[0]
        y += coefficients[1]
        for c in coefficients[2:]:
            self(y)
            y *= x
            y += c
        return self(y)

    def log(self, x: Array) -> Array:
        """The natural logarithm of positive normal float32 numbers."""
        bits = x.view(np.int32)
        exponent = bits >> 23
        exponent -= 126
        mantissa = ((bits & 0x007FFFFF) | 0x3F000000).view(np.float32).astype(np.float64)
        small = mantissa < _SQRT_HALF
        exponent -= small
        e = exponent.astype(np.float64)
        x = np.where(small, mantissa + mantissa, mantissa)
        x -= 1.0  # exact
        z = self(x * x)
        y = self.polynomial(_LOG, x)
        y *= x
        self(y)
        y *= z
        y += self(e * _LN2_LOW)
        self(y)
        z *= 0.5
        y -= z
        self(y)
        y += x
        self(y)
        e *= _LN2_HIGH
        y += e
        return self(y)

    def sin_cos(self, x: Array) -> tuple[Array, Array]:
        """Sine and cosine of non-negative numbers."""
        octant = self(x * _FOUR_OVER_PI).astype(np.int32)
        octant += 1
        octant &= ~1
        y = octant.astype(np.float64)
        for part in _QUARTER_PI:
            x += y * part
            self(x)
        z = self(x * x)
        cosine = self.polynomial(_COS, z)
        cosine *= z
        self(cosine)
        cosine *= z
        cosine -= z * 0.5
        self(cosine)
        cosine += 1.0
        self(cosine)
        sine = self.polynomial(_SIN, z)
        sine *= z
        self(sine)
        sine *= x
        sine += x
        self(sine)
        swapped = (octant & 2) != 0
        # the signs: -1 where bit 2 of the octant is set, for the cosine after adding two
        sine_sign = (1 - ((octant & 4) >> 1)).astype(np.float64)
        cosine_sign = (1 - (((octant + 2) & 4) >> 1)).astype(np.float64)
        sine_sign *= np.where(swapped, cosine, sine)
        cosine_sign *= np.where(swapped, sine, cosine)
        return sine_sign, cosine_sign
