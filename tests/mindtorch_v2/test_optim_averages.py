"""Averages of weights: torch.optim.swa_utils."""

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.optim import SGD, swa_utils


def model(value):
    net = torch.nn.Linear(2, 1)
    with torch.no_grad():
        for p in net.parameters():
            p.fill_(value)
    net.register_buffer("count", torch.tensor([value], dtype=torch.float32))
    return net


def weight(average):
    return average.module.weight.detach()[0, 0].item()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [1, 2, 4]),
        ({"avg_fn": swa_utils.get_swa_avg_fn()}, [1, 2, 4]),
        ({"multi_avg_fn": swa_utils.get_swa_multi_avg_fn()}, [1, 2, 4]),
        ({"avg_fn": swa_utils.get_ema_avg_fn(0.5)}, [1, 2, 5]),
        ({"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.5)}, [1, 2, 5]),
        ({"avg_fn": lambda average, current, n: average + n * current}, [1, 4, 20]),
    ],
)
def test_averages(options, expected):
    average = swa_utils.AveragedModel(model(0.0), **options)
    found = []
    for value in (1.0, 3.0, 8.0):
        average.update_parameters(model(value))
        found.append(weight(average))
        assert average.module.count.item() == value  # buffers are copied
    assert found == pytest.approx(expected)
    assert average.n_averaged.item() == 3


def test_buffers_are_averaged_if_asked_for():
    average = swa_utils.AveragedModel(model(0.0), use_buffers=True)
    for value in (1.0, 3.0):
        average.update_parameters(model(value))
    assert average.module.count.item() == 2


def test_the_model_itself_is_left_alone_and_the_average_computes():
    net = model(1.0)
    average = swa_utils.AveragedModel(net)
    average.update_parameters(net)
    average.update_parameters(model(3.0))
    x = torch.ones(1, 2)
    assert net(x).item() == 3
    assert average(x).item() == 6
    other = swa_utils.AveragedModel(model(0.0))
    other.load_state_dict(average.state_dict())
    assert other(x).item() == 6
    assert other.n_averaged.item() == 2


def test_update_bn_takes_means_over_all_batches():
    rng = np.random.default_rng(0)
    batches = [torch.tensor(rng.standard_normal((4, 3)), dtype=torch.float32) for _ in range(5)]
    net = torch.nn.Sequential(torch.nn.BatchNorm1d(3)).eval()
    swa_utils.update_bn([(b, "label") for b in batches], net)
    means = np.mean([b.mean(0).numpy() for b in batches], axis=0)
    np.testing.assert_allclose(net[0].running_mean.numpy(), means, rtol=1e-4, atol=1e-6)
    assert (net.training, net[0].momentum) == (False, 0.1)
    assert net[0].num_batches_tracked.item() == 5


def test_swalr_goes_to_its_rate_and_stays():
    optimizer = SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    schedule = swa_utils.SWALR(optimizer, 0.5, anneal_epochs=4, anneal_strategy="linear")
    found = []
    for _ in range(7):
        found.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    assert found == pytest.approx([1, 0.875, 0.75, 0.625, 0.5, 0.5, 0.5])
    assert "anneal_func" not in schedule.state_dict()


@pytest.mark.parametrize("decay", [-0.1, 1.1])
def test_refused_decays(decay):
    for make in (swa_utils.get_ema_avg_fn, swa_utils.get_ema_multi_avg_fn):
        with pytest.raises(ValueError, match=r"Please provide a value in \[0,1\] range"):
            make(decay)
