"""Calls of modules as events, `nn.Module: Linear_0`, and what becomes of the modules."""

import asyncio
import gc
import os
import weakref

import pytest

from mindtorch_v2 import nn
from mindtorch_v2.profiler import ProfilerActivity, profile, record_function

from .networks import Calling, Net, calls, modules_of, recorded, x


class TestCalls:
    def test_each_call_is_an_event_with_the_number_of_the_instance(self):
        first, second = nn.Linear(4, 4), nn.Linear(4, 4)
        prof = recorded(lambda: (second(first(first(x()))), nn.functional.relu(x())))
        assert calls(prof) == ["Linear_0", "Linear_0", "Linear_1"]
        events = [e for e in prof.events() if e.name.startswith("nn.Module: ")]
        assert [e.python_module_id for e in events] == [0, 0, 1]
        assert {e["kind"] for e in events} == {"python_function"}
        assert all(e.is_python_function and not e.is_user_annotation for e in events)

    def test_operators_are_inside_of_their_modules(self):
        net = Net(1)
        prof = recorded(lambda: net(x()))
        linear = [e for e in prof.events() if e.name == "aten::linear"]
        assert [e.cpu_parent.name for e in linear] == ["nn.Module: Linear_0", "nn.Module: Linear_1", "nn.Module: Linear_2"]
        chain, event = [], linear[0]
        while event := event.cpu_parent:
            chain.append(event.name.removeprefix("nn.Module: "))
        assert chain == ["Linear_0", "Sequential_0", "Block_0", "Net_0"]

    def test_python_functions_are_not_recorded_for_it(self):
        prof = recorded(lambda: Net()(x()))
        assert all(e.name.startswith("nn.Module: ") for e in prof.events() if e["kind"] == "python_function")

    def test_with_stack_alone_has_the_events(self):
        net = Net()
        prof = recorded(lambda: net(x()), with_modules=False, with_stack=True)
        assert calls(prof) == calls(recorded(lambda: net(x())))
        linear = next(e for e in prof.events() if e.name == "aten::linear")
        assert "module" not in linear
        assert linear.module == linear.module_hierarchy == linear.phase == ""

    def test_with_stack_the_functions_of_a_module_are_inside_of_its_event(self):
        prof = recorded(lambda: Net(1)(x()), with_stack=True)
        forwards = [e for e in prof.events() if e.name.endswith(": forward") and "networks.py" in e.name]
        around = [e.cpu_parent.name for e in forwards]
        assert around == ["nn.Module: Net_0", "nn.Module: Block_0"]
        addmm = next(e for e in prof.events() if e.name == "aten::addmm")
        assert addmm["module"] == "Net.blocks.0.mlp.0"
        file, _, function = addmm["stack"][0].rsplit(":", 2)
        assert (file.endswith("linear.py"), function) == (True, "forward")
        assert not any("/module_calls.py" in place for place in addmm["stack"])

    def test_nothing_of_it_without_being_asked(self):
        prof = recorded(lambda: Net()(x()).sum().backward(), with_modules=False)
        assert calls(prof) == []
        for event in prof.events():
            assert not {"module", "module_hierarchy", "phase"} & set(event.keys())
            assert event.module == event.phase == ""

    def test_calling_is_as_before_when_it_is_over(self):
        before = nn.Module.__call__.__code__
        with profile(with_modules=True):
            assert nn.Module.__call__.__code__ is not before
        assert nn.Module.__call__.__code__ is before
        with pytest.raises(RuntimeError, match="stop"), profile(with_modules=True):
            raise RuntimeError("stop")
        assert nn.Module.__call__.__code__ is before

    def test_a_class_with_a_call_of_its_own(self):
        class Own(nn.Linear):
            def __call__(self, *args):
                return super().__call__(*args) + 1

        assert calls(recorded(lambda: Own(4, 4)(x()))) == ["Own_0"]

    def test_every_name_of_a_call(self):
        linear = nn.Linear(4, 4)
        assert calls(recorded(lambda: (linear._call_impl(x()), linear._wrapped_call_impl(x())))) == ["Linear_0"] * 2

    def test_forward_called_by_its_name_is_no_call_of_the_module(self):
        net = Calling(lambda self, x: self.inner.forward(x), inner=nn.Linear(4, 4))
        prof = recorded(lambda: net(x()))
        assert calls(prof) == ["Calling_0"]
        assert modules_of(prof, "aten::linear") == ["Calling"]

    def test_arguments_and_results_pass_as_they_are(self):
        net = Calling(lambda self, *args: args)
        net.forward = lambda *args, **kwargs: (args, kwargs)
        with profile(with_modules=True):
            assert net(1, module=3) == ((1,), {"module": 3})

    def test_hooks_run_inside(self):
        linear = nn.Linear(4, 4)
        linear.register_forward_pre_hook(lambda module, args: (args[0].neg(),))
        linear.register_forward_hook(lambda module, args, result: result.sin())
        prof = recorded(lambda: linear(x()))
        assert modules_of(prof, "aten::neg") == modules_of(prof, "aten::sin") == ["Linear"]

    def test_an_exception_closes_the_events_and_reaches_the_caller(self):
        def fail(self, x):
            self.inner(x)
            raise KeyError("mine")

        net = Calling(fail, inner=nn.ReLU())

        def work():
            with pytest.raises(KeyError, match="mine"):
                net(x())
            x().sin()
            nn.Tanh()(x())

        prof = recorded(work)
        assert calls(prof) == ["Calling_0", "ReLU_0", "Tanh_0"]
        assert modules_of(prof, "aten::sin") == [""]
        assert modules_of(prof, "aten::tanh") == ["Tanh"]

    def test_modules_are_not_kept_alive(self):
        with profile(with_modules=True) as prof:
            net = Net()
            net(x()).sum().backward()
            gone = [weakref.ref(net), weakref.ref(net.head), weakref.ref(net.head.weight)]
            del net
            gc.collect()
            assert [ref() for ref in gone] == [None] * 3
        assert "Net.head" in modules_of(prof, "aten::linear")

    def test_a_number_is_given_again_when_its_module_has_died(self):
        kept = nn.Linear(4, 4)

        def work():
            kept(x())
            for _ in range(3):
                nn.Linear(4, 4)(x())
            gc.collect()
            for _ in range(2):
                nn.Tanh()(x())

        prof = recorded(work)
        assert calls(prof) == ["Linear_0", *["Linear_1"] * 3, *["Tanh_0"] * 2]
        assert modules_of(prof, "aten::linear") == ["Linear", *["Linear_1"] * 3]

    def test_classes_of_one_name_are_told_apart(self):
        class Linear(nn.Module):
            def forward(self, x):
                return x.sin()

        mine, theirs = Linear(), nn.Linear(4, 4)
        prof = recorded(lambda: (mine(x()), theirs(x())))
        assert calls(prof) == ["Linear_0", "Linear_1"]
        assert modules_of(prof, "aten::sin") == ["Linear"]
        assert modules_of(prof, "aten::linear") == ["Linear_1"]

    def test_numbers_begin_anew_in_each_recording(self):
        first, second = Net(), Net()
        recorded(lambda: first(x()))
        assert calls(recorded(lambda: second(x())))[:3] == ["Net_0", "Block_0", "LayerNorm_0"]

    def test_stopped_inside_of_a_module(self):
        prof = profile(with_modules=True)
        net = Calling(lambda self, x: (self.inner(x), prof.stop(), self.inner(x)), inner=nn.ReLU())
        prof.start()
        net(x())
        assert calls(prof) == ["Calling_0", "ReLU_0"]
        assert modules_of(prof, "aten::relu") == ["Calling.inner"]
        session = prof.session
        assert session.end_ns.max() <= session.info.stopped_ns

    def test_started_inside_of_a_module(self):
        prof = profile(with_modules=True)
        net = Calling(lambda self, x: (self.inner(x), prof.start(), self.inner(x)), inner=nn.ReLU())
        net(x())
        prof.stop()
        assert calls(prof) == ["ReLU_0"]

    @pytest.mark.parametrize("options", [{"with_modules": True}, {"with_modules": True, "with_stack": True}])
    def test_a_pause(self, options):
        def work(self, x):
            prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
            self.a(x)
            prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
            self.b(x)

        net = Calling(work, a=nn.ReLU(), b=nn.Tanh())
        with profile(**options) as prof:
            net(x())
            prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
            net.a(x())
        assert calls(prof) == ["Calling_0", "Tanh_0"]
        assert modules_of(prof, "aten::tanh") == ["Calling.b"]

    def test_a_pause_with_stacks_alone(self):
        """Functions that run are ended by it and begin anew after it, and modules with them."""

        def work(self, x):
            prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
            self.a(x)
            prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
            self.b(x)

        net = Calling(work, a=nn.ReLU(), b=nn.Tanh())
        with profile(with_stack=True) as prof:
            net(x())
            net.b(x())
        assert calls(prof) == ["Calling_0", "Calling_0", "Tanh_0", "Tanh_0"]
        inner, outer = [e for e in prof.events() if e.name == "nn.Module: Tanh_0"]
        chain = []
        while inner := inner.cpu_parent:
            chain.append(inner.name)
        assert "nn.Module: Calling_0" in chain
        assert not outer.cpu_parent.name.startswith("nn.Module")

    def test_someone_else_who_changes_how_modules_are_called(self):
        seen = []
        prof = profile(with_modules=True)
        prof.start()
        ours = nn.Module.__call__

        def theirs(self, *args):
            seen.append(type(self).__name__)
            return ours(self, *args)

        nn.Module.__call__ = theirs
        try:
            nn.ReLU()(x())
            prof.stop()
            assert nn.Module.__call__ is theirs
            nn.Tanh()(x())
        finally:
            nn.Module.__call__ = nn.Module._call_impl
        assert calls(prof) == ["ReLU_0"]
        assert seen == ["ReLU", "Tanh"]

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is POSIX's")
    @pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    def test_a_forked_process_calls_as_without(self):
        plain, linear = nn.Module.__call__.__code__, nn.Linear(4, 4)
        with profile(with_modules=True) as prof:
            child = os.fork()
            if child == 0:
                linear(x())
                os._exit(0 if nn.Module.__call__.__code__ is plain else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            linear(x())
        assert calls(prof) == ["Linear_0"]

    def test_tasks_of_asyncio(self):
        a, b = nn.Sequential(nn.ReLU()), nn.Sequential(nn.Tanh())

        async def job(net):
            with record_function("job"):
                net(x())
                await asyncio.sleep(0)
                net(x())

        async def jobs():
            await asyncio.gather(job(a), job(b))

        prof = recorded(lambda: asyncio.run(jobs()))
        around = [e.cpu_parent.cpu_parent.cpu_parent.name for e in prof.events() if e.name in ("aten::relu", "aten::tanh")]
        assert around == ["job"] * 4
        assert modules_of(prof, "aten::relu") == ["Sequential.0"] * 2
        assert modules_of(prof, "aten::tanh") == ["Sequential_1.0"] * 2

    def test_a_module_that_was_never_initialised_fails_as_it_does_without(self):
        class Broken(nn.Module):
            def __init__(self):
                pass

        def error():
            with pytest.raises(AttributeError) as raised:
                Broken()(x())
            return str(raised.value)

        without = error()
        with profile(with_modules=True):
            assert error() == without
