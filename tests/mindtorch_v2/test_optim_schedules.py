"""Schedules of learning rates: curves, resuming, combinations, warnings."""

import copy
import math
import warnings

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.optim import SGD, Adam, lr_scheduler


def optimizer_of(lr=1.0, groups=1, **options):
    ps = [torch.ones(1, requires_grad=True) for _ in range(groups)]
    return SGD([{"params": [p]} for p in ps], lr=lr, momentum=0.9, **options)


def rates(optimizer, schedule, epochs):
    found = [schedule.get_last_lr()[0]]
    for _ in range(epochs - 1):
        optimizer.step()
        schedule.step()
        found.append(schedule.get_last_lr()[0])
        assert optimizer.param_groups[0]["lr"] == found[-1]
    return found


# --- curves -----------------------------------------------------------------------------------------------------------


def test_one_cycle():
    optimizer = optimizer_of()
    schedule = lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=20, pct_start=0.5, anneal_strategy="linear", div_factor=10.0)
    found, momenta = [], []
    for _ in range(20):
        found.append(schedule.get_last_lr()[0])
        momenta.append(optimizer.param_groups[0]["momentum"])
        optimizer.step()
        schedule.step()
    assert found[0] == pytest.approx(0.1)
    assert max(found) == pytest.approx(1.0)
    assert found[-1] == pytest.approx(1.0 / 10 / 1e4)
    top = int(np.argmax(found))
    assert found[: top + 1] == sorted(found[: top + 1])
    assert found[top:] == sorted(found[top:], reverse=True)
    assert (momenta[0], momenta[-1]) == (0.95, 0.95)
    assert int(np.argmin(momenta)) == top
    with pytest.raises(ValueError, match=r"Tried to step 21 times. The specified number of total steps is 20"):
        schedule.step()


def test_one_cycle_from_state_of_older_versions():
    """Which has the function of the curve itself in place of its name."""
    expected = lr_scheduler.OneCycleLR(optimizer_of(), 1.0, total_steps=10)
    schedule = lr_scheduler.OneCycleLR(optimizer_of(), 1.0, total_steps=10)
    state = schedule.state_dict()
    del state["_anneal_func_type"], schedule._anneal_func_type
    schedule.load_state_dict({**state, "anneal_func": lr_scheduler.OneCycleLR._annealing_cos})
    for _ in range(5):
        for each in (expected, schedule):
            each.optimizer.step()
            each.step()
        assert schedule.get_last_lr() == expected.get_last_lr()


def test_one_cycle_moves_betas():
    optimizer = Adam([torch.ones(1, requires_grad=True)])
    lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=10)
    assert optimizer.param_groups[0]["betas"] == (0.95, 0.999)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0, 0.5, 1, 0.5, 0, 0.5, 1, 0.5, 0]),
        ({"step_size_down": 1}, [0, 0.5, 1, 0, 0.5, 1, 0, 0.5, 1]),
        ({"mode": "triangular2"}, [0, 0.5, 1, 0.5, 0, 0.25, 0.5, 0.25, 0]),
        ({"mode": "exp_range", "gamma": 0.5}, [0, 0.25, 0.25, 0.0625, 0, 0.5 * 2**-5, 2**-6, 0.5 * 2**-7, 0]),
        ({"scale_fn": lambda cycle: 1 / cycle}, [0, 0.5, 1, 0.5, 0, 0.25, 0.5, 0.25, 0]),
    ],
    ids=["plain", "down", "triangular2", "exp_range", "scale_fn"],
)
def test_cyclic(options, expected):
    optimizer = optimizer_of()
    schedule = lr_scheduler.CyclicLR(optimizer, 0.0, 1.0, step_size_up=2, **options)
    np.testing.assert_allclose(rates(optimizer, schedule, 9), expected, atol=1e-12)


def test_warm_restarts():
    optimizer = optimizer_of()
    schedule = lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2, 2)
    cosine = [(1 + math.cos(math.pi * k / 4)) / 2 for k in range(4)]
    np.testing.assert_allclose(rates(optimizer, schedule, 8), [1, 0.5, *cosine, 1, (1 + math.cos(math.pi / 8)) / 2])
    schedule.step(2.5)  # an eighth of the second cycle
    assert schedule.get_last_lr()[0] == pytest.approx((1 + math.cos(math.pi / 8)) / 2)


def test_chained_schedules_multiply():
    optimizer = optimizer_of()
    parts = [lr_scheduler.ConstantLR(optimizer, 0.5, 2), lr_scheduler.ExponentialLR(optimizer, 0.5)]
    schedule = lr_scheduler.ChainedScheduler(parts)
    assert rates(optimizer, schedule, 4) == [0.5, 0.25, 0.25, 0.125]


def test_a_sequence_in_a_chain_in_a_sequence():
    optimizer = optimizer_of()
    inner = lr_scheduler.SequentialLR(
        optimizer, [lr_scheduler.ConstantLR(optimizer, 0.5, 9), lr_scheduler.ExponentialLR(optimizer, 0.5)], [2]
    )
    outer = lr_scheduler.ChainedScheduler([inner, lr_scheduler.ConstantLR(optimizer, 0.5, 1)])
    assert rates(optimizer, outer, 4) == [0.25, 0.5, 1.0, 0.5]


# --- resuming ---------------------------------------------------------------------------------------------------------

SCHEDULES = {
    "LambdaLR": lambda o, **k: lr_scheduler.LambdaLR(o, lambda e: 0.9**e, **k),
    "MultiplicativeLR": lambda o, **k: lr_scheduler.MultiplicativeLR(o, lambda e: 0.9, **k),
    "StepLR": lambda o, **k: lr_scheduler.StepLR(o, 4, **k),
    "MultiStepLR": lambda o, **k: lr_scheduler.MultiStepLR(o, [2, 8], **k),
    "LinearLR": lambda o, **k: lr_scheduler.LinearLR(o, 0.1, 1.0, 9, **k),
    "ConstantLR": lambda o, **k: lr_scheduler.ConstantLR(o, 0.1, 9, **k),
    "ExponentialLR": lambda o, **k: lr_scheduler.ExponentialLR(o, 0.9, **k),
    "PolynomialLR": lambda o, **k: lr_scheduler.PolynomialLR(o, 9, 2.0, **k),
    "CosineAnnealingLR": lambda o, **k: lr_scheduler.CosineAnnealingLR(o, 9, **k),
    "CyclicLR": lambda o, **k: lr_scheduler.CyclicLR(o, 0.1, 1.0, 3, **k),
    "OneCycleLR": lambda o, **k: lr_scheduler.OneCycleLR(o, 1.0, 20, **k),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_resumed_with_last_epoch_goes_on_where_the_optimiser_stands(name):
    """The optimiser has the rates of epoch 5; the schedule is made for it with `last_epoch=4`, and does not step on."""
    optimizer = optimizer_of()
    expected = rates(optimizer, SCHEDULES[name](optimizer), 10)
    optimizer = optimizer_of()
    rates(optimizer, SCHEDULES[name](optimizer), 6)
    resumed = SCHEDULES[name](optimizer, last_epoch=4)
    assert resumed.last_epoch == 5
    np.testing.assert_allclose(rates(optimizer, resumed, 5), expected[5:], rtol=1e-12)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_resumed_from_its_state(name):
    optimizer = optimizer_of()
    expected = rates(optimizer, SCHEDULES[name](optimizer), 10)
    optimizer = optimizer_of()
    schedule = SCHEDULES[name](optimizer)
    rates(optimizer, schedule, 6)
    other = optimizer_of()
    resumed = SCHEDULES[name](other)
    resumed.load_state_dict(copy.deepcopy(schedule.state_dict()))
    other.load_state_dict(optimizer.state_dict())
    np.testing.assert_allclose(rates(other, resumed, 5), expected[5:], rtol=1e-12)


def test_loading_leaves_the_state_as_it_is():
    optimizer = optimizer_of()
    for make in (
        SCHEDULES["LambdaLR"],
        SCHEDULES["CyclicLR"],
        lambda o: lr_scheduler.ChainedScheduler([lr_scheduler.StepLR(o, 2)]),
    ):
        schedule = make(optimizer)
        state = schedule.state_dict()
        before = list(state)
        schedule.load_state_dict(state)
        assert list(state) == before


def test_resuming_without_initial_rates():
    with pytest.raises(KeyError, match=r"param 'initial_lr' is not specified in param_groups\[0\] when resuming"):
        lr_scheduler.StepLR(optimizer_of(), 2, last_epoch=3)


# --- plateau ----------------------------------------------------------------------------------------------------------


def test_plateau_reduces_groups_that_were_added():
    optimizer = optimizer_of()
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=0.2)
    schedule.step(1.0)
    optimizer.add_param_group({"params": [torch.ones(1, requires_grad=True)], "lr": 10.0})
    schedule.step(1.0)
    assert schedule.get_last_lr() == [0.2, 1.0]


def test_plateau_with_a_minimum_for_each_group_asks_for_one_more():
    optimizer = optimizer_of()
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=[0.2])
    schedule.step(1.0)
    optimizer.add_param_group({"params": [torch.ones(1, requires_grad=True)], "lr": 10.0})
    with pytest.raises(RuntimeError, match=r"Please modify the `min_lrs` field"):
        schedule.step(1.0)
    schedule.min_lrs = [0.2, 3.0]
    schedule.step(1.0)
    assert schedule.get_last_lr() == [0.2, 3.0]


# --- steps of the optimiser -------------------------------------------------------------------------------------------


def test_a_step_that_was_replaced_is_noticed():
    optimizer = optimizer_of()
    schedule = lr_scheduler.StepLR(optimizer, 2)
    optimizer.step = lambda: None
    with pytest.warns(UserWarning, match=r"Seems like `optimizer.step\(\)` has been overridden"):
        schedule.step()


def test_schedules_do_not_keep_their_optimiser_alive_nor_add_hooks():
    import gc
    import weakref

    optimizer = optimizer_of()
    reference = weakref.ref(optimizer)
    schedule = lr_scheduler.StepLR(optimizer, 2)
    assert not optimizer._optimizer_step_post_hooks
    gc.disable()
    try:
        del schedule, optimizer
        assert reference() is None
    finally:
        gc.enable()


def test_get_lr_outside_of_a_step_warns():
    schedule = lr_scheduler.StepLR(optimizer_of(), 2)
    with pytest.warns(UserWarning, match=r"please use `get_last_lr\(\)`"):
        schedule.get_lr()


def test_an_epoch_given_to_step_warns_and_uses_the_formula():
    optimizer = optimizer_of()
    schedule = lr_scheduler.StepLR(optimizer, 2, 0.5)
    optimizer.step()
    with pytest.warns(UserWarning, match="epoch parameter") as caught:
        schedule.step(7)
    assert str(caught[0].message) == lr_scheduler.EPOCH_DEPRECATION_WARNING
    assert schedule.get_last_lr() == [0.125]


def test_a_schedule_is_an_instance_of_its_own_class_only():
    schedule = lr_scheduler.MultiplicativeLR(optimizer_of(), lambda e: 0.9)
    others = [getattr(lr_scheduler, name) for name in lr_scheduler.__all__ if name not in ("LRScheduler", "MultiplicativeLR")]
    assert not isinstance(schedule, tuple(others))


def test_schedules_of_users():
    class Halving(lr_scheduler.LRScheduler):
        def get_lr(self):
            return [group["lr"] / (1 if self._is_initial else 2) for group in self.optimizer.param_groups]

    optimizer = optimizer_of()
    schedule = Halving(optimizer)
    assert rates(optimizer, schedule, 3) == [1, 0.5, 0.25]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schedule.step(9)  # no formula: `get_lr` again
    assert schedule.get_last_lr() == [0.125]
    assert issubclass(lr_scheduler._LRScheduler, lr_scheduler.LRScheduler)
