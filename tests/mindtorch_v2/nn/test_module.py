"""`Module`: registering, walking, hooks, saving, converting, printing."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn


def small() -> Any:
    return nn.Sequential(OrderedDict(first=nn.Linear(2, 3), norm=nn.BatchNorm1d(3)))


class TestRegistering:
    def test_assignment_registers(self) -> None:
        m = nn.Module()
        m.w, m.child = nn.Parameter(torch.zeros(1)), nn.ReLU()
        m.register_buffer("b", torch.zeros(1))
        m.kept = nn.Buffer(torch.zeros(1), persistent=False)
        assert list(m._parameters) == ["w"]
        assert list(m._modules) == ["child"]
        assert list(m.state_dict()) == ["w", "b"]
        assert [n for n, _ in m.named_buffers()] == ["b", "kept"]

    def test_a_name_changes_its_kind(self) -> None:
        m = nn.Module()
        m.a = 3
        m.a = nn.Parameter(torch.zeros(1))
        assert "a" not in m.__dict__
        m.a = nn.ReLU()
        assert not m._parameters
        del m.a
        assert not hasattr(m, "a")

    @pytest.mark.parametrize(
        ("act", "error", "text"),
        [
            (lambda m: m.register_buffer("a.b", None), KeyError, "buffer name can.+t contain"),
            (lambda m: m.register_parameter("", None), KeyError, "can.+t be empty string"),
            (lambda m: m.register_parameter("forward", None), KeyError, "attribute 'forward' already exists"),
            (lambda m: m.register_parameter("p", torch.zeros(1)), TypeError, "torch.nn.Parameter or None required"),
            (lambda m: m.register_parameter("p", m.weight * 2), TypeError, "torch.nn.Parameter or None required"),
            (lambda m: m.add_module("a", 3), TypeError, "int is not a Module subclass"),
            (lambda m: setattr(m, "weight", 3), TypeError, "cannot assign 'int' as parameter 'weight'"),
            (lambda m: m.missing, AttributeError, "'Linear' object has no attribute 'missing'"),
            (lambda m: m.get_submodule("weight"), AttributeError, "`weight` is not an nn.Module"),
            (lambda m: m.get_buffer("weight"), AttributeError, "`weight` is not a buffer"),
            (lambda m: m.to(torch.int32), TypeError, "only accepts floating point or complex dtypes"),
            (lambda m: m.train("yes"), ValueError, "training mode is expected to be boolean"),
        ],
    )
    def test_errors(self, act: Any, error: type[Exception], text: str) -> None:
        with pytest.raises(error, match=text):
            act(nn.Linear(2, 2))

    def test_assigning_before_init(self) -> None:
        class Early(nn.Module):
            def __init__(self) -> None:
                self.w = nn.Parameter(torch.zeros(1))

        with pytest.raises(AttributeError, match="cannot assign parameters before"):
            Early()

    def test_registration_hooks(self) -> None:
        seen: list[str] = []
        handle = nn.modules.module.register_module_parameter_registration_hook(lambda m, name, p: seen.append(name))
        nn.Linear(2, 2)
        handle.remove()
        nn.Linear(2, 2)
        assert seen == ["weight", "bias"]


class TestWalking:
    def test_names(self) -> None:
        m = small()
        assert [n for n, _ in m.named_modules()] == ["", "first", "norm"]
        assert [n for n, _ in m.named_parameters()] == ["first.weight", "first.bias", "norm.weight", "norm.bias"]
        assert m.get_parameter("first.weight") is m.first.weight
        assert m.get_submodule("") is m

    def test_shared_modules_count_once(self) -> None:
        layer = nn.Linear(2, 2)
        m = nn.Sequential(layer, layer)
        assert len(list(m.parameters())) == 2
        assert len(list(m.named_parameters(remove_duplicate=False))) == 4

    def test_apply_visits_children_first(self) -> None:
        seen: list[str] = []
        small().apply(lambda m: seen.append(type(m).__name__))
        assert seen == ["Linear", "BatchNorm1d", "Sequential"]


class TestHooks:
    def test_order_and_removal(self) -> None:
        seen: list[Any] = []
        m = nn.Identity()
        m.register_forward_pre_hook(lambda m, a: seen.append("pre"))
        m.register_forward_pre_hook(lambda m, a: seen.append("first"), prepend=True)
        handle = m.register_forward_hook(lambda m, a, out: seen.append("post"))
        m(torch.zeros(1))
        handle.remove()
        m(torch.zeros(1))
        assert seen == ["first", "pre", "post", "first", "pre"]

    def test_they_change_arguments_and_results(self) -> None:
        m = nn.Identity()
        m.register_forward_pre_hook(lambda m, args: args[0] + 1)
        m.register_forward_hook(lambda m, args, kwargs, out: out * 10, with_kwargs=True)
        assert m(torch.ones(1)).tolist() == [20]

    def test_always_called_after_an_error(self) -> None:
        seen: list[Any] = []
        m = nn.Linear(2, 2)
        m.register_forward_hook(lambda m, a, out: seen.append(out), always_call=True)
        with pytest.raises(TypeError):
            m(3)
        assert seen == [None]

    def test_full_backward_hooks_see_both_ends(self) -> None:
        seen: list[Any] = []
        m = nn.Linear(2, 3)
        m.register_full_backward_hook(lambda m, gi, go: seen.append((gi[0].shape, go[0].shape)))
        m(torch.zeros(4, 2, requires_grad=True)).sum().backward()
        assert seen == [((4, 2), (4, 3))]

    def test_full_backward_hooks_without_inputs_that_require_grad(self) -> None:
        seen: list[Any] = []
        m = nn.Linear(2, 3)
        m.register_full_backward_hook(lambda m, gi, go: seen.append(gi))
        with pytest.warns(UserWarning, match="since no inputs require gradients"):
            m(torch.zeros(4, 2)).sum().backward()
        assert seen == [(None,)]

    def test_backward_hooks_replace_gradients(self) -> None:
        m = nn.Identity()
        m.register_full_backward_pre_hook(lambda m, go: (go[0] * 2,))
        m.register_full_backward_hook(lambda m, gi, go: (gi[0] + 1,))
        x = torch.zeros(1, requires_grad=True)
        m(x).sum().backward()
        assert x.grad.tolist() == [3]

    def test_global_hooks(self) -> None:
        seen: list[str] = []
        handle = nn.modules.module.register_module_forward_hook(lambda m, a, out: seen.append(type(m).__name__))
        nn.Sequential(nn.ReLU())(torch.zeros(1))
        handle.remove()
        nn.ReLU()(torch.zeros(1))
        assert seen == ["ReLU", "Sequential"]

    def test_the_two_kinds_do_not_mix(self) -> None:
        m = nn.Linear(2, 2)
        m.register_full_backward_hook(lambda m, gi, go: None)
        with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full backward hooks"):
            m.register_backward_hook(lambda m, gi, go: None)


class TestState:
    def test_round_trip(self) -> None:
        a, b = small(), small()
        assert repr(b.load_state_dict(a.state_dict())) == "<All keys matched successfully>"
        assert b.first.weight.tolist() == a.first.weight.tolist()
        assert b.first.weight is not a.first.weight

    def test_metadata_has_versions(self) -> None:
        assert dict(small().state_dict()._metadata) == {"": {"version": 1}, "first": {"version": 1}, "norm": {"version": 2}}

    def test_errors_are_listed(self) -> None:
        state = small().state_dict()
        state["first.bias"] = torch.zeros(7)
        state["other"] = state.pop("norm.weight")
        with pytest.raises(RuntimeError) as caught:
            small().load_state_dict(state)
        assert str(caught.value).split("\n\t") == [
            "Error(s) in loading state_dict for Sequential:",
            'Missing key(s) in state_dict: "norm.weight". ',
            'Unexpected key(s) in state_dict: "other". ',
            "size mismatch for first.bias: copying a param with shape torch.Size([7]) from checkpoint, the shape in current model is "
            "torch.Size([3]).",
        ]

    def test_not_strict(self) -> None:
        found = nn.Linear(2, 2).load_state_dict({"bias": torch.zeros(2), "x": torch.zeros(1)}, strict=False)
        assert (found.missing_keys, found.unexpected_keys) == (["weight"], ["x"])

    def test_assign_takes_tensors_over(self) -> None:
        m, w = nn.Linear(2, 2), torch.ones(2, 2)
        m.load_state_dict({"weight": w, "bias": torch.zeros(2)}, assign=True)
        assert isinstance(m.weight, nn.Parameter)
        assert m.weight.data_ptr() == w.data_ptr()

    def test_batch_norm_without_a_count(self) -> None:
        m = nn.BatchNorm1d(2)
        old = dict(m.state_dict())
        del old["num_batches_tracked"]
        assert not m.load_state_dict(old).missing_keys

    def test_extra_state(self) -> None:
        class Extra(nn.Module):
            def get_extra_state(self) -> Any:
                return 5

            def set_extra_state(self, state: Any) -> None:
                self.got = state

        m = Extra()
        m.load_state_dict(m.state_dict())
        assert m.got == 5

    def test_hooks(self) -> None:
        m = nn.Linear(2, 2)
        m.register_state_dict_post_hook(lambda m, state, prefix, meta: state.__delitem__("bias"))
        m.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
        m.load_state_dict(m.state_dict())
        assert list(m.state_dict()) == ["weight"]

    def test_copies_and_pickles(self) -> None:
        m = small()
        for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
            assert other.first.weight is not m.first.weight
            assert other.first.weight.tolist() == m.first.weight.tolist()
            assert isinstance(other.first.weight, nn.Parameter)
            assert other.first.weight.requires_grad
            assert repr(other) == repr(m)


class TestConverting:
    def test_dtypes_leave_integers_alone(self) -> None:
        m = small().double()
        assert m.first.weight.dtype is torch.float64
        assert m.norm.num_batches_tracked.dtype is torch.int64
        assert m.half().norm.running_mean.dtype is torch.float16

    def test_parameters_stay_the_same_objects(self) -> None:
        m = nn.Linear(2, 2)
        w = m.weight
        m(torch.ones(1, 2)).sum().backward()
        m.double()
        assert m.weight is w
        assert w.grad.dtype is torch.float64
        assert m(torch.ones(1, 2).double()).dtype is torch.float64

    def test_meta(self) -> None:
        m = nn.Linear(2, 3, device="meta")
        assert m(torch.empty(4, 2, device="meta")).shape == (4, 3)
        assert m.to_empty(device="cpu").weight.device.type == "cpu"

    def test_zero_grad(self) -> None:
        m = nn.Linear(2, 2)
        m(torch.ones(1, 2)).sum().backward()
        m.zero_grad(set_to_none=False)
        assert m.bias.grad.tolist() == [0, 0]
        m.zero_grad()
        assert m.bias.grad is None


def test_parameters_compute_as_plain_tensors() -> None:
    p = nn.Parameter(torch.ones(2))
    assert type(p * 2) is torch.Tensor
    assert p.is_leaf
    assert repr(p) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype"):
        nn.Parameter(torch.ones(2).long())


def test_printing() -> None:
    m = nn.Sequential(nn.Linear(2, 3), nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()]))
    assert repr(m) == (
        "Sequential(\n"
        "  (0): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (1): ModuleList(\n"
        "    (0-1): 2 x ReLU()\n"
        "    (2): Tanh()\n"
        "  )\n"
        ")"
    )


def test_a_handle_knows_the_registry_of_its_hook():
    m = torch.nn.Linear(2, 2)
    handle = m.register_forward_hook(lambda *call: None)
    assert handle.hooks_dict_ref() is m._forward_hooks
    assert list(m._forward_hooks) == [handle.id]
    handle.remove()
    assert len(handle.hooks_dict_ref()) == 0


def test_empty_lines_of_extra_repr_stay_empty_in_a_parent():
    class Listed(nn.Module):
        def extra_repr(self):
            return "a\n \n"

    assert repr(nn.Sequential(Listed())) == "Sequential(\n  (0): Listed(\n    a\n\n\n  )\n)"
    assert repr(nn.ModuleList([Listed()])) == "ModuleList(\n  (0): Listed(\n    a\n     \n    \n  )\n)"


@pytest.mark.parametrize("copied", [copy.copy, lambda p: pickle.loads(pickle.dumps(p))], ids=["copy", "pickle"])
def test_attributes_of_a_parameter_go_with_it(copied):
    p = nn.Parameter(torch.ones(2), requires_grad=False)
    p.tag = "x"
    again = copied(p)
    assert (type(again), again.tag, again.requires_grad, again.tolist()) == (nn.Parameter, "x", False, [1, 1])


def test_hooks_of_a_loaded_module_keep_their_ids():
    """An id that is given again would take the place of the hook that makes a lazy layer's weights."""
    handle = nn.Linear(1, 1).register_forward_pre_hook(print)
    loaded = pickle.loads(pickle.dumps(nn.LazyLinear(3)))
    handle.__setstate__((None, handle.id + 200))
    next_handle = loaded.register_forward_pre_hook(lambda module, args: None)
    assert next_handle.id > handle.id
    assert loaded(torch.ones(1, 2)).shape == (1, 3)
