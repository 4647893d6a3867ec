"""What every optimiser of torch.optim does: it minimises, keeps its state, resumes, and shows in profiles."""

import copy
import pickle

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import optim

# options with which each comes near the minimum of a quadratic in 300 steps
OPTIMIZERS = {
    "ASGD": {"lr": 0.05, "lambd": 0.0},
    "Adadelta": {"lr": 10.0, "rho": 0.5},
    "Adafactor": {"lr": 0.5},
    "Adagrad": {"lr": 1.0},
    "Adam": {"lr": 0.2},
    "AdamW": {"lr": 0.2, "weight_decay": 0.0},
    "Adamax": {"lr": 0.3},
    "Muon": {"lr": 0.02, "weight_decay": 0.0, "momentum": 0.8},
    "NAdam": {"lr": 0.1},
    "RAdam": {"lr": 0.3},
    "RMSprop": {"lr": 0.02},
    "Rprop": {},
    "SGD": {"lr": 0.1},
}
WITH_FOREACH = [name for name in OPTIMIZERS if name != "Muon"]
WITH_DIFFERENTIABLE = [name for name in WITH_FOREACH if name != "Adafactor"]
TARGET = np.array([[1.0, -2.0, 0.5], [3.0, 0.0, -1.0], [0.25, 2.0, 1.5]])


def make(name, dtype=torch.float64, **options):
    p = torch.zeros(3, 3, dtype=dtype, requires_grad=True)
    return p, getattr(optim, name)([p], **{**OPTIMIZERS[name], **options})


def train(p, optimizer, steps, sign=1):
    target = torch.tensor(TARGET, dtype=p.dtype)
    for _ in range(steps):
        optimizer.zero_grad()
        (((p - target) ** 2).sum() * sign).backward()
        optimizer.step()
    return p.detach().numpy().copy()


def distance(values):
    return np.abs(values - TARGET).max()


@pytest.mark.parametrize("foreach", [None, True])
@pytest.mark.parametrize("name", WITH_FOREACH)
def test_a_quadratic_is_minimised(name, foreach):
    p, optimizer = make(name, foreach=foreach)
    assert distance(train(p, optimizer, 300)) < 0.1


def test_muon_comes_near():
    assert distance(train(*make("Muon"), 300)) < 0.1


@pytest.mark.parametrize("foreach", [None, True])
@pytest.mark.parametrize("name", WITH_FOREACH)
def test_maximising_is_minimising_the_negative(name, foreach):
    a = train(*make(name, foreach=foreach), 20)
    b = train(*make(name, foreach=foreach, maximize=True), 20, sign=-1)
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", WITH_FOREACH)
def test_lists_give_what_single_parameters_give(name):
    def params():
        rng = np.random.default_rng(0)
        shapes = [(3,), (2, 4), (), (2, 3, 2)]
        made = [torch.tensor(rng.standard_normal(s)).to(d) for s in shapes for d in (torch.float32, torch.float64)]
        return [p.requires_grad_() for p in made]

    found = []
    for foreach in (False, True):
        ps, rng = params(), np.random.default_rng(1)
        optimizer = getattr(optim, name)(ps, **OPTIMIZERS[name], foreach=foreach)
        for step in range(5):
            for i, p in enumerate(ps):  # some have no gradient at first
                p.grad = torch.tensor(rng.standard_normal(tuple(p.shape))).to(p.dtype) if step or i % 3 else None
            optimizer.step()
        found.append([p.detach().numpy() for p in ps])
    for one, many in zip(*found, strict=True):
        np.testing.assert_allclose(many, one, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_resumed_training_is_that_without_a_break(name):
    # float32: loading gives all state but the step count the dtype of the parameter
    expected = train(*make(name, torch.float32), 12)
    p, optimizer = make(name, torch.float32)
    train(p, optimizer, 7)
    q, resumed = make(name, torch.float32)
    with torch.no_grad():
        q.copy_(p)
    resumed.load_state_dict(pickle.loads(pickle.dumps(optimizer.state_dict())))
    np.testing.assert_array_equal(train(q, resumed, 5), expected)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("how", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))], ids=["deepcopy", "pickle"])
def test_copies_go_on_by_themselves(name, how):
    p, optimizer = make(name)
    train(p, optimizer, 3)
    other = how(optimizer)
    (q,) = other.param_groups[0]["params"]
    assert q is not p
    before = p.detach().numpy().copy()
    expected = train(q, other, 2)
    np.testing.assert_array_equal(p.detach().numpy(), before)
    np.testing.assert_array_equal(train(p, optimizer, 2), expected)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_closure_hooks_and_scopes(name):
    p, optimizer = make(name)
    calls = []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: calls.append("before"))
    optimizer.register_step_post_hook(lambda o, args, kwargs: calls.append("after"))

    def closure():
        calls.append(torch.is_grad_enabled())
        optimizer.zero_grad()
        loss = (p * p).sum() + p.sum()
        loss.backward()
        return loss

    with torch.profiler.profile() as prof, torch.no_grad():
        assert optimizer.step(closure).item() == 0
    assert calls == ["before", True, "after"]
    names = [e.name for e in prof.events() if e.name.startswith("Optimizer")]
    assert names == [f"Optimizer.step#{name}.step", f"Optimizer.zero_grad#{name}.zero_grad"]


@pytest.mark.parametrize("name", [n for n in OPTIMIZERS if n != "Adagrad"])  # which makes its state at once
def test_parameters_without_gradients_have_no_state(name):
    p, q = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2, requires_grad=True)
    optimizer = getattr(optim, name)([p, q], **({"momentum": 0.9} if name == "SGD" else {}))
    p.grad = torch.ones(2, 2)
    optimizer.step()
    assert list(optimizer.state) == [p]
    assert torch.equal(q, torch.ones(2, 2))


@pytest.mark.parametrize("name", [n for n in WITH_DIFFERENTIABLE if n not in ("SGD", "Adagrad")])
def test_capturable_is_refused_on_the_cpu(name):
    p, optimizer = make(name, capturable=True)
    with pytest.raises(AssertionError, match=r"If capturable=True, params.* must be on supported devices"):
        train(p, optimizer, 1)


@pytest.mark.parametrize("name", WITH_DIFFERENTIABLE)
def test_lists_are_not_differentiable(name):
    p, optimizer = make(name, differentiable=True, foreach=True)
    p.grad = torch.ones_like(p)
    with pytest.raises((AssertionError, RuntimeError), match=r"_foreach ops don't support autograd|leaf Variable"):
        optimizer.step()


@pytest.mark.parametrize("rate", ["lr", "weight_decay"])
@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_a_differentiable_step_has_derivatives_in_its_rates(name, rate):
    def moved(value):
        p = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True).clone()
        optimizer = getattr(optim, name)([p], differentiable=True, **{"lr": 0.1, rate: value})
        for grad in ([0.5, 1.0], [2.0, -1.0]):
            p.grad = torch.tensor(grad, dtype=torch.float64)
            optimizer.step()
        return (p * p).sum()

    value = torch.tensor(0.2, dtype=torch.float64, requires_grad=True)
    moved(value).backward()
    h = 1e-3
    estimate = (moved(0.2 + h).item() - moved(0.2 - h).item()) / (2 * h)
    assert value.grad.item() == pytest.approx(estimate, rel=1e-4)


@pytest.mark.parametrize("options", [{"foreach": True}, {"fused": True}], ids=str)
def test_zero_grad_over_lists(options):
    ps = [torch.ones(2, requires_grad=True), torch.ones(3, dtype=torch.float64, requires_grad=True), torch.ones(1)]
    optimizer = optim.SGD(ps, **options)
    for p in ps[:2]:
        p.grad = torch.ones_like(p)
    grads = [p.grad for p in ps]
    with torch.profiler.profile() as prof:
        optimizer.zero_grad(set_to_none=False)
    assert [p.grad is g for p, g in zip(ps, grads, strict=True)] == [True] * 3
    assert [g.tolist() for g in grads[:2]] == [[0, 0], [0, 0, 0]]
    assert [e.name for e in prof.events()].count("aten::_foreach_zero_") == 2  # one for each dtype


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_fused_steps_are_refused_on_the_meta_device(name):
    layer = torch.nn.Linear(2, 1, device="meta")
    optimizer = getattr(optim, name)(layer.parameters(), fused=True)
    for p in layer.parameters():
        p.grad = torch.ones_like(p)
    with pytest.raises(RuntimeError, match=r"requires all the params to be floating point.* but torch.float32 and meta"):
        optimizer.step()


# --- sparse gradients -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options"),
    [("SGD", {}), ("SGD", {"momentum": 0.9}), ("SGD", {"momentum": 0.9, "foreach": True}), ("Adagrad", {}), ("SparseAdam", {})],
    ids=str,
)
def test_sparse_gradients_train_an_embedding(name, options):
    table = torch.nn.Embedding(5, 2, sparse=True)
    before = table.weight.detach().clone()
    optimizer = getattr(optim, name)(table.parameters(), lr=0.1, **options)
    index = torch.tensor([1, 3, 3])
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = (table(index) ** 2).sum()
        loss.backward()
        assert table.weight.grad.is_sparse
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert torch.equal(table.weight[[0, 2, 4]], before[[0, 2, 4]])
    optimizer.zero_grad(set_to_none=False)
    assert table.weight.grad._nnz() == 0


def test_a_sparse_step_is_the_dense_one_where_there_are_gradients():
    found = []
    for sparse, cls in ((True, optim.SparseAdam), (False, optim.Adam)):
        p = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        optimizer = cls([p], lr=0.1)
        for k in range(3):
            grad = torch.tensor([[0.0, 0.0], [1.0 + k, -2.0]])
            p.grad = grad.to_sparse(1) if sparse else grad
            optimizer.step()
        found.append(p.detach())
    assert torch.allclose(found[0], found[1])


# --- LBFGS ------------------------------------------------------------------------------------------------------------


def rosenbrock(p):
    return (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2


def minimise(p, optimizer, steps):
    def closure():
        optimizer.zero_grad()
        loss = rosenbrock(p)
        loss.backward()
        return loss

    return [optimizer.step(closure).item() for _ in range(steps)]


def test_lbfgs_with_a_line_search_finds_the_minimum_of_a_curved_valley():
    p = torch.tensor([-1.2, 1.0], dtype=torch.float64, requires_grad=True)
    losses = minimise(p, optim.LBFGS([p], line_search_fn="strong_wolfe", tolerance_change=1e-14), 6)
    assert losses == sorted(losses, reverse=True)
    np.testing.assert_allclose(p.detach().numpy(), [1, 1], atol=1e-6)


def test_lbfgs_resumes_and_is_copied():
    def start():
        p = torch.tensor([-1.2, 1.0], dtype=torch.float64, requires_grad=True)
        return p, optim.LBFGS([p], max_iter=4, line_search_fn="strong_wolfe")

    p, optimizer = start()
    minimise(p, optimizer, 2)
    copies = [copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))]
    q, resumed = start()
    with torch.no_grad():
        q.copy_(p)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    expected = minimise(p, optimizer, 2)
    assert minimise(q, resumed, 2) == expected
    for other in copies:
        assert minimise(other.param_groups[0]["params"][0], other, 2) == expected


def test_lbfgs_without_a_closure():
    with pytest.raises(TypeError, match="closure"):
        optim.LBFGS([torch.ones(1, requires_grad=True)]).step()


# --- other parameters for a while -------------------------------------------------------------------------------------


def test_swapped_parameters_and_state():
    p, optimizer = make("Adam")
    train(p, optimizer, 2)
    own = p.detach().clone()
    q = torch.full((3, 3), 5.0, dtype=torch.float64, requires_grad=True)
    state = copy.deepcopy(optimizer.state_dict())
    state["param_groups"][0]["lr"] = 1.0
    with optim.swap_in_optimizer_params_and_state(optimizer, {"p": q}, state):
        assert optimizer.param_groups[0]["lr"] == 1.0
        q.grad = torch.ones_like(q)
        optimizer.step()
    assert optimizer.param_groups[0]["params"] == [p]
    assert optimizer.param_groups[0]["lr"] == 0.2
    assert torch.equal(p, own)
    assert not torch.equal(q, torch.full((3, 3), 5.0, dtype=torch.float64))
    assert state["state"][0]["step"].item() == 3
    assert optimizer.state[p]["step"].item() == 2


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda s: s.update(state=3), "to be a dict mapping packed parameter ids"),
        (lambda s: s.update(state={torch.ones(1): {}}), "keyed by packed parameter ids"),
        (lambda s: s.update(state={0: 3}), "entries to be dictionaries"),
        (lambda s: s.update(param_groups=3), "a list of param-group dicts, got int"),
        (lambda s: s.update(param_groups=[]), "different number of parameter groups"),
        (lambda s: s.update(param_groups=[3]), "each optimizer param group to be a dictionary"),
        (lambda s: s["param_groups"][0].update(params=None), "entries keyed by packed parameter ids"),
        (lambda s: s["param_groups"][0].update(params=[0, 1]), "different number of params"),
        (lambda s: s["param_groups"][0].update(more=1), r"Keys only in swap-in: \['more'\]. Keys only in live: \[\]."),
        (lambda s: s["state"].update({7: {}}), r"got extra keys \[7\]"),
    ],
)
def test_state_that_does_not_fit_is_refused(change, text):
    p, optimizer = make("Adam")
    train(p, optimizer, 1)
    state = optimizer.state_dict()
    change(state)
    with (
        pytest.raises(RuntimeError, match=text),
        optim.swap_in_optimizer_params_and_state(optimizer, {"p": p}, state),
    ):
        pass
