"""A session behind torch's `kineto_results`."""

import json

import numpy as np

import mindtorch_v2 as torch
from mindtorch_v2._C import _profiler as names
from mindtorch_v2.profiler.device_type import DeviceType
from mindtorch_v2.profiler.experimental_config import RecordScope
from mindtorch_v2.profiler.model.session import Frame, Info, MemoryLog, TensorInput, empty_session
from mindtorch_v2.profiler.output.kineto_results import EventType, KinetoResults, PyFrameState

from .by_hand import op, python_function, record, scope

MATRIX = TensorInput((2, 3), (3, 1), "float32")


def results(*recorded, **info):
    return KinetoResults(record(recorded, info=Info(**info)), dtype=lambda name: f"torch.{name}")


def test_events_answer_by_methods():
    stack = (Frame("m.py", 3, "f"),)
    (add,) = results(
        op("aten::add", 5_000, 8_000, inputs=(MATRIX, 2), stack=stack, sequence=4, tid=77),
        record_shapes=True,
        with_stack=True,
        pid=9,
    ).events()
    assert (add.name(), add.start_ns(), add.end_ns(), add.duration_ns()) == ("aten::add", 5_000, 8_000, 3_000)
    assert (add.start_thread_id(), add.end_thread_id(), add.fwd_thread_id(), add.device_resource_id()) == (1, 1, 0, 77)
    assert (add.device_type(), add.device_index(), add.activity_type()) == (DeviceType.CPU, 9, "cpu_op")
    assert (add.shapes(), add.dtypes(), add.concrete_inputs()) == ([[2, 3], []], ["float", "Scalar"], [None, 2])
    assert (add.stack(), add.sequence_nr(), add.scope()) == (["m.py(3): f"], 4, 0)
    assert (add.correlation_id(), add.linked_correlation_id(), add.is_async(), add.is_hidden_event()) == (1, 0, False, False)


def test_all_events_are_there():
    found = results(op("to", 0, 9, op("to", 1, 8)), scope("ProfilerStep#3", 10, 20)).events()
    assert [e.name() for e in found] == ["to", "to", "ProfilerStep#3"]
    assert [e.is_user_annotation() for e in found] == [False, False, True]


def test_nothing_recorded():
    nothing = KinetoResults(empty_session(Info(started_ns=7)))
    assert (nothing.events(), nothing.experimental_event_tree(), nothing.trace_start_ns()) == ([], [], 7)


class TestTree:
    def test_everything_is_in_it(self):
        call = python_function("m.py(3): f", 10, 90, op("aten::add", 20, 30), python_function("<built-in function len>", 40, 50))
        (step,) = results(scope("step", 0, 100, call)).experimental_event_tree()
        (function,) = step.children
        add, length = function.children
        assert (step.parent, function.parent, add.parent) == (None, step, function)
        assert [e.tag for e in (step, function, add, length)] == [
            *(EventType.TorchOp, EventType.PyCall, EventType.TorchOp, EventType.PyCCall)
        ]
        assert function.extra_fields.callsite == PyFrameState("m.py", 3, "f")
        assert function.extra_fields.caller is None
        assert length.extra_fields.caller == PyFrameState("m.py", 3, "f")
        assert (add.start_time_ns, add.end_time_ns, add.duration_time_ns, add.start_tid) == (20, 30, 10, 1)

    def test_fields_of_an_operator(self):
        (cat,) = results(
            op("aten::cat", 0, 1, inputs=([MATRIX, MATRIX], 1, "x"), sequence=3), record_shapes=True
        ).experimental_event_tree()
        tag, fields = cat.typed
        assert (tag, fields.name, fields.scope, fields.sequence_number) == (EventType.TorchOp, "aten::cat", RecordScope.FUNCTION, 3)
        (first, second), number, text = fields.inputs
        assert (first.sizes, second.strides, first.dtype, first.dim) == ([2, 3], [3, 1], "torch.float32", 2)
        assert (number, text) == (1, None)

    def test_is_the_same_each_time(self):
        kineto = results(op("aten::add", 0, 1))
        assert kineto.experimental_event_tree()[0] is kineto.experimental_event_tree()[0]


def test_a_profile_of_a_program():
    with torch.profiler.profile(record_shapes=True) as prof:
        torch.ones(2, 3).sum()
    (_, total) = prof.profiler.kineto_results.experimental_event_tree()
    (tensor, *_) = total.extra_fields.inputs
    assert (total.name, tensor.sizes, tensor.dtype) == ("aten::sum", [2, 3], torch.float32)


def test_fields_have_torchs_names():
    with torch.profiler.profile(record_shapes=True, profile_memory=True) as prof:
        torch.ones(2, 3).sum()
    event = prof.profiler.kineto_results.experimental_event_tree()[1]
    assert isinstance(event, names._ProfilerEvent)
    assert isinstance(event.extra_fields, names._ExtraFields_TorchOp)
    assert isinstance(event.extra_fields.inputs[0], names._TensorMetadata)
    assert isinstance(event.children[0].extra_fields, names._ExtraFields_Allocation)
    assert event.children[0].tag is names._EventType.Allocation


class TestMemoryInTheTree:
    def all_events(self, events):
        return [found for event in events for found in (event, *self.all_events(event.children))]

    def test_changes_stand_inside_their_operators(self):
        x = torch.ones(3, 3)
        with torch.profiler.profile(profile_memory=True) as prof:
            y = x + x
            del y
        add, free = prof.profiler.kineto_results.experimental_event_tree()
        (made,) = add.children
        assert (made.name, made.tag, made.parent, made.children) == ("[memory]", EventType.Allocation, add, [])
        assert (free.name, free.tag, free.parent, free.children) == ("[memory]", EventType.Allocation, None, [])
        tag, fields = made.typed
        assert tag is EventType.Allocation
        assert (fields.alloc_size, free.extra_fields.alloc_size) == (36, -36)
        assert fields.ptr == free.extra_fields.ptr != 0
        assert fields.allocation_id == free.extra_fields.allocation_id
        assert fields.total_allocated - free.extra_fields.total_allocated == 36
        assert (fields.total_reserved, fields.device) == (0, torch.device("cpu"))
        assert add.start_time_ns <= made.start_time_ns == made.end_time_ns <= add.end_time_ns < free.start_time_ns
        assert (made.duration_time_ns, made.correlation_id, made.start_tid) == (0, 0, add.start_tid)

    def test_all_changes_are_there_in_order_of_time(self):
        with torch.profiler.profile(profile_memory=True, with_stack=True) as prof:
            net = torch.nn.Linear(4, 4)
            net(torch.ones(2, 4)).sum().backward()
            del net
        results = prof.profiler.kineto_results
        found = self.all_events(results.experimental_event_tree())
        changes = [event for event in found if event.tag is EventType.Allocation]
        log = prof.session.memory
        facts = [(e.start_time_ns, e.extra_fields.ptr, e.extra_fields.alloc_size, e.extra_fields.total_allocated) for e in changes]
        assert sorted(facts) == sorted(
            zip(*(column.tolist() for column in (log.time_ns, log.address, log.size_bytes, log.total_bytes)))
        )
        assert len({event.id for event in found}) == len(found) > len(changes) > 5
        for event in found:
            times = [child.start_time_ns for child in event.children]
            assert times == sorted(times)
            for child in event.children:
                assert event.start_time_ns <= child.start_time_ns <= child.end_time_ns <= event.end_time_ns

    def test_an_address_that_is_used_again_is_another_allocation(self):
        log = MemoryLog(
            time_ns=np.array([1, 2, 3, 4, 5]),
            track=np.zeros(5, "i4"),
            address=np.array([8, 8, 8, 16, 8]),
            size_bytes=np.array([4, -4, 4, -9, -4]),
            total_bytes=np.array([4, 0, 4, -5, -9]),
            event=np.full(5, 0),
        )
        session = record([op("aten::add", 0, 9)], info=Info(profile_memory=True)).replace(memory=log)
        (add,) = KinetoResults(session).experimental_event_tree()
        assert [change.extra_fields.allocation_id for change in add.children] == [1, 1, 2, 3, 2]

    def test_a_change_outside_of_operators_has_its_name_among_the_events(self):
        x = torch.ones(3, 3)
        with torch.profiler.profile(profile_memory=True) as prof:
            del x
        (free,) = prof.profiler.kineto_results.events()
        assert (free.name(), free.nbytes()) == ("[memory]", -36)


def test_saves_the_trace(tmp_path):
    results(op("aten::add", 0, 1)).save(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert any(e["name"] == "aten::add" for e in trace["traceEvents"])
