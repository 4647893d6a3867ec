"""Steps that can be differentiated (`differentiable=True`) next to PyTorch's, through weights, gradients, state and rates."""

import numpy as np
import pytest
from test_optim import LIBRARIES, OPTIMIZERS, arrays, assert_same, plain

pytestmark = pytest.mark.parity


def derivatives(library, loss, inputs, p):
    """The derivatives and the weights, or the error: some of torch's steps write to what their derivatives need."""
    try:
        return [plain(d) for d in library.autograd.grad(loss, inputs)] + [plain(p)]
    except RuntimeError as error:
        return [type(error).__name__, str(error).split(":")[0]]


CASES = [
    (name, {k: v for k, v in options.items() if k != "maximize"})
    for name, (_, sets) in OPTIMIZERS.items()
    for options in sets
]  # fmt: skip
CASES += [("Adam", {"amsgrad": True}), ("SGD", {"maximize": True}), ("RMSprop", {"maximize": True, "centered": True})]


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_derivatives_through_three_steps(name, options):
    """In the first weights and in each gradient."""
    values = arrays(((4,),), np.float64, 4)
    found = []
    for library in LIBRARIES:
        start, *grads = (library.tensor(of_step[0]).requires_grad_() for of_step in values)
        p = start.clone()
        optimizer = getattr(library.optim, name)([p], differentiable=True, **options)
        for g in grads:
            p.grad = g.clone()
            optimizer.step()
        loss = (p * p).sum() + sum((g * g).sum() for g in grads)
        found.append(derivatives(library, loss, [start, *grads], p))
    # counts are float32, and enter the derivatives
    assert_same(found[1], found[0], 1e-5, 1e-8)


RATES = [
    ("SGD", {}, ["lr"]),
    ("SGD", {"momentum": 0.9}, ["lr"]),
    ("SGD", {"lr": 0.1, "momentum": 0.9}, ["weight_decay"]),
    ("SGD", {}, ["lr", "weight_decay"]),
    ("Adam", {}, ["lr"]),
    ("Adam", {"amsgrad": True}, ["lr"]),
    ("Adam", {"lr": 0.1}, ["betas"]),
    ("Adam", {"lr": 0.1}, ["weight_decay"]),
    ("Adam", {"amsgrad": True}, ["lr", "betas", "weight_decay"]),
    ("AdamW", {}, ["lr", "betas", "weight_decay"]),
    ("AdamW", {"amsgrad": True}, ["lr", "weight_decay"]),
]
VALUES = {"lr": 0.1, "weight_decay": 0.2, "betas": (0.8, 0.95)}


@pytest.mark.parametrize("shape", [(), (1,)], ids=str)
@pytest.mark.parametrize(("name", "options", "rates"), RATES, ids=str)
def test_derivatives_in_the_rates(name, options, rates, shape):
    """Rates that are tensors and require gradients."""
    values = arrays(((3, 2),), np.float64, 4)
    found = []
    for library in LIBRARIES:

        def rate(value, library=library):
            return library.full(shape, value, dtype=library.float64).requires_grad_()

        given = {k: tuple(map(rate, VALUES[k])) if k == "betas" else rate(VALUES[k]) for k in rates}
        start, *grads = (library.tensor(of_step[0]).requires_grad_() for of_step in values)
        p = start.clone()
        optimizer = getattr(library.optim, name)([p], differentiable=True, **options, **given)
        for g in grads:
            p.grad = g.clone()
            optimizer.step()
        inputs = [start, *(t for v in given.values() for t in (v if isinstance(v, tuple) else (v,)))]
        found.append(derivatives(library, (p * p).sum(), inputs, p))
    assert_same(found[1], found[0], 1e-5, 1e-8)


@pytest.mark.parametrize(("name", "options", "rates"), RATES, ids=str)
def test_rates_that_are_tensors_without_gradients(name, options, rates):
    values = arrays(((3, 2),), np.float64, 4)
    for differentiable in (False, True):
        found = []
        for library in LIBRARIES:

            def rate(value, library=library):
                return library.tensor(value, dtype=library.float64)

            given = {k: tuple(map(rate, VALUES[k])) if k == "betas" else rate(VALUES[k]) for k in rates}
            start, *grads = (library.tensor(of_step[0]).requires_grad_() for of_step in values)
            p = start.clone().detach().requires_grad_() if not differentiable else start.clone()
            optimizer = getattr(library.optim, name)([p], differentiable=differentiable, **options, **given)
            for g in grads:
                p.grad = g.clone()
                optimizer.step()
            found.append(plain(p))
        assert_same(found[1], found[0], 1e-6, 1e-9)
