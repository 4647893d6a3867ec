"""What is around what in execution traces: backward nodes, scopes, tasks and threads."""

import asyncio
import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ExecutionTraceObserver, record_function

from .execution_traces import ONE, THREAD, Trace


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
