"""`with_modules`: which module every operator belongs to, forward and backward."""

import json
import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.profiler import ProfilerActivity, Session, _ExperimentalConfig, profile, record_function, schedule, validate
from mindtorch_v2.profiler.model.grouping import GroupBy
from mindtorch_v2.profiler.model.module_times import ModuleTimes
from mindtorch_v2.profiler.model.modules import attribute, hierarchy, path
from mindtorch_v2.profiler.model.session import BACKWARD_FUNCTION, Info, Label, ModulePart, Track
from mindtorch_v2.profiler.output.event_list import EventList

from .by_hand import Event, kernel, op, record, runtime, scope
from .networks import Block, Calling, Net, calls, modules_of, recorded, x

EVALUATE = "autograd::engine::evaluate_function: "


class TestForward:
    def test_names_lead_from_the_network_to_the_module(self):
        prof = recorded(lambda: Net()(x()))
        blocks = [f"Net.blocks.{i}.mlp.{j}" for i in range(2) for j in (0, 2)]
        assert modules_of(prof, "aten::linear") == modules_of(prof, "aten::addmm") == [*blocks, "Net.head"]
        assert modules_of(prof, "aten::add") == ["Net.blocks.0", "Net.blocks.1"]
        assert {e["phase"] for e in prof.events() if e["kind"] == "op" and e["module"]} == {"forward"}

    def test_the_hierarchy_has_the_classes_too(self):
        prof = recorded(lambda: Net()(x()))
        gelu = next(e for e in prof.events() if e.name == "aten::gelu")
        assert gelu.module == "Net.blocks.0.mlp.1"
        assert gelu.module_hierarchy == gelu["module_hierarchy"]
        assert gelu["module_hierarchy"] == ("TOP(Net)::forward.blocks.0(Block)::forward.mlp(Sequential)::forward.1(GELU)::forward.")

    def test_what_is_in_no_module(self):
        prof = recorded(lambda: (x().sin(), nn.Linear(4, 4)(x()).cos()))
        event = next(e for e in prof.events() if e.name == "aten::cos")
        assert (event["module"], event["module_hierarchy"], event["phase"]) == ("", "", "")

    def test_scopes_belong_to_modules_too(self):
        def forward(self, x):
            with record_function("attention"):
                return x.sin()

        prof = recorded(lambda: Calling(forward)(x()))
        assert modules_of(prof, "attention") == modules_of(prof, "aten::sin") == ["Calling"]

    def test_a_module_in_two_places(self):
        shared = nn.Linear(4, 4)
        net = Calling(lambda self, x: self.b(self.a(x)), a=nn.Sequential(shared), b=nn.Sequential(nn.ReLU(), shared))
        prof = recorded(lambda: net(x()))
        assert [n for n in calls(prof) if n.startswith("Linear")] == ["Linear_0"] * 2
        assert modules_of(prof, "aten::linear") == ["Calling.a.0", "Calling.b.1"]

    def test_a_module_under_two_names_of_one_has_the_first(self):
        shared = nn.ReLU()
        net = Calling(lambda self, x: self.b(self.a(x)), a=shared, b=shared)
        assert modules_of(recorded(lambda: net(x())), "aten::relu") == ["Calling.a"] * 2

    def test_its_own_name_goes_before_one_further_down(self):
        shared = nn.ReLU()
        net = Calling(lambda self, x: self.direct(x), holder=nn.ModuleList([shared]), direct=shared)
        assert modules_of(recorded(lambda: net(x())), "aten::relu") == ["Calling.direct"]

    def test_deep_in_containers_that_are_not_called(self):
        inner = nn.ModuleDict({"left": nn.ModuleList([nn.ModuleDict({"act": nn.ReLU()})])})
        net = Calling(lambda self, x: self.parts["left"][0]["act"](x), parts=inner)
        assert modules_of(recorded(lambda: net(x())), "aten::relu") == ["Calling.parts.left.0.act"]

    def test_recursion_is_one_module(self):
        net = Calling(lambda self, x, n: self.act(self(x, n - 1) if n else x), act=nn.ReLU())
        prof = recorded(lambda: net(x(), 3))
        assert calls(prof).count("Calling_0") == 4
        assert set(modules_of(prof, "aten::relu")) == {"Calling.act"}
        (row,) = [row for row in prof.by_module() if row.module == "Calling"]
        assert row.calls == 4

    def test_a_module_that_its_caller_does_not_hold(self):
        elsewhere = nn.Sequential(nn.ReLU())
        net = Calling(lambda self, x: elsewhere(x))
        prof = recorded(lambda: net(x()))
        assert modules_of(prof, "aten::relu") == ["Sequential.0"]

    def test_a_module_that_the_callers_caller_holds(self):
        act = nn.ReLU()
        net = Calling(lambda self, x: self.block(x), block=Calling(lambda self, x: act(x)), act=act)
        assert modules_of(recorded(lambda: net(x())), "aten::relu") == ["Calling.act"]

    def test_a_part_of_a_network_that_was_called_before(self):
        net = Net()
        prof = recorded(lambda: (net(x()), net.blocks[1].mlp(x())))
        assert modules_of(prof, "aten::gelu") == ["Net.blocks.0.mlp.1", "Net.blocks.1.mlp.1", "Net.blocks.1.mlp.1"]

    def test_a_part_that_the_network_did_not_call(self):
        net = Calling(lambda self, x: x.sin(), parts=nn.ModuleList([nn.ReLU()]))
        prof = recorded(lambda: (net(x()), net.parts[0](x())))
        assert modules_of(prof, "aten::relu") == ["Calling.parts.0"]

    def test_a_part_that_was_replaced(self):
        net = Net(1)

        def work():
            net(x())
            net.blocks[0] = nn.Tanh()
            net.head = nn.Sequential(nn.Linear(4, 2))
            net(x())

        prof = recorded(work)
        assert modules_of(prof, "aten::tanh") == ["Net.blocks.0"]
        assert modules_of(prof, "aten::linear")[-1] == "Net.head.0"

    def test_two_networks_of_one_class(self):
        teacher, student = Net(), Net(1)
        prof = recorded(lambda: (teacher(x()), student(x()), teacher(x())))
        heads = [m for m in modules_of(prof, "aten::linear") if m.endswith("head")]
        assert heads == ["Net.head", "Net_1.head", "Net.head"]

    def test_one_module_on_several_threads(self):
        net = Net()
        net(x())
        barrier = threading.Barrier(4)

        def work():
            barrier.wait()
            for _ in range(20):
                net(x())

        def run():
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        prof = recorded(run)
        assert calls(prof).count("Net_0") == 80
        assert set(calls(prof)) == {"Net_0", "Block_0", "Block_1", "LayerNorm_0", "LayerNorm_1", "Sequential_0", "Sequential_1"} | {
            "GELU_0", "GELU_1", "Linear_0", "Linear_1", "Linear_2", "Linear_3", "Linear_4"
        }  # fmt: skip
        wanted = ["Net.blocks.0.mlp.0", "Net.blocks.0.mlp.2", "Net.blocks.1.mlp.0", "Net.blocks.1.mlp.2", "Net.head"]
        assert sorted(modules_of(prof, "aten::linear")) == sorted(wanted * 80)

    def test_parts_that_a_network_runs_on_threads_of_its_own(self):
        def forward(self, x):
            threads = [threading.Thread(target=module, args=(x,)) for module in (self.a, self.b)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        net = Calling(forward, a=nn.ReLU(), b=nn.Tanh())
        prof = recorded(lambda: net(x()))
        assert modules_of(prof, "aten::relu") == ["Calling.a"]
        assert modules_of(prof, "aten::tanh") == ["Calling.b"]


class Recomputed(torch.autograd.Function):
    """A module's result whose computation is done once more in the backward pass."""

    @staticmethod
    def forward(ctx, module, x):
        ctx.module = module
        ctx.save_for_backward(x)
        with torch.no_grad():
            return module(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            result = ctx.module(x)
        torch.autograd.backward(result, grad)
        return None, x.grad


class TestBackward:
    def test_nodes_and_what_they_call_belong_to_the_module_that_made_them(self):
        net = Net()
        prof = recorded(lambda: net(x()).sum().backward())
        backward = [e for e in prof.events() if e["phase"] == "backward"]
        nodes = [e["module"] for e in backward if e.name == "AddmmBackward0"]
        wanted = ["Net.head", "Net.blocks.1.mlp.2", "Net.blocks.1.mlp.0", "Net.blocks.0.mlp.2", "Net.blocks.0.mlp.0"]
        assert nodes == wanted
        assert [e["module"] for e in backward if e.name == EVALUATE + "AddmmBackward0"] == wanted
        assert {e["module"] for e in backward if e.name == "aten::mm"} == set(wanted)
        assert [e["module"] for e in backward if e.name == "GeluBackward0"] == ["Net.blocks.1.mlp.1", "Net.blocks.0.mlp.1"]
        assert [e["module"] for e in backward if e.name == "SumBackward0"] == [""]

    def test_gradients_are_added_up_for_the_module_that_has_the_parameter(self):
        net = Net(1)
        prof = recorded(lambda: net(x()).sum().backward())
        found = modules_of(prof, "torch::autograd::AccumulateGrad")
        assert sorted(found) == sorted(
            [m for m in ("Net.head", "Net.blocks.0.mlp.0", "Net.blocks.0.mlp.2", "Net.blocks.0.norm") for _ in "wb"]
        )
        assert modules_of(prof, EVALUATE + "torch::autograd::AccumulateGrad") == found

    @pytest.mark.parametrize("memory", [False, True])
    @pytest.mark.parametrize("shapes", [False, True])
    @pytest.mark.parametrize("stacks", [False, True])
    def test_other_wishes_make_no_difference(self, memory, shapes, stacks):
        def found(**options):
            prof = recorded(lambda: net(x()).sum().backward(), **options)
            return [(e.name, e.module, e.phase) for e in prof.events() if e["kind"] == "op"]

        net = Net(1)
        net(x()).sum().backward()  # gradients are there from now on, and are added to
        plain = found()
        assert ("torch::autograd::AccumulateGrad", "Net.head", "backward") in plain
        assert found(profile_memory=memory, record_shapes=shapes, with_stack=stacks) == plain

    def test_a_parameter_of_a_module_that_is_not_called(self):
        net = Calling(lambda self, x: x @ self.table.weight, table=nn.Linear(2, 4))
        prof = recorded(lambda: net(x()).sum().backward())
        assert modules_of(prof, "torch::autograd::AccumulateGrad") == ["Calling.table"]
        assert set(modules_of(prof, "MmBackward0")) == {"Calling"}

    def test_the_gradient_of_a_tensor_of_no_module(self):
        leaf = x().requires_grad_()
        prof = recorded(lambda: nn.ReLU()(leaf).sum().backward())
        assert modules_of(prof, "torch::autograd::AccumulateGrad") == [""]
        assert modules_of(prof, "ReluBackward0") == ["ReLU"]

    def test_a_module_called_twice_is_left_twice(self):
        shared = nn.Linear(4, 4)
        net = Calling(lambda self, x: self.b(self.a(x)), a=nn.Sequential(shared), b=nn.Sequential(shared))
        prof = recorded(lambda: net(x()).sum().backward())
        assert modules_of(prof, "AddmmBackward0") == ["Calling.b.0", "Calling.a.0"]

    def test_a_forward_pass_before_the_recording(self):
        net = Net()
        loss = net(x()).sum()
        prof = recorded(lambda: loss.backward())
        assert {e["module"] for e in prof.events()} == {""}
        assert {e["phase"] for e in prof.events() if e.name.startswith(EVALUATE)} == {"backward"}

    def test_an_optimizer_belongs_to_no_module(self):
        net = nn.Linear(4, 4)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

        def step(self, x):
            self.inner(x).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            return x.sin()

        prof = recorded(lambda: Calling(step, inner=net)(x()))
        inside = [e for e in prof.events() if e.cpu_parent is not None and e.cpu_parent.name.startswith("Optimizer.step")]
        assert inside
        assert {(e["module"], e["phase"]) for e in inside} == {("", "")}
        assert modules_of(prof, "Optimizer.step#SGD.step") == [""]
        assert modules_of(prof, "aten::sin") == ["Calling"]
        assert modules_of(prof, "AddmmBackward0") == ["Calling.inner"]

    def test_a_backward_pass_inside_of_another_module(self):
        net = Net(1)
        loss = net(x())

        def outer(self, x):
            net(x).sum().backward()
            loss.sum().backward()

        prof = recorded(lambda: Calling(outer)(x()))
        # the first is known; of the second, only that it ran inside
        assert modules_of(prof, "GeluBackward0") == ["Net.blocks.0.mlp.1", "Calling"]

    def test_second_derivatives(self):
        net = Calling(lambda self, x: self.act(x), act=nn.Tanh())

        def work():
            t = x().requires_grad_()
            (grad,) = torch.autograd.grad(net(t).sum(), t, create_graph=True)
            grad.sum().backward()

        prof = recorded(work)
        assert set(modules_of(prof, "TanhBackward0")) == {"Calling.act"}
        assert modules_of(prof, "TanhBackwardBackward0") == ["Calling.act"]
        assert set(modules_of(prof, "aten::tanh_backward")) == {"Calling.act"}

    def test_what_is_computed_again_in_the_backward_pass(self):
        net = Calling(lambda self, x: Recomputed.apply(self.block, x), block=Block())
        t = x().requires_grad_()
        prof = recorded(lambda: net(t).sum().backward())
        gelu = [(e["module"], e["phase"]) for e in prof.events() if e.name == "aten::gelu"]
        assert gelu == [("Calling.block.mlp.1", "forward"), ("Calling.block.mlp.1", "backward")]
        assert modules_of(prof, "GeluBackward0") == ["Calling.block.mlp.1"]
        (row,) = [row for row in prof.by_module() if row.module == "Calling.block"]
        assert row.calls == 2

    def test_hooks_of_tensors_and_modules(self):
        net = Net(1)
        net.head.weight.register_hook(lambda grad: grad.sin())
        net.blocks[0].mlp.register_full_backward_hook(lambda module, inputs, outputs: (inputs[0].cos(),))
        prof = recorded(lambda: net(x()).sum().backward())
        assert modules_of(prof, "aten::sin") == ["Net.head"]
        assert modules_of(prof, "aten::cos") == ["Net.blocks.0.mlp"]


def parts(*names):
    return tuple(ModulePart(*name.split(":")) for name in names)


NET, A, B = parts("Net:Net"), parts("Net:Net", "a:Linear"), parts("Net:Net", "b:Linear")


def call(name, place, start, end, *children, **facts):
    return Event(Label(f"nn.Module: {name}", "python_function", module=place), start, end, children, **facts)


def node(name, start, end, *children, sequence):
    inner = Event(Label(name, scope=BACKWARD_FUNCTION), start + 1, end - 1, children, sequence=sequence)
    return op(EVALUATE + name, start, end, inner, sequence=sequence)


def step_by_hand(**info):
    a = call("Linear_0", A, 1_000, 5_000, op("aten::mm", 2_000, 4_000, sequence=1))
    b = call("Linear_1", B, 6_000, 9_000, op("aten::mm", 7_000, 8_000, sequence=2))
    events = [
        call("Net_0", NET, 0, 10_000, a, b),
        op("aten::sum", 11_000, 12_000, sequence=3),
        node("SumBackward0", 20_000, 21_000, sequence=3),
        node("MmBackward0", 22_000, 25_000, op("aten::mm", 23_000, 24_000), sequence=2),
        node("MmBackward0", 26_000, 32_000, op("aten::mm", 27_000, 31_000), sequence=1),
        scope("Optimizer.step#SGD.step", 40_000, 45_000, op("aten::mm", 41_000, 44_000)),
    ]
    return record(events, info=Info(stopped_ns=50_000, with_modules=True, **info))


class TestByHand:
    def test_paths_and_hierarchies(self):
        place = parts("GPT:GPT", "blocks.0:Block", "mlp:Sequential")
        assert path(place) == "GPT.blocks.0.mlp"
        assert hierarchy(place) == "TOP(GPT)::forward.blocks.0(Block)::forward.mlp(Sequential)::forward."
        assert path(()) == hierarchy(()) == ""

    def test_modules_and_phases(self):
        events = EventList.of(step_by_hand())
        assert [(e.module, e.phase) for e in events if e.name == "aten::mm"] == [
            ("Net.a", "forward"),
            ("Net.b", "forward"),
            ("Net.b", "backward"),
            ("Net.a", "backward"),
            ("", ""),
        ]
        assert [(e.module, e.phase) for e in events if e.name == "aten::sum"] == [("", "")]
        assert [(e.module, e.phase) for e in events if e.name == "SumBackward0"] == [("", "backward")]

    def test_times_of_modules(self):
        times = ModuleTimes.of(step_by_hand())
        # (module, class, calls, self forward, self backward, forward, backward)
        assert [tuple(row) for row in times] == [
            ("Net", "Net", 1, 3.0, 0.0, 10.0, 9.0),
            ("Net.a", "Linear", 1, 4.0, 6.0, 4.0, 6.0),
            ("Net.b", "Linear", 1, 3.0, 3.0, 3.0, 3.0),
        ]
        assert [row.total_us for row in times] == [19.0, 10.0, 6.0]
        assert times.recorded_us == 10 + 1 + 1 + 3 + 6 + 5

    def test_the_table_of_times(self):
        times = ModuleTimes.of(step_by_hand())
        lines = str(times).splitlines()
        assert lines[1].split() == "Module Class Calls Self forward Self backward Forward Backward Total Total %".split()
        assert lines[3].split() == ["Net", "Net", "1", "3.000us", "0.000us", "10.000us", "9.000us", "19.000us", "73.08%"]
        assert lines[-1] == "All events: 26.000us"
        first = [line.split()[0] for line in times.table(sort_by="self_backward_us", row_limit=2).splitlines()[3:5]]
        assert first == ["Net.a", "Net.b"]
        assert times.table(row_limit=1).count("Linear") == 0

    def test_kernels_belong_to_the_module_of_their_operator(self):
        launch = op("aten::mm", 20, 40, runtime("launch", 22, 24, correlation=1))
        events = [call("Net_0", NET, 0, 90, launch), kernel("MatMul", 50, 80, stream=7, correlation=1)]
        tracks = [Track(1, 1, "main"), Track(7, 7, "", "NPU", 0)]
        session = record(events, tracks=tracks, info=Info(stopped_ns=100, with_modules=True))
        module, phase, modules = attribute(session)
        assert [modules[i] for i in module.tolist()] == [NET] * 4
        assert set(phase.tolist()) == {1}

    def test_an_empty_recording(self):
        session = record([], info=Info(with_modules=True))
        assert list(ModuleTimes.of(session)) == []
        assert "All events: 0.000us" in str(ModuleTimes.of(session))


class TestGrouping:
    def test_a_row_for_each_name_module_and_phase(self):
        rows = EventList.averages_of(step_by_hand(), GroupBy(modules=True))
        found = {(r.module, r.phase): (r.count, r.self_cpu_time_total) for r in rows if r.key == "aten::mm"}
        assert found == {
            ("Net.a", "forward"): (1, 2.0),
            ("Net.b", "forward"): (1, 1.0),
            ("Net.b", "backward"): (1, 1.0),
            ("Net.a", "backward"): (1, 4.0),
            ("", ""): (1, 3.0),
        }

    def test_sums_are_those_of_the_ungrouped_rows(self):
        net = Net()
        prof = recorded(lambda: net(x()).sum().backward(), record_shapes=True)
        plain = prof.key_averages()
        for options in ({}, {"group_by_input_shape": True}):
            grouped = prof.key_averages(group_by_module=True, **options)
            assert len(grouped) > len(plain)
            for row in plain:
                same = [r for r in grouped if r.key == row.key]
                assert sum(r.count for r in same) == row.count
                assert sum(r.self_cpu_time_total for r in same) == pytest.approx(row.self_cpu_time_total, abs=1e-6)
        assert all(row.module == row.phase == "" for row in plain)
        times = prof.by_module()
        modules = [r for r in prof.key_averages(group_by_module=True) if r.module]
        assert sum(r.self_cpu_time_total for r in modules) == pytest.approx(
            sum(t.self_forward_us + t.self_backward_us for t in times)
        )
        assert times[0].total_us == pytest.approx(sum(r.self_cpu_time_total for r in modules))

    def test_the_list_of_events_gives_the_same_rows(self):
        def facts(rows):
            return [(r.key, r.module, r.phase, r.count, r.cpu_time_total, r.self_cpu_time_total) for r in rows]

        session = step_by_hand()
        straight = facts(EventList.averages_of(session, GroupBy(modules=True)))
        events = EventList.of(session)
        assert facts(events.key_averages(group_by_module=True)) == straight
        events[0].is_async = False
        events[0].someone = "wrote to it"  # read one by one from now on
        events[-1].flops = 1
        assert facts(events.key_averages(group_by_module=True)) == straight

    def test_the_table_shows_modules_and_phases(self):
        session = step_by_hand()
        table = EventList.averages_of(session, GroupBy(modules=True)).table()
        assert table.splitlines()[1].split()[:3] == ["Name", "Module", "Phase"]
        assert [line.split()[:3] for line in table.splitlines() if "MmBackward0  " in line and "evaluate" not in line] == [
            ["MmBackward0", "Net.b", "backward"],
            ["MmBackward0", "Net.a", "backward"],
        ]
        assert "Module" not in EventList.averages_of(session).table().splitlines()[1].split()
        assert "Module" in EventList.of(session).table().splitlines()[1].split()

    def test_of_a_long_path_the_end_is_shown(self):
        place = parts("Net:Net", "x" * 80 + ".last:Linear")
        session = record([call("Linear_0", place, 0, 10)], info=Info(with_modules=True))
        row = EventList.averages_of(session, GroupBy(modules=True)).table().splitlines()[3]
        assert "...xxx" in row
        assert "x.last " in row

    def test_needs_modules(self):
        prof = recorded(lambda: Net()(x()), with_modules=False)
        for ask in (prof.key_averages, prof.events().key_averages):
            with pytest.warns(UserWarning, match=r"profile\(with_modules=True\)"):
                rows = ask(group_by_module=True)
            assert {row.module for row in rows} == {""}
        with pytest.raises(ValueError, match=r"profile\(with_modules=True\)"):
            prof.by_module()
        with pytest.raises(AssertionError, match="times of modules"):
            profile(with_modules=True).by_module()

    def test_of_the_older_profiler(self):
        with torch.autograd.profiler.profile(with_modules=True) as prof:
            Net()(x())
        assert "Net.head" in {row.module for row in prof.key_averages(group_by_module=True)}


class TestOutput:
    def rows(self, prof, tmp_path):
        file = tmp_path / "trace.json"
        prof.export_chrome_trace(str(file))
        assert validate(file) == []
        trace = json.loads(file.read_text())
        return trace, [row for row in trace["traceEvents"] if row["ph"] == "X"]

    def test_the_trace(self, tmp_path):
        net = Net()
        trace, rows = self.rows(recorded(lambda: net(x()).sum().backward()), tmp_path)
        assert trace["with_modules"] == 1
        calls = [row for row in rows if row["name"].startswith("nn.Module: ")]
        assert {row["cat"] for row in calls} == {"python_function"}
        assert [(r["name"], r["args"]["Python module id"]) for r in calls[:3]] == [
            ("nn.Module: Net_0", 0),
            ("nn.Module: Block_0", 0),
            ("nn.Module: LayerNorm_0", 0),
        ]
        assert [r["args"]["Python parent id"] for r in calls[:3]] == [
            None,
            calls[0]["args"]["Python id"],
            calls[1]["args"]["Python id"],
        ]
        (head,) = [r["args"] for r in rows if r["name"] == "aten::linear" and r["args"]["module"] == "Net.head"]
        assert head["Module Hierarchy"] == "TOP(Net)::forward.head(Linear)::forward."
        assert head["phase"] == "forward"
        back = [r["args"] for r in rows if r["name"] == "AddmmBackward0"]
        assert [(a["module"], a["phase"]) for a in back][:2] == [("Net.head", "backward"), ("Net.blocks.1.mlp.2", "backward")]
        (loss,) = [r["args"] for r in rows if r["name"] == "aten::sum" and "module" not in r["args"]]
        assert "Module Hierarchy" not in loss

    def test_a_trace_without(self, tmp_path):
        trace, rows = self.rows(recorded(lambda: Net()(x()), with_modules=False, with_stack=True), tmp_path)
        assert "with_modules" not in trace
        assert not any({"Module Hierarchy", "module", "phase"} & row["args"].keys() for row in rows)

    def test_saved_and_loaded(self, tmp_path):
        prof = recorded(lambda: Net()(x()).sum().backward())
        prof.session.save(tmp_path / "s.npz")
        loaded = Session.load(tmp_path / "s.npz")
        assert [(e.module, e.phase) for e in EventList.of(loaded)] == [(e.module, e.phase) for e in prof.events()]
        assert loaded.labels == prof.session.labels
        assert str(ModuleTimes.of(loaded)) == str(prof.by_module())

    def test_several_cycles_in_one(self):
        net = Net(1)
        with profile(with_modules=True, acc_events=True, schedule=schedule(wait=1, warmup=1, active=1, repeat=2)) as prof:
            for _ in range(6):
                net(x()).sum().backward()
                prof.step()
        rows = {row.module: row.calls for row in prof.by_module()}
        assert rows["Net"] == rows["Net.blocks.0.mlp"] == 2
        assert modules_of(prof, "GeluBackward0") == ["Net.blocks.0.mlp.1"] * 2

    def test_kineto_results(self):
        prof = recorded(lambda: Net(1)(x()))
        found = {e.name(): e.module_hierarchy() for e in prof.profiler.kineto_results.events()}
        assert found["aten::gelu"] == "TOP(Net)::forward.blocks.0(Block)::forward.mlp(Sequential)::forward.1(GELU)::forward."

    def test_filters_leave_modules_in(self):
        activities = [{ProfilerActivity.CPU: ["CPU_OP"]}]
        prof = recorded(lambda: Net(1)(x()), activities=activities, with_stack=True)
        assert {e["kind"] for e in prof.events() if not e.name.startswith("nn.Module: ")} == {"op"}
        assert modules_of(prof, "aten::gelu") == ["Net.blocks.0.mlp.1"]

    def test_only_the_thread_that_started(self):
        net = Net(1)
        with profile(with_modules=True, experimental_config=_ExperimentalConfig(profile_all_threads=False)) as prof:
            thread = threading.Thread(target=net, args=(x(),))
            thread.start()
            thread.join()
            net.head(x())
        assert modules_of(prof, "aten::linear") == ["Net.head"]
