"""What events say about the arguments of recorded calls, in torch's layout."""

import json
import weakref

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import _ExperimentalConfig, profile


def recorded(function, **options):
    with profile(record_shapes=True, **options) as prof:
        function()
    return prof


def event(function, name):
    return next(e for e in recorded(function).events() if e.name == name)


class TestArguments:
    def test_a_number_in_a_tensors_place_is_a_tensor_without_dims(self):
        x = torch.ones(2, 3)
        for number, dtype in ((2, "long int"), (2.5, "double"), (True, "bool")):
            e = event(lambda number=number: x * number, "aten::mul")
            assert (e.input_shapes, e.input_dtypes, e.concrete_inputs) == ([[2, 3], []], ["float", dtype], [None, None])

    def test_numbers_have_the_schemas_type(self):
        e = event(lambda: torch.empty(3).normal_(0, 1), "aten::normal_")
        assert [str(v) for v in e.concrete_inputs] == ["None", "0.0", "1.0", "None"]

    def test_one_number_stands_for_a_list(self):
        e = event(lambda: torch.ones(2, 3).sum(1), "aten::sum")
        assert e.concrete_inputs[1] == [1]
        assert e.input_dtypes[1] == "ScalarList"
        e = event(lambda: torch.nn.functional.max_pool2d(torch.ones(1, 1, 4, 4), 2), "aten::max_pool2d")
        assert e.concrete_inputs[1:] == [[2, 2], [], [0, 0], [1, 1], False]

    @pytest.mark.parametrize("make", [lambda: torch.tensor(2.5), lambda: np.float32(2.5), lambda: np.float64(2.5)])
    def test_a_number_may_be_a_tensor_or_numpys(self, make):
        x, number = torch.ones(3), make()
        prof = recorded(lambda: torch.add(x, x, alpha=number))
        (add,) = [e for e in prof.events() if e.name == "aten::add"]
        assert add.concrete_inputs == [None, None, 2.5]
        assert not [e.name for e in prof.events() if e.name == "aten::eq"]  # finding it ran nothing

    def test_no_tensor_is_kept_alive(self):
        left = []

        def add():
            x, number = torch.ones(3), torch.tensor(2.5)
            left.extend([weakref.ref(x), weakref.ref(number)])
            torch.add(x, x, alpha=number)

        assert recorded(add).events()
        assert [ref() for ref in left] == [None, None]

    def test_arrays_that_cannot_be_looked_up_are_no_error_of_the_profilers(self):
        with pytest.raises(TypeError, match="must be Number"):
            recorded(lambda: torch.full((2,), np.array(2.5)))

    def test_dtypes_are_torchs_numbers(self):
        assert event(lambda: torch.zeros(3, dtype=torch.float64), "aten::zeros").concrete_inputs == [[3], 7, None, None, False]

    def test_a_factory_without_generator_has_no_such_argument(self):
        assert len(event(lambda: torch.randn(3), "aten::randn").input_shapes) == 5
        assert len(event(lambda: torch.randn(3, generator=torch.Generator()), "aten::randn").input_shapes) == 6

    def test_lists_that_may_have_gaps_have_no_shapes(self):
        index = torch.tensor([0, 1])
        x = torch.ones(3, 4)
        assert event(lambda: x[:, index], "aten::index").input_shapes == [[3, 4], []]


class TestBackward:
    def test_gradients_are_inputs_of_the_node_alone(self):
        x = torch.ones(2, 3, requires_grad=True)
        events = recorded(lambda: (x * 2).backward(torch.ones(2, 3))).events()
        shapes = {e.name: e.input_shapes for e in events}
        assert shapes["autograd::engine::evaluate_function: MulBackward0"] == []
        assert shapes["MulBackward0"] == [[2, 3]]

    def test_results_without_gradient_are_no_inputs(self):
        x = torch.ones(1, 1, 4, 4, requires_grad=True)
        call = lambda: torch.nn.functional.max_pool2d(x, 2).sum().backward()
        assert event(call, "MaxPool2DWithIndicesBackward0").input_shapes == [[1, 1, 2, 2]]

    def test_a_missing_gradient_of_several_has_no_shape(self):
        x = torch.ones(2, 3, requires_grad=True)
        assert event(lambda: x.unbind()[1].sum().backward(), "UnbindBackward0").input_shapes == [[], [3]]


def test_traces_name_the_overload_when_asked(tmp_path):
    x = torch.ones(2)
    for wanted, name in ((False, "aten::add"), (True, "aten::add.Tensor")):
        prof = recorded(lambda: x + x, experimental_config=_ExperimentalConfig(capture_overload_names=wanted))
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        assert [r["name"] for r in rows if r.get("cat") == "cpu_op"] == [name]
        assert prof.events()[0].name == "aten::add"
