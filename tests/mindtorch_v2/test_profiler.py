"""The profiler's public contract: one sentence, one test that says it."""

import asyncio
import dis
import gc
import gzip
import itertools
import json
import re
import threading
import tracemalloc
import weakref
from pathlib import Path

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import dispatcher, keys, registry
from mindtorch_v2._storage import UntypedStorage
from mindtorch_v2.profiler import (
    ProfilerActivity,
    _ExperimentalConfig,
    profile,
    record_function,
    schedule,
    tensorboard_trace_handler,
    validate,
)
from mindtorch_v2.profiler.model.session import Session
from mindtorch_v2.profiler.output.event_list import EventList

ALWAYS = ["name", "kind", "device_type", "start_ns", "end_ns", "duration_ns", "step", "thread_id"]
CORRELATION = ["correlation_id", "runtime_name", "runtime_tid"]
EVALUATE = "autograd::engine::evaluate_function: "


def names(prof, kind=None):
    return [e["name"] for e in prof.events() if kind in (None, e["kind"])]


def event(prof, name):
    (found,) = [e for e in prof.events() if e["name"] == name]
    return found


def train(steps=1, *, prof=None):
    """Forward, backward and an optimizer's step of a small model."""
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        model(torch.ones(4, 3)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if prof is not None:
            prof.step()


def trace_of(prof, tmp_path, name="trace.json"):
    path = tmp_path / name
    prof.export_chrome_trace(str(path))
    assert validate(path) == []
    return json.loads(path.read_text())


def slices(trace, **wanted):
    return [r for r in trace["traceEvents"] if r["ph"] == "X" and all(r.get(k) == v for k, v in wanted.items())]


def record_one_op(**options):
    x = torch.ones(2, 3)
    with profile(**options) as prof:
        torch.add(x, x)
    return prof


class TestSessions:
    def test_a_with_block_records(self):
        assert names(record_one_op()) == ["aten::add"]

    def test_start_and_stop_record_too(self):
        prof, x = profile(), torch.ones(2)
        x + x
        prof.start()
        x * x
        prof.stop()
        x - x
        assert names(prof) == ["aten::mul"]

    def test_steps_count_from_0_and_step_moves_to_the_next(self):
        x = torch.ones(2)
        with profile() as prof:
            assert prof.step_num == 0
            x + x
            prof.step()
            assert prof.step_num == 1
            x * x
        assert [(e["name"], e["step"]) for e in prof.events()] == [("aten::add", 0), ("aten::mul", 1)]

    def test_events_are_a_list_of_function_events_ordered_by_start(self):
        with profile() as prof:
            train()
        events = prof.events()
        assert isinstance(events, list)
        assert type(events) is torch.autograd.profiler.EventList
        assert all(isinstance(e, torch.autograd.profiler.FunctionEvent) for e in events)
        starts = [e["start_ns"] for e in events]
        assert starts == sorted(starts)

    def test_an_event_has_torchs_attributes(self):
        (e,) = record_one_op(record_shapes=True).events()
        assert (e.name, e.key, e.count, e.is_async, e.scope, e.input_shapes) == (
            "aten::add",
            "aten::add",
            1,
            False,
            0,
            [[2, 3], [2, 3], []],
        )
        assert round(e.time_range.elapsed_us(), 3) == e.cpu_time_total == e.self_cpu_time_total == e["duration_ns"] / 1000
        assert e.cpu_children == []
        assert e.cpu_parent is None
        assert e.device_type == torch.profiler.DeviceType.CPU

    def test_an_event_reads_like_a_mapping(self):
        (e,) = record_one_op().events()
        assert e["name"] == "aten::add"
        assert "name" in e
        assert "stack" not in e
        assert e.get("stack") is None
        assert e.get("stack", 5) == 5
        assert dict(e) == dict(e.items()) == dict(zip(e.keys(), e.values(), strict=True))
        assert list(e) == list(e.keys())
        with pytest.raises(KeyError, match="stack"):
            e["stack"]

    def test_rows_of_key_averages_have_attributes_only(self):
        (row,) = record_one_op().key_averages()
        assert (row.key, row.count) == ("aten::add", 1)
        with pytest.raises(TypeError):
            row["key"]

    def test_keys_that_are_always_there(self):
        with profile() as prof, record_function("mine"):
            train()
        for e in prof.events():
            assert set(ALWAYS) <= set(e.keys())
            assert e["device_type"] == "CPU"
            assert e["duration_ns"] == e["end_ns"] - e["start_ns"] >= 0
            assert e["thread_id"] == threading.get_native_id()

    def test_operators_and_nodes_are_ops_and_the_rest_are_scopes(self):
        with profile(schedule=schedule(wait=0, warmup=1, active=1)) as prof:
            prof.step()
            with record_function("mine"):
                train()
            prof.step()
        kind = {e["name"]: e["kind"] for e in prof.events()}
        for name in (
            "aten::linear",
            "aten::addmm",
            "AddmmBackward0",
            EVALUATE + "AddmmBackward0",
            "torch::autograd::AccumulateGrad",
        ):
            assert kind[name] == "op"
        for name in ("mine", "ProfilerStep#1", "Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad"):
            assert kind[name] == "scope"
        assert set(kind.values()) == {"op", "scope"}

    def test_an_operator_of_the_users_own_is_an_op_joined_to_its_node(self):
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, factor):
                return x * factor

            @staticmethod
            def backward(ctx, grad):
                return grad * 2, None

        x = torch.ones(2, 3, requires_grad=True)
        with profile(record_shapes=True) as prof:
            Double.apply(x, 2).sum().backward()
        forward, node = event(prof, "Double"), event(prof, "DoubleBackward")
        assert (forward["kind"], forward["input_shapes"]) == ("op", [[2, 3], []])
        assert [child.name for child in forward.cpu_children] == ["aten::mul"]
        assert forward.sequence_nr == node.sequence_nr >= 0

    def test_python_functions_are_there_when_stacks_are_asked_for(self):
        def inner(x):
            return x + x

        with profile(with_stack=True) as prof:
            inner(torch.ones(2))
        assert any(re.search(r"test_profiler\.py\(\d+\): inner$", name) for name in names(prof, "python_function"))

    @pytest.mark.usefixtures("no_other_collection")
    def test_runs_of_the_garbage_collector_are_there_when_asked_for(self):
        with profile(experimental_config=_ExperimentalConfig(record_python_gc_info=True)) as prof:
            gc.collect()
        assert names(prof, "gc") == ["Python GC"]

    def test_keys_that_were_not_asked_for_are_absent(self):
        with profile() as prof, record_function("mine"):
            train()
        for e in prof.events():
            assert list(e.keys()) == ALWAYS + (CORRELATION if e["kind"] == "op" else [])

    def test_forward_backward_and_optimizer_are_all_there(self):
        with profile() as prof:
            train()
        found = names(prof)
        for name in (
            "aten::linear",
            "aten::addmm",
            "aten::sum",
            EVALUATE + "SumBackward0",
            "SumBackward0",
            "aten::expand",
            "aten::mm",
        ):
            assert name in found
        inside = [child.name for child in event(prof, "Optimizer.step#SGD.step").cpu_children]
        assert inside == ["aten::add_", "aten::add_"]
        run = event(prof, "AddmmBackward0")
        assert run.cpu_parent.name == EVALUATE + "AddmmBackward0"
        assert "aten::mm" in [child.name for child in run.cpu_children]


class TestRecordFunction:
    def test_is_a_context_manager(self):
        x = torch.ones(2)
        with profile() as prof, record_function("mine"):
            x + x
        assert names(prof) == ["mine", "aten::add"]
        assert event(prof, "aten::add").cpu_parent.name == "mine"

    def test_is_a_decorator(self):
        @record_function("mine")
        def double(x):
            """Twice."""
            return x + x

        with profile() as prof:
            assert double(torch.ones(2)).tolist() == [2.0, 2.0]
            double(torch.ones(2))
        assert names(prof).count("mine") == 2
        assert (double.__name__, double.__doc__) == ("double", "Twice.")

    def test_nests(self):
        with profile() as prof, record_function("outer"), record_function("inner"):
            pass
        outer, inner = prof.events()
        assert inner.cpu_parent is outer
        assert outer["start_ns"] <= inner["start_ns"] <= inner["end_ns"] <= outer["end_ns"]

    def test_closes_on_exceptions(self):
        x = torch.ones(2)
        with profile() as prof:
            with pytest.raises(ZeroDivisionError), record_function("outer"), record_function("inner"):
                1 / 0  # noqa: B018
            x + x
        assert names(prof) == ["outer", "inner", "aten::add"]
        assert event(prof, "aten::add").cpu_parent is None

    def test_is_a_no_op_with_no_profiler_running(self):
        scope = record_function("before")
        with scope:
            assert scope.record is None
        assert names(record_one_op()) == ["aten::add"]


class TestErrors:
    def test_an_operator_that_raises_is_recorded_and_the_session_stays_usable(self):
        x = torch.ones(2, 3)
        with profile(record_shapes=True) as prof:
            with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
                torch.mm(x, x)
            x + x
        assert names(prof) == ["aten::mm", "aten::add"]
        assert event(prof, "aten::mm")["input_shapes"] == [[2, 3], [2, 3]]
        assert event(prof, "aten::add").cpu_parent is None

    def test_an_exception_in_the_block_reaches_the_user(self):
        def fail(x):
            x + x
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError), profile() as prof:
            fail(torch.ones(2))
        assert "aten::add" in names(prof)

    def test_stopping_never_raises_over_the_users_exception(self):
        def handler(prof):
            raise OSError("disk full")

        with (
            pytest.warns(UserWarning, match="stopping the profiler failed: OSError: disk full"),
            pytest.raises(ZeroDivisionError),
            profile(on_trace_ready=handler),
        ):
            raise ZeroDivisionError
        assert names(record_one_op()) == ["aten::add"]

    def test_stopping_twice_is_harmless(self):
        called = []
        prof = profile(on_trace_ready=called.append)
        prof.start()
        torch.ones(2) + 1
        prof.stop()
        before = names(prof)
        prof.stop()
        assert names(prof) == before
        assert called == [prof]

    def test_step_on_a_profiler_that_is_not_running_says_what_to_do(self):
        prof = profile()
        with pytest.raises(RuntimeError, match=r"use it inside `with profile"):
            prof.step()
        with prof:
            prof.step()
        with pytest.raises(RuntimeError, match=r"between start\(\) and stop\(\)"):
            prof.step()

    def test_a_second_profiler_while_one_runs_is_refused(self):
        x = torch.ones(2)
        with profile() as first:
            with pytest.raises(RuntimeError, match=r"already running \(started at test_profiler\.py:\d+\); stop it"):
                profile().start()
            with pytest.raises(RuntimeError, match="already"), torch.autograd.profiler.profile():
                pass
            x + x
        assert names(first) == ["aten::add"]
        assert names(record_one_op()) == ["aten::add"]

    @pytest.mark.parametrize("error", [ValueError, AssertionError])
    @pytest.mark.parametrize("wrong", ["CPU", 0, None])
    def test_an_unknown_activity_is_refused_naming_the_valid_ones(self, error, wrong):
        with pytest.raises(error, match=r"ProfilerActivity\.CPU, ProfilerActivity\.NPU"):
            profile(activities=[wrong])

    @pytest.mark.parametrize("error", [ValueError, AssertionError])
    @pytest.mark.parametrize(
        "wrong", [{"wait": -1}, {"warmup": -1}, {"active": 0}, {"active": -1}, {"repeat": -1}, {"skip_first": -1}]
    )
    def test_invalid_schedule_numbers_are_refused(self, error, wrong):
        ((name, value),) = wrong.items()
        with pytest.raises(error, match=f"{name}={value}"):
            schedule(**{"wait": 1, "warmup": 1, "active": 1} | wrong)

    def test_a_schedule_that_is_not_callable_is_refused(self):
        with pytest.raises(TypeError, match="schedule must be a function of the step number, got int"):
            profile(schedule=3)


class TestNoCostWithoutAProfiler:
    def test_no_file_of_the_profiler_imports_or_names_mindspore(self):
        package = Path(torch.profiler.__file__).parent
        files = [*package.rglob("*.py"), *(package.parent / "autograd").glob("profiler*.py")]
        assert len(files) > 30
        assert [f for f in files if "mindspore" in f.read_text().lower()] == []

    def test_the_function_of_an_operator_contains_nothing_of_the_profiler(self):
        x = torch.ones(2)

        def code_of_add():
            x + x
            return registry.find("aten::add", "Tensor").table[keys.CPU]

        plain = code_of_add()
        with profile(record_shapes=True):
            recording = code_of_add()
            assert "clock_" in recording.__globals__ or "clock_" in recording.__code__.co_freevars
        after = code_of_add()
        assert after is plain
        for instruction in dis.get_instructions(plain):
            assert instruction.argval not in ("clock_", "extend_", "thread_", "calls_", "start_")

    def test_no_key_stays_active_and_no_table_keeps_a_recording_function(self):
        before = dispatcher.active_keys()
        x = torch.ones(2, requires_grad=True)

        async def main():
            with record_function("in a task"):
                x + x

        with profile(record_shapes=True, with_stack=True, schedule=schedule(wait=0, warmup=1, active=1)) as prof:
            assert dispatcher.active_keys() != before
            prof.step()
            asyncio.run(main())
        assert dispatcher.active_keys() == before
        (x + x).sum().backward()
        recording = {id(f) for op in registry.all_ops() for keys, f in op.compiled.items() if keys & torch._dispatch.keys.PROFILER}
        assert not any(id(f) in recording for op in registry.all_ops() for f in op.table.values())


class TestShapesAndStacks:
    def test_one_entry_an_argument_empty_for_what_is_no_tensor(self):
        prof = record_one_op(record_shapes=True)
        assert event(prof, "aten::add")["input_shapes"] == [[2, 3], [2, 3], []]

    def test_a_list_of_shapes_for_a_tensor_list(self):
        with profile(record_shapes=True) as prof:
            torch.cat([torch.ones(2, 3), torch.ones(1, 3)], 0)
        assert event(prof, "aten::cat")["input_shapes"] == [[[2, 3], [1, 3]], []]

    def test_shapes_are_json(self):
        with profile(record_shapes=True) as prof:
            train()
        for e in prof.events():
            if e["kind"] == "op":
                assert json.loads(json.dumps(e["input_shapes"])) == e["input_shapes"]

    @pytest.mark.parametrize(
        "options", [{}, {"record_shapes": True}, {"with_stack": True}, {"record_shapes": True, "with_stack": True}]
    )
    def test_tensors_are_never_kept_alive(self, options):
        with profile(**options):
            x = torch.ones(1000, requires_grad=True)
            y = x * 2
            z = torch.cat([x, y]).sum()
            z.backward()
            watched = [
                weakref.ref(t) for t in (x, y, z, x.grad, x._storage, y._storage, y._array.base if y._array.base is not None else y)
            ]
            del x, y, z
            assert [w() for w in watched] == [None] * len(watched)

    def test_a_stack_is_innermost_first_as_file_line_function(self):
        def outer(x):
            return inner(x)

        def inner(x):
            with record_function("mine"):
                return x + x

        with profile(with_stack=True) as prof:
            outer(torch.ones(2))
        for name in ("aten::add", "mine"):
            stack = event(prof, name)["stack"]
            assert all(re.fullmatch(r".+:\d+:[^:]+", entry) for entry in stack)
            assert [entry.rpartition(":")[2] for entry in stack][:3] == [
                "inner",
                "outer",
                "test_a_stack_is_innermost_first_as_file_line_function",
            ]
            assert stack[0].startswith(__file__ + ":")
            line = int(stack[0].split(":")[-2])
            assert Path(__file__).read_text().splitlines()[line - 1].strip() in ('with record_function("mine"):', "return x + x")

    def test_the_attribute_has_torchs_form(self):
        def inner(x):
            return x + x

        with profile(with_stack=True) as prof:
            inner(torch.ones(2))
        assert re.search(r"test_profiler\.py\(\d+\): inner$", event(prof, "aten::add").stack[0])

    def test_frames_of_the_dispatcher_engine_and_profiler_are_left_out_and_nn_and_optim_stay(self):
        with profile(with_stack=True) as prof:
            train()
        package = str(Path(torch.__file__).parent)
        for e in prof.events():
            for entry in e.get("stack", []):
                place = entry.removeprefix(package)
                assert place == entry or place.startswith(("/nn/", "/optim/"))
        assert "/nn/modules/linear.py:" in event(prof, "aten::linear")["stack"][0]
        assert "/optim/sgd.py:" in next(e for e in prof.events() if e["name"] == "aten::add_")["stack"][0]
        assert all("test_profiler.py" in e["stack"][-1] or len(e["stack"]) > 1 for e in prof.events() if "stack" in e)

    def test_both_reach_the_trace(self, tmp_path):
        prof = record_one_op(record_shapes=True, with_stack=True)
        (row,) = slices(trace_of(prof, tmp_path), name="aten::add")
        e = event(prof, "aten::add")
        assert (row["args"]["input_shapes"], row["args"]["stack"]) == (e["input_shapes"], e["stack"])


KEYS_OF_MEMORY = ["cpu_memory_allocated_before", "cpu_memory_allocated_after", "cpu_memory_allocated_delta"]


def live_bytes():
    """The bytes of all storages there are; those over one array count once."""
    gc.collect()
    arrays = {id(s.array): s.array.nbytes for s in gc.get_objects() if type(s) is UntypedStorage}
    return sum(arrays.values())


class Totals:
    """What `[memory]` events add up to, beside what really lived, at moments of a recording."""

    def __init__(self):
        self.lived = []

    def look(self):
        self.lived.append(live_bytes())
        with record_function("look"):
            pass

    def recorded(self, prof):
        log = prof.session.memory
        looks = [e["start_ns"] for e in prof.events() if e["name"] == "look"]
        ((_, at_first),) = prof.session.info.live_bytes
        totals = [at_first, *log.total_bytes.tolist()]
        assert [after - before for before, after in itertools.pairwise(totals)] == log.size_bytes.tolist()
        return [totals[int((log.time_ns <= look).sum())] for look in looks]


class TestMemory:
    def test_every_operator_carries_the_memory_before_and_after_it_and_the_difference(self):
        with profile(profile_memory=True) as prof:
            train()
        ops = [e for e in prof.events() if e["kind"] == "op"]
        assert {"aten::addmm", "AddmmBackward0", "aten::add_"} <= {e["name"] for e in ops}
        for e in ops:
            before, after, delta = (e[key] for key in KEYS_OF_MEMORY)
            assert delta == after - before
            assert before >= 0 <= after
        assert not any(key in e for e in prof.events() if e["kind"] != "op" for key in KEYS_OF_MEMORY)

    def test_the_difference_is_what_the_operator_made_and_freed(self):
        x = torch.ones(8, 8)
        with profile(profile_memory=True) as prof:
            made = [x + x, x.t(), x.max(0), x.add_(1), x.to(torch.float64)]
        delta = {e["name"]: e["cpu_memory_allocated_delta"] for e in prof.events()}
        values_and_indices = 8 * 4 + 8 * 8
        assert delta == {
            "aten::add": 256,
            "aten::t": 0,
            "aten::max": values_and_indices,
            "aten::add_": 0,
            "aten::to": 512,
            "aten::_to_copy": 512,
        }
        assert len(made) == 5

    def test_the_memory_is_in_the_args_of_the_trace_too(self, tmp_path):
        with profile(profile_memory=True) as prof:
            train()
        rows = slices(trace_of(prof, tmp_path), cat="cpu_op")
        shown = [[row["args"][key] for key in KEYS_OF_MEMORY] for row in rows]
        assert shown == [[e[key] for key in KEYS_OF_MEMORY] for e in prof.events() if e["kind"] == "op"]

    def test_with_memory_off_no_such_key_is_anywhere(self, tmp_path):
        prof = record_one_op()
        assert not any("memory" in key for e in prof.events() for key in e)
        assert "cpu_memory" not in json.dumps(trace_of(prof, tmp_path))

    def test_what_memory_events_add_up_to_is_what_lives_at_every_step(self):
        totals = Totals()
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 2))
        optimizer = torch.optim.Adam(model.parameters())
        with profile(profile_memory=True) as prof:
            for _ in range(3):
                totals.look()
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(torch.randn(4, 8)), torch.tensor([0, 1, 1, 0]))
                totals.look()
                loss.backward()
                totals.look()
                optimizer.step()
                totals.look()
        assert totals.recorded(prof) == totals.lived
        assert len(set(totals.lived[:4])) == 4

    def test_memory_is_exact_under_threads_and_reference_cycles(self):
        totals, kept = Totals(), {}

        class Ring:
            def __init__(self, tensor):
                self.ring, self.tensor = self, tensor

        def work(number):
            x = torch.ones(10 + number)
            for i in range(40):
                Ring(x + i)  # lives until the collector comes, in whichever thread
                x = (x * 2)[1:].clone() if i % 10 == 9 else x.data.relu()
            kept[number] = Ring(x)

        with profile(profile_memory=True) as prof:
            for i in range(4):
                threads = [threading.Thread(target=work, args=(i + 4 * n,)) for n in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                totals.look()
                kept.pop(i)
                totals.look()
        assert totals.recorded(prof) == totals.lived
        assert len(totals.lived) == 8

    def test_memory_that_storages_share_counts_once_until_the_last_is_gone(self):
        totals = Totals()
        with profile(profile_memory=True) as prof:
            x = torch.ones(100) * 2
            others = [x.data, x.detach(), x[5:], torch.from_numpy(x.numpy()), x.view(10, 10)]
            totals.look()
            del x
            while others:
                others.pop()
                totals.look()
        assert totals.recorded(prof) == totals.lived
        assert [now - totals.lived[-1] for now in totals.lived] == [400, 400, 400, 400, 400, 0]

    def test_memory_that_takes_the_place_of_other_memory_is_counted(self):
        totals = Totals()
        x, y, z = torch.ones(4), torch.empty(0), torch.ones(7)
        with profile(profile_memory=True) as prof:
            totals.look()
            x.resize_(1000)
            totals.look()
            torch.add(x, x, out=y)
            totals.look()
            z.data = x
            totals.look()
            x.set_()
            totals.look()
            del x, y
            totals.look()
        assert totals.recorded(prof) == totals.lived
        # resize_ took 4,000 bytes for 16, out= took as many, z gave up 28
        assert [now - totals.lived[0] for now in totals.lived] == [0, 3984, 7984, 7956, 7956, 3956]

    def test_an_operator_that_raises_after_it_made_its_result_leaves_no_trace_of_it(self):
        totals = Totals()
        x = torch.ones(1000, requires_grad=True)

        def refuse(saved):
            raise KeyError("not saved")

        with profile(profile_memory=True) as prof:
            totals.look()
            for _ in range(3):
                with pytest.raises(KeyError), torch.autograd.graph.saved_tensors_hooks(refuse, lambda saved: saved):
                    x.exp()
            totals.look()
        assert totals.recorded(prof) == totals.lived
        assert totals.lived[0] == totals.lived[1]

    def test_storages_on_other_devices_are_no_memory_of_the_cpu(self):
        totals = Totals()
        indices = torch.tensor([[0, 5]])
        with profile(profile_memory=True) as prof:
            totals.look()
            imagined = torch.empty(10**6, device="meta") + 1
            sparse = torch.sparse_coo_tensor(indices, torch.ones(2), (10**6,))
            totals.look()
            del imagined, sparse
            totals.look()
        assert totals.recorded(prof) == totals.lived
        assert totals.lived[1] < totals.lived[0] + 1000

    def test_what_lived_before_counts_in_a_baseline_so_that_freeing_it_is_right(self):
        before = [torch.ones(n) for n in (10, 1000, 100_000)]
        lived = live_bytes()
        with profile(profile_memory=True) as prof:
            x = torch.ones(5)
            while before:
                before.pop()
        log = prof.session.memory
        assert log.size_bytes.tolist() == [20, -400_000, -4000, -40]
        assert log.total_bytes.tolist() == [lived + n for n in (20, 20 - 400_000, 20 - 404_000, 20 - 404_040)]
        assert event(prof, "aten::ones")["cpu_memory_allocated_before"] == lived
        assert x.numel() == 5

    def test_each_recording_of_a_schedule_has_a_baseline_of_its_own(self):
        totals, kept = Totals(), []
        recordings = []
        with profile(
            profile_memory=True,
            schedule=schedule(wait=1, warmup=1, active=1, repeat=3),
            on_trace_ready=lambda prof: recordings.append(totals.recorded(prof)),
        ) as prof:
            for i in range(9):
                kept.append(torch.ones(100 + i) + 1)
                if i % 3 == 2:
                    del kept[0]
                    totals.look()
                prof.step()
        assert [total for totals in recordings for total in totals] == totals.lived

    def test_a_free_is_an_event_with_address_bytes_total_and_thread(self):
        box = [torch.ones(3000)]
        lived = live_bytes()
        with profile(profile_memory=True) as prof:
            thread = threading.Thread(target=box.clear, name="frees")
            thread.start()
            thread.join()
        (free,) = prof.events()
        assert (free["name"], free["kind"]) == ("[memory]", "memory")
        assert (free["bytes"], free["total_allocated"]) == (-12_000, lived - 12_000)
        assert free["thread_id"] == thread.native_id
        assert free["duration_ns"] == 0
        assert free.cpu_memory_usage == free.self_cpu_memory_usage == -12_000

    def test_memory_made_and_freed_outside_of_operators_is_an_event_and_what_is_inside_is_not(self):
        x = torch.ones(4)
        with profile(profile_memory=True) as prof:
            y = x + x
            del y
            with record_function("scope"):
                y = x * x
                del y
            z = torch.from_numpy(x.numpy() * 2)
        found = [(e["name"], e.cpu_memory_usage, e.self_cpu_memory_usage) for e in prof.events()]
        assert found == [
            ("aten::add", 16, 16),
            ("[memory]", -16, -16),
            ("scope", 0, -16),
            ("aten::mul", 16, 16),
            ("[memory]", 16, 16),
        ]
        assert sum(e["bytes"] for e in prof.events() if e["kind"] == "memory") == 0
        assert z.numel() == 4

    def test_memory_events_of_the_trace_say_the_operator_that_was_active(self, tmp_path):
        x = torch.ones(4, 4)
        with profile(profile_memory=True) as prof:
            y = torch.nn.functional.linear(x, x, x[0])
            del y
        rows = [r for r in trace_of(prof, tmp_path)["traceEvents"] if r["name"] == "[memory]"]
        made, freed = (r["args"] for r in rows)
        assert (made["Bytes"], made["Operator"]) == (64, "aten::addmm")
        assert (freed["Bytes"], freed.get("Operator")) == (-64, None)
        assert made["Addr"] == freed["Addr"] != 0
        assert made["Total Allocated"] - freed["Total Allocated"] == 64
        assert {r["cat"] for r in rows} == {"cpu_instant_event"}

    def test_usage_is_what_was_made_less_what_was_freed_and_self_usage_is_without_the_children(self):
        x, w, b = torch.ones(4, 8), torch.ones(2, 8), torch.ones(2)
        with profile(profile_memory=True) as prof, record_function("both"):
            kept = torch.nn.functional.linear(x, w, b) * 2
        usage = {e.name: (e.cpu_memory_usage, e.self_cpu_memory_usage) for e in prof.events()}
        result = 4 * 2 * 4
        assert usage == {
            "both": (result, -result),  # the product of linear was freed in it
            "aten::linear": (result, 0),
            "aten::t": (0, 0),
            "aten::addmm": (result, result),
            "aten::mul": (result, result),
        }
        assert kept.numel() == 8

    def test_the_table_shows_memory_in_columns_of_its_own(self):
        with profile(profile_memory=True) as prof:
            kept = torch.ones(1024)
        text = prof.key_averages().table()
        assert "CPU Mem" in text
        assert "Self CPU Mem" in text
        assert "4.00 KB" in text
        assert "CPU Mem" not in record_one_op().key_averages().table()
        assert kept.nbytes == 4096

    def test_storages_are_made_and_freed_as_ever_while_no_memory_is_recorded(self):
        def untouched():
            slots = vars(UntypedStorage)
            return type(slots["array"]).__name__ == "member_descriptor" and "__del__" not in slots

        assert untouched()
        with profile():
            assert untouched()
        with profile(profile_memory=True):
            assert not untouched()
        assert untouched()
        with pytest.raises(KeyError), profile(profile_memory=True):
            raise KeyError
        assert untouched()

    def test_tracemalloc_is_a_second_source_of_the_same_figures(self, tmp_path):
        x = torch.ones(100_000)
        with profile(profile_memory="tracemalloc") as prof, record_function("scope"):
            kept = x + x
        add = event(prof, "aten::add")
        before, after, delta = (add[key] for key in KEYS_OF_MEMORY)
        assert delta == after - before == add.cpu_memory_usage
        assert 400_000 <= delta < 500_000  # the heap has the objects too
        assert event(prof, "scope").cpu_memory_usage >= delta
        (row,) = slices(trace_of(prof, tmp_path), name="aten::add")
        assert [row["args"][key] for key in KEYS_OF_MEMORY] == [before, after, delta]
        assert "CPU Mem" in prof.key_averages().table()
        assert prof.session.memory is None  # nothing was counted by storages
        assert kept.numel() == 100_000

    def test_tracemalloc_runs_only_when_selected_and_only_while_recording(self):
        running = []
        with profile(profile_memory=True):
            assert not tracemalloc.is_tracing()
        with profile(
            profile_memory="tracemalloc", schedule=schedule(wait=1, warmup=1, active=2, repeat=1), on_trace_ready=lambda prof: None
        ) as prof:
            for _ in range(5):
                running.append(tracemalloc.is_tracing())
                prof.step()
        assert running == [False, False, True, True, False]
        with profile(profile_memory="tracemalloc") as prof:
            prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
            assert not tracemalloc.is_tracing()
            prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
            assert tracemalloc.is_tracing()
        assert not tracemalloc.is_tracing()
        with pytest.raises(KeyError), profile(profile_memory="tracemalloc"):
            raise KeyError
        assert not tracemalloc.is_tracing()

    def test_a_tracemalloc_that_was_running_is_left_running(self):
        tracemalloc.start(3)
        try:
            with profile(profile_memory="tracemalloc"):
                torch.ones(3)
            assert tracemalloc.is_tracing()
            assert tracemalloc.get_traceback_limit() == 3
        finally:
            tracemalloc.stop()

    def test_an_unknown_source_of_memory_is_refused(self):
        with pytest.raises(ValueError, match=r"'heap'.*'storages'.*'tracemalloc'"):
            profile(profile_memory="heap")
        with profile(profile_memory="storages") as prof:
            kept = torch.ones(4)
        assert prof.session.memory.size_bytes.tolist() == [kept.nbytes]


class TestCorrelation:
    def test_every_op_has_a_unique_id_that_rises_in_order_of_start(self):
        with profile() as prof, record_function("mine"):
            train()
        ids = [e["correlation_id"] for e in prof.events() if e["kind"] == "op"]
        assert len(ids) > 20
        assert ids == sorted(set(ids))

    def test_every_op_names_the_call_that_started_it_and_its_thread(self):
        with profile() as prof, record_function("mine"):
            train()
        for e in prof.events():
            if e["kind"] == "op":
                assert (e["runtime_name"], e["runtime_tid"]) == ("dispatch_kernel", threading.get_native_id())
            else:
                assert not set(CORRELATION) & set(e.keys())

    def test_no_two_recordings_share_a_number(self, tmp_path):
        seen = []
        with profile(schedule=schedule(wait=0, warmup=1, active=1), acc_events=True) as steps:
            for _ in range(4):
                torch.ones(2).exp()
                steps.step()
        assert len(steps.session.info.first_ids) == 2
        seen += [e.id for e in steps.events()]
        for _ in range(2):
            with torch.autograd.profiler.profile() as prof:
                torch.ones(2).exp()
            seen += [e.correlation_id() for e in prof.kineto_results.events()]
        with profile() as last:
            torch.ones(2).exp()
        last.session.save(tmp_path / "s.session")
        last.export_chrome_trace(str(tmp_path / "t.json"))
        numbers = [e["correlation_id"] for e in last.events()]
        assert sorted(set(seen + numbers)) == seen + numbers
        rows = [e["args"] for e in json.loads((tmp_path / "t.json").read_text())["traceEvents"] if e.get("cat") == "cpu_op"]
        assert [args["External id"] for args in rows] == [args["correlation_id"] for args in rows] == numbers
        assert [args["Ev Idx"] for args in rows] == list(range(len(rows)))  # torch: counts in each recording
        again = EventList.of(Session.load(tmp_path / "s.session"))
        assert [e["correlation_id"] for e in again] == [e.external_id for e in again] == numbers

    def test_correlation_is_in_the_trace(self, tmp_path):
        with profile() as prof:
            train()
        ops = [e for e in prof.events() if e["kind"] == "op"]
        rows = slices(trace_of(prof, tmp_path), cat="cpu_op")
        assert [[r["args"][key] for key in CORRELATION] for r in rows] == [[e[key] for key in CORRELATION] for e in ops]


def run_cycles(x, steps, *, acc_events=False, **numbers):
    """Steps that each run as many additions as their number says, recorded by a schedule."""
    with profile(schedule=schedule(**numbers), acc_events=acc_events) as prof:
        for step in range(steps):
            x + x
            if step < steps - 1:
                prof.step()
    return [(e["name"], e["step"]) for e in prof.events() if e["kind"] == "op"]


class TestTopLevel:
    def test_each_cycle_starts_clean(self):
        assert run_cycles(torch.ones(2), 6, wait=1, warmup=1, active=1) == [("aten::add", 5)]

    def test_with_acc_events_all_cycles_stay(self):
        assert run_cycles(torch.ones(2), 6, wait=1, warmup=1, active=1, acc_events=True) == [("aten::add", 2), ("aten::add", 5)]

    @pytest.mark.parametrize("steps", [3, 4, 5])
    def test_stopping_during_a_wait_or_warmup_keeps_the_last_complete_cycle(self, steps):
        assert run_cycles(torch.ones(2), steps, wait=1, warmup=1, active=1) == [("aten::add", 2)]

    def test_metadata_is_a_text(self, tmp_path):
        prof = record_one_op()
        prof.add_metadata("who", "me")
        assert trace_of(prof, tmp_path)["who"] == "me"
        with pytest.raises(AttributeError, match="takes a str, got int"):
            prof.add_metadata("who", 5)

    def test_metadata_as_json(self, tmp_path):
        prof = record_one_op()
        prof.add_metadata_json("config", '{"layers": [1, 2]}')
        assert trace_of(prof, tmp_path)["config"] == {"layers": [1, 2]}

    def test_metadata_before_the_start(self, tmp_path):
        prof = profile()
        prof.preset_metadata_json("config", "[1]")
        with prof:
            torch.ones(2)
        assert trace_of(prof, tmp_path)["config"] == [1]

    @pytest.mark.parametrize("raw", ["{", "", "NaN", "\0", '"', "\ud800", "[1] 2", "Infinity", "[NaN]", "1e999", "'a'"])
    def test_the_trace_is_valid_json_whatever_the_raw_text_is(self, tmp_path, raw):
        prof = profile()
        prof.preset_metadata_json("preset " + raw, raw)
        with prof:
            prof.add_metadata_json("json " + raw, raw)
            prof.add_metadata("text " + raw, raw)

        def refuse(constant):
            raise AssertionError(constant)

        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        trace = json.loads((tmp_path / "trace.json").read_bytes().decode(), parse_constant=refuse)
        assert len([key for key in trace if key.startswith(("preset ", "json ", "text "))]) == 3

    def test_collection_can_be_stopped_and_resumed_inside_a_session(self):
        x = torch.ones(2)
        with profile() as prof:
            x + x
            prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
            x * x
            prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
            x - x
        assert names(prof) == ["aten::add", "aten::sub"]

    @pytest.mark.parametrize(
        ("options", "missing"),
        [
            ({}, "record_shapes=True, profile_memory=True, with_stack=True"),
            ({"record_shapes": True}, "profile_memory=True, with_stack=True"),
            ({"record_shapes": True, "with_stack": True}, "profile_memory=True"),
        ],
    )
    def test_a_memory_timeline_needs_its_flags(self, tmp_path, options, missing):
        prof = record_one_op(**options)
        with pytest.raises(ValueError, match=rf"^{missing} required for memory profiling\.$"):
            prof.export_memory_timeline(str(tmp_path / "timeline.json"))

    def test_the_table_has_the_words_and_is_the_same_every_time(self):
        with profile() as prof:
            train()
        text = prof.key_averages().table()
        assert all(word in text for word in ("Name", "Count", "Total", "Self CPU %", "CPU total", "CPU time avg", "# of Calls"))
        assert text == prof.key_averages().table()
        (row,) = [line for line in text.splitlines() if line.split()[:1] == ["aten::linear"]]
        assert re.fullmatch(r"\s+aten::linear(\s+[\d.]+%\s+[\d.]+(us|ms|s)){2}\s+[\d.]+(us|ms|s)\s+1\s*", row)


class TestTraceFile:
    @pytest.fixture
    def recorded(self):
        with profile(record_shapes=True, schedule=schedule(wait=0, warmup=1, active=1)) as prof:
            prof.step()
            train()
        return prof

    def test_it_is_kinetos_json_with_the_header_before_the_events(self, recorded, tmp_path):
        recorded.add_metadata("who", "me")
        keys = list(trace_of(recorded, tmp_path))
        assert keys[:2] == ["schemaVersion", "deviceProperties"]
        assert keys[-4:] == ["displayTimeUnit", "baseTimeNanoseconds", "traceEvents", "traceName"]
        assert "who" in keys
        trace = trace_of(recorded, tmp_path)
        assert (trace["schemaVersion"], trace["displayTimeUnit"]) == (1, "ms")
        assert trace["traceName"].endswith("trace.json")

    def test_a_space_follows_each_colon_of_the_top_level_keys(self, recorded, tmp_path):
        trace = trace_of(recorded, tmp_path)
        text = (tmp_path / "trace.json").read_text()
        for key in trace:
            assert f'"{key}": ' in text

    def test_times_are_microseconds_with_three_decimals_from_the_base(self, recorded, tmp_path):
        trace = trace_of(recorded, tmp_path)
        base = trace["baseTimeNanoseconds"]
        assert base % (7_889_238 * 10**9) == 0
        text = (tmp_path / "trace.json").read_text()
        assert re.search(r'"ts": ?"', text) is None
        assert all(re.fullmatch(r"\d+\.\d{3}", number) for number in re.findall(r'"(?:ts|dur)": ?([^,}]*)', text))
        starts = [e["start_ns"] for e in recorded.events() if e["kind"] == "op"]
        assert [base + round(r["ts"] * 1000) for r in slices(trace, cat="cpu_op")] == starts

    def test_categories(self, recorded, tmp_path):
        trace = trace_of(recorded, tmp_path)
        category = {r["name"]: r["cat"] for r in slices(trace)}
        assert (category["aten::addmm"], category["AddmmBackward0"]) == ("cpu_op", "cpu_op")
        assert (category["ProfilerStep#1"], category["Optimizer.step#SGD.step"]) == ("user_annotation", "user_annotation")
        assert "Trace" in category.values()
        assert {r["cat"] for r in trace["traceEvents"] if r["ph"] in "sf"} == {"fwdbwd"}
        with_functions = record_one_op(with_stack=True)
        assert slices(trace_of(with_functions, tmp_path), cat="python_function")

    def test_arrows_join_forward_and_backward_at_the_starts_of_their_slices(self, recorded, tmp_path):
        trace = trace_of(recorded, tmp_path)
        ends = {"s": {}, "f": {}}
        for r in trace["traceEvents"]:
            if r["ph"] in ends:
                ends[r["ph"]][r["id"]] = r["ts"]
        at = {}
        for r in slices(trace):
            at.setdefault(r["ts"], []).append(r["name"])
        joined = {(name, back) for i, ts in ends["s"].items() for name in at[ts] for back in at[ends["f"][i]]}
        assert ends["s"].keys() == ends["f"].keys()
        assert ("aten::addmm", EVALUATE + "AddmmBackward0") in joined or ("aten::addmm", "AddmmBackward0") in joined

    def test_every_pid_and_tid_is_a_number(self, recorded, tmp_path):
        for r in trace_of(recorded, tmp_path)["traceEvents"]:
            assert type(r["pid"]) is int
            assert type(r["tid"]) is int

    def test_processes_and_threads_have_names(self, recorded, tmp_path):
        rows = [r for r in trace_of(recorded, tmp_path)["traceEvents"] if r["ph"] == "M"]
        assert {"process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index"} == {
            r["name"] for r in rows
        }
        assert any("MainThread" in r["args"]["name"] for r in rows if r["name"] == "thread_name")

    def test_args_of_an_op(self, recorded, tmp_path):
        trace = trace_of(recorded, tmp_path)
        (args,) = [r["args"] for r in slices(trace, name="aten::addmm")]
        assert args["Input Dims"] == [[2], [4, 3], [3, 2], [], []]
        assert args["Input Strides"] == [[1], [3, 1], [1, 3], [], []]
        assert args["Input type"] == ["float", "float", "float", "Scalar", "Scalar"]
        assert args["Concrete Inputs"] == ["", "", "", "1", "1"]
        assert {"External id", "Record function id", "Ev Idx", "Sequence number", "Fwd thread id"} <= args.keys()
        (node,) = [r["args"] for r in slices(trace, name="AddmmBackward0")]
        assert node["Sequence number"] == args["Sequence number"]
        assert node["Fwd thread id"] > 0

    @pytest.mark.parametrize("with_stack", [False, True])
    def test_slices_of_a_thread_nest_or_are_disjoint_to_the_nanosecond(self, tmp_path, with_stack):
        with profile(with_stack=with_stack, schedule=schedule(wait=0, warmup=1, active=1)) as prof:
            prof.step()
            train()
        rows = [r for r in slices(trace_of(prof, tmp_path)) if r["cat"] != "Trace"]
        spans = sorted((round(r["ts"] * 1000), -round(r["dur"] * 1000)) for r in rows)
        open_until = []
        for start, minus_length in spans:
            while open_until and open_until[-1] <= start:
                open_until.pop()
            assert not open_until or start - minus_length <= open_until[-1]
            open_until.append(start - minus_length)

    @pytest.mark.parametrize("name", ['"', "\\", "\n", "\0", "\x7f", "é漢🙂", "\ud800", "</script>", "{}", ""])
    def test_a_name_can_be_any_text(self, tmp_path, name):
        with profile() as prof, record_function(name, name):
            pass
        path = tmp_path / "trace.json"
        prof.export_chrome_trace(str(path))
        assert validate(path) == []
        rows = slices(json.loads(path.read_bytes().decode()), cat="user_annotation")
        assert [r["name"] for r in rows] == [name.encode("utf-8", "backslashreplace").decode()]

    def test_it_is_gzipped_when_the_path_says_so(self, recorded, tmp_path):
        recorded.export_chrome_trace(str(tmp_path / "trace.json.gz"))
        packed = json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))
        plain = trace_of(recorded, tmp_path)
        assert packed["traceEvents"] == plain["traceEvents"]

    def test_exporting_twice_works(self, recorded, tmp_path):
        assert trace_of(recorded, tmp_path) == trace_of(recorded, tmp_path)

    def test_nothing_half_written_is_left_under_the_final_name(self, recorded, tmp_path, monkeypatch):
        path = tmp_path / "trace.json"
        path.write_text("of yesterday")

        def break_off(source, target):
            raise OSError("disk full")

        monkeypatch.setattr("os.replace", break_off)
        with pytest.raises(OSError, match="disk full"):
            recorded.export_chrome_trace(str(path))
        assert path.read_text() == "of yesterday"
        assert [p.name for p in tmp_path.iterdir()] == ["trace.json"]

    def test_tensorboards_handler_writes_a_file_of_the_worker(self, tmp_path):
        with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path), worker_name="w", use_gzip=False)):
            torch.ones(2)
        (path,) = tmp_path.iterdir()
        assert re.fullmatch(r"w\.\d+\.pt\.trace\.json", path.name)
        assert validate(path) == []


def test_threads_are_all_recorded_by_default_and_the_starting_one_alone_when_asked():
    def record(**options):
        x = torch.ones(2)
        with profile(**options) as prof:
            thread = threading.Thread(target=lambda: x * x)
            thread.start()
            thread.join()
            x + x
        return names(prof)

    assert sorted(record()) == ["aten::add", "aten::mul"]
    assert record(experimental_config=_ExperimentalConfig(profile_all_threads=False)) == ["aten::add"]
