"""Nodes of execution traces: an operator's tensors, other arguments and results, and what they are numbered by."""

import gc
import math
import os
import weakref

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ExecutionTraceObserver, record_function

from .execution_traces import ONE, PROCESS, THREAD


class TestOperators:
    def test_one(self, traced):
        x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        y = x.t()
        trace = traced(lambda: torch.add(x, y, alpha=2))
        node = trace["aten::add"]
        first, second, alpha = node.inputs["values"]
        assert first[2:] == [0, 4, 4, "cpu"]
        assert second[1:] == first[1:]  # the view has the same storage, and begins where it does
        assert second[0] != first[0]
        assert alpha == 2
        assert node.inputs["shapes"] == [[2, 2], [2, 2], []]
        assert node.inputs["strides"] == [[2, 1], [1, 2], []]
        assert node.inputs["types"] == ["Tensor(float)", "Tensor(float)", "Int"]
        (result,) = node.outputs["values"]
        assert result[2:] == [0, 4, 4, "cpu"]
        assert len({first[0], second[0], result[0], first[1], result[1]}) == 5
        assert node.outputs["types"] == ["Tensor(float)"]
        assert node["op_schema"] == "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
        assert node["scope"] == 0
        assert node["seq_id"] == -1
        assert node["tid"] == 1
        assert (node["fw_parent"], node["fw_tid"]) == (0, 0)
        assert trace.parent_of(node) == THREAD

    def test_header(self, traced):
        trace = traced(lambda: None)
        assert trace.header["schema"] == "1.1.1-chakra.0.0.4"
        assert trace.header["pid"] == os.getpid()
        assert trace.header["start_ts"] <= trace.header["finish_ts"]
        assert [node.name for node in trace.nodes] == [PROCESS]

    def test_composites_are_around_their_parts(self, traced):
        linear, x = torch.nn.Linear(3, 2), torch.ones(4, 3)
        trace = traced(lambda: linear(x))
        assert trace.names() == ["aten::t", "aten::addmm", "aten::linear"]
        assert trace.parent_of(trace["aten::addmm"]) == "aten::linear"
        (transposed,) = trace["aten::t"].outputs["values"]
        assert trace["aten::addmm"].inputs["values"][2] == transposed
        assert trace["aten::linear"].outputs == trace["aten::addmm"].outputs

    def test_views_share_a_storage_and_have_an_offset(self, traced):
        x = torch.arange(12.0).reshape(3, 4)

        def work():
            y = x[1:]
            y[:, 2].neg()

        trace = traced(work)
        rows, whole = trace.named("aten::slice")[0].outputs["values"][0], trace.named("aten::slice")[0].inputs["values"][0]
        assert rows[1] == whole[1]
        assert rows[2:4] == [4, 8]
        (column,) = trace["aten::neg"].inputs["values"]
        assert column[1] == whole[1]
        assert column[2:4] == [6, 2]
        assert trace["aten::neg"].inputs["strides"] == [[4]]

    def test_an_offset_follows_the_tensor_to_other_memory(self, traced):
        buffer, x = torch.arange(6.0), torch.zeros(2)

        def work():
            for i in range(3):
                x.data = buffer[2 * i : 2 * i + 2]
                x.neg()

        values = [node.inputs["values"][0] for node in traced(work).named("aten::neg")]
        assert [value[2] for value in values] == [0, 2, 4]
        assert len({tuple(value[:2]) for value in values}) == 1

    def test_tensors_keep_their_numbers_and_numbers_their_tensors(self, traced):
        """Also where Python reuses the memory of an object that is gone."""
        x = torch.ones(2)

        def work():
            for _ in range(50):
                x.neg().cos()

        trace = traced(work)
        assert {node.inputs["values"][0][0] for node in trace.named("aten::neg")} == {
            trace.named("aten::neg")[0].inputs["values"][0][0]
        }
        results = [node.outputs["values"][0] for node in trace.nodes if node.name in ("aten::neg", "aten::cos")]
        assert len({value[0] for value in results}) == 100
        assert len({value[1] for value in results}) == 100

    def test_in_place_results_are_their_arguments(self, traced):
        x = torch.ones(2)
        node = traced(lambda: x.mul_(3))["aten::mul_"]
        assert node.outputs["values"][0] == node.inputs["values"][0]

    def test_data_and_detach_share_the_storage(self, traced):
        x = torch.ones(2, requires_grad=True)

        def work():
            x.data.neg()
            x.detach().cos()
            x.sin()

        trace = traced(work)
        values = [trace[f"aten::{name}"].inputs["values"][0] for name in ("neg", "cos", "sin")]
        assert len({value[1] for value in values}) == 1
        assert len({value[0] for value in values}) == 3

    def test_a_storage_that_grows_is_another(self, traced):
        x = torch.ones(2)

        def work():
            x.neg()
            x.resize_(100)
            x.neg()

        before, after = (node.inputs["values"][0] for node in traced(work).named("aten::neg"))
        assert before[0] == after[0]
        assert before[1] != after[1]

    def test_lists_of_tensors(self, traced):
        x, y = torch.ones(2, 3), torch.zeros(1, 3)
        trace = traced(lambda: torch.cat([x, y, x]).split([1, 4]))
        cat, split = trace["aten::cat"], trace.nodes[-2]
        tensors, dim = cat.inputs["values"]
        assert tensors[0] == tensors[2] != tensors[1]
        assert dim == 0
        assert cat.inputs["types"] == ["GenericList[Tensor(float),Tensor(float),Tensor(float)]", "Int"]
        assert cat.inputs["shapes"] == [[[2, 3], [1, 3], [2, 3]], []]
        assert cat.inputs["strides"] == [[[3, 1], [3, 1], [3, 1]], []]
        assert split.name.startswith("aten::split")
        assert [value[1:3] for value in split.outputs["values"][0]] == [
            [split.inputs["values"][0][1], 0],
            [split.inputs["values"][0][1], 3],
        ]
        assert split.outputs["types"] == ["GenericList[Tensor(float),Tensor(float)]"]

    def test_several_results(self, traced):
        node = traced(lambda: torch.ones(2, 3).max(0))["aten::max"]
        assert node.outputs["types"] == ["Tensor(float)", "Tensor(long int)"]
        assert node.outputs["shapes"] == [[3], [3]]

    def test_a_number_in_a_tensors_place_is_a_tensor_without_dims(self, traced):
        x = torch.ones(2)

        def work():
            for _ in range(2):
                x + 1
            x + 0.5

        nodes = traced(work).named("aten::add")
        assert [node.inputs["types"][1] for node in nodes] == ["Tensor(long int)", "Tensor(long int)", "Tensor(double)"]
        wrapped = [node.inputs["values"][1] for node in nodes]
        assert [value[2:] for value in wrapped] == [[0, 1, 8, "cpu"]] * 3
        assert len({value[0] for value in wrapped}) == 3

    @pytest.mark.parametrize(
        ("call", "values", "types"),
        [
            (lambda x: x.clamp(min=1), [1, "<None>"], ["Int", "None"]),
            (lambda x: x.clamp(max=1.5), ["<None>", 1.5], ["None", "Double"]),
            (lambda x: x.sum((0, 1), keepdim=True), [[0, 1], True, "<None>"], ["GenericList[Int,Int]", "Bool", "None"]),
            (lambda x: torch.nn.functional.gelu(x, approximate="tanh"), ["tanh"], ["String"]),
            (lambda x: x.sum(dtype=torch.float64), [7], ["Int"]),
        ],
    )
    def test_other_arguments(self, traced, call, values, types):
        x = torch.ones(2, 3)
        node = [n for n in traced(lambda: call(x)).nodes if n.name not in (PROCESS, THREAD)][-1]
        assert node.inputs["values"][1:] == values
        assert node.inputs["types"][1:] == types

    def test_numbers_are_exact_and_valid(self, traced):
        def work():
            for value in (1e-8, math.inf, -math.inf, math.nan, True, 2**62, 1e300, 1 + 2j):
                torch.full((1,), value)

        nodes = traced(work).named("aten::full")
        values = [node.inputs["values"][1] for node in nodes]
        assert values == [1e-8, "inf", "-inf", "nan", True, 2**62, 1e300, "<ComplexDouble>"]
        assert [node.inputs["types"][1] for node in nodes] == [*["Double"] * 4, "Bool", "Int", "Double", "ComplexDouble"]
        assert nodes[0].inputs["values"][0] == [1]
        assert nodes[0].inputs["types"][0] == "GenericList[Int]"
        assert nodes[0].inputs["shapes"][0] == [[]]

    def test_factories(self, traced):
        def work():
            torch.randn(2, 3)
            torch.randn(3, generator=torch.Generator())
            torch.zeros(2, dtype=torch.int16, device="cpu")

        trace = traced(work)
        plain, seeded = trace.named("aten::randn")
        assert plain["op_schema"].startswith("aten::randn(SymInt[] size, *, ScalarType? dtype=None,")
        assert seeded["op_schema"].startswith("aten::randn.generator(SymInt[] size, *, Generator? generator, ScalarType?")
        assert "Generator" not in plain.inputs["types"]
        assert seeded.inputs["types"][1] == "Generator"
        zeros = trace["aten::zeros"]
        assert zeros.inputs["values"][1] == 2
        assert zeros.inputs["types"][3] == "Device"
        assert zeros.outputs["types"] == ["Tensor(short int)"]

    def test_devices_without_elements_and_sparse_tensors(self, traced):
        x, s = torch.ones(2, device="meta"), torch.eye(3).to_sparse()

        def work():
            x.neg()
            (s + s).to_dense()
            torch.ones(0).neg()

        trace = traced(work)
        on_meta, empty = trace.named("aten::neg")
        assert on_meta.inputs["values"][0][2:] == [0, 2, 4, "meta"]
        assert on_meta.outputs["values"][0][5] == "meta"
        assert empty.inputs["values"][0][2:4] == [0, 0]
        (add,) = [node for node in trace.named("aten::add") if node.inputs["shapes"][0] == [3, 3]]  # the other is one of values
        assert add.inputs["values"][0][1:] == [0, 0, 0, 0, ""]

    def test_answers_that_are_no_tensors(self, traced):
        x = torch.tensor(2.5)
        trace = traced(x.item)
        assert trace.nodes[-2].outputs == {"values": [2.5], "shapes": [[]], "types": ["Double"], "strides": [[]]}

    def test_ever_new_numbers_do_not_gather(self, traced):
        from mindtorch_v2.profiler.capture.execution_trace import execution_values

        x = torch.ones(1)
        count = 2 * execution_values.MOST_TEMPLATES + 3
        trace = traced(lambda: [x.clamp(min=i) for i in range(count)])
        assert [node.inputs["values"][1] for node in trace.named("aten::clamp")] == list(range(count))

    def test_an_operator_that_raises_is_a_node_without_results(self, traced):
        def work():
            for _ in range(2):
                with pytest.raises(RuntimeError), record_function("scope"):
                    torch.mm(torch.ones(2, 3), torch.ones(2, 3))
            ONE.cos()

        trace = traced(work)
        assert [node.outputs["values"] for node in trace.named("aten::mm")] == [[], []]
        assert [trace.parent_of(node) for node in trace.named("aten::mm")] == ["scope", "scope"]
        assert {trace.parent_of(node) for node in trace.named("scope")} == {THREAD}
        assert trace.parent_of(trace["aten::cos"]) == THREAD

    def test_arguments_that_nobody_foresaw(self, traced):
        """What cannot be described must not keep an operator from running."""
        import numpy as np

        x = torch.ones(4)

        def work():
            assert x.sum(np.array(0)) == 4
            assert torch.full((2,), np.float32(2)).sum() == 4
            assert x.sum(np.int64(0)) == 4

        assert traced(work).named("aten::sum")


class TestCost:
    """What an observer must not do to the program."""

    def test_results_of_kernels_have_no_number_before(self, traced, monkeypatch):
        """The observer counts on it, and gives them one without asking."""
        from mindtorch_v2._dispatch import dispatcher, keys
        from mindtorch_v2.profiler.capture.execution_trace import execution_layer, execution_values

        numbered, seen = [], set()

        def check(t):
            seen.add(1)
            numbered.extend(what for what in (t, t._storage) if hasattr(what, "_identity"))
            return original(t)

        original = execution_values.object_of_new_tensor
        monkeypatch.setattr(execution_values, "object_of_new_tensor", check)

        def compile_anew():
            dispatcher.unregister_layer(keys.EXECUTION_TRACE)
            dispatcher.register_layer(keys.EXECUTION_TRACE, execution_layer.execution_layer)

        def work():
            net = torch.nn.Sequential(
                torch.nn.Conv2d(1, 2, 3, padding=1), torch.nn.BatchNorm2d(2), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                torch.nn.Flatten(), torch.nn.Linear(32, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Dropout(0.1),
            )  # fmt: skip
            optimizer = torch.optim.Adam(net.parameters())
            for _ in range(2):
                out = net(torch.randn(3, 1, 8, 8))
                loss = (
                    torch.nn.functional.cross_entropy(out, torch.tensor([0, 1, 2]))
                    + out.softmax(1).std()
                    + out.to(torch.float64).mean()
                )
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            x = torch.arange(6.0).reshape(2, 3)
            torch.add(x, x, out=torch.empty(2, 3))
            x.contiguous().float().clamp_(0).expand(2, 2, 3).sum((0, 1)).cumsum(0).sort()
            x.bfloat16() @ x.t().bfloat16()
            torch.where(x > 1, x, 0.0).flip(0).roll(1)

        compile_anew()
        try:
            traced(work)
        finally:
            monkeypatch.undo()
            compile_anew()
        assert seen
        assert numbered == []

    def test_tensors_are_not_kept_alive(self, tmp_path):
        observer = ExecutionTraceObserver().register_callback(tmp_path / "t.json")
        observer.start()
        x = torch.ones(3, requires_grad=True)
        y = (x[1:] * 2).sum()
        watched = [weakref.ref(t) for t in (x, y, x._storage, y._storage)]
        del x, y
        gc.collect()
        assert [ref() for ref in watched] == [None] * 4
        observer.unregister_callback()

    def test_nothing_is_left_when_nobody_observes(self, tmp_path):
        from mindtorch_v2._dispatch import registry

        def variables():
            ONE.neg()
            (function,) = registry.find("aten::neg").table.values()
            return function.__code__.co_varnames

        before = variables()
        observer = ExecutionTraceObserver().register_callback(tmp_path / "t.json")
        assert variables() == before
        observer.start()
        assert "rf_" in variables()
        observer.stop()
        assert variables() == before
        observer.unregister_callback()
