"""The rules for divergences of distributions of numbers and vectors: tables of pairs of families, and the functions that they name."""

from __future__ import annotations

import math
from math import inf
from typing import TYPE_CHECKING

from .. import full_like, ones_like, where
from .. import max as elementwise_max
from ..nn.functional import softplus
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .distribution import Distribution
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .kl import Rule, kl_divergence, register_kl
from .laplace import Laplace
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import _sum_rightmost
from .utils import euler_constant as EULER

if TYPE_CHECKING:
    from .._tensor import Tensor


# --- families of the first, all of whose samples the second may not have: the divergence is infinite ------------------

# family of p → a parameter that has the shape of the result, and the families of q
INFINITE: dict[type, tuple[str, tuple[type, ...]]] = {
    Beta: ("concentration1", (Pareto,)),
    ContinuousBernoulli: ("probs", (Pareto,)),
    Exponential: ("rate", (Beta, ContinuousBernoulli, Pareto, Uniform)),
    Gamma: ("concentration", (Beta, ContinuousBernoulli, Pareto, Uniform)),
    Gumbel: ("loc", (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    Laplace: ("loc", (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    Normal: ("loc", (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    Pareto: ("scale", (Beta, ContinuousBernoulli, Uniform)),
    Poisson: ("rate", (Bernoulli, Binomial)),
}


def _infinite(parameter: str) -> Rule:
    return lambda p, q: full_like(getattr(p, parameter), inf)


# --- two of one family ------------------------------------------------------------------------------------------------


def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    ones[q.probs == 0] = inf
    ones[p.probs == 0] = 0
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zeros[q.probs == 1] = inf
    zeros[p.probs == 1] = 0
    return ones + zeros


def _beta(p: Beta, q: Beta) -> Tensor:
    total_p, total_q = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    normalizers = (q.concentration1.lgamma() + q.concentration0.lgamma() + total_p.lgamma()) - (
        p.concentration1.lgamma() + p.concentration0.lgamma() + total_q.lgamma()
    )
    ones = (p.concentration1 - q.concentration1) * p.concentration1.digamma()
    zeros = (p.concentration0 - q.concentration0) * p.concentration0.digamma()
    return normalizers + ones + zeros + (total_q - total_p) * total_p.digamma()


def _binomial(p: Binomial, q: Binomial) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    impossible = p.total_count > q.total_count
    kl[impossible] = full_like(kl[impossible], inf)
    return kl


def _categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms[(q.probs == 0).expand_as(terms)] = inf
    terms[(p.probs == 0).expand_as(terms)] = 0
    return terms.sum(-1)


def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    """Chyzak and Nielsen (2019)."""
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    own = p._cont_bern_log_norm() + (-p.probs).log1p()
    other = -q._cont_bern_log_norm() - (-q.probs).log1p()
    return p.mean * (p.logits - q.logits) + own + other


def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    total_p, total_q = p.concentration.sum(-1), q.concentration.sum(-1)
    normalizers = (total_p.lgamma() - total_q.lgamma()) - (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    log_means = p.concentration.digamma() - total_p.digamma().unsqueeze(-1)
    return normalizers + ((p.concentration - q.concentration) * log_means).sum(-1)


def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


def _gamma(p: Gamma, q: Gamma) -> Tensor:
    rates = q.concentration * (p.rate / q.rate).log()
    normalizers = q.concentration.lgamma() - p.concentration.lgamma()
    shapes = (p.concentration - q.concentration) * p.concentration.digamma()
    return rates + normalizers + shapes + (q.rate - p.rate) * (p.concentration / p.rate)


def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, own, other = p.scale / q.scale, p.loc / q.scale, q.loc / q.scale
    tail = (other + (1 + ratio).lgamma() - own).exp()
    return (-ratio.log() - other + own) + ratio * EULER + tail - (1 + EULER)


def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * (-distance / p.scale).exp() - 1


def _normal(p: Normal, q: Normal) -> Tensor:
    variances = (p.scale / q.scale).pow(2)
    distance = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (variances + distance - 1 - variances.log())


def _pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    result[p.scale < q.scale] = inf
    return result


def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


def _uniform(p: Uniform, q: Uniform) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    result[(q.low > p.low) | (q.high < p.high)] = inf
    return result


def _independent(p: Independent[Distribution], q: Independent[Distribution]) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("the two distributions take different numbers of batch dimensions as one event")
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    """A bijection changes no divergence."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("the divergence is known only if both have the same transforms and event shapes")
    return kl_divergence(p.base_dist, q.base_dist)


SAME: dict[type, Rule] = {
    Bernoulli: _bernoulli,
    Beta: _beta,
    Binomial: _binomial,
    Categorical: _categorical,
    Cauchy: _cauchy,
    ContinuousBernoulli: _continuous_bernoulli,
    Dirichlet: _dirichlet,
    Exponential: _exponential,
    Gamma: _gamma,
    Geometric: _geometric,
    Gumbel: _gumbel,
    HalfNormal: lambda p, q: _normal(p.base_dist, q.base_dist),
    Independent: _independent,
    Laplace: _laplace,
    Normal: _normal,
    OneHotCategorical: lambda p, q: _categorical(p._categorical, q._categorical),
    Pareto: _pareto,
    Poisson: _poisson,
    TransformedDistribution: _transformed,
    Uniform: _uniform,
}

# --- two of different families: most are minus the entropy of p and minus the mean of log q under p --------------------


def _x_log_x(x: Tensor) -> Tensor:
    return x.xlogy(x)


def _gamma_normalizer(q: Gamma) -> Tensor:
    return q.concentration.lgamma() - q.concentration * q.rate.log()


def _to_continuous_bernoulli(p: Distribution, q: ContinuousBernoulli) -> Tensor:
    return -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._cont_bern_log_norm()


def _beta_gamma(p: Beta, q: Gamma) -> Tensor:
    log_mean = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    mean_term = q.rate * p.concentration1 / (p.concentration1 + p.concentration0)
    return -p.entropy() + _gamma_normalizer(q) - (q.concentration - 1) * log_mean + mean_term


def _beta_normal(p: Beta, q: Normal) -> Tensor:
    mean = p.concentration1 / (p.concentration1 + p.concentration0)
    variance = q.scale.pow(2)
    second = (mean * (1 - mean) / (p.concentration1 + p.concentration0 + 1) + mean.pow(2)) * 0.5
    return -p.entropy() + 0.5 * (variance * 2 * math.pi).log() + (second - q.loc * mean + q.loc.pow(2) * 0.5) / variance


def _beta_uniform(p: Beta, q: Uniform) -> Tensor:
    result = -p.entropy() + (q.high - q.low).log()
    result[(q.low > p.support.lower_bound) | (q.high < p.support.upper_bound)] = inf
    return result


def _continuous_bernoulli_normal(p: ContinuousBernoulli, q: Normal) -> Tensor:
    normalizer = 0.5 * (math.log(2.0 * math.pi) + (q.loc / q.scale).square()) + q.scale.log()
    spread = (p.variance + p.mean.square() - 2.0 * q.loc * p.mean) / (2.0 * q.scale.square())
    return -p.entropy() + normalizer + spread


def _continuous_bernoulli_uniform(p: ContinuousBernoulli, q: Uniform) -> Tensor:
    result = -p.entropy() + (q.high - q.low).log()
    # torch: infinite already where a bound of q is not outside of the unit interval
    inside = elementwise_max(q.low.ge(p.support.lower_bound), q.high.le(p.support.upper_bound))
    return where(inside, ones_like(result) * inf, result)


def _exponential_gamma(p: Exponential, q: Gamma) -> Tensor:
    ratio = q.rate / p.rate
    return -q.concentration * ratio.log() + ratio + q.concentration.lgamma() + q.concentration * EULER - (1 + EULER)


def _exponential_gumbel(p: Exponential, q: Gumbel) -> Tensor:
    product, offset = p.rate * q.scale, q.loc / q.scale
    return (product.log() - 1) - offset + offset.exp() * product / (product + 1) + product.reciprocal()


def _exponential_normal(p: Exponential, q: Normal) -> Tensor:
    variance, rate_squared = q.scale.pow(2), p.rate.pow(2)
    normalizer = 0.5 * (rate_squared * variance * 2 * math.pi).log()
    return normalizer - 1 + (rate_squared.reciprocal() - q.loc / p.rate + q.loc.pow(2) * 0.5) / variance


def _gamma_gumbel(p: Gamma, q: Gumbel) -> Tensor:
    product, offset = p.rate * q.scale, q.loc / q.scale
    own = (p.concentration - 1) * p.concentration.digamma() - p.concentration.lgamma() - p.concentration
    linear = product.log() + p.concentration / product
    return own + linear + offset.exp() * (1 + product.reciprocal()).pow(-p.concentration) - offset


def _gamma_normal(p: Gamma, q: Normal) -> Tensor:
    variance, rate_squared = q.scale.pow(2), p.rate.pow(2)
    own = 0.5 * (rate_squared * variance * 2 * math.pi).log() - p.concentration - p.concentration.lgamma()
    second = 0.5 * (p.concentration.pow(2) + p.concentration) / rate_squared
    spread = (second - q.loc * p.concentration / p.rate + 0.5 * q.loc.pow(2)) / variance
    return own + (p.concentration - 1) * p.concentration.digamma() + spread


def _gumbel_normal(p: Gumbel, q: Normal) -> Tensor:
    ratio = p.scale / q.scale
    distance = ((p.loc + p.scale * EULER - q.loc) / q.scale).pow(2) * 0.5
    return -(ratio / math.sqrt(2 * math.pi)).log() + (math.pi * ratio * 0.5).pow(2) / 3 + distance - (EULER + 1)


def _laplace_normal(p: Laplace, q: Normal) -> Tensor:
    variance = q.scale.pow(2)
    ratio = p.scale.pow(2) / variance
    distance = (0.5 * p.loc.pow(2) - p.loc * q.loc + 0.5 * q.loc.pow(2)) / variance
    return -0.5 * (2 * ratio / math.pi).log() + ratio + distance - 1


def _normal_gumbel(p: Normal, q: Gumbel) -> Tensor:
    own, other, variances = p.loc / q.scale, q.loc / q.scale, (p.scale / q.scale).pow(2)
    tail = (-own + 0.5 * variances + other).exp()
    return -variances.log() * 0.5 + (own - other) + tail - 0.5 * (1 + math.log(2 * math.pi))


def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    distance = p.loc - q.loc
    standard = distance / p.scale
    spread = math.sqrt(2 / math.pi) * p.scale * (-0.5 * standard.pow(2)).exp()
    moved = distance * (math.sqrt(0.5) * standard).erf()
    return -(p.scale / q.scale).log() + (spread + moved) / q.scale - 0.5 * (1 + math.log(0.5 * math.pi))


def _pareto_exponential(p: Pareto, q: Exponential) -> Tensor:
    product = p.scale * q.rate
    result = (p.alpha / product).log() - p.alpha.reciprocal() + p.alpha * product / (p.alpha - 1) - 1
    result[p.alpha <= 1] = inf
    return result


def _pareto_gamma(p: Pareto, q: Gamma) -> Tensor:
    log_mean = p.scale.log() + p.alpha.reciprocal()
    mean_term = q.rate * p.alpha * p.scale / (p.alpha - 1)
    result = (p.alpha.log() - log_mean) + _gamma_normalizer(q) + (1 - q.concentration) * log_mean + mean_term - 1
    result[p.alpha <= 1] = inf
    return result


def _pareto_normal(p: Pareto, q: Normal) -> Tensor:
    part = p.scale / (p.alpha - 1)
    spread = p.alpha * part.pow(2) / (p.alpha - 2) + (p.alpha * part - q.loc).pow(2)
    normalizer = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log()
    result = normalizer - p.alpha.reciprocal() + spread / (2 * q.scale.pow(2)) - 1
    result[p.alpha <= 2] = inf
    return result


def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    width = p.high - p.low
    ones = (q.concentration1 - 1) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    zeros = (q.concentration0 - 1) * (_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + width) / width
    normalizer = q.concentration1.lgamma() + q.concentration0.lgamma() - (q.concentration1 + q.concentration0).lgamma()
    result = zeros + normalizer - width.log() - ones
    result[(p.high > q.support.upper_bound) | (p.low < q.support.lower_bound)] = inf
    return result


def _uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    result = _to_continuous_bernoulli(p, q)
    # torch: infinite already where a bound of p is one of the unit interval
    outside = elementwise_max(p.high.ge(q.support.upper_bound), p.low.le(q.support.lower_bound))
    return where(outside, ones_like(result) * inf, result)


def _uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    result = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    result[p.low < q.support.lower_bound] = inf
    return result


def _uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    width = p.high - p.low
    shapes = (1 - q.concentration) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    result = -width.log() + _gamma_normalizer(q) + shapes + q.rate * (p.high + p.low) / 2
    result[p.low < q.support.lower_bound] = inf
    return result


def _uniform_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    ratio = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return ratio.log() + 0.5 * (high + low) - ratio * ((-high).exp() - (-low).exp())


def _uniform_normal(p: Uniform, q: Normal) -> Tensor:
    width = p.high - p.low
    distance = ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return (math.sqrt(math.pi * 2) * q.scale / width).log() + 0.5 * (width.pow(2) / 12 + distance) / q.scale.pow(2)


def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    width = p.high - p.low
    log_mean = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    result = log_mean * (q.alpha + 1) - (q.alpha * q.scale.pow(q.alpha) * width).log()
    result[p.low < q.support.lower_bound] = inf
    return result


DIFFERENT: dict[tuple[type, type], Rule] = {
    (Bernoulli, Poisson): lambda p, q: -p.entropy() - (p.probs * q.rate.log() - q.rate),
    (Beta, ContinuousBernoulli): _to_continuous_bernoulli,
    (Beta, Exponential): lambda p, q: -p.entropy() - q.rate.log() + q.rate * p.mean,
    (Beta, Gamma): _beta_gamma,
    (Beta, Normal): _beta_normal,
    (Beta, Uniform): _beta_uniform,
    (ContinuousBernoulli, Exponential): lambda p, q: -p.entropy() - q.rate.log() + q.rate * p.mean,
    (ContinuousBernoulli, Normal): _continuous_bernoulli_normal,
    (ContinuousBernoulli, Uniform): _continuous_bernoulli_uniform,
    (Exponential, Gamma): _exponential_gamma,
    (Exponential, Gumbel): _exponential_gumbel,
    (Exponential, Normal): _exponential_normal,
    (Gamma, Exponential): lambda p, q: -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate,
    (Gamma, Gumbel): _gamma_gumbel,
    (Gamma, Normal): _gamma_normal,
    (Gumbel, Normal): _gumbel_normal,
    (Laplace, Normal): _laplace_normal,
    (Normal, Gumbel): _normal_gumbel,
    (Normal, Laplace): _normal_laplace,
    (Pareto, Exponential): _pareto_exponential,
    (Pareto, Gamma): _pareto_gamma,
    (Pareto, Normal): _pareto_normal,
    (Uniform, Beta): _uniform_beta,
    (Uniform, ContinuousBernoulli): _uniform_continuous_bernoulli,
    (Uniform, Exponential): _uniform_exponential,
    (Uniform, Gamma): _uniform_gamma,
    (Uniform, Gumbel): _uniform_gumbel,
    (Uniform, Normal): _uniform_normal,
    (Uniform, Pareto): _uniform_pareto,
}

for _family, _rule in SAME.items():
    register_kl(_family, _family)(_rule)
for _pair, _rule in DIFFERENT.items():
    register_kl(*_pair)(_rule)
for _family, (_parameter, _others) in INFINITE.items():
    for _other in _others:
        register_kl(_family, _other)(_infinite(_parameter))
