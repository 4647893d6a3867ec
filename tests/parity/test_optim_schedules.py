"""Every schedule of torch.optim.lr_scheduler next to PyTorch's: rates, momenta, state, warnings, refusals."""

import copy
import inspect
import pickle
import warnings

import numpy as np
import pytest
import torch as reference
from test_optim import LIBRARIES, assert_same, outcome, plain

import mindtorch_v2 as torch

# warnings are compared by test_warnings; a copy of an optimiser has a step of its own
pytestmark = [pytest.mark.parity, *(pytest.mark.filterwarnings(f"ignore:{text}") for text in ("Detected call of", "Seems like"))]


class Decay:
    """A factor with an attribute, which state dicts keep."""

    def __init__(self, base):
        self.base = base

    def __call__(self, epoch):
        return self.base**epoch


SCHEDULES = {
    "LambdaLR": lambda L, o, **k: L.LambdaLR(o, [lambda e: 0.95**e, Decay(0.9)], **k),
    "MultiplicativeLR": lambda L, o, **k: L.MultiplicativeLR(o, Decay(0.99), **k),
    "StepLR": lambda L, o, **k: L.StepLR(o, 3, 0.5, **k),
    "MultiStepLR": lambda L, o, **k: L.MultiStepLR(o, [2, 2, 7], **k),
    "ConstantLR": lambda L, o, **k: L.ConstantLR(o, 0.25, 4, **k),
    "LinearLR": lambda L, o, **k: L.LinearLR(o, 0.1, 0.9, 7, **k),
    "ExponentialLR": lambda L, o, **k: L.ExponentialLR(o, 0.9, **k),
    "PolynomialLR": lambda L, o, **k: L.PolynomialLR(o, 9, 2.0, **k),
    "CosineAnnealingLR": lambda L, o, **k: L.CosineAnnealingLR(o, 5, 0.01, **k),
    "CosineAnnealingWarmRestarts": lambda L, o, **k: L.CosineAnnealingWarmRestarts(o, 3, 2, 0.01, **k),
    "CosineAnnealingWarmRestarts, equal": lambda L, o, **k: L.CosineAnnealingWarmRestarts(o, 4, **k),
    "CyclicLR": lambda L, o, **k: L.CyclicLR(o, 0.01, [0.1, 0.5], 3, 5, **k),
    "CyclicLR, triangular2": lambda L, o, **k: L.CyclicLR(o, [0.01, 0.02], 0.1, 2, mode="triangular2", **k),
    "CyclicLR, exp_range": lambda L, o, **k: L.CyclicLR(o, 0.01, 0.1, 3, mode="exp_range", gamma=0.9, **k),
    "CyclicLR, own scale": lambda L, o, **k: L.CyclicLR(o, 0.01, 0.1, 3, scale_fn=Decay(0.8), scale_mode="iterations", **k),
    "CyclicLR, no momentum": lambda L, o, **k: L.CyclicLR(o, 0.01, 0.1, 3, cycle_momentum=False, **k),
    "OneCycleLR": lambda L, o, **k: L.OneCycleLR(o, 0.5, total_steps=25, **k),
    "OneCycleLR, linear": lambda L, o, **k: L.OneCycleLR(o, [0.5, 1.0], epochs=5, steps_per_epoch=5, anneal_strategy="linear", **k),
    "OneCycleLR, three phases": lambda L, o, **k: L.OneCycleLR(o, 0.5, 25, three_phase=True, pct_start=0.4, div_factor=5.0, **k),
    "OneCycleLR, no momentum": lambda L, o, **k: L.OneCycleLR(o, 0.5, 25, cycle_momentum=False, final_div_factor=10.0, **k),
}  # fmt: skip
COMBINED = {
    "SequentialLR": lambda L, o: L.SequentialLR(
        o, [L.LinearLR(o, 0.1, 1.0, 4), L.CosineAnnealingLR(o, 8), L.ExponentialLR(o, 0.5)], [4, 10]
    ),
    "SequentialLR from another": lambda L, o: L.SequentialLR(o, [L.ConstantLR(o, 0.5, 3), L.StepLR(o, 2, 0.5)], [0]),
    "SequentialLR of SequentialLR": lambda L, o: L.SequentialLR(
        o,
        [L.SequentialLR(o, [L.LinearLR(o, 0.5, 1.0, 2), L.ExponentialLR(o, 0.9)], [2]), L.ExponentialLR(o, 0.5)],
        [5],
    ),
    "ChainedScheduler": lambda L, o: L.ChainedScheduler([L.ConstantLR(o, 0.1, 2), L.ExponentialLR(o, 0.9), L.StepLR(o, 3)]),
    "ChainedScheduler with optimiser": lambda L, o: L.ChainedScheduler([L.LinearLR(o, 0.1, 1.0, 3), L.StepLR(o, 3, 0.5)], o),
    "ChainedScheduler of SequentialLR": lambda L, o: L.ChainedScheduler(
        [L.SequentialLR(o, [L.LinearLR(o, 0.5, 1.0, 2), L.ExponentialLR(o, 0.9)], [2]), L.ExponentialLR(o, 0.99)]
    ),
}
EVERY = {**SCHEDULES, **COMBINED}


def optimizer_of(library, name="SGD", lr=0.1, **options):
    options = {"momentum": 0.9, **options} if name == "SGD" else options
    groups = [{"params": [library.ones(1, requires_grad=True)]}, {"params": [library.ones(1, requires_grad=True)], "lr": 0.3}]
    return getattr(library.optim, name)(groups, lr=lr, **options)


def seen(optimizer, schedule):
    groups = [{k: plain(v) for k, v in g.items() if k not in ("params", "foreach", "fused")} for g in optimizer.param_groups]
    return {"groups": groups, "last": plain(list(schedule.get_last_lr())), "state": plain(public_state(schedule.state_dict()))}


def public_state(state):
    return {k: [public_state(s) for s in v] if k == "_schedulers" else v for k, v in state.items()}


def epochs(library, make, count=20, name="SGD", lr=0.1):
    optimizer = optimizer_of(library, name, lr)
    schedule = make(library.optim.lr_scheduler, optimizer)
    found = [seen(optimizer, schedule)]
    for _ in range(count):
        optimizer.step()
        schedule.step()
        found.append(seen(optimizer, schedule))
    return found


@pytest.mark.parametrize("title", EVERY)
@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_rates_momenta_and_state_of_twenty_epochs(title, name):
    theirs, ours = (epochs(library, EVERY[title], name=name) for library in LIBRARIES)
    assert_same(ours, theirs, 1e-12, 1e-15)


@pytest.mark.parametrize("title", EVERY)
def test_rates_that_are_tensors(title):
    found = []
    for library in LIBRARIES:
        lr = library.tensor(0.1)
        optimizer = library.optim.SGD(
            [library.ones(1, requires_grad=True), library.ones(1, requires_grad=True)], lr=lr, momentum=0.9
        )
        optimizer.add_param_group({"params": [library.ones(1, requires_grad=True)], "lr": library.tensor([0.3])})
        schedule = EVERY[title](library.optim.lr_scheduler, optimizer)
        rates = []
        for _ in range(10):
            optimizer.step()
            schedule.step()
            rates.append([plain(r) for r in schedule.get_last_lr()])
            assert optimizer.param_groups[0]["lr"] is lr
        found.append(rates)
    assert_same(found[1], found[0], 1e-5, 1e-7)


@pytest.mark.parametrize("title", SCHEDULES)
@pytest.mark.parametrize("resumed_at", [0, 3, 9])
def test_resumed_with_last_epoch(title, resumed_at):
    found = []
    for library in LIBRARIES:
        optimizer = optimizer_of(library)
        first = SCHEDULES[title](library.optim.lr_scheduler, optimizer)
        for _ in range(resumed_at + 1):
            optimizer.step()
            first.step()
        other = optimizer_of(library)
        other.load_state_dict(optimizer.state_dict())
        schedule = SCHEDULES[title](library.optim.lr_scheduler, other, last_epoch=resumed_at)
        rates = [seen(other, schedule)]
        for _ in range(6):
            other.step()
            schedule.step()
            rates.append(seen(other, schedule))
        found.append(rates)
    assert_same(found[1], found[0], 1e-12, 1e-15)


@pytest.mark.parametrize("title", SCHEDULES)
def test_going_to_an_epoch(title):
    found = []
    for library in LIBRARIES:
        optimizer = optimizer_of(library)
        schedule = SCHEDULES[title](library.optim.lr_scheduler, optimizer)
        rates = []
        for epoch in (4, 2, 11, 0, 7):
            optimizer.step()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                schedule.step(epoch)
            rates.append((list(schedule.get_last_lr()), [(w.category.__name__, str(w.message)) for w in caught]))
        found.append(rates)
    assert_same(found[1], found[0], 1e-12, 1e-15)


def test_restarts_at_fractions_of_epochs():
    found = []
    for library in LIBRARIES:
        optimizer = optimizer_of(library)
        schedule = library.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 3, 2)
        rates = []
        for epoch in np.arange(0, 12, 0.3):
            schedule.step(float(epoch))
            rates.append((list(schedule.get_last_lr()), schedule.last_epoch, schedule.T_cur, schedule.T_i))
        found.append(rates)
    assert_same(found[1], found[0], 1e-12, 1e-15)


@pytest.mark.parametrize("title", EVERY)
@pytest.mark.parametrize("source", LIBRARIES, ids=["from torch", "to torch"])
def test_a_state_dict_goes_from_one_library_to_the_other(title, source):
    target = torch if source is reference else reference
    optimizer = optimizer_of(source)
    schedule = EVERY[title](source.optim.lr_scheduler, optimizer)
    for _ in range(5):
        optimizer.step()
        schedule.step()
    other = optimizer_of(target)
    resumed = EVERY[title](target.optim.lr_scheduler, other)
    resumed.load_state_dict(copy.deepcopy(schedule.state_dict()))
    for group, saved in zip(other.param_groups, optimizer.param_groups, strict=True):
        group.update({k: v for k, v in saved.items() if k != "params"})
    for _ in range(7):
        optimizer.step(), schedule.step(), other.step(), resumed.step()
        assert_same(seen(other, resumed)["last"], seen(optimizer, schedule)["last"], 1e-12, 1e-15)


@pytest.mark.parametrize("title", [t for t in EVERY if t != "LambdaLR"])  # which has a lambda
def test_state_dicts_and_schedules_can_be_pickled_and_copied(title):
    optimizer = optimizer_of(torch)
    schedule = EVERY[title](torch.optim.lr_scheduler, optimizer)
    optimizer.step(), schedule.step()
    pickle.loads(pickle.dumps(schedule.state_dict()))
    for other in (pickle.loads(pickle.dumps(schedule)), copy.deepcopy(schedule)):
        assert other.optimizer is not optimizer
        other.optimizer.step()
        other.step()
    optimizer.step()
    schedule.step()
    assert other.get_last_lr() == schedule.get_last_lr()


PLATEAU = [
    {},
    {"mode": "max", "threshold_mode": "abs", "cooldown": 2, "patience": 2},
    {"mode": "max", "patience": 1, "threshold": 0.1},
    {"threshold_mode": "abs", "threshold": 0.5, "patience": 0, "min_lr": [0.01, 0.1], "factor": 0.5},
    {"patience": 0, "min_lr": 0.05, "eps": 0.01},
]


@pytest.mark.parametrize("options", PLATEAU, ids=str)
def test_plateau(options):
    metrics = np.random.default_rng(0).standard_normal(60).cumsum()
    found = []
    for library in LIBRARIES:
        optimizer = optimizer_of(library)
        schedule = library.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        states = [seen(optimizer, schedule)]
        for metric in metrics:
            schedule.step(library.tensor(metric))
            states.append(seen(optimizer, schedule))
        found.append(states)
    assert_same(found[1], found[0], 1e-12, 1e-15)
    assert found[0][0]["last"] != found[0][-1]["last"]


@pytest.mark.parametrize("min_lr", [0.001, [0.001, 0.002]], ids=str)
def test_plateau_after_a_group_was_added(min_lr):
    def call(library):
        optimizer = optimizer_of(library)
        schedule = library.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=min_lr)
        schedule.step(1.0)
        optimizer.add_param_group({"params": [library.ones(1, requires_grad=True)], "lr": 0.7})
        schedule.step(2.0)
        rates.append((schedule.get_last_lr(), schedule.min_lrs))

    rates = []
    theirs, ours = (outcome(call, library) for library in LIBRARIES)
    assert ours == theirs
    assert (theirs is None) == isinstance(min_lr, float)
    if theirs is None:
        assert rates[0] == rates[1]


# --- warnings and refusals --------------------------------------------------------------------------------------------


def warned(library, act):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act(library)
    return [(w.category.__name__, str(w.message), w.filename == __file__) for w in caught]


def schedule_first(library):
    library.optim.lr_scheduler.StepLR(optimizer_of(library), 2).step()


def overridden(library):
    optimizer = optimizer_of(library)
    schedule = library.optim.lr_scheduler.StepLR(optimizer, 2)
    optimizer.step = lambda: None
    schedule.step()


def outside_of_step(library):
    library.optim.lr_scheduler.StepLR(optimizer_of(library), 2).get_lr()


def plateau_with_epoch(library):
    library.optim.lr_scheduler.ReduceLROnPlateau(optimizer_of(library)).step(1.0, 3)


def two_schedules(library):
    optimizer = optimizer_of(library)
    schedules = [library.optim.lr_scheduler.StepLR(optimizer, 2) for _ in range(2)]
    optimizer.step()
    for schedule in schedules:
        schedule.step()


def in_sequence(library):
    optimizer = optimizer_of(library)
    schedule = COMBINED["SequentialLR"](library.optim.lr_scheduler, optimizer)
    optimizer.step()
    for _ in range(12):
        schedule.step()


@pytest.mark.parametrize("act", [schedule_first, overridden, outside_of_step, plateau_with_epoch, two_schedules, in_sequence])
def test_warnings(act):
    theirs, ours = (warned(library, act) for library in LIBRARIES)
    assert [w[:2] for w in ours] == [w[:2] for w in theirs]
    assert all(here for *_, here in ours)  # ours are where the user's call is


def test_the_text_about_epochs():
    assert torch.optim.lr_scheduler.EPOCH_DEPRECATION_WARNING == reference.optim.lr_scheduler.EPOCH_DEPRECATION_WARNING


@pytest.mark.parametrize("name", reference.optim.lr_scheduler.__all__)
def test_signatures(name):
    shown = []
    for library in LIBRARIES:
        cls = getattr(library.optim.lr_scheduler, name)
        shown.append([[(n, p.default) for n, p in inspect.signature(f).parameters.items()] for f in (cls, cls.step)])
    assert shown[1] == shown[0]


REFUSALS = {
    "not an optimiser": lambda L, o: L.StepLR(3, 2),
    "plateau without optimiser": lambda L, o: L.ReduceLROnPlateau(3),
    "cyclic without optimiser": lambda L, o: L.CyclicLR(3, 0.1, 0.2),
    "one cycle without optimiser": lambda L, o: L.OneCycleLR(3, 0.1),
    "resumed without initial_lr": lambda L, o: L.StepLR(o, 2, last_epoch=3),
    "lambdas": lambda L, o: L.LambdaLR(o, [abs]),
    "multiplicative lambdas": lambda L, o: L.MultiplicativeLR(o, [abs, abs, abs]),
    "no function": lambda L, o: L.MultiplicativeLR(o, 0.5),
    "constant": lambda L, o: L.ConstantLR(o, 1.1),
    "linear start": lambda L, o: L.LinearLR(o, 0.0),
    "linear end": lambda L, o: L.LinearLR(o, 0.1, 1.1),
    "factor": lambda L, o: L.ReduceLROnPlateau(o, factor=1.0),
    "mode": lambda L, o: L.ReduceLROnPlateau(o, mode="middle"),
    "threshold mode": lambda L, o: L.ReduceLROnPlateau(o, threshold_mode="x"),
    "min_lrs": lambda L, o: L.ReduceLROnPlateau(o, min_lr=[1.0]),
    "T_0": lambda L, o: L.CosineAnnealingWarmRestarts(o, 0),
    "T_0 real": lambda L, o: L.CosineAnnealingWarmRestarts(o, 1.5),
    "T_mult": lambda L, o: L.CosineAnnealingWarmRestarts(o, 1, 0),
    "eta_min": lambda L, o: L.CosineAnnealingWarmRestarts(o, 1, 1, None),
    "negative epoch": lambda L, o: L.CosineAnnealingWarmRestarts(o, 1).step(-1.5),
    "cyclic mode": lambda L, o: L.CyclicLR(o, 0.1, 0.2, mode="other"),
    "cyclic rates": lambda L, o: L.CyclicLR(o, [0.1], 0.2),
    "cyclic momenta": lambda L, o: L.CyclicLR(o, 0.1, 0.2, max_momentum=[0.1]),
    "one cycle, no steps": lambda L, o: L.OneCycleLR(o, 0.1),
    "one cycle, total": lambda L, o: L.OneCycleLR(o, 0.1, total_steps=0),
    "one cycle, epochs": lambda L, o: L.OneCycleLR(o, 0.1, epochs=0, steps_per_epoch=3),
    "one cycle, steps": lambda L, o: L.OneCycleLR(o, 0.1, epochs=3, steps_per_epoch=1.5),
    "one cycle, start": lambda L, o: L.OneCycleLR(o, 0.1, 10, pct_start=1.1),
    "one cycle, strategy": lambda L, o: L.OneCycleLR(o, 0.1, 10, anneal_strategy="square"),
    "one cycle, rates": lambda L, o: L.OneCycleLR(o, [0.1], 10),
    "one cycle, beyond": lambda L, o: [s := L.OneCycleLR(o, 0.1, 2), *(s.step() for _ in range(4))],
    "no schedulers": lambda L, o: L.SequentialLR(o, [], []),
    "milestones": lambda L, o: L.SequentialLR(o, [L.StepLR(o, 2)], [1]),
    "plateau in a sequence": lambda L, o: L.SequentialLR(o, [L.ReduceLROnPlateau(o), L.StepLR(o, 1)], [1]),
    "no schedule": lambda L, o: L.SequentialLR(o, [3, 4], [1]),
    "none chained": lambda L, o: L.ChainedScheduler([]),
    "plateau chained": lambda L, o: L.ChainedScheduler([L.ReduceLROnPlateau(o)]),
    "other optimiser": lambda L, o: L.ChainedScheduler([L.StepLR(o, 1), L.StepLR(copy.deepcopy(o), 1)]),
    "base": lambda L, o: L.LRScheduler(o),
    "groups added": lambda L, o: [s := L.LambdaLR(o, lambda e: 1.0), o.add_param_group({"params": []}), s.step()],
    "no momentum": lambda L, o: [o.defaults.pop("momentum"), L.CyclicLR(o, 0.1, 0.2)],
    "no momentum in one cycle": lambda L, o: [o.defaults.pop("momentum"), L.OneCycleLR(o, 0.1, 5)],
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(case):
    theirs, ours = (
        outcome(lambda lib: REFUSALS[case](lib.optim.lr_scheduler, optimizer_of(lib)), library) for library in LIBRARIES
    )
    assert theirs is not None
    assert ours == theirs
