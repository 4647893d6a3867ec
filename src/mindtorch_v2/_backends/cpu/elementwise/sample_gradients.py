"""How gamma and Dirichlet variates move with their parameters: implicit reparameterisation, by torch's approximations.

A variate x of a distribution with the cumulative function F moves by -∂F/∂α divided by the density, α being the parameter. Each
region of x and α has its own approximation; a region's elements are taken out, computed together and put back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...._scipy import ufuncs
from ..machinery.floating_errors import quiet

Array = np.ndarray[Any, Any]

# Rational approximation in u = log(x/α) and v = log α: a row for each power of u; numerator's and denominator's coefficients of powers of v.
_GAMMA = np.array(
    [
        [0.16009398, -0.094634809, 0.025146376, -0.0030648343, 1, 0.32668115, 0.10406089, 0.0014179084],
        [0.53487893, 0.1298071, 0.065735949, -0.0015649758, 0.16639465, 0.020070113, -0.0035938915, -0.00058392623],
        [0.040121004, -0.0065914022, -0.0026286047, -0.0013441777, 0.017050642, -0.0021309326, 0.00085092367, -1.5247877e-07],
    ]
)
# The same in u = log x, a = log α - u and b = log(total) - a; indexed by numerator or denominator, power of u, power of a, power of b.
_BETA = np.array(
    [
        [
            [[1.003668233, -0.01061107488, -0.0657888334, 0.01201642863], [0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033],
             [-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013]],
            [[0.221950385, -0.3187676331, 0.01799915743, 0.01074823814], [-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057],
             [0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05]],
            [[-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565], [0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181],
             [0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05]],
        ],
        [
            [[1, -0.02924021934, -0.04438342661, 0.007285809825], [0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521],
             [-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149]],
            [[0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273], [0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956],
             [-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05]],
            [[0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05], [0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05],
             [-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06]],
        ],
    ]
)  # fmt: skip
Region = tuple[Array, Callable[..., Array]]


def _by_region(operands: Sequence[Array], regions: Sequence[Region], dtype: np.dtype[Any]) -> Array:
    """Each element by the function of the first region that it lies in."""
    out = np.empty(operands[0].shape, dtype)
    left = np.ones(operands[0].shape, bool)
    with quiet():
        for inside, compute in regions:
            here = left & inside
            if here.any():
                out[here] = compute(*(x[here] for x in operands))
                left &= ~here
    return out


def _horner(coefficients: Sequence[Array], x: Array) -> Array:
    """A polynomial, the coefficient of the constant first."""
    *lower, total = coefficients
    for c in reversed(lower):
        total = c + x * total
    return np.asarray(total)


# --- gamma ----------------------------------------------------------------------------------------------------------


def gamma_gradient(self: Array, output: Array) -> Array:
    """∂x/∂α of gamma variates x (`output`) of shape α (`self`), computed in float64."""
    alpha, x = np.broadcast_arrays(self.astype(np.float64), output.astype(np.float64))
    everywhere = np.ones(x.shape, bool)
    large = alpha > 8
    near = (np.float32(0.9) * alpha <= x) & (x <= np.float32(1.1) * alpha)
    regions = [
        (x < np.float32(0.8), _gamma_series),
        (large & near, _gamma_near_the_mean),
        (large, _gamma_saddle_point),
        (everywhere, _gamma_rational),
    ]
    return _by_region((alpha, x), regions, self.dtype)


def _gamma_series(alpha: Array, x: Array) -> Array:
    """Power series of the cumulative function and of its derivative by α, for small x."""
    term, shifted = np.ones_like(x), alpha.copy()
    of_function, of_derivative = 1 / alpha, 1 / (alpha * alpha)
    for i in range(1, 6):
        term *= -x / i
        shifted += 1
        of_function += term / shifted
        of_derivative += term / (shifted * shifted)
    power = x**alpha
    density = x ** (alpha - 1) * np.exp(-x)
    by_alpha = (np.log(x) - ufuncs.psi(alpha)) * (power * of_function) - power * of_derivative
    return np.nan_to_num(-by_alpha / density, nan=0.0, posinf=np.inf, neginf=-np.inf)


def _gamma_near_the_mean(alpha: Array, x: Array) -> Array:
    """The saddle point expansion around x = α, where its general form divides zero by zero."""
    first = 1 + 24 * alpha * (1 + 12 * alpha)
    second = 1440 * alpha**2 + 6 * x * (53 - 120 * x) - 65 * x * x / alpha + alpha * (107 + 3600 * x)
    return np.asarray(first * second / (1244160 * alpha**4))


def _gamma_saddle_point(alpha: Array, x: Array) -> Array:
    """Rice's saddle point expansion, for large α."""
    logarithm = np.log(x / alpha)
    root = np.sqrt(8 * alpha)
    tail = (x - alpha - alpha * logarithm) ** -1.5
    inner = root / (alpha - x) - np.where(x < alpha, tail, -tail)
    outer = logarithm * inner - np.sqrt(2 / alpha) * (alpha + x) / (alpha - x) ** 2
    stirling = 1 + 1 / (12 * alpha) * (1 + 1 / (24 * alpha))
    return np.asarray(-stirling * x * outer / root)


def _gamma_rational(alpha: Array, x: Array) -> Array:
    rows = [_horner(column, np.log(x / alpha)) for column in _GAMMA.T]
    v = np.log(alpha)
    return np.asarray(np.exp(_horner(rows[:4], v) / _horner(rows[4:], v)))


# --- Dirichlet ------------------------------------------------------------------------------------------------------


def dirichlet_gradient(x: Array, alpha: Array, total: Array) -> Array:
    """∂x/∂α over 1 - x, for the coordinates x of points whose concentrations are α and sum up to `total`."""
    x, alpha, total = np.broadcast_arrays(x, alpha, total)
    beta = total - alpha
    edge = total * x * (1 - x)
    regions = [
        ((x <= 0.5) & (edge < 2.5), _beta_near_zero),
        ((x >= 0.5) & (edge < 0.75), _beta_near_one),
        ((alpha > 6) & (beta > 6) & _around_the_mean(x, alpha, total), _beta_around_the_mean),
        ((alpha > 6) & (beta > 6), _beta_saddle_point),
        (np.ones(x.shape, bool), _beta_rational),
    ]
    return _by_region((x, alpha, total), regions, x.dtype)


def _beta_near_zero(x: Array, alpha: Array, total: Array) -> Array:
    """Power series by α for small x, in the dtype of the operands as in torch."""
    beta = total - alpha
    factor = ufuncs.psi(alpha) - ufuncs.psi(alpha + beta) - np.log(x)
    term = np.ones_like(x)
    series = term / alpha * (factor + 1 / alpha)
    for i in range(1, 11):
        term *= (i - beta) * x / i
        shifted = alpha + i
        series += term / shifted * (factor + 1 / shifted)
    return np.nan_to_num(x * (1 - x) ** -beta * series, nan=0.0, posinf=np.inf, neginf=-np.inf)


def _beta_near_one(x: Array, alpha: Array, total: Array) -> Array:
    """Power series in 1 - x, by the second parameter of the mirrored distribution."""
    x, alpha, beta = 1 - x, total - alpha, alpha
    factor = ufuncs.psi(alpha + beta) - ufuncs.psi(beta)
    term, product, derivative = np.ones_like(x), np.ones_like(x), np.zeros_like(x)
    series = factor / alpha
    for i in range(1, 9):
        term *= -x / i
        derivative = derivative * (beta - i) + product
        product = product * (beta - i)
        series += term / (alpha + i) * (derivative + factor * product)
    return np.nan_to_num((1 - x) ** (1 - beta) * series, nan=0.0, posinf=np.inf, neginf=-np.inf)


def _around_the_mean(x: Array, alpha: Array, total: Array) -> Array:
    """Whether x is within a tenth of the standard deviation from the mean."""
    x, alpha, total = (a.astype(np.float64) for a in (x, alpha, total))
    with quiet():
        deviation = np.sqrt(alpha * (total - alpha) / (total + 1)) / total
        mean = alpha / total
        return np.asarray((mean - 0.1 * deviation <= x) & (x <= mean + 0.1 * deviation))


def _beta_around_the_mean(x: Array, alpha: Array, total: Array) -> Array:
    """The saddle point expansion at the mean, where its general form divides zero by zero."""
    x, alpha, total = (a.astype(np.float64) for a in (x, alpha, total))
    beta = total - alpha
    by_alpha = (
        47 * x * beta**4,
        (43 + 20 * (16 + 27 * beta) * x) * beta**3,
        3 * (59 + 180 * beta - 90 * x) * beta**2,
        (453 + 1620 * beta * (1 - x) - 455 * x) * beta,
        8 * (1 - x) * (135 * beta - 11),
    )
    upper = (1 + 12 * alpha) * (1 + 12 * beta) / (total * total)
    lower = 12960 * alpha**3 * beta**2 * (1 + 12 * total)
    return np.asarray(upper / (1 - x) * _horner(by_alpha, alpha) / lower)


def _beta_saddle_point(x: Array, alpha: Array, total: Array) -> Array:
    """Rice's saddle point expansion, for large α and large total - α."""
    x, alpha, total = (a.astype(np.float64) for a in (x, alpha, total))
    beta = total - alpha

    def stirling(n: Array) -> Array:
        return np.asarray(1 + 1 / (12 * n) + 1 / (288 * n * n))

    offset = alpha * (x - 1) + beta * x  # zero at the mean
    first = 2 * alpha**2 * (x - 1) + alpha * beta * (x - 1) - x * beta**2
    first /= np.sqrt(2 * alpha / beta) * total**1.5 * offset * offset
    divergence = beta * np.log(beta / (total * (1 - x))) + alpha * np.log(alpha / (total * x))
    tail = divergence**-1.5
    second = np.sqrt(8 * alpha * beta / total) / offset + np.where(x < alpha / total, tail, -tail)
    bracket = first + 0.5 * np.log(alpha / (total * x)) * second
    correction = stirling(alpha) * stirling(beta) / stirling(total)
    return np.asarray(correction * (-x / np.sqrt(2 * alpha * beta / total)) * bracket)


def _beta_rational(x: Array, alpha: Array, total: Array) -> Array:
    """An analytic approximation, corrected by a rational function."""
    x, alpha, total = (a.astype(np.float64) for a in (x, alpha, total))
    u = np.log(x)
    a = np.log(alpha) - u
    b = np.log(total) - a
    upper, lower = (_horner([_horner([_horner(c, b) for c in row], a) for row in table], u) for table in _BETA)
    return np.asarray(upper / lower * x * (ufuncs.psi(total) - ufuncs.psi(alpha)) / (total - alpha))
