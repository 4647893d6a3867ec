"""Execution traces: every operator, scope and backward node with its tensors, in a file that is complete or not there."""

import asyncio
import errno
import gc
import gzip
import json
import math
import os
import subprocess
import sys
import textwrap
import threading
import weakref

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ExecutionTraceObserver, profile, record_function, schedule

PROCESS, THREAD = "[pytorch|profiler|execution_trace|process]", "[pytorch|profiler|execution_trace|thread]"
ATTRIBUTES = {
    "rf_id": "uint64", "fw_parent": "uint64", "seq_id": "int64", "scope": "uint64", "tid": "uint64", "fw_tid": "uint64",
    "op_schema": "string", "kernel_backend": "string", "kernel_file": "string", "tensor_range": "string",
}  # fmt: skip


ONE = torch.ones(1)


class Node:
    """A node of a trace that was read."""

    def __init__(self, entry):
        self.entry = entry
        self.id, self.name, self.parent = entry["id"], entry["name"], entry["ctrl_deps"]
        self.inputs, self.outputs = entry["inputs"], entry["outputs"]
        self.attrs = {a["name"]: a["value"] for a in entry["attrs"]}

    def __getitem__(self, attribute):
        return self.attrs[attribute]


class Trace:
    """A trace that was read; every one is checked for what is true of all."""

    def __init__(self, path):
        open_file = gzip.open if str(path).endswith(".gz") else open
        with open_file(path, "rt") as file:
            self.header = json.load(file)
        self.nodes = [Node(entry) for entry in self.header["nodes"]]
        self.by_id = {node.id: node for node in self.nodes}
        self._check()

    def _check(self):
        assert len(self.by_id) == len(self.nodes), "ids are unique"
        assert all(node.parent in self.by_id for node in self.nodes), "what is around a node is there"
        assert self.nodes[-1].name == PROCESS
        assert self.nodes[-1].id == self.nodes[-1].parent == 1
        numbers = [node["rf_id"] for node in self.nodes if node.name not in (PROCESS, THREAD)]
        assert len(set(numbers)) == len(numbers)
        assert all(number > 0 for number in numbers)
        for node in self.nodes:
            assert {a["name"]: a["type"] for a in node.entry["attrs"]} == ATTRIBUTES
            assert list(node.entry) == ["id", "name", "ctrl_deps", "inputs", "outputs", "attrs"]
            for side in (node.inputs, node.outputs):
                assert list(side) == ["values", "shapes", "types", "strides"]
                assert len({len(part) for part in side.values()}) == 1

    def __getitem__(self, name):
        (node,) = [node for node in self.nodes if node.name == name]
        return node

    def named(self, name):
        return [node for node in self.nodes if node.name == name]

    def names(self):
        return [node.name for node in self.nodes if node.name not in (PROCESS, THREAD)]

    def parent_of(self, node):
        return self.by_id[node.parent].name


@pytest.fixture
def traced(tmp_path):
    """A function that runs another under an observer and reads what was written."""

    def run(work, name="trace.json"):
        path = tmp_path / name
        observer = ExecutionTraceObserver().register_callback(str(path))
        try:
            observer.start()
            work()
            observer.stop()
        finally:
            observer.unregister_callback()
        return Trace(path)

    return run


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
        assert trace["aten::add"].inputs["values"][0][1:] == [0, 0, 0, 0, ""]
        assert trace["aten::add"].inputs["shapes"][0] == [3, 3]

    def test_answers_that_are_no_tensors(self, traced):
        x = torch.tensor(2.5)
        trace = traced(x.item)
        assert trace.nodes[-2].outputs == {"values": [2.5], "shapes": [[]], "types": ["Double"], "strides": [[]]}

    def test_ever_new_numbers_do_not_gather(self, traced):
        from mindtorch_v2.profiler.capture import execution_values

        x = torch.ones(1)
        count = 2 * execution_values.MOST_TEMPLATES + 3
        trace = traced(lambda: [x.clamp(min=i) for i in range(count)])
        assert [node.inputs["values"][1] for node in trace.named("aten::clamp")] == list(range(count))

    def test_results_of_kernels_have_no_number_before(self, traced, monkeypatch):
        """The observer counts on it, and gives them one without asking."""
        from mindtorch_v2._dispatch import dispatcher, keys
        from mindtorch_v2.profiler.capture import execution_layer, execution_values

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


class TestBackward:
    def test_nodes(self, traced):
        w = torch.ones(2, requires_grad=True)
        trace = traced(lambda: (w * 3.0).sum().backward())
        forward, backward = trace.named("aten::mul")[0], trace["MulBackward0"]
        assert backward["seq_id"] == forward["seq_id"] >= 0
        assert backward["scope"] == 1
        assert (backward["tid"], backward["fw_tid"]) == (1, 1)
        around = trace["autograd::engine::evaluate_function: MulBackward0"]
        assert trace.by_id[backward.parent] is around
        assert backward["fw_parent"] == around.id
        assert (around["scope"], around["seq_id"], around["fw_tid"], around["fw_parent"]) == (0, -1, 0, 0)
        (grad,) = backward.inputs["values"]
        expanded = trace["aten::expand"].outputs["values"][0]
        assert grad == expanded
        assert backward.inputs["strides"] == [[0]]
        assert backward.outputs["values"] == []
        leaf = trace["torch::autograd::AccumulateGrad"]
        assert leaf["seq_id"] == -1
        assert leaf.inputs["values"] == trace.named("aten::mul")[1].outputs["values"]

    def test_composites_have_the_number_of_the_first_node_inside(self, traced):
        linear, x = torch.nn.Linear(3, 2), torch.ones(4, 3)
        trace = traced(lambda: linear(x))
        assert trace["aten::linear"]["seq_id"] == trace["aten::t"]["seq_id"] == trace["aten::addmm"]["seq_id"] - 1

    def test_scopes_have_no_number(self, traced):
        w = torch.ones(2, requires_grad=True)

        def work():
            with record_function("scope"):
                w * 2

        assert traced(work)["scope"]["seq_id"] == -1

    def test_on_another_thread(self, traced):
        w = torch.ones(2, requires_grad=True)
        loss = []

        def work():
            with record_function("forward"):
                loss.append((w * 3).sum())
            thread = threading.Thread(target=lambda: loss[0].backward())
            thread.start()
            thread.join()

        trace = traced(work)
        backward = trace["MulBackward0"]
        assert (backward["tid"], backward["fw_tid"]) == (2, 1)
        # what the thread that made the node is in while the other runs it: nothing
        assert trace.by_id[backward["fw_parent"]].name == THREAD
        assert trace.by_id[backward["fw_parent"]]["tid"] == 1

    def test_absent_gradients(self, traced):
        x = torch.ones(2, 2, requires_grad=True)

        def work():
            a, _ = x.unbind(0)
            a.sum().backward()

        values = traced(work)["UnbindBackward0"].inputs
        assert values["types"] == ["Tensor(float)", "Tensor(nullptr (uninitialized))"]
        assert values["values"][1][1:] == [0, 0, 0, 0, ""]

    def test_custom_functions(self, traced):
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, k, text):
                return x * k

            @staticmethod
            def backward(ctx, grad):
                return grad * 2, None, None

        x = torch.ones(2, requires_grad=True)
        trace = traced(lambda: Twice.apply(x, 2, "text").sum().backward())
        node = trace["Twice"]
        assert node.inputs["types"] == ["Tensor(float)", "Int"]
        assert node["seq_id"] == trace["TwiceBackward"]["seq_id"] >= 0
        assert trace.parent_of(trace.named("aten::mul")[0]) == "Twice"


class TestScopes:
    def test_they_are_nodes(self, traced):
        def work():
            with record_function("outer", "some text"), record_function("inner"):
                torch.ones(2).neg()

        trace = traced(work)
        assert trace["outer"].inputs == {"values": ["some text"], "shapes": [[]], "types": ["String"], "strides": [[]]}
        assert trace.parent_of(trace["inner"]) == "outer"
        assert trace.parent_of(trace["aten::neg"]) == "inner"
        assert trace["outer"]["scope"] == 7
        assert trace["outer"]["seq_id"] == -1

    def test_optimizers(self, traced):
        w = torch.ones(2, requires_grad=True)
        w.grad = torch.ones(2)
        optimizer = torch.optim.SGD([w], lr=0.1)
        trace = traced(optimizer.step)
        assert trace.parent_of(trace["aten::add_"]) == "Optimizer.step#SGD.step"
        assert trace["aten::add_"].inputs["values"][2] == -0.1

    @pytest.mark.parametrize("name", ['"quoted"', "a\nb", "100% %d %s", "\\", "é\u2028\x00", "\ud800", ""])
    def test_odd_names(self, traced, name):
        def work():
            with record_function(name, name):
                ONE.neg()

        trace = traced(work)
        written = name.encode("utf-8", "backslashreplace").decode()
        assert trace.parent_of(trace["aten::neg"]) == written
        assert trace[written].inputs["values"] == [written]

    def test_open_when_the_trace_ends(self, traced):
        scope = record_function("never left", "text")

        def work():
            scope.__enter__()
            ONE.neg()

        trace = traced(work)
        assert trace.parent_of(trace["aten::neg"]) == "never left"
        assert trace["never left"].inputs["values"] == ["text"]
        scope.__exit__(None, None, None)

    def test_begun_before_the_trace(self, tmp_path):
        observer = ExecutionTraceObserver().register_callback(tmp_path / "t.json")
        with record_function("before"):
            observer.start()
            ONE.neg()
        ONE.cos()
        observer.unregister_callback()
        trace = Trace(tmp_path / "t.json")
        assert not trace.named("before")
        assert trace.parent_of(trace["aten::neg"]) == THREAD

    def test_left_out_of_order(self, traced):
        def work():
            a, b = record_function("a"), record_function("b")
            a.__enter__()
            b.__enter__()
            a.__exit__(None, None, None)
            ONE.neg()
            b.__exit__(None, None, None)

        trace = traced(work)
        assert trace.parent_of(trace["b"]) == "a"
        assert trace.parent_of(trace["aten::neg"]) == THREAD

    def test_tasks_of_asyncio_do_not_mix(self, traced):
        async def task(name, x):
            with record_function(name):
                await asyncio.sleep(0)
                x.neg()
                await asyncio.sleep(0)

        async def main():
            await asyncio.gather(*[task(f"task {i}", torch.ones(i + 1)) for i in range(3)])

        trace = traced(lambda: asyncio.run(main()))
        assert {(trace.parent_of(node), node.inputs["shapes"][0][0]) for node in trace.named("aten::neg")} == {
            ("task 0", 1), ("task 1", 2), ("task 2", 3),
        }  # fmt: skip


class TestThreads:
    def test_each_has_a_node_and_a_number(self, traced):
        def work():
            ONE.neg()
            threads = [threading.Thread(target=ONE.cos) for _ in range(3)]
            for thread in threads:
                thread.start()
                thread.join()

        trace = traced(work)
        assert sorted(node["tid"] for node in trace.named(THREAD)) == [1, 2, 3, 4]
        for node in trace.named("aten::cos"):
            assert trace.by_id[node.parent]["tid"] == node["tid"]

    def test_many_at_once(self, traced):
        x = torch.ones(4, requires_grad=True)
        barrier = threading.Barrier(4)

        def work():
            barrier.wait()
            for _ in range(100):
                with record_function("step"):
                    (x * 2).sum()

        def run():
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        trace = traced(run)
        assert len(trace.named("aten::sum")) == 400
        for node in trace.nodes:
            if node.name == "aten::mul":
                assert trace.parent_of(node) == "step"
                assert trace.by_id[node.parent]["tid"] == node["tid"]
        assert len({node.inputs["values"][0][0] for node in trace.named("aten::mul")}) == 1, "one tensor has one number"


class TestErrors:
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

    def test_the_users_exception_comes_through(self, tmp_path):
        path = tmp_path / "t.json"

        def work():
            with profile(execution_trace_observer=ExecutionTraceObserver().register_callback(path)):
                ONE.neg()
                raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            work()
        assert Trace(path).names() == ["aten::neg"]

    def test_a_second_observer_is_refused(self, tmp_path):
        first = ExecutionTraceObserver().register_callback(tmp_path / "a.json")
        second = ExecutionTraceObserver()
        with pytest.raises(RuntimeError, match=r"a\.json.*unregister"):
            second.register_callback(tmp_path / "b.json")
        assert not second.is_registered
        second.start()
        assert not second.is_running()
        assert first.is_registered
        first.unregister_callback()
        second.register_callback(tmp_path / "b.json").unregister_callback()
        assert (tmp_path / "b.json").exists()

    def test_registering_twice_and_stopping_twice_are_harmless(self, tmp_path):
        observer = ExecutionTraceObserver()
        observer.start()
        observer.stop()
        observer.unregister_callback()
        assert not observer.is_running()
        assert observer.get_output_file_path() is None
        path = str(tmp_path / "a.json")
        observer.register_callback(path)
        assert observer.register_callback(str(tmp_path / "b.json")) is observer
        assert observer.get_output_file_path() == path
        observer.start()
        observer.start()
        assert observer.is_running()
        ONE.neg()
        observer.stop()
        observer.stop()
        ONE.cos()
        observer.unregister_callback()
        observer.unregister_callback()
        observer.cleanup()
        assert Trace(path).names() == ["aten::neg"]
        assert not (tmp_path / "b.json").exists()
        assert observer.get_output_file_path() == path

    def test_paths(self, tmp_path):
        observer = ExecutionTraceObserver()
        with pytest.raises(FileNotFoundError):
            observer.register_callback(str(tmp_path / "no" / "trace.json"))
        for wrong in (None, 3, b"trace.json"):
            with pytest.raises(TypeError):
                observer.register_callback(wrong)
        assert not observer.is_registered
        assert list(tmp_path.iterdir()) == []

    def test_nothing_is_under_the_final_name_before_the_end(self, tmp_path):
        path = tmp_path / "trace.json"
        path.write_text("what was there")
        observer = ExecutionTraceObserver().register_callback(path)
        observer.start()
        for _ in range(1000):
            ONE.neg()
        assert path.read_text() == "what was there"
        observer.unregister_callback()
        assert len(Trace(path).names()) == 1000
        assert [p.name for p in tmp_path.iterdir()] == ["trace.json"]

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux's device that is always full")
    def test_a_full_disk_does_not_disturb_the_program(self, tmp_path):
        link = tmp_path / "trace.json"
        link.symlink_to("/dev/full")
        observer = ExecutionTraceObserver().register_callback(link)
        observer.start()
        for _ in range(1000):
            ONE.neg()
        with pytest.raises(OSError, match="could not be written") as error:
            observer.unregister_callback()
        assert error.value.errno == errno.ENOSPC
        assert not observer.is_registered
        ONE.neg()

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux's device that is always full")
    def test_a_full_disk_does_not_hide_the_users_exception(self, tmp_path):
        link = tmp_path / "trace.json"
        link.symlink_to("/dev/full")
        with (
            pytest.warns(UserWarning, match="could not be written"),
            pytest.raises(KeyError, match="mine"),
            profile(execution_trace_observer=ExecutionTraceObserver().register_callback(link)),
        ):
            raise KeyError("mine")

    def test_the_folder_vanishes(self, tmp_path):
        folder = tmp_path / "folder"
        folder.mkdir()
        observer = ExecutionTraceObserver().register_callback(folder / "trace.json")
        observer.start()
        ONE.neg()
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        with pytest.raises(OSError, match="could not be written"):
            observer.unregister_callback()
        assert not observer.is_registered

    def test_arguments_that_nobody_foresaw(self, traced):
        """What cannot be described must not keep an operator from running."""
        import numpy as np

        x = torch.ones(4)

        def work():
            assert x.sum(np.array(0)) == 4
            assert torch.full((2,), np.float32(2)).sum() == 4
            assert x.sum(np.int64(0)) == 4

        assert traced(work).named("aten::sum")


def run_python(source, folder):
    script = folder / "script.py"
    script.write_text(textwrap.dedent(source))
    environment = os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(torch.__file__))}
    return subprocess.run(
        [sys.executable, "-W", "error", str(script)], capture_output=True, text=True, cwd=folder, env=environment, timeout=120
    )


class TestProcesses:
    def test_the_end_of_a_program_completes_the_file(self, tmp_path):
        done = run_python(
            """
            import mindtorch_v2 as torch
            one = torch.ones(1)
            observer = torch.profiler.ExecutionTraceObserver().register_callback("trace.json")
            observer.start()
            torch.neg(one)
            """,
            tmp_path,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert Trace(tmp_path / "trace.json").names() == ["aten::neg"]

    def test_dropping_the_observer_completes_the_file(self, tmp_path):
        observer = ExecutionTraceObserver().register_callback(tmp_path / "trace.json")
        observer.start()
        ONE.neg()
        del observer
        gc.collect()
        assert Trace(tmp_path / "trace.json").names() == ["aten::neg"]

    def test_a_program_that_is_killed_leaves_nothing_under_the_name(self, tmp_path):
        done = run_python(
            """
            import os, signal
            import mindtorch_v2 as torch
            one = torch.ones(1)
            observer = torch.profiler.ExecutionTraceObserver().register_callback("trace.json")
            observer.start()
            torch.neg(one)
            os.kill(os.getpid(), signal.SIGKILL)
            """,
            tmp_path,
        )
        assert done.returncode != 0
        assert not (tmp_path / "trace.json").exists()

    @pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
    def test_a_forked_process_writes_nothing(self, tmp_path, name):
        done = run_python(
            f"""
            import os, sys
            import mindtorch_v2 as torch
            x = torch.ones(1)
            observer = torch.profiler.ExecutionTraceObserver().register_callback("{name}")
            observer.start()
            for _ in range(200):
                x.neg()
            child = os.fork()
            if child == 0:
                for _ in range(200):
                    x.cos()
                assert not observer.is_registered and not observer.is_running()
                observer.stop()
                observer.unregister_callback()
                mine = torch.profiler.ExecutionTraceObserver().register_callback("child.json")
                mine.start()
                x.sin()
                mine.unregister_callback()
                sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0
            x.exp()
            observer.unregister_callback()
            """,
            tmp_path,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert Trace(tmp_path / name).names() == [*["aten::neg"] * 200, "aten::exp"]
        assert Trace(tmp_path / "child.json").names() == ["aten::sin"]


class TestWithAProfiler:
    def numbers(self, prof, tmp_path):
        path = tmp_path / "chrome.json"
        prof.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
        return {e["args"]["Record function id"]: e["name"] for e in events if "Record function id" in e.get("args", {})}

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"record_shapes": True},
            {"with_stack": True},
            {"profile_memory": True},
            {"record_shapes": True, "with_stack": True, "profile_memory": True},
        ],
    )
    def test_numbers_are_those_of_the_trace(self, tmp_path, options):
        path = tmp_path / "et.json"
        w = torch.ones(2, 2, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)

        def other():
            with record_function("other thread"):
                (w @ w).sum().backward()

        with profile(execution_trace_observer=ExecutionTraceObserver().register_callback(path), **options) as prof:
            with record_function("mine"):
                (w @ w).sum().backward()
            optimizer.step()
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            with pytest.raises(RuntimeError):
                w @ torch.ones(3)
        trace = Trace(path)
        expected = {node["rf_id"]: node.name for node in trace.nodes if node.name not in (PROCESS, THREAD)}
        assert self.numbers(prof, tmp_path) == expected
        assert len(expected) > 30

    def test_numbers_survive_a_file_and_accumulation(self, tmp_path):
        path = tmp_path / "et.json"
        observer = ExecutionTraceObserver().register_callback(path)
        with profile(schedule=schedule(wait=0, warmup=1, active=1), acc_events=True, execution_trace_observer=observer) as prof:
            for _ in range(6):
                ONE.neg()
                prof.step()
        expected = {node["rf_id"]: node.name for node in Trace(path).nodes if node.name not in (PROCESS, THREAD)}
        assert self.numbers(prof, tmp_path) == expected
        prof.session.save(tmp_path / "session")
        loaded = torch.profiler.Session.load(tmp_path / "session")
        assert loaded.function_id.tolist() == prof.session.function_id.tolist() == sorted(expected)

    def test_without_an_observer_numbers_are_0(self, tmp_path):
        with profile() as prof:
            ONE.neg()
        assert self.numbers(prof, tmp_path) == {0: "aten::neg"}
        assert prof.session.function_id is None

    def test_an_observer_for_a_part_of_a_recording(self, tmp_path):
        observer = ExecutionTraceObserver().register_callback(tmp_path / "et.json")
        with profile() as prof:
            ONE.neg()
            observer.start()
            ONE.cos()
            observer.stop()
            ONE.neg()
        assert observer.is_registered
        observer.unregister_callback()
        trace = Trace(tmp_path / "et.json")
        assert trace.names() == ["aten::cos"]
        names = {label: prof.session.labels[label].name for label in prof.session.label.tolist()}
        found = [(names[label], number) for label, number in zip(prof.session.label.tolist(), prof.session.function_id.tolist())]
        assert found == [("aten::neg", 0), ("aten::cos", trace["aten::cos"]["rf_id"]), ("aten::neg", 0)]

    def test_schedules_pick_what_is_written(self, tmp_path):
        path = tmp_path / "et.json"
        observer = ExecutionTraceObserver().register_callback(path)
        with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2), execution_trace_observer=observer) as prof:
            for step in range(8):
                with record_function(f"s{step}"):
                    ONE.neg()
                prof.step()
        trace = Trace(path)
        steps = [2, 3, 6, 7]
        assert trace.names() == [n for i in steps for n in ("aten::neg", f"s{i}", f"ProfilerStep#{i}")]
        assert [trace.parent_of(trace[f"s{i}"]) for i in steps] == [f"ProfilerStep#{i}" for i in steps]
        assert len(trace.named(THREAD)) == 1

    def test_a_profiler_that_cannot_start_leaves_no_observer_running(self, tmp_path):
        observer = ExecutionTraceObserver().register_callback(tmp_path / "et.json")
        with profile(), pytest.raises(RuntimeError):
            profile(execution_trace_observer=observer).start()
        assert not observer.is_running()
        observer.unregister_callback()


class TestTheEnvironment:
    @pytest.fixture(autouse=True)
    def temporary(self, tmp_path, monkeypatch):
        import tempfile

        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def test_it_asks_for_nothing(self, monkeypatch):
        monkeypatch.delenv("ENABLE_PYTORCH_EXECUTION_TRACE", raising=False)
        assert ExecutionTraceObserver.build_execution_trace_obs_from_env() is None
        assert profile().execution_trace_observer is None

    def test_it_asks_for_a_trace(self, monkeypatch, tmp_path):
        monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", "1")
        with profile() as prof:
            ONE.neg()
        path = prof.execution_trace_observer.get_output_file_path()
        assert path.startswith(str(tmp_path))
        assert path.endswith(".et.json")
        assert Trace(path).names() == ["aten::neg"]
        assert prof.execution_trace_observer.get_resources_dir() is None

    def test_it_asks_for_a_folder_too(self, monkeypatch):
        monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", "1")
        monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS", "1")
        observer = ExecutionTraceObserver.build_execution_trace_obs_from_env()
        folder = observer.get_resources_dir()
        assert folder == observer.get_output_file_path().removesuffix(".json") + "_resources"
        assert os.path.isdir(folder)
        observer.unregister_callback()

    def test_two_profilers_may_be_made(self, monkeypatch):
        monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", "1")
        first = profile()
        with pytest.warns(UserWarning, match="is being written"):
            second = profile()
        assert second.execution_trace_observer is None
        first.execution_trace_observer.unregister_callback()

    def test_ranges_of_integers(self, monkeypatch, traced):
        monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE_SAVE_INTEGRAL_TENSOR_RANGE", "1")
        weight, indices = torch.ones(4, 3), torch.tensor([3, 1, 2])

        def work():
            torch.nn.functional.embedding(indices, weight)
            torch.cat([indices, -indices])
            indices[:0].neg()
            weight.neg()

        trace = traced(work)
        assert json.loads(trace["aten::embedding"]["tensor_range"]) == {"1": [1, 3]}
        assert json.loads(trace["aten::cat"]["tensor_range"]) == {"0": [1, 3], "1": [-3, -1]}
        assert [node["tensor_range"] for node in trace.named("aten::neg")][1:] == ["", ""]

    def test_contents_of_integers(self, monkeypatch, traced, tmp_path):
        import numpy as np

        monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE_SAVE_INTEGRAL_TENSOR_DATA", "aten::embedding,aten::other")
        weight, indices = torch.ones(4, 3), torch.tensor([3, 0, 1, 0, 2, 0])[::2]
        node = traced(lambda: torch.nn.functional.embedding(indices, weight))["aten::embedding"]
        file = tmp_path / "trace_resources" / f"nid_{node.id}_tid_1.dat"
        assert np.fromfile(file, np.int64).tolist() == [3, 1, 2]
        assert [p.name for p in file.parent.iterdir()] == [file.name]
        assert node["tensor_range"] == ""

    def test_folders_of_other_files(self, tmp_path):
        path = str(tmp_path / "trace.json")
        assert ExecutionTraceObserver.get_resources_dir_for_et_path(path) is None
        folder = str(tmp_path / "trace_resources")
        assert ExecutionTraceObserver.get_resources_dir_for_et_path(path, create_dir=True) == folder
        assert ExecutionTraceObserver.get_resources_dir_for_et_path(path) == folder
        with pytest.warns(UserWarning, match="cannot be made"):
            missing = ExecutionTraceObserver.get_resources_dir_for_et_path(str(tmp_path / "no" / "x.json"), create_dir=True)
        assert missing is None


def test_gzip(traced):
    assert traced(lambda: ONE.neg(), "trace.json.gz").names() == ["aten::neg"]
