"""What events say about the arguments of recorded calls, in torch's layout."""

import ast
import json
import weakref
from pathlib import Path

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


def by_out(x):
    torch.add(torch.ones(5), 1, out=x.resize_(0))


def by_data(x):
    x.data = torch.ones(5, dtype=torch.float64)


class TestGeometry:
    """A tensor is asked for its shape, strides and dtype once, and again after anything that may have changed them."""

    @pytest.mark.parametrize(
        ("change", "shape", "strides", "dtype"),
        [
            (lambda x: x.t_(), [3, 2], [1, 3], "float"),
            (lambda x: x.transpose_(0, 1), [3, 2], [1, 3], "float"),
            (lambda x: x.swapaxes_(0, 1), [3, 2], [1, 3], "float"),
            (lambda x: x.unsqueeze_(0), [1, 2, 3], [6, 3, 1], "float"),
            (lambda x: x.unsqueeze_(0).squeeze_(), [2, 3], [3, 1], "float"),
            (lambda x: x.resize_(3), [3], [1], "float"),
            (lambda x: x.resize_as_(torch.ones(2, 2)), [2, 2], [2, 1], "float"),
            (lambda x: x.as_strided_((2, 2), (1, 1)), [2, 2], [1, 1], "float"),
            (lambda x: x.set_(torch.ones(4)), [4], [1], "float"),
            (lambda x: x.set_(), [0], [1], "float"),
            (lambda x: x.set_(torch.ones(9).untyped_storage(), 1, (2, 2), (4, 1)), [2, 2], [4, 1], "float"),
            (by_data, [5], [1], "double"),
            (by_out, [5], [1], "float"),
        ],
    )
    def test_of_a_tensor_that_changes(self, tmp_path, change, shape, strides, dtype):
        x = torch.ones(2, 3)

        def run():
            x.neg()
            change(x)
            x.neg()

        recorded(run).export_chrome_trace(str(tmp_path / "trace.json"))
        rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        facts = [
            [e["args"][name] for name in ("Input Dims", "Input Strides", "Input type")] for e in rows if e["name"] == "aten::neg"
        ]
        assert facts == [[[[2, 3]], [[3, 1]], ["float"]], [[shape], [strides], [dtype]]]

    def test_of_a_module_that_changes_its_dtype(self):
        linear = torch.nn.Linear(2, 3)
        x = torch.ones(1, 2)
        recorded(lambda: linear(x))
        assert event(lambda: linear.double()(x.double()), "aten::linear").input_dtypes == ["double"] * 3

    def test_is_forgotten_wherever_a_tensor_gets_an_array(self):
        sources = {path: path.read_text() for path in Path(torch.__file__).parent.rglob("*.py")}
        for path in [path for path, text in sources.items() if "._array" in text]:
            for function in ast.walk(ast.parse(sources[path])):
                if isinstance(function, ast.FunctionDef) and function.name != "__init__":
                    stored = {n.attr for n in ast.walk(function) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
                    makes = {n.func.attr if isinstance(n.func, ast.Attribute) else n.func.id for n in ast.walk(function)
                             if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute | ast.Name)} & {"__new__", "_new"}  # fmt: skip
                    assert "_array" not in stored or "_geometry" in stored or makes, (
                        f"{function.name} in {path.name}: use set_array"
                    )

    def test_is_no_part_of_a_tensor_that_nobody_recorded(self):
        """What a tensor carries for the profiler costs an unrecorded call nothing."""
        x = torch.ones(2, 3)
        made = [x, x + x, x.t(), x.detach(), x.new_empty(2), torch.tensor([1.0]), torch.empty(2, device="meta"), x.max(0)[0]]
        assert not any(hasattr(t, "_geometry") for t in made)
        with profile():
            y = x + x
        assert not hasattr(y, "_geometry")

    def test_of_tensors_made_before_and_in_a_recording(self):
        x, y = torch.ones(2, 3), torch.ones(2, 3, requires_grad=True)
        parts = [torch.ones(1, 3), x.new_ones(2, 3)]

        def run():
            torch.cat([(x + y).t().t(), *parts]).max(0)[0].sum().backward()

        shapes = [
            (e.name, e.input_shapes) for e in recorded(run).events() if e.name in ("aten::add", "aten::t", "aten::cat", "aten::sum")
        ]
        assert shapes[:5] == [
            ("aten::add", [[2, 3], [2, 3], []]),
            ("aten::t", [[2, 3]]),
            ("aten::t", [[3, 2]]),
            ("aten::cat", [[], []]),  # torch: nothing is told of lists
            ("aten::sum", [[3], []]),
        ]

    def test_is_known_anew_after_everything_was_forgotten(self, monkeypatch):
        x = torch.ones(2, 3)
        assert event(lambda: x + x, "aten::add").input_shapes == [[2, 3], [2, 3], []]
        monkeypatch.setattr("mindtorch_v2.profiler.capture.operators.call_inputs.LIMIT", 0)
        y = torch.ones(2, 3)
        assert event(lambda: x + y, "aten::add").input_shapes == [[2, 3], [2, 3], []]


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
