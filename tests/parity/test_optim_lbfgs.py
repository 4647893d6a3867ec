"""LBFGS next to PyTorch's: the same points, evaluations and state on functions that are easy and hard."""

import copy

import numpy as np
import pytest
import torch as reference
from test_optim import LIBRARIES, assert_same, plain

import mindtorch_v2 as torch

pytestmark = pytest.mark.parity


def rosenbrock(library, params):
    x, y = params[0][0], params[0][1]
    return (1 - x) ** 2 + 100 * (y - x * x) ** 2


def quartic(library, params):
    return sum(((p * p - 2) ** 2).sum() + p.sum() for p in params)


def regression(library, params):
    rng = np.random.default_rng(3)
    inputs, targets = (library.tensor(rng.standard_normal(shape)) for shape in ((20, 4), (20, 3)))
    return ((inputs @ params[0] + params[1] - targets) ** 2).mean()


def unused(library, params):
    return (params[0] ** 2).sum()


def complex_square(library, params):
    return ((params[0] - (1 + 2j)).abs() ** 2).sum()


FUNCTIONS = {
    rosenbrock: ([-1.2, 1.0],),
    quartic: ([0.3, -0.2, 5.0], [[1.0, 0.1], [-2.0, 0.4]]),
    regression: (np.zeros((4, 3)), np.zeros(3)),
    unused: ([3.0, 4.0], [1.0]),
    complex_square: (np.array([1 + 1j, -1j]),),
}
SEARCHES = [None, "strong_wolfe"]
OPTIONS = [
    {},
    {"lr": 0.15},
    {"max_iter": 3, "history_size": 2},
    {"max_eval": 4},
    {"tolerance_change": 1e-2},
    {"tolerance_grad": 1e-1},
]


def minimise(library, function, dtype, steps, reload=False, **options):
    starts = FUNCTIONS[function]
    if dtype is not None:
        starts = [np.asarray(s, dtype if np.isrealobj(s) else np.complex128) for s in starts]
    params = [library.tensor(s).requires_grad_() for s in starts]
    optimizer = library.optim.LBFGS(params, **options)
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = function(library, params)
        loss.backward()
        losses.append(loss.item())
        return loss

    for _ in range(steps):
        losses.append(optimizer.step(closure).item())
        if reload:
            saved = copy.deepcopy(optimizer.state_dict())
            optimizer = library.optim.LBFGS(params)
            optimizer.load_state_dict(saved)
    return plain(params), losses, optimizer.state_dict()


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_points_losses_and_state(function, search, options):
    if function is rosenbrock and search is None and "lr" not in options:
        options = {**options, "lr": 0.01}  # it runs away otherwise, in both libraries
    found = [minimise(library, function, np.float64, 3, line_search_fn=search, **options) for library in LIBRARIES]
    (params, losses, state), (ours, our_losses, our_state) = found
    assert len(our_losses) == len(losses)
    np.testing.assert_allclose(our_losses, losses, rtol=1e-7, atol=1e-12)
    assert_same(ours, params, 1e-7, 1e-9)
    assert our_state["param_groups"] == state["param_groups"]
    assert {k: set(v) for k, v in our_state["state"].items()} == {k: set(v) for k, v in state["state"].items()}
    for key in ("func_evals", "n_iter"):
        assert our_state["state"][0][key] == state["state"][0][key]
    for key in ("old_dirs", "old_stps", "ro", "al"):
        if key in state["state"][0]:
            a, b = ([None if t is None else plain(t) for t in s["state"][0][key]] for s in (our_state, state))
            assert len(a) == len(b)


@pytest.mark.parametrize("search", SEARCHES)
def test_float32(search):
    # the first moves; near the minimum, decisions depend on the last bit of a loss
    found = [minimise(library, quartic, np.float32, 1, line_search_fn=search, lr=0.01, max_iter=8) for library in LIBRARIES]
    (params, losses, _), (ours, our_losses, _) = found
    np.testing.assert_allclose(our_losses, losses, rtol=1e-3, atol=1e-4)
    assert_same(ours, params, 1e-3, 1e-4)


@pytest.mark.parametrize("search", SEARCHES)
def test_a_state_dict_goes_from_one_library_to_the_other(search):
    expected, _, _ = minimise(torch, regression, np.float64, 4, line_search_fn=search, max_iter=3)
    resumed, _, _ = minimise(torch, regression, np.float64, 4, reload=True, line_search_fn=search, max_iter=3)
    assert_same(resumed, expected, 1e-9, 1e-12)
    _, _, theirs = minimise(reference, regression, np.float64, 2, line_search_fn=search, max_iter=3)
    params, _, _ = minimise(reference, regression, np.float64, 2, line_search_fn=search, max_iter=3)
    ours = [torch.tensor(p).requires_grad_() for p in params]
    optimizer = torch.optim.LBFGS(ours)
    state = {k: to_ours(v) for k, v in theirs["state"][0].items()}
    optimizer.load_state_dict({"state": {0: state}, "param_groups": theirs["param_groups"]})
    for _ in range(2):

        def closure():
            optimizer.zero_grad()
            loss = regression(torch, ours)
            loss.backward()
            return loss

        optimizer.step(closure)
    assert_same(plain(ours), expected, 1e-7, 1e-9)


def to_ours(value):
    if isinstance(value, reference.Tensor):
        return torch.tensor(value.numpy())
    return [to_ours(v) for v in value] if isinstance(value, list) else value


def test_scope():
    p = torch.tensor([3.0], requires_grad=True)
    optimizer = torch.optim.LBFGS([p])
    with torch.profiler.profile() as prof:
        optimizer.step(lambda: ((loss := (p * p).sum()).backward(), loss)[1])
    assert [e.name for e in prof.events() if e.name.startswith("Optimizer")] == ["Optimizer.step#LBFGS.step"]
