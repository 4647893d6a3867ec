"""`torch.func` with modules, `rearrange`, and the older names of `torch._functorch`."""

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.func import debug_unwrap, functional_call, rearrange, replace_all_batch_norm_modules_, stack_module_state, vmap


def test_an_ensemble():
    models = [torch.nn.Linear(3, 2) for _ in range(4)]
    parameters, buffers = stack_module_state(models)
    assert {name: tuple(p.shape) for name, p in parameters.items()} == {"weight": (4, 2, 3), "bias": (4, 2)}
    assert all(p.requires_grad and p.is_leaf for p in parameters.values())
    assert buffers == {}
    data = torch.randn(5, 3)
    found = vmap(lambda p, b, x: functional_call(models[0], (p, b), x), (0, 0, None))(parameters, buffers, data)
    torch.testing.assert_close(found, torch.stack([m(data) for m in models]))
    with pytest.raises(RuntimeError, match="Expected at least one model"):
        stack_module_state([])
    with pytest.raises(RuntimeError, match="of the same class"):
        stack_module_state([torch.nn.Linear(1, 1), torch.nn.ReLU()])
    with pytest.raises(ValueError, match="appeared in multiple dictionaries"):
        functional_call(models[0], ({"bias": data}, {"bias": data}), data)


def test_batch_norms_without_statistics():
    module = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 1), torch.nn.BatchNorm2d(3))
    assert replace_all_batch_norm_modules_(module) is module
    assert module[1].running_mean is None
    assert not module[1].track_running_stats
    images = torch.randn(4, 2, 2, 5, 5)
    torch.testing.assert_close(vmap(module)(images), torch.stack([module(i) for i in images]))


@pytest.mark.parametrize(
    ("pattern", "lengths", "shape"),
    [
        ("a b c -> c a b", {}, (4, 2, 6)),
        ("a (b c) d -> a b (c d)", {"b": 3}, (2, 3, 8)),
        ("a ... -> (a ...)", {}, (48,)),
        ("a b c -> a 1 b c", {}, (2, 1, 6, 4)),
    ],
)
def test_rearrange(pattern, lengths, shape):
    x = torch.arange(48).view(2, 6, 4)
    found = rearrange(x, pattern, **lengths)
    assert found.shape == shape
    assert found.sum() == x.sum()


def test_rearrange_refuses():
    x = torch.zeros(2, 6)
    for pattern in ("a b", "a b -> a", "a a -> a", "a (b -> a b", "a (b c) -> a b c", "a b c -> a b c"):
        with pytest.raises(ValueError, match=r"."):
            rearrange(x, pattern)


def test_a_value_for_a_debugger():
    seen = []
    vmap(vmap(lambda a: seen.append((debug_unwrap(a).shape, debug_unwrap(a, recurse=False).shape)) or a))(torch.zeros(2, 3, 4))
    assert seen == [((2, 3, 4), (3, 4))]


def test_older_names():
    from mindtorch_v2._functorch import apis, deprecated, eager_transforms, make_functional

    assert apis.vmap is vmap
    with pytest.warns(FutureWarning, match="Please use `torch.func.grad` instead"):
        gradient = deprecated.grad(lambda x: x**2)
    torch.testing.assert_close(gradient(torch.tensor(3.0)), torch.tensor(6.0))
    assert eager_transforms._slice_argnums((1, 2, 3), (0, 2)) == (1, 3)
    models = [torch.nn.Linear(3, 2) for _ in range(2)]
    function, parameters, buffers = make_functional.combine_state_for_ensemble(models)
    data = torch.randn(5, 3)
    torch.testing.assert_close(vmap(function, (0, 0, None))(parameters, buffers, data), torch.stack([m(data) for m in models]))
