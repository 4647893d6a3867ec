"""Transforms: inverses, Jacobians, shapes, caches, and the registries of transforms for constraints."""

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import distributions as D
from mindtorch_v2.distributions import constraints


def points(*shape):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


# transform → inputs
BIJECTIVE = {
    "exp": (D.ExpTransform(), points(4)),
    "power": (D.PowerTransform(2.0), points(4).exp()),
    "sigmoid": (D.SigmoidTransform(), points(4)),
    "softplus": (D.SoftplusTransform(), points(4)),
    "tanh": (D.TanhTransform(), points(4)),
    "affine": (D.AffineTransform(1.0, -2.0), points(4)),
    "affine of vectors": (D.AffineTransform(1.0, torch.tensor([2.0, 3.0], dtype=torch.float64), event_dim=1), points(3, 2)),
    "inverse": (D.ExpTransform().inv, points(4).exp()),
    "composed": (D.ComposeTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0), D.PowerTransform(0.5)]), points(4)),
    "independent": (D.IndependentTransform(D.ExpTransform(), 1), points(3, 2)),
    "stick breaking": (D.StickBreakingTransform(), points(3, 2)),
    "correlation factors": (D.CorrCholeskyTransform(), points(2, 3)),
    "reshaped": (D.ReshapeTransform((2, 3), (6,)), points(4, 2, 3)),
    "joined": (D.CatTransform([D.ExpTransform(), D.AffineTransform(0.0, 3.0)], dim=0, lengths=[1, 2]), points(3)),
    "stacked": (D.StackTransform([D.ExpTransform(), D.SigmoidTransform()], dim=1), points(3, 2)),
    "a distribution's": (D.CumulativeDistributionTransform(D.Normal(0.5, 2.0)), points(4)),
}
OTHERS = {
    "abs": (D.AbsTransform(), points(4)),
    "softmax": (D.SoftmaxTransform(), points(2, 3)),
    "factors": (D.LowerCholeskyTransform(), points(2, 3, 3)),
    "positive definite": (D.PositiveDefiniteTransform(), points(2, 3, 3)),
}


@pytest.mark.parametrize("name", BIJECTIVE)
def test_inverses(name):
    transform, x = BIJECTIVE[name]
    y = transform(x)
    assert transform.bijective
    assert transform.inv.inv is transform
    torch.testing.assert_close(transform.inv(y), x)
    assert tuple(y.shape) == tuple(transform.forward_shape(x.shape))
    assert tuple(x.shape) == tuple(transform.inverse_shape(y.shape))
    assert transform.domain.check(x).all()
    assert transform.codomain.check(y).all()


@pytest.mark.parametrize("name", BIJECTIVE)
def test_log_determinants_are_those_of_the_jacobians(name):
    transform, x = BIJECTIVE[name]
    if name in ("joined", "stacked"):
        events, dims = x.reshape(-1), 0
    else:
        dims = transform.domain.event_dim
        events = x.reshape(-1, *x.shape[x.dim() - dims :]) if dims else x.reshape(-1)
    found = transform.log_abs_det_jacobian(x, transform(x)).reshape(-1)
    if not dims:
        x = x.clone().requires_grad_()
        (slopes,) = torch.autograd.grad(transform(x).sum(), x)
        wanted = slopes.abs().log().reshape(-1)
    else:
        wanted = torch.stack([_log_determinant(transform, event) for event in events])
    torch.testing.assert_close(found, wanted)


def _log_determinant(transform, event):
    """Over free coordinates: of simplices without the last one, of correlation factors the strict lower triangle."""

    def free(x):
        y = transform(x)
        if isinstance(transform, D.StickBreakingTransform):
            return y[..., :-1]
        if isinstance(transform, D.CorrCholeskyTransform):
            return y[torch.ones(3, 3).tril(-1).bool()]
        return y.reshape(-1)

    jacobian = torch.autograd.functional.jacobian(free, event).reshape(event.numel(), event.numel())
    return torch.linalg.slogdet(jacobian).logabsdet


@pytest.mark.parametrize("name", OTHERS)
def test_transforms_that_lose_something(name):
    transform, x = OTHERS[name]
    y = transform(x)
    assert not transform.bijective
    assert transform.codomain.check(y).all()
    torch.testing.assert_close(transform(transform.inv(y)), y)


def test_caches_keep_the_last_pair():
    transform = D.ExpTransform(cache_size=1)
    x = points(3)
    y = transform(x)
    assert transform(x) is y
    assert transform.inv(y) is x
    assert D.ExpTransform().with_cache() == transform
    assert D.ExpTransform().inv(y) is not x
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        D.ExpTransform(cache_size=2)


def test_equality_and_printing():
    assert D.ExpTransform() == D.ExpTransform()
    assert D.ExpTransform() != D.SigmoidTransform()
    assert D.AffineTransform(0, 2) == D.AffineTransform(0, 2.0)
    assert D.AffineTransform(0, 2) != D.AffineTransform(torch.ones(2), 2)
    assert D.PowerTransform(2.0) == D.PowerTransform(torch.tensor(2.0))
    assert (
        repr(D.ComposeTransform([D.ExpTransform(), D.AbsTransform()]))
        == "ComposeTransform(\n    ExpTransform(),\n    AbsTransform()\n)"
    )
    assert [D.AffineTransform(0, s).sign for s in (-2, 0, 3.0)] == [-1, 0, 1]


REGISTERED = {
    "real": constraints.real, "positive": constraints.positive, "nonnegative": constraints.nonnegative,
    "above": constraints.greater_than(2.0), "below": constraints.less_than(-1.0), "unit": constraints.unit_interval,
    "between": constraints.interval(-1.0, 3.0), "half open": constraints.half_open_interval(2.0, 3.0), "simplex": constraints.simplex,
    "vector": constraints.real_vector, "correlation": constraints.corr_cholesky, "many": constraints.independent(constraints.positive, 1),
    "joined": constraints.cat([constraints.positive, constraints.real], 0, [1, 2]),
    "stacked": constraints.stack([constraints.positive, constraints.real, constraints.unit_interval], 0),
}  # fmt: skip


@pytest.mark.parametrize("name", REGISTERED)
def test_transforms_for_constraints(name):
    constraint = REGISTERED[name]
    for registry in (D.biject_to, D.transform_to):
        transform = registry(constraint)
        assert constraint.check(transform(points(3))).all()
    assert D.biject_to(constraint).bijective


def test_registries_take_more():
    class Even(constraints.Constraint):
        pass

    registry = D.constraint_registry.ConstraintRegistry()
    with pytest.raises(NotImplementedError, match="Cannot transform Even constraints"):
        registry(Even())

    @registry.register(Even)
    def double(constraint):
        return D.AffineTransform(0, 2)

    assert registry(Even()) == D.AffineTransform(0, 2)
    assert registry.register(Even(), double) is double
    with pytest.raises(TypeError, match="Expected constraint to be either a Constraint subclass or instance"):
        registry.register(int, double)


def test_constraints_say_which_values_are_inside():
    x = torch.tensor([-1.0, 0.0, 0.5, 1.0, 2.0, float("nan")])
    table = {
        constraints.boolean: [False, True, False, True, False, False],
        constraints.positive: [False, False, True, True, True, False],
        constraints.nonnegative: [False, True, True, True, True, False],
        constraints.unit_interval: [False, True, True, True, False, False],
        constraints.half_open_interval(0, 1): [False, True, True, False, False, False],
        constraints.nonnegative_integer: [False, True, False, True, True, False],
        constraints.integer_interval(1, 2): [False, False, False, True, True, False],
        constraints.less_than(1): [True, True, True, False, False, False],
        constraints.real: [True, True, True, True, True, False],
    }
    for constraint, wanted in table.items():
        assert constraint.check(x).tolist() == wanted, constraint
    assert constraints.simplex.check(torch.tensor([[0.5, 0.5], [0.5, 0.6], [1.5, -0.5]])).tolist() == [True, False, False]
    assert constraints.one_hot.check(torch.eye(2)).tolist() == [True, True]
    assert constraints.lower_triangular.check(torch.ones(2, 2)).item() is False
    assert constraints.positive_definite.check(torch.stack([torch.eye(2), -torch.eye(2)])).tolist() == [True, False]
    assert constraints.symmetric.check(torch.tensor([[1.0, 2.0], [2.0, 1.0]])).item()
    assert str(constraints.interval(0, 2)) == "Interval(lower_bound=0, upper_bound=2)"
    assert str(constraints.real_vector) == "IndependentConstraint(Real(), 1)"
