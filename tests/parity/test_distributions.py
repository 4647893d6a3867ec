"""Every distribution against torch's: values, gradients, samples from the same seed, printing, errors."""

import functools
import pickle
import warnings

import numpy as np
import pytest
from distribution_cases import CASES

import mindtorch_v2 as mt

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning")]

PROPERTIES = ["mean", "mode", "variance", "stddev", "_natural_params"]
METHODS = {
    "entropy": lambda d: d.entropy(),
    "perplexity": lambda d: d.perplexity(),
    "enumerate_support": lambda d: d.enumerate_support(),
    "enumerate_support(expand=False)": lambda d: d.enumerate_support(expand=False),
}


@functools.cache
def libraries():
    import torch

    return mt, torch


class Made:
    """One case in one library, with the parameters that it was made of."""

    def __init__(self, lib, name, dtype):
        self.lib, self.leaves = lib, []
        self.dtype = getattr(lib, dtype)
        self.distribution = CASES[name](lib.distributions, self.parameter)

    def parameter(self, data):
        self.leaves.append(self.lib.tensor(data, dtype=self.dtype, requires_grad=True))
        return self.leaves[-1]

    def gradients(self, result, *inputs):
        """Gradients of a weighted sum by the inputs and by all parameters; or what was raised."""
        if not (isinstance(result, self.lib.Tensor) and result.requires_grad):
            return None
        weights = self.lib.arange(1.0, result.numel() + 1, dtype=result.dtype).reshape(result.shape)
        return outcome(
            lambda: self.lib.autograd.grad((result * weights).sum(), [*inputs, *self.leaves], allow_unused=True, retain_graph=True)
        )


def outcome(call, *arguments):
    """What a call returns, or the type of what it raises."""
    try:
        return call(*arguments)
    except Exception as error:
        return type(error).__name__


def array(x):
    return x.detach().numpy() if hasattr(x, "detach") else x


def text(x):
    return str(x).replace("mindtorch_v2", "torch")


def check(ours, theirs, what, *, exact=False):
    if isinstance(theirs, tuple | list) and not hasattr(theirs, "numel"):
        assert len(ours) == len(theirs), what
        for mine, other in zip(ours, theirs, strict=True):
            check(mine, other, what, exact=exact)
        return
    a, b = array(ours), array(theirs)
    if not isinstance(b, np.ndarray):
        assert text(a) == text(b), what
        return
    assert isinstance(a, np.ndarray), (what, a)
    assert (a.shape, a.dtype) == (b.shape, b.dtype), what
    rtol = 0 if exact else 2e-9 if b.dtype == np.float64 else 1e-4
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol / 10, err_msg=what)


# torch: compares the concentration with a zero of float32, and refuses others
NARROW = {"GeneralizedPareto"}


def pair(name, dtype="float64"):
    return [Made(lib, name, "float32" if name in NARROW else dtype) for lib in libraries()]


@pytest.mark.parametrize("name", CASES)
def test_what_a_distribution_says_of_itself(name):
    made = pair(name)
    for what in ("batch_shape", "event_shape", "has_rsample", "has_enumerate_support", "support", "arg_constraints"):
        check(*(text(outcome(getattr, m.distribution, what)) for m in made), what)
    check(*(repr(m.distribution) for m in made), "repr")
    for what in PROPERTIES:
        results = [outcome(getattr, m.distribution, what) for m in made]
        check(*results, what)
        check(*(m.gradients(r) for m, r in zip(made, results, strict=True)), f"gradients of {what}")
    for what, call in METHODS.items():
        results = [outcome(call, m.distribution) for m in made]
        check(*results, what)
        check(*(m.gradients(r) for m, r in zip(made, results, strict=True)), f"gradients of {what}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_samples_of_a_seed(name, dtype):
    made = pair(name, dtype)
    for shape in ((), (3,), (2, 3)):
        for method in ("sample", "rsample"):
            results, after = [], []
            for m in made:
                m.lib.manual_seed(5)
                results.append(outcome(getattr(m.distribution, method), shape))
                after.append(m.lib.rand(1).item())
            assert after[0] == after[1], "the streams stand at different places"
            check(*results, f"{method}{shape}")
            check(*(m.gradients(r) for m, r in zip(made, results, strict=True)), f"gradients of {method}{shape}")


def value_for(made, theirs):
    """A sample of torch's distribution, as a tensor of one of the libraries."""
    libraries()[1].manual_seed(1)
    sample = theirs.distribution.sample((4,)).detach().numpy().copy()
    return made.lib.tensor(sample, requires_grad=sample.dtype.kind == "f")


@pytest.mark.parametrize("name", CASES)
def test_densities(name):
    made = pair(name)
    values = [value_for(m, made[1]) for m in made]
    for method in ("log_prob", "cdf"):
        results = [outcome(getattr(m.distribution, method), v) for m, v in zip(made, values, strict=True)]
        check(*results, method)
        gradients = [m.gradients(r, *([v] if v.requires_grad else [])) for m, r, v in zip(made, results, values, strict=True)]
        check(*gradients, f"gradients of {method}")
    results, gradients = [], []
    for m in made:
        quantiles = np.linspace(0.05, 0.95, 4).reshape((4,) + (1,) * len(m.distribution.batch_shape))
        u = m.lib.tensor(quantiles, requires_grad=True)
        results.append(outcome(m.distribution.icdf, u))
        gradients.append(m.gradients(results[-1], u))
    check(*results, "icdf")
    check(*gradients, "gradients of icdf")


@pytest.mark.parametrize("name", CASES)
def test_expanded_ones(name):
    made = pair(name)
    expanded = [m.distribution.expand((2, 3, *m.distribution.batch_shape)) for m in made]
    for what in ("batch_shape", "event_shape", "mean", "variance"):
        check(*(outcome(getattr, d, what) for d in expanded), what)
    check(*(repr(d) for d in expanded), "repr")
    check(*(outcome(d.entropy) for d in expanded), "entropy")
    for m in made:
        m.lib.manual_seed(2)
    samples = [d.sample((2,)) for d in expanded]
    check(*samples, "sample")
    check(*(outcome(d.log_prob, s.detach()) for d, s in zip(expanded, samples, strict=True)), "log_prob")


FIRST = {name.split()[0]: name for name in reversed(CASES) if "number" not in name}  # one case for each family


def test_the_same_pairs_have_divergences():
    ours, theirs = ({(p.__name__, q.__name__) for p, q in lib.distributions.kl._KL_REGISTRY} for lib in libraries())
    assert ours == theirs


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", FIRST)
def test_divergences(name):
    families = {q.__name__ for p, q in libraries()[1].distributions.kl._KL_REGISTRY if p.__name__ == name}
    for other in {*families, name, "VonMises"} & set(FIRST):
        made = []
        for lib in libraries():
            m = Made(lib, FIRST[name], "float64")
            second = CASES[FIRST[other]](lib.distributions, m.parameter)
            result = outcome(lib.distributions.kl_divergence, m.distribution, second)
            made.append((result, m.gradients(result)))
        check(*made, f"{name}, {other}")


@pytest.mark.parametrize("batches", [((), ()), ((3,), ()), ((), (3,)), ((2, 1), (3,))], ids=str)
def test_divergences_of_batches_of_normal_vectors(batches):
    kinds = {
        "full": lambda L, batch, t: L.distributions.MultivariateNormal(
            t([0.5, -1.0]).expand((*batch, 2)), scale_tril=t([[1.2, 0.0], [0.4, 0.7]])
        ),
        "low": lambda L, batch, t: L.distributions.LowRankMultivariateNormal(
            t([0.3, 1.0]).expand((*batch, 2)), t([[1.0], [0.4]]), t([1.0, 0.5]).expand((*batch, 2))
        ),
    }
    for p in kinds:
        for q in kinds:
            results = []
            for lib in libraries():

                def t(data, lib=lib):
                    return lib.tensor(data, dtype=lib.float64)

                first, second = kinds[p](lib, batches[0], t), kinds[q](lib, batches[1], t)
                results.append(outcome(lib.distributions.kl_divergence, first, second))
            if results[1] != "RuntimeError":  # torch does not broadcast a diagonal with more batch dimensions than a factor
                check(*results, f"{p}, {q}")


@pytest.mark.parametrize("name", CASES)
def test_pickles_of_distributions(name):
    d = pair(name)[0].distribution
    copy = pickle.loads(pickle.dumps(d))
    assert repr(copy) == repr(d)
    mt.manual_seed(3)
    first = d.sample((2,))
    mt.manual_seed(3)
    assert mt.equal(copy.sample((2,)), first)


# --- errors -----------------------------------------------------------------------------------------------------------

ERRORS = {
    "a negative scale": lambda L, D: D.Normal(0.0, -1.0),
    "a vector with one bad element": lambda L, D: D.Gamma(L.tensor([1.0, -2.0]), 1.0),
    "NaN": lambda L, D: D.Normal(L.tensor([float("nan")]), 1.0),
    "bounds the wrong way round": lambda L, D: D.Uniform(2.0, 1.0),
    "both parameters": lambda L, D: D.Bernoulli(0.5, logits=0.5),
    "neither parameter": lambda L, D: D.Categorical(),
    "probabilities of no dimension": lambda L, D: D.Categorical(L.tensor(0.5)),
    "logits of no dimension": lambda L, D: D.Categorical(logits=L.tensor(0.5)),
    "a concentration of no dimension": lambda L, D: D.Dirichlet(L.tensor(0.5)),
    "a count that is a tensor": lambda L, D: D.Multinomial(L.tensor([1, 2]), L.ones(2)),
    "counts that differ": lambda L, D: D.Binomial(L.tensor([1.0, 2.0]), L.tensor([0.5, 0.5])).entropy(),
    "counts that differ, enumerated": lambda L, D: D.Binomial(L.tensor([1.0, 2.0]), L.tensor([0.5, 0.5])).enumerate_support(),
    "a string": lambda L, D: D.Normal("0", 1.0),
    "shapes that do not broadcast": lambda L, D: D.Normal(L.zeros(2), L.ones(3)),
    "a value outside of the support": lambda L, D: D.Exponential(1.0).log_prob(L.tensor([-1.0])),
    "a value of no tensor": lambda L, D: D.Normal(0.0, 1.0).log_prob(1.0),
    "a value of another event shape": lambda L, D: D.Dirichlet(L.ones(3)).log_prob(L.ones(2)),
    "a value of another batch shape": lambda L, D: D.Normal(L.zeros(2), 1.0).log_prob(L.ones(3)),
    "a probability of 0": lambda L, D: D.Geometric(L.tensor([0.0, 0.5])),
    "invalid probabilities that are clamped": lambda L, D: D.ContinuousBernoulli(L.tensor([1.5]), validate_args=True),
    "two matrices": lambda L, D: D.MultivariateNormal(L.zeros(2), L.eye(2), L.eye(2)),
    "no matrix": lambda L, D: D.Wishart(3.0),
    "a matrix that is not positive definite": lambda L, D: D.MultivariateNormal(L.zeros(2), -L.eye(2)),
    "a vector for a matrix": lambda L, D: D.MultivariateNormal(L.zeros(2), scale_tril=L.ones(2)),
    "a location of no dimension": lambda L, D: D.MultivariateNormal(L.tensor(0.0), L.eye(2)),
    "few degrees of freedom": lambda L, D: D.Wishart(0.5, L.eye(2)),
    "a factor of another size": lambda L, D: D.LowRankMultivariateNormal(L.zeros(2), L.ones(3, 1), L.ones(2)),
    "a diagonal of another size": lambda L, D: D.LowRankMultivariateNormal(L.zeros(2), L.ones(2, 1), L.ones(3)),
    "batches that do not fit": lambda L, D: D.LowRankMultivariateNormal(L.zeros(3, 2), L.ones(4, 2, 1), L.ones(2)),
    "a correlation matrix of one dimension": lambda L, D: D.LKJCholesky(1),
    "a mixture of no categories": lambda L, D: D.MixtureSameFamily(D.Normal(0.0, 1.0), D.Normal(L.zeros(2), 1.0)),
    "a mixture of no distribution": lambda L, D: D.MixtureSameFamily(D.Categorical(L.ones(2)), 3),
    "a mixture of other components": lambda L, D: D.MixtureSameFamily(D.Categorical(L.ones(3)), D.Normal(L.zeros(2), 1.0)),
    "more dimensions than there are": lambda L, D: D.Independent(D.Normal(L.zeros(2), 1.0), 2),
    "no transforms": lambda L, D: D.TransformedDistribution(D.Normal(0.0, 1.0), 3),
    "a list of no transforms": lambda L, D: D.TransformedDistribution(D.Normal(0.0, 1.0), [3]),
    "too few dimensions for a transform": lambda L, D: D.TransformedDistribution(D.Normal(0.0, 1.0), D.StickBreakingTransform()),
    "an unknown divergence": lambda L, D: D.kl_divergence(D.Normal(0.0, 1.0), D.VonMises(L.zeros(1), L.ones(1))),
    "a constraint without a transform": lambda L, D: D.transform_to(D.constraints.boolean),
    "no constraint": lambda L, D: D.transform_to.register(3, lambda c: c),
    "the check of a dependent constraint": lambda L, D: D.constraints.dependent.check(L.ones(2)),
    "the dimensions of a dependent constraint": lambda L, D: D.constraints.dependent.event_dim,
    "a cache of two": lambda L, D: D.ExpTransform(cache_size=2),
    "shapes of different sizes": lambda L, D: D.ReshapeTransform((2, 3), (5,)),
    "a shape that does not fit": lambda L, D: D.ReshapeTransform((2, 3), (6,)).forward_shape((4, 3)),
    "a vector that fills no triangle": lambda L, D: D.CorrCholeskyTransform().forward_shape((4,)),
    "a matrix that is not square": lambda L, D: D.CorrCholeskyTransform().inverse_shape((4, 3)),
    "a triangle of a vector": lambda L, D: D.utils.vec_to_tril_matrix(L.ones(4)),
    "a diagonal outside": lambda L, D: D.utils.tril_matrix_to_vec(L.ones(2, 2), 2),
    "validation by a number": lambda L, D: D.Distribution.set_default_validate_args(3),
    "no rsample": lambda L, D: D.Bernoulli(0.5).rsample(),
    "no icdf": lambda L, D: D.Gamma(1.0, 1.0).icdf(L.tensor(0.5)),
    "no mode": lambda L, D: D.LogisticNormal(0.0, 1.0).mode,
    "a half": lambda L, D: D.Gamma(L.ones(2, dtype=L.float16), 1.0).sample(),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    kinds, texts = [], []
    for lib in libraries():
        with pytest.raises(Exception) as caught:
            ERRORS[name](lib, lib.distributions)
        kinds.append(caught.type.__name__)
        texts.append(text(caught.value))
    assert kinds[0] == kinds[1], texts
    assert texts[0]  # torch says nothing of some
    # what torch names is named here too; sentences may differ
    for word in ("probs", "logits", "scale_tril", "event_shape", "total_count", "GreaterThan", "df=", "cov_factor", "cov_diag"):
        assert (word in texts[0]) >= (word in texts[1]), texts


def test_a_subclass_with_another_constructor_must_expand_itself():
    for lib in libraries():

        class Own(lib.distributions.Normal):
            def __init__(self):
                super().__init__(0.0, 1.0)

        with pytest.raises(NotImplementedError, match=r"Subclass Own of Normal .* must also define a custom .expand\(\) method"):
            Own().expand((2,))


def test_subclasses_that_expand_themselves():
    shapes = []
    for lib in libraries():

        class Own(lib.distributions.Normal):
            def __init__(self, loc, scale, extra):
                self.extra = extra
                super().__init__(loc, scale)

            def expand(self, batch_shape, _instance=None):
                new = self._get_checked_instance(type(self), _instance)
                new.extra = self.extra
                return super().expand(batch_shape, _instance=new)

        d = Own(0.0, 1.0, "extra").expand((2, 3))
        assert d.extra == "extra"
        shapes.append((tuple(d.batch_shape), tuple(d.sample().shape), repr(d)))
    assert shapes[0] == shapes[1]


def test_own_distributions_and_warnings():
    said = []
    for lib in libraries():

        class Own(lib.distributions.Distribution):
            pass

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            d = Own()
            d._validate_sample(lib.zeros(()))
            outcome(d.sample_n, 2)
        said.append([(w.category.__name__, "arg_constraints" in str(w.message), "support" in str(w.message)) for w in caught])
        for name in ("mean", "mode", "variance", "stddev", "support", "arg_constraints"):
            with pytest.raises(NotImplementedError):
                getattr(d, name)
        for name in ("log_prob", "cdf", "icdf", "expand"):
            with pytest.raises(NotImplementedError):
                getattr(d, name)(lib.zeros(()))
    assert said[0] == said[1]


def test_own_divergences():
    for lib in libraries():
        D = lib.distributions

        class P(D.Normal):
            pass

        class Q(D.Normal):
            pass

        p, q = P(0.0, 1.0), Q(1.0, 1.0)
        assert D.kl_divergence(p, q).item() == 0.5
        try:
            D.register_kl(P, D.Normal)(lambda p, q: "left")
            D.register_kl(D.Normal, Q)(lambda p, q: "right")
            with pytest.warns(RuntimeWarning, match=r"Ambiguous kl_divergence\(P, Q\). Please register_kl\(P, Q\)"):
                assert D.kl_divergence(p, q) == "left"
            D.register_kl(P, Q)(lambda p, q: "both")
            assert D.kl_divergence(p, q) == "both"
        finally:
            for types in ((P, D.Normal), (D.Normal, Q), (P, Q)):
                D.kl._KL_REGISTRY.pop(types, None)
            D.kl._KL_MEMOIZE.clear()
