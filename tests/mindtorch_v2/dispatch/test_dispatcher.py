"""From an operator and its arguments' keys to the function that runs it."""

import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import dispatcher, keys, registry
from mindtorch_v2._dispatch.op import Op


def test_with_no_recording_the_compiled_function_holds_nothing_of_it():
    x = torch.ones(2)
    x + x
    op = registry.find("aten::add", "Tensor")
    assert "clock" not in op.table[keys.CPU].__code__.co_names


def test_activation_is_counted():
    dispatcher.activate(keys.FUNCTION_MODE)
    dispatcher.activate(keys.FUNCTION_MODE)
    dispatcher.deactivate(keys.FUNCTION_MODE)
    assert dispatcher.active_keys() & keys.FUNCTION_MODE
    dispatcher.deactivate(keys.FUNCTION_MODE)
    assert not dispatcher.active_keys() & keys.FUNCTION_MODE


def test_starting_and_stopping_while_threads_compute_loses_no_result():
    stop = threading.Event()
    wrong = []

    def work():
        x = torch.ones(4)
        while not stop.is_set():
            if (x + x).tolist() != [2.0] * 4:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for _ in range(20):
        dispatcher.activate(keys.PROFILER)
        dispatcher.deactivate(keys.PROFILER)
    stop.set()
    for t in threads:
        t.join()
    assert not wrong


def test_a_formula_that_names_what_is_not_in_the_schema_fails_at_declaration():
    with pytest.raises(TypeError, match="weight"):
        Op("f(Tensor self) -> Tensor", grad={"self": lambda grad, weight: grad * weight})


def test_a_kernel_that_names_what_is_not_in_the_schema_fails_at_declaration():
    with pytest.raises(TypeError, match="other"):
        Op("f(Tensor self) -> Tensor", cpu=lambda self, other: self)


def test_the_same_overload_cannot_be_registered_twice():
    with pytest.raises(RuntimeError, match="already"):
        registry.add(Op("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"))


def test_tensors_of_two_devices_are_refused_by_name():
    with pytest.raises(RuntimeError, match=r"cpu.*meta|meta.*cpu"):
        torch.ones(2) + torch.ones(2, device="meta")


def test_wrong_arguments_name_the_operator_and_the_argument():
    with pytest.raises(TypeError, match=r"tanh\(\): argument 'input' \(position 1\) must be Tensor, not str"):
        torch.tanh("x")
