"""Events: made by hand, and those of a session."""

import copy
import json
import pickle
import warnings

import numpy as np
import pytest

from mindtorch_v2.profiler.device_type import DeviceType
from mindtorch_v2.profiler.model.events import FunctionEvent, Interval, Kernel
from mindtorch_v2.profiler.model.session import BACKWARD_FUNCTION, Frame, Info, Label, MemoryLog, TensorInput, Track
from mindtorch_v2.profiler.output.event_list import EventList

from .by_hand import Event, op, python_function, record, scope

EVALUATE = "autograd::engine::evaluate_function: "


def event(name="aten::add", start_us=0, end_us=10, **facts):
    return FunctionEvent(1, name, 1, start_us, end_us, **facts)


def events(*recorded, **info):
    return EventList.of(record(recorded, info=Info(**info)))


class TestMadeByHand:
    def test_without_children_all_time_is_its_own(self):
        add = event(end_us=12.5)
        assert (add.cpu_time_total, add.self_cpu_time_total, add.cpu_time, add.cpu_time_str) == (12.5, 12.5, 12.5, "12.500us")

    def test_time_and_memory_of_children_are_not_its_own(self):
        linear, addmm = event("aten::linear", cpu_memory_usage=100), event("aten::addmm", 2, 9, cpu_memory_usage=70)
        linear.append_cpu_child(addmm)
        addmm.set_cpu_parent(linear)
        assert (linear.cpu_time_total, linear.self_cpu_time_total) == (10, 3)
        assert linear.self_cpu_memory_usage == 30
        assert addmm.cpu_parent is linear

    def test_asynchronous_events_have_nothing_of_their_own(self):
        wait = event(is_async=True, cpu_memory_usage=5)
        assert (wait.cpu_time_total, wait.self_cpu_time_total, wait.self_cpu_memory_usage) == (10, 0, 0)

    def test_kernels_are_device_time_of_what_started_them_and_of_what_is_around(self):
        linear, addmm = event("aten::linear", use_device="npu"), event("aten::addmm", 2, 9, use_device="npu")
        linear.append_cpu_child(addmm)
        addmm.append_kernel("MatMul", 0, 40)
        assert addmm.kernels == [Kernel("MatMul", 0, 40)]
        assert (linear.device_time_total, linear.self_device_time_total) == (40, 0)
        assert (addmm.device_time_total, addmm.self_device_time_total) == (40, 40)

    def test_kernel(self):
        kernel = event("MatMul", device_type=DeviceType.NPU, use_device="npu")
        assert (kernel.cpu_time_total, kernel.device_time_total, kernel.self_device_time_total) == (0, 10, 10)
        with pytest.raises(AssertionError, match="Expected device_type to be CPU"):
            kernel.append_kernel("other", 0, 1)
        with pytest.raises(AssertionError, match="Expected child device_type to be CPU"):
            event().append_cpu_child(kernel)

    def test_a_child_is_an_event(self):
        with pytest.raises(AssertionError, match="Expected child to be a FunctionEvent"):
            event().append_cpu_child("aten::add")

    def test_of_the_device_of_another_profile_there_is_no_time(self):
        with pytest.raises(AssertionError, match=r"but got DeviceType\.MPS"):
            _ = event(device_type=DeviceType.MPS, use_device="mps").device_time_total

    @pytest.mark.parametrize("name", ["cuda_time", "cuda_time_total", "self_cuda_time_total", "self_cuda_memory_usage"])
    def test_old_names_warn(self, name):
        with pytest.warns(FutureWarning, match=f"`{name}` is deprecated"):
            assert getattr(event(), name) == 0

    def test_no_mapping(self):
        with pytest.raises(TypeError, match="not subscriptable"):
            event()["name"]

    def test_metadata_by_name(self):
        kernel = event(extra_meta={"stream": "7", "grid": "[1,2,3]", "Collective name": '"allreduce"', "someone's": "1"})
        assert (kernel.event_metadata.stream, kernel.event_metadata.grid) == (7, [1, 2, 3])
        assert (kernel.event_metadata.collective_name, kernel.event_metadata.block) == ("allreduce", None)
        assert event(extra_meta={"someone's": "1"}).event_metadata is None


class TestDeviceType:
    def test_npu_is_private_use_1(self):
        assert DeviceType.NPU is DeviceType.PrivateUse1
        assert (int(DeviceType.NPU), str(DeviceType.CPU), repr(DeviceType.CPU)) == (20, "DeviceType.CPU", "<DeviceType.CPU: 0>")


class TestRecorded:
    def test_what_every_event_says(self):
        step = scope("ProfilerStep#3", 5_000, 9_000, op("aten::add", 6_000, 8_500), step=3, tid=77)
        _, add = events(step, started_ns=1_000)
        assert dict(add) == {
            "name": "aten::add",
            "kind": "op",
            "device_type": "CPU",
            "start_ns": 6_000,
            "end_ns": 8_500,
            "duration_ns": 2_500,
            "step": 3,
            "thread_id": 77,
            "correlation_id": 2,
            "runtime_name": "dispatch_kernel",
            "runtime_tid": 77,
        }
        assert json.loads(json.dumps(dict(add))) == dict(add)

    def test_mapping(self):
        (add,) = events(op("aten::add", 0, 1))
        assert "name" in add
        assert "stack" not in add
        assert (add.get("name"), add.get("stack"), add.get("stack", 7)) == ("aten::add", None, 7)
        assert list(add) == add.keys()
        assert add.items() == list(zip(add.keys(), add.values(), strict=True))
        with pytest.raises(KeyError, match="stack"):
            add["stack"]

    def test_a_scope_has_no_correlation(self):
        (step,) = events(scope("forward", 0, 1), record_shapes=True)
        assert step.keys() == ["name", "kind", "device_type", "start_ns", "end_ns", "duration_ns", "step", "thread_id"]

    def test_attributes_count_microseconds_from_the_start(self):
        (add,) = events(op("aten::add", 6_000, 8_501, tid=77), started_ns=1_000, pid=5)
        assert (add.time_range.start, add.time_range.end, add.cpu_time_total) == (5.0, 7.501, 2.501)
        assert (add.name, add.key, add.trace_name, add.id, add.count) == ("aten::add", "aten::add", "aten::add", 1, 1)
        assert (add.thread, add.device_resource_id, add.device_index) == (1, 77, 5)
        assert (add.device_type, add.activity_type, add.is_user_annotation) == (DeviceType.CPU, "cpu_op", False)
        assert (add.fwd_thread, add.sequence_nr, add.scope, add.node_id) == (0, -1, 0, -1)
        assert (add.is_async, add.is_remote, add.is_legacy, add.is_python_function) == (False, False, False, False)
        assert (add.input_shapes, add.stack, add.overload_name, add.flops, add.kernels) == ([], [], "", 0, [])

    def test_every_attribute_of_an_event_made_by_hand_is_there(self):
        (add,) = events(op("aten::add", 0, 1))
        assert {name for name in vars(event()) if not hasattr(add, name)} == set()

    def test_no_other_attribute_is(self):
        (add,) = events(op("aten::add", 0, 1))
        with pytest.raises(AttributeError, match="colour"):
            _ = add.colour

    def test_old_names_warn(self):
        (add,) = events(op("aten::add", 0, 1))
        with pytest.warns(FutureWarning, match="`metadata_json` is deprecated"):
            assert add.metadata_json == ""

    def test_reading_warns_of_nothing(self):
        (add,) = events(op("aten::add", 0, 1))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            repr(add)

    def test_steps_have_one_name_and_numbers_in_the_trace(self):
        (step,) = events(scope("ProfilerStep#3", 0, 9))
        assert (step.name, step.trace_name, step["name"]) == ("ProfilerStep*", "ProfilerStep#3", "ProfilerStep#3")
        assert (step.is_user_annotation, step.activity_type, step.scope) == (True, "user_annotation", 7)

    def test_parents_and_children(self):
        linear, t, addmm = events(op("aten::linear", 0, 100, op("aten::t", 10, 20), op("aten::addmm", 20, 90)))
        assert linear.cpu_children == [t, addmm]
        assert (t.cpu_parent, addmm.cpu_parent, linear.cpu_parent) == (linear, linear, None)
        assert (linear.cpu_time_total, linear.self_cpu_time_total) == (0.1, 0.02)

    def test_times_are_whole_nanoseconds(self):
        start = 10**15 + 7  # 11 days in, doubles of microseconds are a tenth of a nanosecond apart
        outer, inner = events(op("outer", start, start + 333, op("inner", start + 111, start + 222)), started_ns=1)
        assert (outer.cpu_time_total, outer.self_cpu_time_total, inner.cpu_time_total) == (0.333, 0.222, 0.111)

    def test_an_operator_that_repeats_the_one_around_it_is_left_out(self):
        shown = events(op("to", 0, 100, op("to", 10, 90, op("to", 20, 80, op("copy_", 30, 70)))))
        assert [e.name for e in shown] == ["to", "copy_"]
        assert shown[1].cpu_parent is shown[0]
        assert shown[0].cpu_children == [shown[1]]
        assert (shown[0].self_cpu_time_total, shown[1].id) == (0.06, 4)

    def test_scopes_and_functions_that_repeat_the_one_around_them_stay(self):
        assert len(events(scope("a", 0, 100, scope("a", 10, 90)))) == 2
        assert len(events(python_function("f", 0, 100, python_function("f", 10, 90, python_function("f", 20, 30))))) == 3

    def test_two_of_a_name_do_not_repeat_the_event_around_them(self):
        assert len(events(op("to", 0, 100, op("to", 10, 50), op("to", 50, 90)))) == 3

    def test_writing_keeps_what_was_written(self):
        (add,) = events(op("aten::add", 0, 1))
        add.name, add.colour = "mine", "red"
        assert (add.name, add.key, add.colour, add["name"]) == ("mine", "mine", "red", "aten::add")

    @pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda shown: pickle.loads(pickle.dumps(shown))])
    def test_copies_are_whole(self, duplicate):
        shown = events(op("aten::linear", 0, 100, op("aten::addmm", 20, 90)))
        shown[1].colour = "red"
        linear, addmm = duplicate(shown)
        assert (linear["name"], linear.self_cpu_time_total, addmm.colour) == ("aten::linear", 0.03, "red")
        assert addmm.cpu_parent is linear
        assert linear is not shown[0]


class TestShapes:
    MATRIX = TensorInput((2, 3), (3, 1), "float32")
    INDEX = TensorInput((4,), (1,), "int64")

    def test_one_entry_an_argument(self):
        (cat,) = events(
            op("aten::cat", 0, 1, inputs=([self.MATRIX, self.INDEX], 1, self.MATRIX, "floor", None)), record_shapes=True
        )
        assert cat["input_shapes"] == [[[2, 3], [4]], [], [2, 3], [], []]
        assert cat.structured_input_shapes == [[[2, 3], [4]], [], [2, 3], [], []]
        assert cat.structured_input_strides == [[[3, 1], [1]], [], [3, 1], [], []]
        assert cat.input_shapes == [[], [], [2, 3], [], []]
        assert cat.input_dtypes == ["TensorList", "Scalar", "float", "", ""]
        assert cat.concrete_inputs == [None, 1, None, None, None]
        assert cat.kwinputs == {}

    def test_absent_when_not_asked_for(self):
        (add,) = events(op("aten::add", 0, 1, inputs=(self.MATRIX,)))
        assert "input_shapes" not in add
        assert (add.input_shapes, add.concrete_inputs, add.input_dtypes) == ([], [], [])

    def test_operators_without_arguments_have_none(self):
        (evaluate,) = events(op(EVALUATE + "AddBackward0", 0, 1), record_shapes=True)
        assert evaluate["input_shapes"] == []

    @pytest.mark.parametrize(
        ("name", "inputs", "flops"),
        [
            ("aten::mm", (TensorInput((4, 6), (6, 1), "float32"), TensorInput((6, 5), (5, 1), "float32")), 2 * 4 * 6 * 5),
            ("aten::bmm", (TensorInput((2, 3, 4), (12, 4, 1), "f"), TensorInput((2, 4, 5), (20, 5, 1), "f")), 2 * 2 * 3 * 4 * 5),
            ("aten::addmm", (INDEX, TensorInput((4, 6), (6, 1), "f"), TensorInput((6, 5), (5, 1), "f"), 1, 1), 2 * 4 * 6 * 5),
            ("aten::mul", (MATRIX, MATRIX), 6),
            ("aten::add", (1, 2), 0),
            ("aten::exp", (MATRIX,), 6),
            ("aten::relu", (MATRIX,), 0),
            (
                "aten::conv2d",
                (TensorInput((2, 4, 9, 8), (), "f"), TensorInput((6, 2, 3, 2), (), "f"), None, [2, 1], [1, 0], [1, 2], 2),
                2 * 2 * 6 * 2 * (3 * 2) * (5 * 6),  # two channels in each of the groups; the image becomes 5 by 6
            ),
            (
                "aten::conv2d",
                (TensorInput((2, 4, 9, 8), (), "f"), TensorInput((6, 4, 3, 2), (), "f"), None, [1, 1], "same", [1, 1], 1),
                2 * 2 * 6 * 4 * (3 * 2) * (9 * 8),
            ),
        ],
    )
    def test_flops(self, name, inputs, flops):
        (call,) = events(op(name, 0, 1, inputs=inputs), record_shapes=True, with_flops=True)
        assert call.flops == flops

    def test_no_flops_when_not_asked_for(self):
        (call,) = events(op("aten::mul", 0, 1, inputs=(self.MATRIX,)), record_shapes=True)
        assert call.flops == 0

    def test_overload_names_only_when_asked_for(self):
        assert events(op("aten::add", 0, 1, overload="Tensor"))[0].overload_name == ""
        assert events(op("aten::add", 0, 1, overload="Tensor"), overload_names=True)[0].overload_name == "Tensor"


def node(name, start_ns, end_ns, *children, sequence, **facts):
    inner = Event(Label(name, scope=BACKWARD_FUNCTION), start_ns + 1, end_ns - 1, children, sequence=sequence, **facts)
    return op(EVALUATE + name, start_ns, end_ns, inner, sequence=sequence, **facts)


class TestStacks:
    MODEL = Frame("model.py", 45, "forward")
    MAIN = Frame("train.py", 7, "<module>")
    BACK = Frame("train.py", 9, "<module>")

    def test_both_forms(self):
        (add,) = events(op("aten::add", 0, 1, stack=(self.MODEL, self.MAIN)), with_stack=True)
        assert add["stack"] == ["model.py:45:forward", "train.py:7:<module>"]
        assert add.stack == ["model.py(45): forward", "train.py(7): <module>"]

    def test_files_are_named_as_they_are_imported(self):
        stack = (Frame("/home/me/project/models/net.py", 45, "forward"), Frame("/home/me/other.py", 7, "<module>"))
        (add,) = events(op("aten::add", 0, 1, stack=stack), with_stack=True, source_roots=("/home/me/project/", "/home/"))
        assert add.stack == ["models/net.py(45): forward", "me/other.py(7): <module>"]
        assert add["stack"] == ["/home/me/project/models/net.py:45:forward", "/home/me/other.py:7:<module>"]

    def test_scopes_have_them_too(self):
        (forward,) = events(scope("forward", 0, 1, stack=(self.MAIN,)), with_stack=True)
        assert forward["stack"] == ["train.py:7:<module>"]

    def test_absent_when_not_asked_for(self):
        (add,) = events(op("aten::add", 0, 1, stack=(self.MAIN,)))
        assert "stack" not in add
        assert add.stack == []

    def test_a_backward_pass_shows_where_the_forward_pass_was(self):
        exp = op("aten::exp", 0, 9, sequence=5, tid=1, stack=(self.MODEL,))
        mul = op("aten::mul", 24, 28, stack=(self.BACK,))
        backward = node("ExpBackward0", 20, 30, mul, sequence=5, tid=2, stack=(self.BACK,))
        _, evaluate, run, inner = events(exp, backward, with_stack=True)
        assert run.stack == inner.stack == ["model.py(45): forward"]
        assert evaluate.stack == ["train.py(9): <module>"]
        assert inner["stack"] == ["train.py:9:<module>"]
        assert (evaluate.fwd_thread, run.fwd_thread, inner.fwd_thread) == (1, 1, 0)

    def test_a_node_from_before_the_recording_shows_the_pass(self):
        *_, run = events(node("ExpBackward0", 20, 30, sequence=5, stack=(self.BACK,)), with_stack=True)
        assert (run.stack, run.fwd_thread) == (["train.py(9): <module>"], 0)

    def test_accumulating_a_gradient_has_no_forward_call(self):
        *_, run = events(node("torch::autograd::AccumulateGrad", 20, 30, sequence=-1, stack=(self.BACK,)), with_stack=True)
        assert run.stack == []

    def test_arrows_join_the_innermost_operator_and_its_node(self):
        t = op("aten::t", 0, 9, op("aten::transpose", 2, 8, sequence=5), sequence=5)
        shown = events(t, node("TBackward0", 20, 30, sequence=5))
        assert [(e.flow_id, e.flow_type, e.flow_start) for e in shown] == [
            (0, 0, False),
            (1, 1, True),
            (0, 0, False),
            (1, 1, False),
        ]


class TestPythonFunctions:
    """They are events like others, except that an operator's time does not depend on them."""

    def test_outside_of_operators_they_are_in_the_tree(self):
        step, function, add, length = events(
            scope("step", 0, 100, python_function("m.py(3): f", 10, 90, op("aten::add", 20, 30), python_function("len", 40, 50)))
        )
        assert (function.cpu_parent, add.cpu_parent, length.cpu_parent) == (step, function, function)
        assert (step.self_cpu_time_total, function.self_cpu_time_total, length.self_cpu_time_total) == (0.02, 0.06, 0.01)
        assert (function.is_python_function, function["kind"], function.activity_type) == (
            True,
            "python_function",
            "python_function",
        )
        assert "correlation_id" not in function

    def test_inside_an_operator_they_have_no_time_of_their_own(self):
        mine, function, add, length = events(
            op("aten::mine", 0, 100, python_function("m.py(3): f", 10, 90, op("aten::add", 20, 30), python_function("len", 40, 50)))
        )
        assert (mine.cpu_children, function.cpu_children) == ([function], [add, length])
        assert (add.cpu_parent, function.cpu_parent, length.cpu_parent) == (function, mine, function)
        assert (mine.self_cpu_time_total, add.self_cpu_time_total) == (0.09, 0.01)
        assert (function.self_cpu_time_total, length.self_cpu_time_total, function.cpu_time_total) == (0, 0, 0.08)

    def test_numbers(self):
        call = python_function("nn.Module: Linear_2", 10, 90, op("aten::add", 20, 30, python_function("len", 22, 25)))
        function, module, add, length = events(python_function("m.py(3): f", 0, 100, call))
        assert [e.python_id for e in (function, module, add, length)] == [1, 2, -1, 3]
        assert [e.python_parent_id for e in (function, module, add, length)] == [-1, 1, -1, 2]
        assert [e.python_module_id for e in (function, module, add, length)] == [-1, 2, -1, -1]


def test_metadata_only_when_asked_for():
    shown = events(op("add", 0, 1), python_function("f", 2, 3), scope("s", 4, 5), expose_metadata=True)
    assert [e._metadata_json for e in shown] == ['"Ev Idx": 0', "", '"Ev Idx": 2']
    assert events(op("add", 0, 1))[0]._metadata_json == ""


def test_memory_made_inside():
    session = record([op("aten::linear", 0, 100, op("aten::addmm", 20, 90)), op("aten::add", 200, 300)])
    log = MemoryLog(
        time_ns=np.array([10, 30, 40, 250, 400]),
        track=np.zeros(5, "i4"),
        address=np.arange(5),
        size_bytes=np.array([1, 20, -4, 300, 5000]),
        total_bytes=np.array([1, 21, 17, 317, 5317]),
        event=np.array([0, 1, 1, 2, -1]),
    )
    linear, addmm, add = EventList.of(session.replace(memory=log, info=Info(profile_memory=True)))
    assert [e.cpu_memory_usage for e in (linear, addmm, add)] == [17, 16, 300]
    assert [e.self_cpu_memory_usage for e in (linear, addmm, add)] == [1, 16, 300]


def test_device_events_have_device_time():
    tracks = [Track(1, 1), Track(7, 7, "stream", "NPU", 2)]
    kernel = Event(Label("MatMul", "kernel"), 1_000, 5_000, tid=7)
    session = record([op("aten::mm", 0, 3_000), kernel], info=Info(use_device="npu"), tracks=tracks)
    mm, matmul = EventList.of(session)
    assert (matmul.device_type, matmul["device_type"], matmul.device_index, matmul.device_resource_id) == (
        DeviceType.NPU,
        "NPU",
        2,
        7,
    )
    assert (matmul.cpu_time_total, matmul.device_time_total, matmul.self_device_time_total) == (0, 4, 4)
    assert (mm.cpu_time_total, mm.device_time_total) == (3, 0)


def test_interval():
    assert Interval(3, 10).elapsed_us() == 7
