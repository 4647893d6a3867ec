"""Distributions with several sets of parameters each, made in either library, and what is asked of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Case = Callable[[Any, Callable[..., Any]], Any]


def _mix(D: Any, t: Any, component: Any) -> Any:
    return D.MixtureSameFamily(D.Categorical(t([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]])), component)


SQUARE = [[2.0, 0.3], [0.3, 1.5]]
FACTOR = [[1.2, 0.0], [0.4, 0.7]]

# `D` is `distributions` of a library, `t` makes a parameter of nested lists
CASES: dict[str, Case] = {
    "Bernoulli": lambda D, t: D.Bernoulli(t([0.3, 0.5, 0.8])),
    "Bernoulli of logits": lambda D, t: D.Bernoulli(logits=t([[-1.0, 0.0], [2.0, 0.5]])),
    "Bernoulli of a number": lambda D, t: D.Bernoulli(0.3),
    "Beta": lambda D, t: D.Beta(t([0.4, 1.5, 7.0]), t([2.0, 0.7, 9.0])),
    "Beta of numbers": lambda D, t: D.Beta(0.5, 2),
    "Beta broadcast": lambda D, t: D.Beta(t([[0.5], [3.0]]), 2.0),
    "Binomial": lambda D, t: D.Binomial(5, t([0.1, 0.6, 0.9])),
    "Binomial of logits": lambda D, t: D.Binomial(t([3.0, 30.0]).detach(), logits=t([[0.4, -0.7]])),
    "Categorical": lambda D, t: D.Categorical(t([[0.2, 0.3, 0.5], [3.0, 1.0, 1.0]])),
    "Categorical of logits": lambda D, t: D.Categorical(logits=t([0.2, -1.3, 0.5, 0.0])),
    "Cauchy": lambda D, t: D.Cauchy(t([0.0, 1.5]), t([1.0, 0.3])),
    "Cauchy of numbers": lambda D, t: D.Cauchy(0, 1),
    "Chi2": lambda D, t: D.Chi2(t([0.5, 3.0, 20.0])),
    "ContinuousBernoulli": lambda D, t: D.ContinuousBernoulli(t([0.1, 0.4995, 0.9])),
    "ContinuousBernoulli of logits": lambda D, t: D.ContinuousBernoulli(logits=t([[-2.0], [0.7]])),
    "Dirichlet": lambda D, t: D.Dirichlet(t([[0.2, 0.3, 0.9], [5.0, 7.0, 2.0]])),
    "Dirichlet of a vector": lambda D, t: D.Dirichlet(t([1.5, 0.5])),
    "Exponential": lambda D, t: D.Exponential(t([0.5, 3.0])),
    "Exponential of a number": lambda D, t: D.Exponential(2.0),
    "FisherSnedecor": lambda D, t: D.FisherSnedecor(t([1.0, 6.0, 3.0]), t([2.0, 8.0, 5.0])),
    "Gamma": lambda D, t: D.Gamma(t([0.3, 1.0, 12.0]), t([1.0, 0.5, 3.0])),
    "Gamma of numbers": lambda D, t: D.Gamma(2.0, 3.0),
    "GeneralizedPareto": lambda D, t: D.GeneralizedPareto(t([0.0, 1.0, -1.0]), t([1.0, 2.0, 0.5]), t([0.0, 0.3, -0.4])),
    "Geometric": lambda D, t: D.Geometric(t([0.2, 0.7, 1.0])),
    "Geometric of logits": lambda D, t: D.Geometric(logits=t([0.3, -1.0])),
    "Gumbel": lambda D, t: D.Gumbel(t([0.0, 1.5]), t([1.0, 0.3])),
    "Gumbel of numbers": lambda D, t: D.Gumbel(1.0, 2.0),
    "HalfCauchy": lambda D, t: D.HalfCauchy(t([1.0, 2.5])),
    "HalfNormal": lambda D, t: D.HalfNormal(t([[1.0], [2.5]])),
    "Independent": lambda D, t: D.Independent(D.Normal(t([[0.0, 1.0], [2.0, 3.0]]), 2.0), 1),
    "Independent of none": lambda D, t: D.Independent(D.Bernoulli(t([0.2, 0.7])), 0),
    "InverseGamma": lambda D, t: D.InverseGamma(t([0.8, 1.5, 4.0]), t([1.0, 2.0, 0.5])),
    "Kumaraswamy": lambda D, t: D.Kumaraswamy(t([0.8, 2.0]), t([1.5, 3.0])),
    "LKJCholesky": lambda D, t: D.LKJCholesky(3, t([0.7, 2.0])),
    "LKJCholesky of a number": lambda D, t: D.LKJCholesky(2),
    "Laplace": lambda D, t: D.Laplace(t([0.0, 1.5]), t([1.0, 0.3])),
    "LogNormal": lambda D, t: D.LogNormal(t([0.0, 0.5]), t([1.0, 0.3])),
    "LogisticNormal": lambda D, t: D.LogisticNormal(t([[0.0, 0.5], [1.0, -0.3]]), t([[1.0, 0.3], [0.5, 0.5]])),
    "LogisticNormal of numbers": lambda D, t: D.LogisticNormal(0.5, 1.0),
    "LowRankMultivariateNormal": lambda D, t: D.LowRankMultivariateNormal(
        t([0.0, 1.0, 2.0]), t([[1.0], [0.4], [-0.3]]), t([1.0, 0.5, 2.0])
    ),
    "LowRankMultivariateNormal in a batch": lambda D, t: D.LowRankMultivariateNormal(
        t([[0.0, 1.0], [2.0, 3.0]]), t([[[1.0], [0.4]]]), t([1.0, 0.5])
    ),
    "MixtureSameFamily": lambda D, t: _mix(D, t, D.Normal(t([[0.0, 1.0, 4.0], [1.0, 2.0, 3.0]]), t([1.0, 0.5, 2.0]))),
    "MixtureSameFamily of vectors": lambda D, t: D.MixtureSameFamily(
        D.Categorical(t([0.4, 0.6])), D.Independent(D.Normal(t([[0.0, 1.0], [2.0, 3.0]]), 1.0), 1)
    ),
    "Multinomial": lambda D, t: D.Multinomial(6, t([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])),
    "Multinomial of logits": lambda D, t: D.Multinomial(2, logits=t([0.2, 0.3, 0.5])),
    "MultivariateNormal": lambda D, t: D.MultivariateNormal(t([0.0, 1.0]), t(SQUARE)),
    "MultivariateNormal by precision": lambda D, t: D.MultivariateNormal(t([[0.0, 1.0], [2.0, 1.0]]), precision_matrix=t(SQUARE)),
    "MultivariateNormal by factor": lambda D, t: D.MultivariateNormal(t([0.0, 1.0]), scale_tril=t([FACTOR, FACTOR])),
    "NegativeBinomial": lambda D, t: D.NegativeBinomial(t([1.0, 3.5]), t([0.3, 0.8])),
    "NegativeBinomial of logits": lambda D, t: D.NegativeBinomial(4, logits=t([[0.3], [-0.8]])),
    "Normal": lambda D, t: D.Normal(t([0.0, 1.5]), t([1.0, 0.3])),
    "Normal of numbers": lambda D, t: D.Normal(0, 1),
    "Normal broadcast": lambda D, t: D.Normal(t([[0.0], [1.0]]), t([1.0, 0.3, 2.0])),
    "OneHotCategorical": lambda D, t: D.OneHotCategorical(t([[0.2, 0.3, 0.5], [0.4, 0.5, 0.1]])),
    "OneHotCategorical of logits": lambda D, t: D.OneHotCategorical(logits=t([0.2, 0.3])),
    "OneHotCategoricalStraightThrough": lambda D, t: D.OneHotCategoricalStraightThrough(t([[0.2, 0.3, 0.5], [0.4, 0.5, 0.1]])),
    "Pareto": lambda D, t: D.Pareto(t([1.0, 2.0, 0.5]), t([0.8, 1.5, 3.0])),
    "Poisson": lambda D, t: D.Poisson(t([0.0, 0.4, 5.0, 50.0])),
    "Poisson of a number": lambda D, t: D.Poisson(3),
    "RelaxedBernoulli": lambda D, t: D.RelaxedBernoulli(t(0.7), t([0.2, 0.6])),
    "RelaxedBernoulli of logits": lambda D, t: D.RelaxedBernoulli(t([0.7]), logits=t([[0.2], [-2.0]])),
    "RelaxedOneHotCategorical": lambda D, t: D.RelaxedOneHotCategorical(t(0.7), t([[0.2, 0.3, 0.5], [0.4, 0.5, 0.1]])),
    "RelaxedOneHotCategorical of logits": lambda D, t: D.RelaxedOneHotCategorical(t([0.7]), logits=t([0.2, 1.3, 0.5])),
    "StudentT": lambda D, t: D.StudentT(t([0.8, 1.5, 4.0]), t([0.0, 1.0, 2.0]), t([1.0, 0.5, 2.0])),
    "StudentT of a number": lambda D, t: D.StudentT(3.0),
    "TransformedDistribution": lambda D, t: D.TransformedDistribution(
        D.Normal(t([0.0, 1.0]), t([1.0, 0.5])), [D.SigmoidTransform(), D.AffineTransform(t([1.0, 2.0]), -0.5)]
    ),
    "TransformedDistribution widened": lambda D, t: D.TransformedDistribution(
        D.Gamma(t([1.0]), 2.0), [D.AffineTransform(0.0, t([[1.0, 2.0], [3.0, 4.0]])), D.ExpTransform().inv]
    ),
    "Uniform": lambda D, t: D.Uniform(t([0.0, -1.0]), t([1.0, 3.0])),
    "Uniform of numbers": lambda D, t: D.Uniform(-2, 2.0),
    "VonMises": lambda D, t: D.VonMises(t([0.0, 1.0]), t([0.5, 6.0])),
    "Weibull": lambda D, t: D.Weibull(t([1.0, 2.0]), t([0.8, 3.0])),
    "Wishart": lambda D, t: D.Wishart(t(3.5), t(SQUARE)),
    "Wishart by factor": lambda D, t: D.Wishart(t([4.0, 5.0]), scale_tril=t(FACTOR)),
    "Wishart by precision": lambda D, t: D.Wishart(4.0, precision_matrix=t([SQUARE, SQUARE])),
}
