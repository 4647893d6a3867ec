"""Distributions by what must hold for each: integrals, moments, shapes, and the values of closed forms."""

import math

import pytest
from scipy import integrate, stats

import mindtorch_v2 as torch
from mindtorch_v2 import distributions as D


def t(*values):
    return torch.tensor(values, dtype=torch.float64)


# distributions of one number, with SciPy's of the same parameters
CONTINUOUS = {
    "Beta": (D.Beta(t(1.5), t(2.5)), stats.beta(1.5, 2.5)),
    "Cauchy": (D.Cauchy(t(1.0), t(2.0)), stats.cauchy(1.0, 2.0)),
    "Chi2": (D.Chi2(t(3.0)), stats.chi2(3.0)),
    "Exponential": (D.Exponential(t(0.5)), stats.expon(scale=2.0)),
    "FisherSnedecor": (D.FisherSnedecor(t(3.0), t(7.0)), stats.f(3.0, 7.0)),
    "Gamma": (D.Gamma(t(2.5), t(0.5)), stats.gamma(2.5, scale=2.0)),
    "GeneralizedPareto": (D.GeneralizedPareto(t(1.0), t(2.0), t(0.2)), stats.genpareto(0.2, 1.0, 2.0)),
    "Gumbel": (D.Gumbel(t(1.0), t(2.0)), stats.gumbel_r(1.0, 2.0)),
    "HalfCauchy": (D.HalfCauchy(t(2.0)), stats.halfcauchy(scale=2.0)),
    "HalfNormal": (D.HalfNormal(t(2.0)), stats.halfnorm(scale=2.0)),
    "InverseGamma": (D.InverseGamma(t(3.0), t(2.0)), stats.invgamma(3.0, scale=2.0)),
    "Laplace": (D.Laplace(t(1.0), t(2.0)), stats.laplace(1.0, 2.0)),
    "LogNormal": (D.LogNormal(t(0.5), t(0.8)), stats.lognorm(0.8, scale=math.exp(0.5))),
    "Normal": (D.Normal(t(1.0), t(2.0)), stats.norm(1.0, 2.0)),
    "Pareto": (D.Pareto(t(2.0), t(3.0)), stats.pareto(3.0, scale=2.0)),
    "StudentT": (D.StudentT(t(4.0), t(1.0), t(2.0)), stats.t(4.0, 1.0, 2.0)),
    "Uniform": (D.Uniform(t(1.0), t(4.0)), stats.uniform(1.0, 3.0)),
    "Weibull": (D.Weibull(t(2.0), t(1.5)), stats.weibull_min(1.5, scale=2.0)),
}  # fmt: skip
DISCRETE = {
    "Bernoulli": (D.Bernoulli(t(0.3)), stats.bernoulli(0.3)),
    "Binomial": (D.Binomial(5, t(0.3)), stats.binom(5, 0.3)),
    "Geometric": (D.Geometric(t(0.3)), stats.geom(0.3, loc=-1)),
    "NegativeBinomial": (D.NegativeBinomial(t(3.0), t(0.3)), stats.nbinom(3.0, 0.7)),
    "Poisson": (D.Poisson(t(2.5)), stats.poisson(2.5)),
}
QUANTILES = (0.05, 0.3, 0.5, 0.8, 0.95)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_densities_and_moments_are_those_of_the_family(name):
    ours, theirs = CONTINUOUS[name]
    points = theirs.ppf(QUANTILES)
    torch.testing.assert_close(ours.log_prob(torch.tensor(points)), torch.tensor(theirs.logpdf(points)), rtol=1e-7, atol=1e-7)
    for mine, known in ((ours.mean, theirs.mean()), (ours.variance, theirs.var())):
        if math.isfinite(known):
            torch.testing.assert_close(mine, t(known))
    if name != "FisherSnedecor":
        torch.testing.assert_close(ours.entropy(), t(theirs.entropy()), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_cumulative_functions_and_their_inverses(name):
    ours, theirs = CONTINUOUS[name]
    points = torch.tensor(theirs.ppf(QUANTILES))
    try:
        torch.testing.assert_close(ours.cdf(points), t(*QUANTILES), rtol=1e-7, atol=1e-7)
    except NotImplementedError:
        assert name in ("Beta", "FisherSnedecor", "StudentT")
    try:
        torch.testing.assert_close(ours.icdf(t(*QUANTILES)), points, rtol=1e-6, atol=1e-6)
    except NotImplementedError:
        assert name in ("Beta", "Chi2", "FisherSnedecor", "Gamma", "InverseGamma", "StudentT")


@pytest.mark.parametrize("name", DISCRETE)
def test_masses_and_moments_of_counts(name):
    ours, theirs = DISCRETE[name]
    counts = torch.arange(2.0 if name == "Bernoulli" else 6.0, dtype=torch.float64)
    torch.testing.assert_close(ours.log_prob(counts), torch.tensor(theirs.logpmf(counts.numpy())), rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(ours.mean, t(theirs.mean()))
    torch.testing.assert_close(ours.variance, t(theirs.var()))


SAMPLED = {name: case[0] for name, case in (CONTINUOUS | DISCRETE).items() if name not in ("Cauchy", "HalfCauchy")} | {
    "ContinuousBernoulli": D.ContinuousBernoulli(t(0.2)),
    "Dirichlet": D.Dirichlet(t(0.5, 1.5, 4.0)),
    "Kumaraswamy": D.Kumaraswamy(t(2.0), t(3.0)),
    "LowRankMultivariateNormal": D.LowRankMultivariateNormal(t(0.0, 1.0), t(0.5, -0.5).unsqueeze(-1), t(1.0, 0.5)),
    "MixtureSameFamily": D.MixtureSameFamily(D.Categorical(t(0.3, 0.7)), D.Normal(t(-1.0, 2.0), t(1.0, 0.5))),
    "Multinomial": D.Multinomial(4, t(0.2, 0.3, 0.5)),
    "MultivariateNormal": D.MultivariateNormal(t(0.0, 1.0), torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64)),
    "OneHotCategorical": D.OneHotCategorical(t(0.2, 0.3, 0.5)),
}


@pytest.mark.parametrize("name", SAMPLED)
def test_samples_have_the_moments(name):
    d = SAMPLED[name]
    torch.manual_seed(1)
    n = 6000
    drawn = d.sample((n,))
    assert drawn.shape == (n, *d.batch_shape, *d.event_shape)
    assert d.support.check(drawn).all()
    error = 6 * (d.variance / n).sqrt()  # six standard errors
    assert ((drawn.mean(0) - d.mean).abs() < error + 1e-9).all()


@pytest.mark.parametrize(
    "d",
    [
        D.Beta(t(1.5), t(2.5)), D.ContinuousBernoulli(t(0.2)), D.ContinuousBernoulli(t(0.5)), D.Kumaraswamy(t(2.0), t(3.0)),
        D.RelaxedBernoulli(t(0.8), t(0.4)), D.TransformedDistribution(D.Normal(t(0.0), t(1.0)), D.SigmoidTransform()),
    ],
    ids=str,
)  # fmt: skip
def test_densities_on_the_unit_interval_integrate_to_one(d):
    total, _ = integrate.quad(lambda x: d.log_prob(t(x)).exp().item(), 0, 1)
    assert abs(total - 1) < 1e-6


def test_angles():
    d = D.VonMises(t(0.5), t(2.0))
    total, _ = integrate.quad(lambda x: d.log_prob(t(x)).exp().item(), -math.pi, math.pi)
    assert abs(total - 1) < 1e-6
    torch.manual_seed(0)
    drawn = d.sample((2000,))
    assert drawn.abs().max() <= math.pi
    assert (drawn.sin().mean() / drawn.cos().mean()).atan().sub(0.5).abs() < 0.1  # the mean direction


def test_gradients_of_gamma_samples_move_the_mean():
    """The mean of x is the shape: its gradient is 1, also for shapes below one and above eight."""
    shape = t(0.3, 2.0, 20.0).requires_grad_()
    torch.manual_seed(0)
    D.Gamma(shape, torch.ones(3, dtype=torch.float64)).rsample((4000,)).mean(0).sum().backward()
    assert (shape.grad - 1).abs().max() < 0.1


def test_gradients_of_dirichlet_samples_move_the_mean():
    concentration = t(0.5, 1.5, 4.0).requires_grad_()
    (wanted,) = torch.autograd.grad(D.Dirichlet(concentration).mean[0], concentration)
    torch.manual_seed(0)
    D.Dirichlet(concentration).rsample((4000,))[:, 0].mean().backward()
    assert (concentration.grad - wanted).abs().max() < 0.02


def test_shapes():
    d = D.Normal(torch.zeros(3, 1), torch.ones(2))
    assert (d.batch_shape, d.event_shape) == ((3, 2), ())
    assert d.sample((4,)).shape == (4, 3, 2)
    joined = D.Independent(d, 1)
    assert (joined.batch_shape, joined.event_shape) == ((3,), (2,))
    assert joined.log_prob(torch.zeros(3, 2)).shape == (3,)
    wide = joined.expand((5, 3))
    assert (wide.batch_shape, wide.event_shape) == ((5, 3), (2,))
    assert wide.sample().shape == (5, 3, 2)
    assert D.Categorical(torch.ones(4, 3)).enumerate_support().shape == (3, 4)
    assert D.Categorical(torch.ones(4, 3)).enumerate_support(expand=False).shape == (3, 1)
    assert D.LKJCholesky(3, torch.ones(2)).sample().shape == (2, 3, 3)


def test_parameters_are_checked_unless_told_otherwise():
    with pytest.raises(
        ValueError, match=r"Expected parameter scale \(Tensor of shape \(\)\) of distribution Normal\(.*GreaterThan"
    ):
        D.Normal(0.0, -1.0)
    assert D.Normal(0.0, -1.0, validate_args=False).scale.item() == -1
    with pytest.raises(ValueError, match=r"to be within the support \(GreaterThanEq\(lower_bound=0.0\)\)"):
        D.Exponential(1.0).log_prob(torch.tensor(-1.0))
    try:
        D.Distribution.set_default_validate_args(False)
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)


def test_values_computed_when_asked_for_are_kept():
    probs = torch.tensor([0.2, 0.5], requires_grad=True)
    d = D.Bernoulli(probs)
    assert "logits" not in vars(d)
    with torch.no_grad():
        logits = d.logits
    assert logits.requires_grad  # in any grad mode
    assert d.logits is logits


DIVERGENCES = {
    "Normal": (D.Normal(t(0.0), t(1.0)), D.Normal(t(1.0), t(2.0))),
    "Gamma": (D.Gamma(t(2.0), t(1.0)), D.Gamma(t(3.0), t(2.0))),
    "Exponential and Gamma": (D.Exponential(t(2.0)), D.Gamma(t(3.0), t(2.0))),
    "Laplace and Normal": (D.Laplace(t(0.5), t(1.0)), D.Normal(t(0.0), t(2.0))),
    "Normal and Gumbel": (D.Normal(t(0.5), t(1.0)), D.Gumbel(t(0.0), t(2.0))),
    "Normal and Laplace": (D.Normal(t(0.5), t(1.0)), D.Laplace(t(0.0), t(2.0))),
    "Gumbel and Normal": (D.Gumbel(t(0.5), t(1.0)), D.Normal(t(0.0), t(2.0))),
    "Gamma and Normal": (D.Gamma(t(2.0), t(1.0)), D.Normal(t(0.0), t(2.0))),
    "Beta and Gamma": (D.Beta(t(2.0), t(3.0)), D.Gamma(t(1.5), t(2.0))),
    "Beta and Normal": (D.Beta(t(2.0), t(3.0)), D.Normal(t(0.5), t(2.0))),
    "Uniform and Normal": (D.Uniform(t(1.0), t(2.0)), D.Normal(t(0.5), t(2.0))),
    "Uniform and Gumbel": (D.Uniform(t(1.0), t(2.0)), D.Gumbel(t(0.5), t(2.0))),
    "Uniform and Pareto": (D.Uniform(t(1.0), t(2.0)), D.Pareto(t(0.5), t(2.0))),
    "Uniform and Beta": (D.Uniform(t(0.2), t(0.7)), D.Beta(t(1.5), t(2.0))),
    "Pareto and Exponential": (D.Pareto(t(1.0), t(4.0)), D.Exponential(t(0.5))),
    "Pareto and Gamma": (D.Pareto(t(1.0), t(4.0)), D.Gamma(t(2.0), t(0.5))),
    "Pareto and Normal": (D.Pareto(t(1.0), t(6.0)), D.Normal(t(0.5), t(2.0))),
    "ContinuousBernoulli and Normal": (D.ContinuousBernoulli(t(0.3)), D.Normal(t(0.5), t(2.0))),
    "Cauchy": (D.Cauchy(t(0.0), t(1.0)), D.Cauchy(t(1.0), t(2.0))),
}


@pytest.mark.parametrize("name", DIVERGENCES)
def test_divergences_are_the_integrals(name):
    p, q = DIVERGENCES[name]

    def integrand(u):
        """Over the quantiles of p, by which every family becomes the unit interval."""
        x = t(QUANTILE[type(p)](p, u))
        return (p.log_prob(x) - q.log_prob(x)).item()

    total, _ = integrate.quad(integrand, 0, 1, limit=200)
    assert abs(D.kl_divergence(p, q).item() - total) < 1e-5


QUANTILE = {cls: (lambda p, u: p.icdf(t(u)).item()) for cls in (
    D.Normal, D.Exponential, D.Laplace, D.Gumbel, D.Uniform, D.Pareto, D.ContinuousBernoulli, D.Cauchy,
)} | {
    D.Gamma: lambda p, u: stats.gamma.ppf(u, p.concentration.item(), scale=1 / p.rate.item()),
    D.Beta: lambda p, u: stats.beta.ppf(u, p.concentration1.item(), p.concentration0.item()),
}  # fmt: skip


def test_divergences_of_normal_vectors():
    full = D.MultivariateNormal(t(0.0, 1.0), torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64))
    low = D.LowRankMultivariateNormal(t(1.0, 0.0), torch.tensor([[1.0], [0.5]], dtype=torch.float64), t(0.5, 1.5))
    same = D.MultivariateNormal(low.loc, low.covariance_matrix)
    torch.testing.assert_close(D.kl_divergence(full, low), D.kl_divergence(full, same))
    torch.testing.assert_close(D.kl_divergence(low, full), D.kl_divergence(same, full))
    assert D.kl_divergence(low, same).abs() < 1e-12
    assert D.kl_divergence(low, low).abs() < 1e-12
    diagonal = D.MultivariateNormal(t(0.0, 1.0), scale_tril=torch.diag(t(1.0, 2.0)))
    apart = D.Independent(D.Normal(t(0.0, 1.0), t(1.0, 2.0)), 1)
    torch.testing.assert_close(D.kl_divergence(full, diagonal).isfinite(), torch.tensor(True))
    torch.testing.assert_close(diagonal.log_prob(t(0.3, 0.4)), apart.log_prob(t(0.3, 0.4)))


def test_impossible_values_make_infinite_divergences():
    assert D.kl_divergence(D.Normal(0.0, 1.0), D.Exponential(1.0)) == math.inf
    assert D.kl_divergence(D.Uniform(0.0, 2.0), D.Uniform(0.0, 1.0)) == math.inf
    assert D.kl_divergence(D.Categorical(torch.tensor([0.5, 0.5])), D.Categorical(torch.tensor([1.0, 0.0]))) == math.inf
