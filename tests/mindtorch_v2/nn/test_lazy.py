"""Lazy modules, the adaptive softmax and modules over one device, without another library to compare with."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn


def net() -> Any:
    return nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))


def test_the_first_call_gives_shapes_and_classes() -> None:
    module = net()
    assert all(nn.parameter.is_lazy(p) for p in module.parameters())
    out = module(torch.randn(2, 3, 5, 5))
    assert [type(m) for m in module] == [nn.Conv2d, nn.BatchNorm2d, nn.Flatten, nn.Linear]
    assert module[3].weight.shape == (2, 36)
    assert not any(m._forward_pre_hooks or m._load_state_dict_pre_hooks for m in module)
    out.sum().backward()
    assert all(type(p) is nn.Parameter and p.grad is not None for p in module.parameters())
    assert type(module[1].running_mean) is torch.Tensor


def test_copies_pickles_and_states_of_lazy_modules() -> None:
    for module in (copy.deepcopy(net()), pickle.loads(pickle.dumps(net())), net().double().float()):
        assert module(torch.randn(2, 3, 5, 5)).shape == (2, 2)
    other, full = net(), net()
    full(torch.randn(2, 3, 5, 5))
    net().load_state_dict(other.state_dict())
    other.load_state_dict(full.state_dict())
    full.eval(), other.eval()
    x = torch.randn(2, 3, 5, 5)
    assert torch.equal(other(x), full(x))


def test_what_has_no_shape_cannot_be_computed_with() -> None:
    parameter = nn.UninitializedParameter(dtype=torch.float64)
    assert repr(parameter) == "<UninitializedParameter>"
    with pytest.raises(ValueError, match="uninitialized parameter"):
        parameter + 1
    with pytest.raises(RuntimeError, match="Can't access the shape"):
        _ = parameter.shape
    parameter.materialize((2, 3))
    assert (parameter + 1).dtype is torch.float64
    assert parameter.requires_grad


def test_a_module_that_stays_uninitialized_is_refused() -> None:
    class Forgetful(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.UninitializedParameter()

        def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
            pass

    with pytest.raises(RuntimeError, match="module Forgetful has not been fully initialized"):
        Forgetful()(torch.ones(1))


def test_the_adaptive_softmax_is_a_distribution() -> None:
    module = nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 5], div_value=2.0)
    x = torch.randn(20, 8)
    scores = module.log_prob(x)
    assert torch.allclose(scores.exp().sum(1), torch.ones(20))
    assert torch.equal(module.predict(x), scores.argmax(1))
    target = torch.arange(20) % 10
    output, loss = module(x, target)
    assert torch.allclose(output, scores.gather(1, target.unsqueeze(1)).squeeze(1), atol=1e-6)
    assert torch.allclose(loss, -output.mean())


def test_one_device() -> None:
    inner = nn.Linear(2, 3)
    module = nn.DataParallel(inner, device_ids=[0, 1])
    with torch.profiler.profile() as prof:
        assert torch.equal(module(torch.ones(1, 2)), inner(torch.ones(1, 2)))
    assert "DataParallel.forward" in {event.name for event in prof.events()}
    assert list(module.state_dict()) == ["module.weight", "module.bias"]
    with pytest.raises(NotImplementedError, match="call the module itself"):
        nn.parallel.replicate(inner, [0, 1])


def test_converting_batch_norms_keeps_their_tensors() -> None:
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    weight, mean = module[1].weight, module[1].running_mean
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(module)
    assert isinstance(converted[1], nn.SyncBatchNorm)
    assert converted[1].weight is weight
    assert converted[1].running_mean is mean
    converted(torch.randn(5, 3)).sum().backward()
