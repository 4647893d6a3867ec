"""The events of a session: each looks its facts up in the columns when they are asked for."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..device_type import DeviceType
from . import inputs, links, modules
from .events import FunctionEvent, Interval, Kernel
from .recording import Recording
from .session import Session

__all__ = ["RecordedEvent", "events_of", "recording_of", "rows_of"]

Column = np.ndarray[Any, np.dtype[Any]]
Look = Callable[[Recording, int], Any]

_ACTIVITY = {
    "op": "cpu_op",
    "scope": "user_annotation",
    "python_function": "python_function",
    "memory": None,  # torch: of those outside of operators, which alone are events
    "runtime": "privateuse1_runtime",
    "kernel": "kernel",
    "gc": "python_function",
}
_FORWARD_BACKWARD = 1  # torch's number for the arrow from an operator to its node


def events_of(session: Session) -> list[RecordedEvent]:
    """The events of a session, in order of start."""
    recording = Recording(session)
    make, events = object.__new__, recording.events
    for row in range(len(session)):
        event = make(RecordedEvent)
        _set_recording(event, recording)
        _set_row(event, row)
        events.append(event)
    return [events[row] for row in recording.rows.tolist()]


class _MadeWhenAsked(dict[int, "RecordedEvent"]):
    """The events of a recording by row, of which few are asked for."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def __missing__(self, row: int) -> RecordedEvent:
        event = self[row] = object.__new__(RecordedEvent)
        _set_recording(event, self._recording)
        _set_row(event, row)
        return event


def recording_of(session: Session) -> Recording:
    """A recording whose events are made when they are asked for, for answers that need few of them."""
    recording = Recording(session)
    recording.events = _MadeWhenAsked(recording)
    return recording


def rows_of(events: Sequence[Any]) -> tuple[Recording, Column] | None:
    """The recording these events are of, and their rows; `None` if they are not of one recording or do not say what it says."""
    if set(map(type, events)) != {RecordedEvent}:
        return None
    recording, *others = set(map(operator.attrgetter("_recording"), events))
    if others or not all(recording.events[row].is_unchanged() for row in recording.opened):
        return None
    return recording, np.fromiter(map(operator.attrgetter("_row"), events), np.int64, len(events))


class _Fact:
    """An attribute that is looked up once, on the first reading."""

    def __init__(self, look: Look) -> None:
        self.look = look

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, event: RecordedEvent | None, owner: type | None = None) -> Any:
        if event is None:
            return self
        recording, row = event._recording, event._row
        value = self.look(recording, row)
        if type(value) in (list, dict, Interval):
            recording.opened.add(row)
        object.__setattr__(event, self.name, value)
        return value


def _fact(look: Look) -> Any:
    return _Fact(look)


def _whole_ns(name: str) -> Any:
    """The property, without what subtracting times in microseconds leaves below a nanosecond."""
    value: Callable[[FunctionEvent], float] = vars(FunctionEvent)[name].fget
    return property(lambda self: round(value(self), 3))


def _time_range(recording: Recording, row: int) -> Interval:
    session, zero = recording.session, recording.session.info.started_ns
    return Interval((session.start_ns.item(row) - zero) / 1000, (session.end_ns.item(row) - zero) / 1000)


def _parent(recording: Recording, row: int) -> RecordedEvent | None:
    parent = recording.parent.item(row)
    return None if parent < 0 else recording.events[parent]


def _stack(recording: Recording, row: int) -> list[str]:
    return _lines(recording, recording.stack.item(row))


def _lines(recording: Recording, stack: int) -> list[str]:
    return [recording.places[frame] for frame in recording.session.stack_table[stack]] if stack >= 0 else []


def _recorded_stack(recording: Recording, row: int) -> list[str]:
    column = recording.session.stack
    frames = recording.frames(-1 if column is None else column.item(row))
    return [f"{frame.file}:{frame.line}:{frame.function}" for frame in frames]


def _operator_id(recording: Recording, row: int) -> int:
    operator = recording.operator.item(row)
    return int(recording.ids.item(operator)) if operator >= 0 else 0


def _kernels(recording: Recording, row: int) -> list[Kernel]:
    rows = recording.kernels.get(row, [])
    return [Kernel(recording.label(i).name, recording.track(i).device_index, recording.duration_ns.item(i) / 1000) for i in rows]


def _metadata(recording: Recording, row: int) -> str:
    shown = recording.session.info.expose_metadata and recording.label(row).kind in ("op", "scope")
    return f'"Ev Idx": {row}' if shown else ""


def _python_ids(recording: Recording, row: int) -> tuple[int, int]:
    ids, parents = recording.python_ids
    if ids is None or parents is None or not ids.item(row):
        return -1, -1
    return ids.item(row), parents.item(row) or -1


def _is_memory(recording: Recording, row: int) -> bool:
    return recording.label(row).kind == "memory"


def _forward_thread(recording: Recording, row: int) -> int:
    return int((recording.session.track if _is_memory(recording, row) else recording.forward_track).item(row)) + 1


def _device_resource(recording: Recording, row: int) -> int:
    track = recording.track(row)
    return track.thread_id if track.device_type == "CPU" else track.tid


def _device_index(recording: Recording, row: int) -> int:
    track = recording.track(row)
    if _is_memory(recording, row):
        return 0
    return recording.session.info.pid if track.device_type == "CPU" else track.device_index  # torch: the process, on a CPU


class RecordedEvent(FunctionEvent):
    """An event of a session. Has the attributes of `FunctionEvent`, and reads like a mapping of what was recorded."""

    __slots__ = ("_recording", "_row")
    _recording: Recording
    _row: int

    id = _fact(lambda recording, row: recording.device_id.item(row))
    node_id = -1
    name = _fact(lambda recording, row: recording.names[recording.session.label.item(row)])
    overload_name = _fact(lambda recording, row: recording.label(row).overload if recording.session.info.overload_names else "")
    trace_name = _fact(lambda recording, row: None if _is_memory(recording, row) else recording.label(row).name)
    time_range = _fact(_time_range)
    thread = _fact(lambda recording, row: recording.session.track.item(row) + 1)
    fwd_thread = _fact(_forward_thread)
    kernels = _fact(_kernels)
    count = 1
    cpu_children = _fact(lambda recording, row: [recording.events[child] for child in recording.children(row)])
    cpu_parent = _fact(_parent)
    input_shapes = _fact(lambda recording, row: inputs.tensor_shapes(recording.inputs(row)))
    concrete_inputs = _fact(lambda recording, row: inputs.concrete(recording.inputs(row)))
    kwinputs = _fact(lambda recording, row: {})
    stack = _fact(_stack)
    scope = _fact(lambda recording, row: recording.label(row).scope)
    use_device = _fact(lambda recording, row: recording.session.info.use_device)
    cpu_memory_usage = _fact(lambda recording, row: recording.memory_bytes.item(row))
    device_memory_usage = 0
    is_async = False
    is_remote = False
    sequence_nr = _fact(lambda recording, row: recording.session.sequence.item(row))
    device_type = _fact(lambda recording, row: DeviceType[recording.track(row).device_type])
    device_index = _fact(_device_index)
    device_resource_id = _fact(_device_resource)
    is_legacy = False
    flops = _fact(lambda recording, row: recording.flops.item(row))
    is_user_annotation = _fact(lambda recording, row: recording.label(row).kind == "scope")
    is_python_function = _fact(lambda recording, row: recording.label(row).kind == "python_function")
    activity_type = _fact(lambda recording, row: _ACTIVITY[recording.label(row).kind])
    self_cpu_percent = -1
    total_cpu_percent = -1
    total_device_percent = -1
    _metadata_json = _fact(_metadata)
    flow_id = _fact(lambda recording, row: recording.arrows.get(row, (0, False))[0])
    flow_type = _fact(lambda recording, row: _FORWARD_BACKWARD if row in recording.arrows else 0)
    flow_start = _fact(lambda recording, row: recording.arrows.get(row, (0, False))[1])
    external_id = _fact(
        lambda recording, row: 0 if _is_memory(recording, row) else _operator_id(recording, row) or recording.ids.item(row)
    )
    linked_correlation_id = _fact(_operator_id)
    event_metadata = None
    structured_input_shapes = _fact(lambda recording, row: inputs.shapes(recording.inputs(row)))
    structured_input_strides = _fact(lambda recording, row: inputs.strides(recording.inputs(row)))
    input_dtypes = _fact(lambda recording, row: inputs.dtypes(recording.inputs(row)))
    python_id = _fact(lambda recording, row: _python_ids(recording, row)[0])
    python_parent_id = _fact(lambda recording, row: _python_ids(recording, row)[1])
    python_module_id = _fact(lambda recording, row: links.module_id(recording.label(row)))
    module = _fact(lambda recording, row: modules.path(recording.module(row)))
    module_hierarchy = _fact(lambda recording, row: modules.hierarchy(recording.module(row)))
    phase = _fact(lambda recording, row: recording.phase(row))

    # A Python function inside an operator: its time and memory are the operator's.
    _has_no_self = property(
        lambda self: not self._recording.has_self.item(self._row) or self.device_type != DeviceType.CPU or self.is_async
    )

    cpu_time_total = _whole_ns("cpu_time_total")
    self_cpu_time_total = _whole_ns("self_cpu_time_total")
    device_time_total = _whole_ns("device_time_total")
    self_device_time_total = _whole_ns("self_device_time_total")

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        self._recording.opened.add(self._row)

    def __setstate__(self, state: Any) -> None:
        for name, value in itertools.chain.from_iterable(part.items() for part in state if part):
            object.__setattr__(self, name, value)

    def is_unchanged(self) -> bool:
        """Whether it still says what was recorded, whatever a table noted in it."""
        return all(self._is_as_recorded(name, value) for name, value in vars(self).items() if not name.endswith("_percent"))

    def _is_as_recorded(self, name: str, value: Any) -> bool:
        fact = getattr(RecordedEvent, name, value)  # an attribute of someone else's is no fact
        recorded = fact.look(self._recording, self._row) if isinstance(fact, _Fact) else fact
        return vars(value) == vars(recorded) if isinstance(value, Interval) else bool(value == recorded)

    def __getitem__(self, key: str) -> Any:
        if key not in self:
            raise KeyError(key)
        return KEYS[key](self._recording, self._row)

    def __contains__(self, key: object) -> bool:
        return key in self.keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def get(self, key: str, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default

    def keys(self) -> list[str]:
        """What is known of this event: what was not asked for is absent."""
        session, kind = self._recording.session, self._recording.label(self._row).kind
        keys = list(ALWAYS)
        if kind == "op":
            keys += CORRELATION
            if session.info.record_shapes:
                keys += SHAPES
            if session.info.with_flops:
                keys += FLOPS
            if session.info.profile_memory:
                keys += MEMORY
        if kind == "memory":
            keys += CHANGE
        if session.info.with_stack and kind in ("op", "scope"):
            keys += STACK
        if session.info.with_modules and (kind in ("op", "scope") or self.python_module_id >= 0):
            keys += MODULES
        return keys

    def recorded_stack(self) -> list[str]:
        """Where it was called, also inside a backward pass, where `stack` says what the forward pass was at."""
        column = self._recording.session.stack
        return _lines(self._recording, -1 if column is None else column.item(self._row))

    def values(self) -> list[Any]:
        return [self[key] for key in self.keys()]

    def items(self) -> list[tuple[str, Any]]:
        return [(key, self[key]) for key in self.keys()]


# The descriptors of the slots, because a constructor's call would double the 0.3 µs an event, and assignments are noticed as changes.
_set_recording, _set_row = vars(RecordedEvent)["_recording"].__set__, vars(RecordedEvent)["_row"].__set__

# What an event says as a mapping.
ALWAYS: dict[str, Look] = {
    "name": lambda recording, row: recording.label(row).name,
    "kind": lambda recording, row: recording.label(row).kind,
    "device_type": lambda recording, row: recording.track(row).device_type,
    "start_ns": lambda recording, row: recording.session.start_ns.item(row),
    "end_ns": lambda recording, row: recording.session.end_ns.item(row),
    "duration_ns": lambda recording, row: recording.duration_ns.item(row),
    "step": lambda recording, row: recording.session.step.item(row),
    "thread_id": lambda recording, row: recording.track(row).thread_id,
}
CORRELATION: dict[str, Look] = {
    "correlation_id": lambda recording, row: recording.ids.item(row),
    "runtime_name": lambda recording, row: recording.runtime_name(row),
    "runtime_tid": lambda recording, row: recording.track(row).thread_id,
}
SHAPES: dict[str, Look] = {"input_shapes": lambda recording, row: inputs.shapes(recording.inputs(row))}
FLOPS: dict[str, Look] = {"flops": lambda recording, row: recording.flops.item(row)}
STACK: dict[str, Look] = {"stack": _recorded_stack}
MODULES: dict[str, Look] = {
    "module": lambda recording, row: modules.path(recording.module(row)),
    "module_hierarchy": lambda recording, row: modules.hierarchy(recording.module(row)),
    "phase": lambda recording, row: recording.phase(row),
}
MEMORY: dict[str, Look] = {
    "cpu_memory_allocated_before": lambda recording, row: recording.live_memory[0].item(row),
    "cpu_memory_allocated_after": lambda recording, row: recording.live_memory[1].item(row),
    "cpu_memory_allocated_delta": lambda recording, row: (recording.live_memory[1][row] - recording.live_memory[0][row]).item(),
}
CHANGE: dict[str, Look] = {
    "address": lambda recording, row: recording.change(row).address,
    "bytes": lambda recording, row: recording.change(row).size_bytes,
    "total_allocated": lambda recording, row: recording.change(row).total_bytes,
}
KEYS = CHANGE | ALWAYS | CORRELATION | SHAPES | FLOPS | STACK | MEMORY | MODULES
