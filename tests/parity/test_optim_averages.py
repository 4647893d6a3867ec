"""torch.optim.swa_utils next to PyTorch's."""

import copy
import inspect

import numpy as np
import pytest
import torch as reference
from test_optim import LIBRARIES, arrays, assert_same, outcome, plain
from test_optim_schedules import optimizer_of, seen

import mindtorch_v2 as torch

pytestmark = pytest.mark.parity


def network(library, seed=0):
    """A linear layer, a batch norm and an integer buffer, with weights from a seed."""
    net = library.nn.Sequential(library.nn.Linear(3, 4), library.nn.BatchNorm1d(4), library.nn.Linear(4, 2))
    net.register_buffer("count", library.tensor([7, 11]))
    set_weights(library, net, seed)
    return net


def set_weights(library, net, seed):
    shapes = [tuple(t.shape) for t in net.state_dict().values()]
    (values,) = arrays(shapes, np.float64, 1, seed)
    with library.no_grad():
        for t, value in zip(net.state_dict().values(), values, strict=True):
            t.copy_(library.tensor(value if t.is_floating_point() else np.round(value * 100)))


AVERAGES = {
    "mean": lambda S: {},
    "mean of buffers too": lambda S: {"use_buffers": True},
    "swa": lambda S: {"avg_fn": S.get_swa_avg_fn()},
    "ema": lambda S: {"avg_fn": S.get_ema_avg_fn(0.9)},
    "multi swa": lambda S: {"multi_avg_fn": S.get_swa_multi_avg_fn()},
    "multi ema": lambda S: {"multi_avg_fn": S.get_ema_multi_avg_fn(0.9)},
    "multi ema of buffers too": lambda S: {"multi_avg_fn": S.get_ema_multi_avg_fn(0.9), "use_buffers": True},
    "own": lambda S: {"avg_fn": lambda average, current, n: average + current * n},
    "device": lambda S: {"device": "cpu"},
}


@pytest.mark.parametrize("title", AVERAGES)
def test_averages(title):
    found = []
    for library in LIBRARIES:
        net = network(library)
        average = library.optim.swa_utils.AveragedModel(net, **AVERAGES[title](library.optim.swa_utils))
        states = [plain(dict(average.state_dict()))]
        for seed in range(1, 5):
            set_weights(library, net, seed)
            average.update_parameters(net)
            states.append(plain(dict(average.state_dict())))
        found.append(states)
    assert_same(found[1], found[0], 1e-5, 1e-6)


def test_an_averaged_model_computes_and_is_saved():
    found = []
    x = arrays(((5, 3),), np.float32, 1)[0][0]
    for library in LIBRARIES:
        average = library.optim.swa_utils.AveragedModel(network(library)).eval()
        average.update_parameters(network(library, 1))
        other = library.optim.swa_utils.AveragedModel(network(library)).eval()
        other.load_state_dict(average.state_dict())
        copied = copy.deepcopy(average)
        results = [plain(model(library.tensor(x))) for model in (average, other, copied)]
        np.testing.assert_array_equal(results[0], results[1])
        np.testing.assert_array_equal(results[0], results[2])
        found.append((results[0], list(average.state_dict()), average.n_averaged.item()))
    assert_same(found[1], found[0], 1e-4, 1e-5)


@pytest.mark.parametrize("form", ["tensors", "pairs", "device"])
def test_update_bn(form):
    batches = [b[0] for b in arrays(((6, 3),), np.float32, 4)]
    found = []
    for library in LIBRARIES:
        net = network(library).eval()
        data = [library.tensor(b) for b in batches]
        data = [(d, 0) for d in data] if form == "pairs" else data
        library.optim.swa_utils.update_bn(data, net, **({"device": "cpu"} if form == "device" else {}))
        assert not net.training
        assert net[1].momentum == 0.1
        found.append(plain(dict(net.state_dict())))
    assert_same(found[1], found[0], 1e-4, 1e-5)
    torch.optim.swa_utils.update_bn([], torch.nn.Linear(2, 2))  # nothing to do


@pytest.mark.parametrize("options", [{}, {"anneal_epochs": 4, "anneal_strategy": "linear"}, {"anneal_epochs": 0}], ids=str)
@pytest.mark.parametrize("rate", [0.05, [0.05, 0.2]], ids=str)
def test_swalr(rate, options):
    found = []
    for library in LIBRARIES:
        optimizer = optimizer_of(library)
        schedule = library.optim.swa_utils.SWALR(optimizer, rate, **options)
        states = [seen(optimizer, schedule)]
        for _ in range(12):
            optimizer.step()
            schedule.step()
            states.append(seen(optimizer, schedule))
        other = library.optim.swa_utils.SWALR(optimizer_of(library), 0.5)
        other.load_state_dict(schedule.state_dict())
        assert other.anneal_epochs == schedule.anneal_epochs
        assert other.anneal_func(0.3) == schedule.anneal_func(0.3)
        found.append(states)
    assert_same(found[1], found[0], 1e-12, 1e-15)


REFUSALS = {
    "decay": lambda S, o, net: S.get_ema_avg_fn(1.5),
    "multi decay": lambda S, o, net: S.get_ema_multi_avg_fn(-0.1),
    "both": lambda S, o, net: S.AveragedModel(net, avg_fn=abs, multi_avg_fn=abs),
    "strategy": lambda S, o, net: S.SWALR(o, 0.1, anneal_strategy="square"),
    "epochs": lambda S, o, net: S.SWALR(o, 0.1, anneal_epochs=-1),
    "real epochs": lambda S, o, net: S.SWALR(o, 0.1, anneal_epochs=1.5),
    "rates": lambda S, o, net: S.SWALR(o, [0.1]),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(case):
    theirs, ours = (
        outcome(lambda lib: REFUSALS[case](lib.optim.swa_utils, optimizer_of(lib), network(lib)), library) for library in LIBRARIES
    )
    assert theirs is not None
    assert ours == theirs


@pytest.mark.parametrize("name", reference.optim.swa_utils.__all__)
def test_signatures(name):
    shown = [
        [(n, p.default) for n, p in inspect.signature(getattr(library.optim.swa_utils, name)).parameters.items()]
        for library in LIBRARIES
    ]
    assert shown[1] == shown[0]
