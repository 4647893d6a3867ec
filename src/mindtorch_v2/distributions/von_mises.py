"""Angles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from .. import _dtype, empty, rand, where, zeros
from .._autograd.grad_mode import no_grad
from .._tensor import Size
from .._types import Number
from . import constraints
from .distribution import Distribution
from .utils import lazy_property

if TYPE_CHECKING:
    from .._tensor import Tensor


__all__ = ["VonMises"]

# Polynomials of the modified Bessel functions of order 0 and 1 (Abramowitz and Stegun 9.8.1 to 9.8.4), the constant first:
# in (x/3.75)² below 3.75, in 3.75/x above.
_SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.360768e-1, 0.45813e-2),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.2658733e-1, 0.301532e-2, 0.32411e-3),
)
_LARGE = (
    (0.39894228, 0.1328592e-1, 0.225319e-2, -0.157565e-2, 0.916281e-2, -0.2057706e-1, 0.2635537e-1, -0.1647633e-1, 0.392377e-2),
    (0.39894228, -0.3988024e-1, -0.362018e-2, 0.163801e-2, -0.1031555e-1, 0.2282967e-1, -0.2895312e-1, 0.1787654e-1, -0.420059e-2),
)


def _polynomial(y: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    *lower, second, first = coefficients
    result = second + y * first
    for c in reversed(lower):
        result = c + y * result
    return result


def _log_modified_bessel_fn(x: Tensor, order: int = 0) -> Tensor:
    """The logarithm of the modified Bessel function of the first kind, for positive x."""
    if order not in (0, 1):
        raise AssertionError(f"order must be 0 or 1, got {order}")
    y = x / 3.75
    small = _polynomial(y * y, _SMALL[order])
    if order == 1:
        small = x.abs() * small
    small = small.log()
    large = x - 0.5 * x.log() + _polynomial(3.75 / x, _LARGE[order]).log()
    return where(x < 3.75, small, large)


def _rejection_sample(loc: Tensor, concentration: Tensor, proposal_r: Tensor, x: Tensor) -> Tensor:
    """Angles between -π and π, by wrapped Cauchy proposals (Best and Fisher, 1979); all are proposed anew until each was accepted."""
    done = zeros(x.shape, dtype=_dtype.bool_, device=loc.device)
    while not done.all():
        u1, u2, u3 = rand((3, *x.shape), dtype=loc.dtype, device=loc.device).unbind()
        z = (math.pi * u1).cos()
        f = (1 + proposal_r * z) / (proposal_r + z)
        c = concentration * (proposal_r - f)
        accept = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
        if accept.any():
            x = where(accept, (u3 - 0.5).sign() * f.acos(), x)
            done = done | accept
    return (x + math.pi + loc) % (2 * math.pi) - math.pi


class VonMises(Distribution):
    """Angles around `loc`, in radians: the larger the `concentration`, the nearer. Samples are drawn in float64."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False
    loc: Any
    concentration: Any

    def __init__(self, loc: Tensor | Number, concentration: Tensor | Number, validate_args: bool | None = None) -> None:
        super().__init__(self._take(loc=loc, concentration=concentration), Size(), validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        parameters = self.loc.expand(batch_shape), self.concentration.expand(batch_shape)
        return type(self)(*parameters, validate_args=self.__dict__.get("_validate_args"))

    @lazy_property
    def _loc(self) -> Tensor:
        return self.loc.to(_dtype.float64)

    @lazy_property
    def _concentration(self) -> Tensor:
        return self.concentration.to(_dtype.float64)

    @lazy_property
    def _proposal_r(self) -> Tensor:
        """The parameter of the proposals; by its Taylor expansion for small concentrations, where rounding would spoil it."""
        kappa = self._concentration
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        exact = (1 + rho**2) / (2 * rho)
        return where(kappa < 1e-5, 1 / kappa + kappa, exact)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        with no_grad():
            x = empty(self._extended_shape(sample_shape), dtype=self._loc.dtype, device=self.loc.device)
            return _rejection_sample(self._loc, self._concentration, self._proposal_r, x).to(self.loc.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        unnormalized = self.concentration * (value - self.loc).cos()
        return unnormalized - math.log(2 * math.pi) - _log_modified_bessel_fn(self.concentration, order=0)

    @property
    def mean(self) -> Tensor:
        """The mean direction."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance."""
        first = _log_modified_bessel_fn(self.concentration, order=1)
        return 1 - (first - _log_modified_bessel_fn(self.concentration, order=0)).exp()
