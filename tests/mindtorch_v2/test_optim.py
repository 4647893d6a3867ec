"""The public contract of torch.optim."""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _record
from mindtorch_v2.optim import SGD, Adam, AdamW, Optimizer, lr_scheduler
from mindtorch_v2.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook


def param(*values, grad=None):
    p = torch.tensor(list(values), dtype=torch.float64, requires_grad=True)
    if grad is not None:
        p.grad = torch.tensor(grad, dtype=torch.float64)
    return p


# --- values -----------------------------------------------------------------------------------------------------------

IMPLEMENTATIONS = [{}, {"foreach": True}, {"foreach": False}, {"fused": True}]


def sgd_by_hand(x, grads, *, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False):
    buffer = None
    for g in grads:
        g = -g if maximize else g
        g = g + weight_decay * x
        if momentum:
            buffer = g if buffer is None else momentum * buffer + (1 - dampening) * g
            g = g + momentum * buffer if nesterov else buffer
        x = x - lr * g
    return x


def adam_by_hand(x, grads, *, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, maximize=False, decoupled=False):
    m = v = largest = np.zeros_like(x)
    for t, g in enumerate(grads, 1):
        g = -g if maximize else g
        if decoupled:
            x = x * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * x
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        largest = np.maximum(largest, v)
        used = largest if amsgrad else v
        x = x - lr / (1 - betas[0] ** t) * m / (np.sqrt(used) / np.sqrt(1 - betas[1] ** t) + eps)
    return x


def train(cls, grads, **options):
    p = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64, requires_grad=True)
    optimizer = cls([p], **options)
    for g in grads:
        optimizer.zero_grad()
        (p * torch.tensor(g)).sum().backward()
        optimizer.step()
    return p.detach().numpy()


GRADS = list(np.random.default_rng(0).standard_normal((10, 3)))


@pytest.mark.parametrize("how", IMPLEMENTATIONS, ids=str)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"momentum": 0.9},
        {"momentum": 0.9, "dampening": 0.2, "weight_decay": 0.1},
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
        {"maximize": True, "weight_decay": 0.1},
    ],
    ids=str,
)
def test_sgd(options, how):
    got = train(SGD, GRADS, lr=0.1, **options, **how)
    np.testing.assert_allclose(got, sgd_by_hand(np.array([1.0, -2, 3]), GRADS, lr=0.1, **options), rtol=1e-12)


@pytest.mark.parametrize("how", IMPLEMENTATIONS, ids=str)
@pytest.mark.parametrize("cls", [Adam, AdamW])
@pytest.mark.parametrize(
    "options",
    [
        {"weight_decay": 0},
        {"weight_decay": 0.1},
        {"amsgrad": True, "weight_decay": 0.1},
        {"maximize": True, "weight_decay": 0.1, "betas": (0.8, 0.9), "eps": 1e-3},
    ],
    ids=str,
)
def test_adam(cls, options, how):
    got = train(cls, GRADS, lr=0.1, **options, **how)
    expected = adam_by_hand(np.array([1.0, -2, 3]), GRADS, lr=0.1, decoupled=cls is AdamW, **options)
    np.testing.assert_allclose(got, expected, rtol=1e-10)


def test_adam_with_decoupled_weight_decay_is_adamw():
    np.testing.assert_array_equal(
        train(Adam, GRADS, weight_decay=0.3, decoupled_weight_decay=True), train(AdamW, GRADS, weight_decay=0.3)
    )


@pytest.mark.parametrize("cls", [SGD, Adam, AdamW])
def test_a_learning_rate_may_be_a_tensor(cls):
    np.testing.assert_allclose(train(cls, GRADS, lr=torch.tensor(0.1, dtype=torch.float64)), train(cls, GRADS, lr=0.1), rtol=1e-12)


def test_differentiable_sgd_differentiates_through_the_step():
    x = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
    p = x.clone()
    p.retain_grad()
    p.grad = torch.tensor([3.0], dtype=torch.float64)
    optimizer = SGD([p], lr=0.5, differentiable=True)
    optimizer.step()
    (p * p).sum().backward(inputs=[x])
    assert x.grad.item() == 2 * (2 - 1.5)


def test_differentiable_adam_differentiates_through_the_step():
    g = torch.tensor([3.0], dtype=torch.float64, requires_grad=True)
    p = torch.tensor([2.0], dtype=torch.float64, requires_grad=True).clone()
    p.grad = g * 1
    optimizer = Adam([p], lr=0.5, eps=1.0, differentiable=True)
    optimizer.step()
    (d,) = torch.autograd.grad(p.sum(), g)
    # p - lr * g / (|g| + 1)
    assert d.item() == pytest.approx(-0.5 / 16, rel=1e-4)  # the step count is float32


def test_closure():
    p = param(4.0)
    optimizer = SGD([p], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert optimizer.step(closure).item() == 16
    assert p.item() == pytest.approx(3.2)


def test_parameters_without_gradients_are_left_alone():
    a, b = param(1.0, grad=[1.0]), param(2.0)
    optimizer = Adam([a, b])
    optimizer.step()
    assert b.item() == 2
    assert b not in optimizer.state


@pytest.mark.parametrize("cls", [Adam, AdamW])
@pytest.mark.parametrize("options", [{}, {"amsgrad": True, "weight_decay": 0.1, "maximize": True}], ids=str)
def test_a_fused_step_of_many_is_that_of_each(cls, options):
    def params():
        rng = np.random.default_rng(0)
        shapes = [(), (3,), (4, 5), (0,), (2, 3, 4), (3000,), (7,), (50, 40)]
        made = [
            torch.tensor(rng.standard_normal(shape), dtype=dtype) for shape in shapes for dtype in (torch.float32, torch.float64)
        ]
        made.append(torch.tensor(rng.standard_normal((6, 8)), dtype=torch.float32).t())  # not row by row in memory
        for i, p in enumerate(made):
            p.requires_grad_()
            p.grad = torch.tensor(rng.standard_normal(tuple(p.shape)), dtype=p.dtype) if i % 5 else None
        return made

    together, apart = params(), params()
    many = cls(together, lr=0.1, fused=True, **options)
    each = [cls([p], lr=0.1, fused=True, **options) for p in apart]
    for _ in range(2):
        many.step()
        for optimizer in each:
            optimizer.step()
        for p, q in zip(together, apart, strict=True):  # those that had no gradient are a step behind from here on
            if p.grad is None:
                p.grad, q.grad = torch.ones_like(p), torch.ones_like(q)
    many.step()
    for optimizer in each:
        optimizer.step()
    for p, q in zip(together, apart, strict=True):
        np.testing.assert_array_equal(p.detach().numpy(), q.detach().numpy())
        assert p.stride() == q.stride()
        assert p._version == q._version
        for name, value in many.state[p].items():
            assert torch.equal(value, next(o for o in each if q in o.state).state[q][name])


# --- groups -----------------------------------------------------------------------------------------------------------


def test_param_groups():
    a, b = param(1.0, grad=[1.0]), param(1.0, grad=[1.0])
    optimizer = SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1)
    optimizer.step()
    assert (a.item(), b.item()) == (0.9, 0.5)
    assert list(optimizer.param_groups[0]) == [
        "params",
        "lr",
        "momentum",
        "dampening",
        "weight_decay",
        "nesterov",
        "maximize",
        "foreach",
        "differentiable",
        "fused",
    ]
    c = param(1.0)
    optimizer.add_param_group({"params": c})
    assert optimizer.param_groups[2]["lr"] == 0.1
    assert optimizer.param_groups[1]["params"] == [b]


def test_named_parameters():
    a, b = param(1.0), param(2.0)
    optimizer = SGD([("a", a), ("b", b)], lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["a", "b"]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["a", "b"]
    with pytest.raises(ValueError, match=r"all optimizer param groups should be with/without names"):
        optimizer.add_param_group({"params": param(1.0)})


P = lambda: [param(1.0)]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: SGD([]), ValueError, "optimizer got an empty parameter list"),
        (lambda: SGD(param(1.0)), TypeError, "params argument given to the optimizer should be an iterable of Tensors or dicts, but got torch.DoubleTensor"),
        (lambda: SGD([3]), TypeError, "optimizer can only optimize Tensors, but one of the params is int"),
        (lambda: SGD([param(1.0) * 2]), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: SGD([{"params": {param(1.0)}}]), TypeError, "optimizer parameters need to be organized in ordered collections"),
        (lambda: SGD([{"params": P()}, 3]), TypeError, "param_group must be a dict, but got <class 'int'>"),
        (lambda: SGD([("a", param(1.0)), param(1.0)]), ValueError, "all optimizer params should be with/without names. Some param names are missing"),
        (lambda: SGD(P(), lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: SGD(P(), momentum=-1), ValueError, "Invalid momentum value: -1"),
        (lambda: SGD(P(), weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda: SGD(P(), nesterov=True), ValueError, "Nesterov momentum requires a momentum and zero dampening"),
        (lambda: SGD(P(), lr=torch.tensor([0.1, 0.2])), ValueError, "Tensor lr must be 1-element"),
        (lambda: SGD(P(), fused=True, foreach=True), RuntimeError, "`fused` and `foreach` cannot be `True` together."),
        (lambda: SGD(P(), fused=True, differentiable=True), RuntimeError, "`fused` does not support `differentiable`"),
        (lambda: Adam(P(), lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: Adam(P(), eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda: Adam(P(), betas=(2, 0.1)), ValueError, "Invalid beta parameter at index 0: 2"),
        (lambda: Adam(P(), betas=(0.1, 2)), ValueError, "Invalid beta parameter at index 1: 2"),
        (lambda: AdamW(P(), weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda: AdamW(P(), lr=torch.tensor(0.1), foreach=True), ValueError, "lr as a Tensor is not supported for capturable=False and foreach=True"),
        (lambda: Adam(P(), betas=(torch.tensor(0.1), 0.2)), ValueError, "betas must be either both floats or both Tensors"),
        (lambda: Adam(P(), betas=(torch.tensor(0.1), torch.tensor(0.2)), foreach=True), ValueError, r"betas\[0\] as a Tensor is not supported for capturable=False and foreach=True"),
        (lambda: Adam([param(1.0, grad=[1.0])], capturable=True).step(), AssertionError, "If capturable=True, params and state_steps must be on supported devices"),
        (lambda: Adam([param(1.0, grad=[1.0])], differentiable=True).step(), RuntimeError, "a leaf Variable that requires grad is being used in an in-place operation."),
        (lambda: SGD(P()).load_state_dict({"state": {}, "param_groups": []}), ValueError, "loaded state dict has a different number of parameter groups"),
        (lambda: SGD(P()).load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]}), ValueError, "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"),
        (lambda: Optimizer(P(), {}).step(), NotImplementedError, "^$"),
    ],
)  # fmt: skip
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_one_parameter_in_two_groups_or_twice():
    p = param(1.0)
    with pytest.raises(ValueError, match=r"some parameters appear in more than one parameter group"):
        SGD([{"params": [p]}, {"params": [p]}])
    with pytest.warns(UserWarning, match=r"optimizer contains a parameter group with duplicate parameters"):
        SGD([p, p])


def test_signatures():
    def parameters(cls):
        return [(n, None if p.default is p.empty else p.default, p.kind.name) for n, p in inspect.signature(cls).parameters.items()]

    k, w = "POSITIONAL_OR_KEYWORD", "KEYWORD_ONLY"
    assert parameters(SGD) == [
        ("params", None, k), ("lr", 1e-3, k), ("momentum", 0, k), ("dampening", 0, k), ("weight_decay", 0, k), ("nesterov", False, k),
        ("maximize", False, w), ("foreach", None, w), ("differentiable", False, w), ("fused", None, w),
    ]  # fmt: skip
    assert parameters(AdamW) == [
        ("params", None, k), ("lr", 1e-3, k), ("betas", (0.9, 0.999), k), ("eps", 1e-8, k), ("weight_decay", 1e-2, k), ("amsgrad", False, k),
        ("maximize", False, w), ("foreach", None, w), ("capturable", False, w), ("differentiable", False, w), ("fused", None, w),
    ]  # fmt: skip


# --- zero_grad, state, copies -----------------------------------------------------------------------------------------


def test_zero_grad():
    p = param(1.0, grad=[5.0])
    optimizer = SGD([p])
    grad = p.grad
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is grad
    assert grad.item() == 0
    optimizer.zero_grad()
    assert p.grad is None


def test_state_dict_round_trip():
    def make():
        ps = [param(1.0, grad=[0.5]), param(2.0, grad=[0.25])]
        return ps, Adam([{"params": ps[:1]}, {"params": ps[1:], "lr": 0.5}], lr=0.1, amsgrad=True)

    ps, a = make()
    a.step()
    a.step()
    saved = a.state_dict()
    assert list(saved) == ["state", "param_groups"]
    assert list(saved["state"][0]) == ["step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"]
    assert saved["state"][1]["step"].item() == 2
    assert [g["params"] for g in saved["param_groups"]] == [[0], [1]]
    qs, b = make()
    with torch.no_grad():
        for p, q in zip(ps, qs, strict=True):
            q.copy_(p)
    b.load_state_dict(copy.deepcopy(saved))
    a.step()
    b.step()
    assert [p.item() for p in ps] == [q.item() for q in qs]


def test_loading_casts_state_to_the_parameter_but_not_the_step():
    p = param(1.0, grad=[1.0])
    a = Adam([p])
    a.step()
    q = torch.ones(1, dtype=torch.float32, requires_grad=True)
    b = Adam([q])
    b.load_state_dict(a.state_dict())
    assert b.state[q]["exp_avg"].dtype is torch.float32
    assert b.state[q]["step"].dtype is a.state[p]["step"].dtype


def test_pickle_and_deepcopy():
    p = param(1.0, grad=[1.0])
    optimizer = SGD([p], lr=0.1, momentum=0.9)
    optimizer.step()
    for other in (pickle.loads(pickle.dumps(optimizer)), copy.deepcopy(optimizer)):
        q = other.param_groups[0]["params"][0]
        assert q is not p
        assert q.item() == p.item()
        assert other.state[q]["momentum_buffer"].item() == 1
        q.grad = torch.ones(1, dtype=torch.float64)
        other.step()
        assert q.item() == pytest.approx(0.9 - 0.19)


def test_repr():
    assert repr(SGD([param(1.0)], lr=0.1)) == (
        "SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n    foreach: None\n    fused: None\n    lr: 0.1\n"
        "    maximize: False\n    momentum: 0\n    nesterov: False\n    weight_decay: 0\n)"
    )


# --- hooks and scopes -------------------------------------------------------------------------------------------------


def test_step_hooks():
    log = []
    optimizer = SGD([param(1.0, grad=[1.0])])
    handles = [
        register_optimizer_step_pre_hook(lambda o, args, kwargs: log.append("global pre")),
        register_optimizer_step_post_hook(lambda o, args, kwargs: log.append("global post")),
        optimizer.register_step_pre_hook(lambda o, args, kwargs: log.append("pre")),
        optimizer.register_step_post_hook(lambda o, args, kwargs: log.append("post")),
    ]
    optimizer.step()
    assert log == ["global pre", "pre", "post", "global post"]
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(log) == 4
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match=r"must return None or a tuple of \(new_args, new_kwargs\), but got 3."):
        optimizer.step()


def test_a_pre_hook_may_replace_the_arguments():
    optimizer = SGD([param(1.0, grad=[1.0])])
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((*args, lambda: "replaced"), {}))
    assert optimizer.step() == "replaced"


def test_hooks_get_the_optimiser_among_the_arguments_of_the_step():
    seen = []
    optimizer = SGD([param(1.0, grad=[1.0])])
    optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append(args))
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(args))
    optimizer.step()
    assert seen == [(optimizer,), (optimizer,)]


def test_state_dict_hooks():
    log = []
    optimizer = SGD([param(1.0)])
    optimizer.register_state_dict_pre_hook(lambda o: log.append("before"))
    optimizer.register_state_dict_post_hook(lambda o, d: {**d, "more": 1})
    optimizer.register_load_state_dict_pre_hook(lambda o, d: log.append(d["more"]))
    optimizer.register_load_state_dict_post_hook(lambda o: log.append("loaded"))
    optimizer.register_state_dict_pre_hook(lambda o: log.append("first"), prepend=True)
    optimizer.load_state_dict(optimizer.state_dict())
    assert log == ["first", "before", 1, "loaded"]


def test_subclasses_get_hooks_and_scopes():
    class Mine(Optimizer):
        def __init__(self, params):
            super().__init__(params, {})

        def step(self, closure=None):
            return "stepped"

    names, ended = [], []
    _record.install(lambda name, **_: names.append(name) or name, ended.append)
    try:
        optimizer = Mine([param(1.0)])
        assert optimizer.step() == "stepped"
        optimizer.zero_grad()
        Mine([param(1.0)]).step()
    finally:
        _record.install(None, None)
    assert names == ended == ["Optimizer.step#Mine.step", "Optimizer.zero_grad#Mine.zero_grad", "Optimizer.step#Mine.step"]


# --- schedules --------------------------------------------------------------------------------------------------------


def rates(make, epochs=6, lr=1.0):
    optimizer = SGD([param(1.0)], lr=lr)
    schedule = make(optimizer)
    found = []
    for _ in range(epochs):
        found.append(schedule.get_last_lr()[0])
        assert optimizer.param_groups[0]["lr"] == found[-1]
        optimizer.step()
        schedule.step()
    return found


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda o: lr_scheduler.StepLR(o, 2, 0.5), [1, 1, 0.5, 0.5, 0.25, 0.25]),
        (lambda o: lr_scheduler.MultiStepLR(o, [1, 3], 0.5), [1, 0.5, 0.5, 0.25, 0.25, 0.25]),
        (lambda o: lr_scheduler.ExponentialLR(o, 0.5), [1, 0.5, 0.25, 0.125, 0.0625, 0.03125]),
        (lambda o: lr_scheduler.LambdaLR(o, lambda e: 1 / (e + 1)), [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 6]),
        (lambda o: lr_scheduler.MultiplicativeLR(o, lambda e: 0.5), [1, 0.5, 0.25, 0.125, 0.0625, 0.03125]),
        (lambda o: lr_scheduler.ConstantLR(o, 0.5, 2), [0.5, 0.5, 1, 1, 1, 1]),
        (lambda o: lr_scheduler.LinearLR(o, 0.5, 1.0, 2), [0.5, 0.75, 1, 1, 1, 1]),
        (lambda o: lr_scheduler.PolynomialLR(o, 4), [1, 0.75, 0.5, 0.25, 0, 0]),
        (lambda o: lr_scheduler.CosineAnnealingLR(o, 2), [1, 0.5, 0, 0.5, 1, 0.5]),
        (lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.ConstantLR(o, 0.5, 9), lr_scheduler.ExponentialLR(o, 0.5)], [2]), [0.5, 0.5, 1, 0.5, 0.25, 0.125]),
    ],
)  # fmt: skip
def test_schedules(make, expected):
    np.testing.assert_allclose(rates(make), expected, atol=1e-12)


def test_reduce_on_plateau():
    optimizer = SGD([param(1.0)], lr=1.0)
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1, cooldown=1, min_lr=0.2)
    found = []
    for metric in (5, 4, 4, 4, 4, 4, 4, 4, 4, 4):
        schedule.step(metric)
        found.append(schedule.get_last_lr()[0])
    assert found == [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.2]
    with pytest.raises(ValueError, match=r"Factor should be < 1.0."):
        lr_scheduler.ReduceLROnPlateau(optimizer, factor=1.0)


def test_schedule_state():
    optimizer = SGD([param(1.0)], lr=1.0)
    schedule = lr_scheduler.StepLR(optimizer, 2)
    optimizer.step()
    schedule.step()
    other = lr_scheduler.StepLR(SGD([param(1.0)], lr=1.0), 5)
    other.load_state_dict(schedule.state_dict())
    assert other.last_epoch == 1
    assert other.step_size == 2


def test_schedule_before_the_optimiser_warns():
    schedule = lr_scheduler.StepLR(SGD([param(1.0)]), 2)
    with pytest.warns(UserWarning, match=r"Detected call of `lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        schedule.step()
