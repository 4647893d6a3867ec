"""Kernels of special functions. SciPy computes them in float64 or float32; half-precision types pass through float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy._core.umath import clip  # type: ignore[attr-defined] # np.clip without its wrapper

from ...._scipy import special, ufuncs
from ..machinery.dtype_rules import unimplemented
from ..machinery.dtypes import HALVES
from ..machinery.floating_errors import silent
from ..machinery.layout import laid_out_like

Array = np.ndarray[Any, Any]


def _of_one(function: Callable[..., Any], name: str, *, through_double: bool = False) -> Callable[[Array], Array]:
    """A kernel around a SciPy function of one argument."""

    def kernel(self: Array) -> Array:
        d = self.dtype
        if d.kind == "c":
            raise unimplemented(name, self)
        if d in HALVES:
            return np.asarray(function(self.astype(np.float32))).astype(d)
        if through_double and d == np.float32:
            return np.asarray(function(self.astype(np.float64))).astype(d)
        return function(self)

    kernel.__name__ = name
    return kernel


# Coefficients of x² in numerator and denominator, the highest power first.
_ERF_NUMERATOR = np.array([-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
                           -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02], np.float32)  # fmt: skip
_ERF_DENOMINATOR = np.array([-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
                             -1.42647390514189e-02], np.float32)  # fmt: skip
_ERF_LIMIT = np.asarray(4, np.float32)


@silent
def _erf32(self: Array) -> Array:
    """erf in float32 as x P(x²) / Q(x²), clipped to where it is one; error 4e-7, eight times faster than SciPy's."""
    x = np.asarray(clip(self, -_ERF_LIMIT, _ERF_LIMIT))
    square = np.asarray(np.multiply(x, x))
    top = np.asarray(np.multiply(square, _ERF_NUMERATOR[0]))
    for c in _ERF_NUMERATOR[1:-1]:
        top += c
        top *= square
    top += _ERF_NUMERATOR[-1]
    top *= x
    bottom = np.asarray(np.multiply(square, _ERF_DENOMINATOR[0], out=x))
    for c in _ERF_DENOMINATOR[1:-1]:
        bottom += c
        bottom *= square
    bottom += _ERF_DENOMINATOR[-1]
    return np.divide(top, bottom, out=top)


_erf_exact = _of_one(lambda x: ufuncs.erf(x), "erf_vml_cpu")


@silent
def erf(self: Array) -> Array:
    if self.dtype == np.float32:
        return ufuncs.erf(self) if self.size < 1024 else _erf32(self)
    return _erf_exact(self)


erfc = _of_one(lambda x: ufuncs.erfc(x), "erfc_vml_cpu")
erfinv = _of_one(lambda x: special.erfinv(x), "erfinv_vml_cpu")
lgamma = _of_one(lambda x: ufuncs.gammaln(x), "lgamma_vml_cpu")
i0 = _of_one(lambda x: ufuncs.i0(x), "i0_vml_cpu")
i0e = _of_one(lambda x: ufuncs.i0e(x), "i0e_cpu")
i1 = _of_one(lambda x: ufuncs.i1(x), "i1_cpu")
i1e = _of_one(lambda x: ufuncs.i1e(x), "i1e_cpu")
entr = _of_one(lambda x: special.entr(x), "entr_cpu")
erfcx = _of_one(lambda x: ufuncs.erfcx(x), "erfcx_cpu")
ndtri = _of_one(lambda x: special.ndtri(x), "ndtri_cpu")
log_ndtr = _of_one(lambda x: ufuncs.log_ndtr(x), "log_ndtr_cpu")


def _digamma(x: Array) -> Array:
    # torch: psi(±0) = ∓inf, and nan at the negative integers
    out = np.asarray(ufuncs.psi(x))
    return np.where(x == 0, np.copysign(np.inf, -x), np.where((x < 0) & (x == np.trunc(x)), np.nan, out)).astype(x.dtype)


digamma = _of_one(_digamma, "digamma")


def polygamma(n: int, self: Array) -> Array:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if self.dtype in HALVES:
        return polygamma(n, self.astype(np.float32)).astype(self.dtype)
    if n == 0:
        return digamma(self)
    if n == 1:
        return _trigamma(self)
    # torch: both factors are rounded to the dtype, so that a large order gives inf, or nan where the other is zero
    factor = np.asarray((-1.0) ** (n + 1) * ufuncs.gamma(n + 1.0), self.dtype)
    return np.asarray(factor * np.asarray(special.zeta(n + 1, self.astype(np.float64))).astype(self.dtype))


def _trigamma(x: Array) -> Array:
    """ψ1 by reflection below 1/2, six steps of its recurrence, then the asymptotic series; in the array's own precision."""
    low = x < 0.5
    reflected = np.where(low, -((np.pi / np.sin(np.pi * x)) ** 2), 0).astype(x.dtype)
    z = np.where(low, 1 - x, x)
    for _ in range(6):
        reflected += 1 / (z * z)
        z = z + 1
    inverse = 1 / (z * z)
    series = (1 + 1 / (2 * z) + inverse * (1 / 6 - inverse * (1 / 30 - inverse * (1 / 42)))) / z
    return np.where(low, -(reflected + series), reflected + series)


def _of_two(function: Callable[..., Any], name: str) -> Callable[..., Array]:
    def kernel(self: Any, other: Any) -> Array:
        d = other.dtype
        if d.kind in "iubc":
            raise unimplemented(name, other)
        if d in HALVES:
            return np.asarray(function(np.asarray(self, np.float32), other.astype(np.float32))).astype(d)
        return np.asarray(function(self, other)).astype(d)

    kernel.__name__ = name
    return kernel


xlog1py = _of_two(lambda x, y: ufuncs.xlog1py(x, y), "xlog1py_cpu")
zeta = _of_two(lambda x, q: special.zeta(np.asarray(x, np.float64), np.asarray(q, np.float64)), "zeta_cpu")
igamma = _of_two(lambda x, y: ufuncs.gammainc(x, y), "igamma_cpu")
igammac = _of_two(lambda x, y: ufuncs.gammaincc(x, y), "igammac_cpu")


_NAMED: dict[str, Callable[[Array], Any]] = {
    "airy_ai": lambda x: ufuncs.airy(x)[0],
    "bessel_j0": lambda x: ufuncs.j0(x),
    "bessel_j1": lambda x: ufuncs.j1(x),
    "bessel_y0": lambda x: ufuncs.y0(x),
    "bessel_y1": lambda x: ufuncs.y1(x),
    "modified_bessel_i0": lambda x: ufuncs.i0(x),
    "modified_bessel_i1": lambda x: ufuncs.i1(x),
    "modified_bessel_k0": lambda x: ufuncs.k0(x),
    "modified_bessel_k1": lambda x: ufuncs.k1(x),
    "scaled_modified_bessel_k0": lambda x: ufuncs.k0e(x),
    "scaled_modified_bessel_k1": lambda x: ufuncs.k1e(x),
    "spherical_bessel_j0": lambda x: np.where(np.abs(x) == 0, 1.0, np.sin(x) / np.where(x == 0, 1, x)),
}


def named(name: str, argument: str) -> Callable[..., Any]:
    """The kernel of a Bessel or Airy function, computed in double precision."""
    function = _NAMED[name]

    def compute(values: Array) -> Array:
        return np.asarray(function(values.astype(np.float64))).astype(values.dtype)

    if argument == "x":
        return lambda x: compute(x)
    return lambda self: compute(self)


def _recurrence(first: Callable[..., Any], factor: Callable[..., Any]) -> Callable[[Array, Array], Array]:
    """An orthogonal polynomial from `p(0) = 1`, `p(1) = first(x)` and `p(k+1) = factor(k, x, p(k), p(k-1))`."""

    def evaluate(x: Array, n: Array) -> Array:
        x, n = np.broadcast_arrays(x, n)
        n = n.astype(np.int64)
        below, current = np.ones_like(x), first(x)
        out = np.where(n < 0, 0.0, np.where(n == 0, below, current))
        top = int(n.max()) if n.size else 0
        for k in range(1, top):
            below, current = current, factor(k, x, current, below)
            out = np.where(n == k + 1, current, out)
        return out

    return evaluate


def _chebyshev(first: Callable[..., Any], shift: bool = False) -> Callable[[Array, Array], Array]:
    evaluate = _recurrence(first, lambda k, x, p, q: 2 * x * p - q)
    return (lambda x, n: evaluate(2 * x - 1, n)) if shift else evaluate


_POLYNOMIALS = {
    "chebyshev_polynomial_t": _chebyshev(lambda x: x),
    "chebyshev_polynomial_u": _chebyshev(lambda x: 2 * x),
    "chebyshev_polynomial_v": _chebyshev(lambda x: 2 * x - 1),
    "chebyshev_polynomial_w": _chebyshev(lambda x: 2 * x + 1),
    "shifted_chebyshev_polynomial_t": _chebyshev(lambda x: x, shift=True),
    "shifted_chebyshev_polynomial_u": _chebyshev(lambda x: 2 * x, shift=True),
    "shifted_chebyshev_polynomial_v": _chebyshev(lambda x: 2 * x - 1, shift=True),
    "shifted_chebyshev_polynomial_w": _chebyshev(lambda x: 2 * x + 1, shift=True),
    "hermite_polynomial_h": _recurrence(lambda x: 2 * x, lambda k, x, p, q: 2 * x * p - 2 * k * q),
    "hermite_polynomial_he": _recurrence(lambda x: x, lambda k, x, p, q: x * p - k * q),
    "laguerre_polynomial_l": _recurrence(lambda x: 1 - x, lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1)),
    "legendre_polynomial_p": _recurrence(lambda x: x, lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1)),
}


def polynomial(name: str) -> Callable[..., Any]:
    evaluate = _POLYNOMIALS[name]

    def kernel(x: Any, n: Any) -> Array:
        d = n.dtype if isinstance(n, np.ndarray) else x.dtype
        return laid_out_like(evaluate(np.asarray(x, np.float64), np.asarray(n)).astype(d), x, n)

    return kernel
