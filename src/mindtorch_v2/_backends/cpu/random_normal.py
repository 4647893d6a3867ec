"""Normal numbers in float32, bit for bit as torch's vectorised kernel computes them.

torch takes logarithm, sine and cosine from Cephes' polynomials, each step a fused multiply-add. Here such a step is a product
and a sum in float64 rounded to float32: the product is exact there, and the sum's own rounding showed in no number tested.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1,
    -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
_SIN = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COS = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_QUARTER_PI = (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)  # minus pi/4 in three parts
_BLOCK = 8192  # elements whose temporaries stay in the second-level cache


def box_muller(blocks: Array, mean: float, std: float) -> None:
    """Turn uniforms (n, 2, 8) into normals in place: eight radii and eight angles give sixteen numbers."""
    step = _BLOCK // 8
    for start in range(0, len(blocks), step):
        part = blocks[start : start + step]
        radius = log(1 - part[:, 0].ravel())
        radius *= np.float32(-2)
        np.sqrt(radius, out=radius)
        sine, cosine = sin_cos(part[:, 1].ravel() * np.float32(2 * np.pi))
        cosine *= radius
        sine *= radius
        if mean != 0 or std != 1:
            cosine = _fused(cosine, np.float32(std), np.float32(mean))
            sine = _fused(sine, np.float32(std), np.float32(mean))
        part[:, 0] = cosine.reshape(-1, 8)
        part[:, 1] = sine.reshape(-1, 8)


def _fused(x: Array, y: Any, z: Any) -> Array:
    """`x * y + z` with one rounding."""
    wide = np.multiply(x, y, dtype=np.float64)
    wide += z
    return wide.astype(np.float32)


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """Horner's scheme over a float64 copy of x, rounded to float32 at each step."""
    wide_x = x.astype(np.float64)
    c = np.float32(coefficients)
    wide = wide_x * float(c[0])
    wide += float(c[1])
    narrow = wide.astype(np.float32)
    for following in c[2:]:
        np.multiply(narrow, wide_x, out=wide)
        wide += float(following)
        narrow[...] = wide
    return narrow


def log(x: Array) -> Array:
    """The natural logarithm of positive normal float32 numbers."""
    bits = x.view(np.int32)
    exponent = (bits >> 23) - 126
    mantissa = ((bits & 0x007FFFFF) | 0x3F000000).view(np.float32)
    small = mantissa < np.float32(0.707106781186547524)
    exponent -= small
    e = exponent.astype(np.float32)
    x = mantissa - np.float32(1)
    x += mantissa * small
    z = x * x
    y = _polynomial(_LOG, x)
    y *= x
    y = _fused(y, z, e * np.float32(-2.12194440e-4))
    y = _fused(z, np.float32(-0.5), y)
    y += x
    return _fused(e, np.float32(0.693359375), y)


def sin_cos(x: Array) -> tuple[Array, Array]:
    """Sine and cosine of non-negative float32 numbers."""
    octant = (x * np.float32(1.27323954473516)).astype(np.int32)
    octant += 1
    octant &= ~1
    y = octant.astype(np.float64)
    for part in _QUARTER_PI:
        x = (y * float(np.float32(part)) + x).astype(np.float32)
    z = x * x
    cosine = _polynomial(_COS, z)
    cosine *= z
    cosine = _fused(cosine, z, z * np.float32(-0.5))
    cosine += np.float32(1)
    sine = _polynomial(_SIN, z)
    sine *= z
    sine = _fused(sine, x, x)
    swapped = (octant & 2) != 0
    result_sine = np.where(swapped, cosine, sine)
    result_cosine = np.where(swapped, sine, cosine)
    # signs as bits: the sine's from octant bit 2, the cosine's from its bit 2 after subtracting two
    result_sine.view(np.int32)[...] ^= (octant & 4) << 29
    result_cosine.view(np.int32)[...] ^= (~(octant - 2) & 4) << 29
    return result_sine, result_cosine
