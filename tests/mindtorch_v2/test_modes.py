"""User modes and tensor subclasses see the calls they should."""

import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.overrides import TorchFunctionMode
from mindtorch_v2.utils._python_dispatch import TorchDispatchMode


class LogFunctions(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls.append((func.__name__, len(args), dict(kwargs or {})))
        return func(*args, **(kwargs or {}))


class LogOperators(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append(str(func))
        return func(*args, **(kwargs or {}))


def test_function_mode_sees_what_the_user_called():
    x = torch.ones(2)
    with LogFunctions() as mode:
        torch.add(x, x, alpha=2)
    assert mode.calls == [("add", 2, {"alpha": 2})]


def test_function_mode_sees_a_composite_as_one_call():
    x, w = torch.ones(2, 3), torch.ones(4, 3)
    with LogFunctions() as mode:
        torch.nn.functional.linear(x, w)
    assert [name for name, _, _ in mode.calls] == ["linear"]


def test_dispatch_mode_sees_the_parts_of_a_composite():
    x, w, b = torch.ones(2, 3), torch.ones(4, 3), torch.ones(4)
    with LogOperators() as mode:
        torch.nn.functional.linear(x, w, b)
    assert mode.calls == ["aten.t.default", "aten.addmm.default"]


def test_dispatch_mode_sees_a_factory_as_one_operator():
    with LogOperators() as mode:
        torch.ones(2)
    assert mode.calls == ["aten.ones.default"]


def test_dispatch_mode_is_below_autograd_and_keeps_the_graph():
    x = torch.ones(2, requires_grad=True)
    with LogOperators() as mode:
        y = (x * 3).sum()
    y.backward()
    assert mode.calls[0] == "aten.mul.Tensor"
    assert x.grad.tolist() == [3.0, 3.0]


def test_modes_nest_and_end():
    x = torch.ones(1)
    with LogOperators() as outer, LogOperators() as inner:
        x + x
    x + x
    assert inner.calls == ["aten.add.Tensor"]
    assert outer.calls == ["aten.add.Tensor"]


def test_a_mode_belongs_to_its_thread():
    x = torch.ones(1)
    with LogOperators() as mode:
        thread = threading.Thread(target=lambda: x + x)
        thread.start()
        thread.join()
    assert mode.calls == []


def test_an_exception_leaves_the_mode_off():
    with pytest.raises(ZeroDivisionError), LogOperators() as mode:
        raise ZeroDivisionError
    torch.ones(1) + 1
    assert mode.calls == []


def test_a_subclass_keeps_its_type_through_operators():
    class Mine(torch.Tensor):
        pass

    x = torch.ones(2).as_subclass(Mine)
    assert type(x + 1) is Mine
    assert type(torch.ones(2) * x) is Mine
    assert (x + 1).tolist() == [2.0, 2.0]


def test_a_subclass_can_override_functions():
    class Logged(torch.Tensor):
        calls: list[str] = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.calls.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.ones(2).as_subclass(Logged)
    torch.tanh(x) + 1
    assert Logged.calls == ["tanh", "add"]


def test_an_object_that_is_no_tensor_can_override_functions():
    class Unit:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return f"{func.__name__} of {len(args)}"

    assert torch.add(torch.ones(1), Unit()) == "add of 2"
    assert torch.tanh(Unit()) == "tanh of 1"


class TestWhatCanBeOverridden:
    def test_functions_methods_and_properties(self):
        found = torch.overrides.get_overridable_functions()
        assert torch.add in found[torch]
        assert torch.zeros not in found[torch]
        assert torch.Tensor.add_ in found[torch.Tensor]
        assert torch.nn.functional.relu in found[torch.nn.functional]
        assert torch.overrides.resolve_name(torch.linalg.inv) == "torch.linalg.inv"
        assert torch.overrides.is_tensor_method_or_property(torch.Tensor.shape.__get__)
        assert not torch.overrides.is_tensor_method_or_property(torch.nn.functional.relu)

    def test_stand_ins_take_the_same_arguments(self):
        overrides = torch.overrides.get_testing_overrides()
        assert overrides[torch.add](1, other=2, alpha=3) == -1
        assert overrides[torch.nn.functional.dropout](1, p=0.1) == -1
        for wrong in ({"nonsense": 1}, {}):
            with pytest.raises(TypeError):
                overrides[torch.add](**wrong)
            with pytest.raises(TypeError):
                overrides[torch.nn.functional.dropout](**wrong)
        assert torch.zeros in torch.overrides.get_ignored_functions()
        assert not torch.overrides.get_ignored_functions() & set(overrides)

    def test_the_stack_of_modes(self):
        mode = torch.overrides.BaseTorchFunctionMode()
        assert torch.overrides._get_current_function_mode() is None
        with mode:
            assert torch.overrides._get_current_function_mode() is mode
            assert torch.overrides._get_current_function_mode_stack() == [mode]
