"""Parametrizations, normalisations by hooks, pruning and calls with other parameters, without another library to compare with."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.nn.utils import parametrizations, parametrize, prune
from mindtorch_v2.nn.utils.stateless import _reparametrize_module


class Doubled(nn.Module):
    calls = 0

    def forward(self, x: Any) -> Any:
        Doubled.calls += 1
        return x * 2

    def right_inverse(self, x: Any) -> Any:
        return x / 2


def test_a_parametrized_weight_trains() -> None:
    net = nn.Linear(3, 2)
    before, parameter = net.weight.detach().clone(), net.weight
    parametrize.register_parametrization(net, "weight", Doubled())
    assert net.parametrizations.weight.original is parameter
    assert torch.equal(net.weight, before)
    net(torch.ones(1, 3)).sum().backward()
    assert parameter.grad.tolist() == [[2, 2, 2]] * 2


def test_copies_have_their_own_originals_and_cache() -> None:
    net = parametrize.register_parametrization(nn.Linear(3, 2), "weight", Doubled())
    other = copy.deepcopy(net)
    with torch.no_grad():
        other.weight = torch.zeros(2, 3)
    with parametrize.cached():
        assert not other.weight.any()
        assert net.weight.any()
        Doubled.calls = 0
        assert net.weight is net.weight
        assert not Doubled.calls


def test_removing_gives_the_class_and_the_parameter_back() -> None:
    net = nn.Linear(3, 2)
    parameter = net.weight
    parametrize.register_parametrization(net, "weight", Doubled())
    parametrize.register_parametrization(net, "bias", Doubled())
    parametrize.remove_parametrizations(net, "weight")
    assert parametrize.is_parametrized(net, "bias")
    parametrize.remove_parametrizations(net, "bias")
    assert type(net) is nn.Linear
    assert net.weight is parameter
    assert sorted(net.state_dict()) == ["bias", "weight"]


@pytest.mark.parametrize("options", [{}, {"orthogonal_map": "cayley"}, {"orthogonal_map": "householder"}])
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
def test_orthogonal_weights_are_orthogonal_after_a_step(options: Any, shape: tuple[int, int]) -> None:
    net = parametrizations.orthogonal(nn.Linear(*shape), **options)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.randn(2, shape[0])).square().sum().backward()
    optimizer.step()
    w = net.weight if shape[1] >= shape[0] else net.weight.T
    assert torch.allclose(w.T @ w, torch.eye(w.shape[1]), atol=1e-5)


def test_a_spectral_norm_is_one() -> None:
    for module in (parametrizations.spectral_norm(nn.Linear(5, 4)), nn.utils.spectral_norm(nn.Linear(5, 4))):
        for _ in range(50):
            module(torch.ones(1, 5))
        assert float(torch.linalg.matrix_norm(module.weight, 2)) == pytest.approx(1, abs=1e-3)
        first, second = module(torch.ones(1, 5)), module(torch.zeros(1, 5))
        (first - second).sum().backward()  # through two calls, between which the vectors changed


def test_weight_norm_and_its_removal_keep_the_weight() -> None:
    net = nn.Linear(5, 4)
    before = net.weight.detach().clone()
    with pytest.warns(FutureWarning, match="deprecated"):
        nn.utils.weight_norm(net)
    assert torch.allclose(net.weight, before)
    assert sorted(dict(net.named_parameters())) == ["bias", "weight_g", "weight_v"]
    nn.utils.remove_weight_norm(net)
    assert torch.allclose(net.weight, before)
    assert not net._forward_pre_hooks


def test_pruned_elements_stay_zero_in_training() -> None:
    net = nn.Linear(6, 4)
    prune.l1_unstructured(net, "weight", 0.5)
    prune.ln_structured(net, "weight", 1, n=2, dim=0)
    assert len(net._forward_pre_hooks) == 1
    zeros = net.weight == 0
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.ones(1, 6)).sum().backward()
    optimizer.step()
    net(torch.ones(1, 6))
    assert torch.equal(net.weight == 0, zeros)
    prune.remove(net, "weight")
    assert isinstance(net.weight, nn.Parameter)
    assert not prune.is_pruned(net)


def test_a_failed_pruning_changes_nothing() -> None:
    net = nn.Linear(6, 4)
    with pytest.raises(ValueError, match="should be smaller"):
        prune.l1_unstructured(net, "weight", 99)
    assert sorted(net.state_dict()) == ["bias", "weight"]


def test_other_parameters_are_given_back_when_the_call_fails() -> None:
    net = nn.Linear(3, 2)
    weight = net.weight
    given = {"weight": torch.zeros(2, 3), "bias": torch.ones(2)}
    with _reparametrize_module(net, given):
        assert net(torch.ones(1, 3)).tolist() == [[1, 1]]
    with pytest.raises(RuntimeError), _reparametrize_module(net, given):
        net(torch.ones(1, 4))
    assert net.weight is weight
    assert list(net._parameters) == ["weight", "bias"]
