"""A session behind the interface of torch's `kineto_results`, for libraries that read profiles below `events()`."""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..experimental_config import RecordScope
from ..model import tree
from ..model.recorded_events import RecordedEvent, events_of
from ..model.recording import Recording
from ..model.session import Session, TensorInput
from . import chrome_trace

__all__ = ["EventType", "KinetoEvent", "KinetoResults", "ProfilerEvent"]

# `file.py(45): inner`, how functions of Python are called in a recording
_PLACE = re.compile(r"(?P<file>.*)\((?P<line>\d+)\): (?P<function>.*)")


class EventType(enum.Enum):
    """The kind of fields that an event of the tree has."""

    TorchOp = 0
    Backend = 1
    Vulkan = 2
    Allocation = 3
    PyCall = 5
    PyCCall = 6
    Kineto = 7


class TensorMetadata(NamedTuple):
    """A tensor among the arguments of a call. Recordings keep neither addresses nor identities of tensors."""

    sizes: list[int]
    strides: list[int]
    dtype: Any
    dim: int
    id: None = None
    allocation_id: None = None
    impl_ptr: None = None
    storage_data_ptr: None = None


class TorchOpFields(NamedTuple):
    """The fields of an operator or a `record_function`."""

    name: str
    scope: RecordScope
    sequence_number: int
    inputs: list[Any]
    allow_tf32_cublas: bool = False


class PyFrameState(NamedTuple):
    """A place in Python code."""

    file_name: str
    line_number: int
    function_name: str


class PyCallFields(NamedTuple):
    """The fields of a function written in Python."""

    callsite: PyFrameState
    caller: PyFrameState | None
    module: None = None
    optimizer: None = None


class PyCCallFields(NamedTuple):
    """The fields of a function written in C."""

    caller: PyFrameState | None


class AllocationFields(NamedTuple):
    """The fields of storage that was made or freed."""

    ptr: int
    alloc_size: int  # negative for a free
    total_allocated: int  # after it
    device: Any
    allocation_id: int  # the same for both ends of a storage's life
    total_reserved: int = 0
    id: None = None


class KinetoFields(NamedTuple):
    """The fields of an event that is neither an operator nor a function."""


def _says(look: Callable[[RecordedEvent], Any]) -> Any:
    return lambda self: look(self._event)


def _reads(look: Callable[[RecordedEvent], Any]) -> property:
    return property(lambda self: look(self._event))


class KinetoEvent:
    """An event whose facts are methods."""

    def __init__(self, event: RecordedEvent) -> None:
        self._event = event

    name = _says(lambda event: event["name"])
    overload_name = _says(lambda event: event.overload_name)
    start_ns = _says(lambda event: event["start_ns"])
    end_ns = _says(lambda event: event["end_ns"])
    duration_ns = _says(lambda event: event["duration_ns"])
    device_type = _says(lambda event: event.device_type)
    device_index = _says(lambda event: event.device_index)
    device_resource_id = _says(lambda event: event.device_resource_id)
    start_thread_id = _says(lambda event: event.thread)
    end_thread_id = _says(lambda event: event.thread)
    fwd_thread_id = _says(lambda event: event.fwd_thread)
    sequence_nr = _says(lambda event: event.sequence_nr)
    scope = _says(lambda event: event.scope)
    shapes = _says(lambda event: event.input_shapes)
    structured_input_shapes = _says(lambda event: event.structured_input_shapes)
    structured_input_strides = _says(lambda event: event.structured_input_strides)
    dtypes = _says(lambda event: event.input_dtypes)
    concrete_inputs = _says(lambda event: event.concrete_inputs)
    kwinputs = _says(lambda event: event.kwinputs)
    stack = _says(lambda event: event.recorded_stack())
    flops = _says(lambda event: event.flops)
    correlation_id = _says(lambda event: event.id)
    linked_correlation_id = _says(lambda event: event.linked_correlation_id)
    external_id = _says(lambda event: event.external_id)
    flow_id = _says(lambda event: event.flow_id)
    flow_type = _says(lambda event: event.flow_type)
    flow_start = _says(lambda event: event.flow_start)
    activity_type = _says(lambda event: event.activity_type)
    is_async = _says(lambda event: event.is_async)
    is_user_annotation = _says(lambda event: event.is_user_annotation)
    is_python_function = _says(lambda event: event.is_python_function)
    python_id = _says(lambda event: event.python_id)
    python_parent_id = _says(lambda event: event.python_parent_id)
    python_module_id = _says(lambda event: event.python_module_id)
    module_hierarchy = _says(lambda event: event.module_hierarchy)
    is_hidden_event = _says(lambda event: False)
    metadata_json = _says(lambda event: event._metadata_json)
    extra_meta = _says(lambda event: {})
    nbytes = _says(lambda event: event.get("bytes", 0))
    # -1: device times are events of their own
    cuda_elapsed_us = _says(lambda event: -1)
    privateuse1_elapsed_us = _says(lambda event: -1)


class ProfilerEvent:
    """An event in the tree of everything that was recorded, functions of Python included."""

    def __init__(self, event: RecordedEvent, dtype: Callable[[str], Any]) -> None:
        self._event = event
        self._dtype = dtype
        self.parent: ProfilerEvent | None = None
        self.children: list[ProfilerEvent | AllocationEvent] = []

    name = _reads(lambda event: event["name"])
    overload_name = _reads(lambda event: event.overload_name)
    id = _reads(lambda event: event.id)
    correlation_id = _reads(lambda event: event.id)
    start_tid = _reads(lambda event: event.thread)
    start_time_ns = _reads(lambda event: event["start_ns"])
    end_time_ns = _reads(lambda event: event["end_ns"])
    duration_time_ns = _reads(lambda event: event["duration_ns"])

    @functools.cached_property
    def tag(self) -> EventType:
        kind = self._event["kind"]
        if kind == "python_function":
            return EventType.PyCCall if self.name.startswith("<built-in ") else EventType.PyCall
        return EventType.TorchOp if kind in ("op", "scope") else EventType.Kineto

    @functools.cached_property
    def extra_fields(self) -> TorchOpFields | PyCallFields | PyCCallFields | KinetoFields:
        event = self._event
        if self.tag is EventType.TorchOp:
            inputs = [self._input(value) for value in event._recording.inputs(event._row)]
            return TorchOpFields(self.name, RecordScope(event.scope), event.sequence_nr, inputs)
        if self.tag is EventType.PyCall:
            return PyCallFields(_place(self.name), self._caller())
        return PyCCallFields(self._caller()) if self.tag is EventType.PyCCall else KinetoFields()

    @property
    def typed(self) -> tuple[EventType, Any]:
        return self.tag, self.extra_fields

    def _caller(self) -> PyFrameState | None:
        above = self.parent
        while above is not None and above.tag is not EventType.PyCall:
            above = above.parent
        return None if above is None else _place(above.name)

    def _input(self, value: Any) -> Any:
        if isinstance(value, TensorInput):
            return TensorMetadata(list(value.shape), list(value.strides), self._dtype(value.dtype), len(value.shape))
        if isinstance(value, list | tuple) and any(isinstance(item, TensorInput) for item in value):
            return [self._input(item) for item in value]
        # torch: of what is not a tensor, only numbers
        return value if isinstance(value, bool | int | float | complex) else None


class AllocationEvent:
    """Storage made or freed, in the tree. `id` is negative: other events are numbered from 1."""

    name = "[memory]"
    overload_name = ""
    correlation_id = 0
    duration_time_ns = 0
    tag = EventType.Allocation

    def __init__(self, id: int, start_tid: int, time_ns: int, fields: AllocationFields, parent: ProfilerEvent | None) -> None:
        self.id = id
        self.start_tid = start_tid
        self.start_time_ns = self.end_time_ns = time_ns
        self.extra_fields = fields
        self.parent = parent
        self.children: list[ProfilerEvent | AllocationEvent] = []

    @property
    def typed(self) -> tuple[EventType, AllocationFields]:
        return self.tag, self.extra_fields


def _place(name: str) -> PyFrameState:
    match = _PLACE.fullmatch(name)
    return PyFrameState(match["file"], int(match["line"]), match["function"]) if match else PyFrameState(name, 0, name)


class KinetoResults:
    """The object that `prof.profiler.kineto_results` gives. `dtype` and `device` turn the names of element types and devices into objects for them."""

    def __init__(self, session: Session, dtype: Callable[[str], Any] = str, device: Callable[[str], Any] = str) -> None:
        self._session = session
        self._dtype = dtype
        self._device = device

    def events(self) -> list[KinetoEvent]:
        """All events, in order of start."""
        return [KinetoEvent(event) for event in self._recording.events]

    def experimental_event_tree(self) -> list[ProfilerEvent | AllocationEvent]:
        """Events and changes of memory that are inside no other event, each event with what is inside it, in order of start."""
        return self._roots

    def trace_start_ns(self) -> int:
        return self._session.info.started_ns

    def save(self, path: str) -> None:
        """Write the trace file."""
        chrome_trace.write(self._session, path)

    @functools.cached_property
    def _recording(self) -> Recording:
        events = events_of(self._session)
        return events[0]._recording if events else Recording(self._session)

    @functools.cached_property
    def _roots(self) -> list[ProfilerEvent | AllocationEvent]:
        nodes = {
            row: ProfilerEvent(event, self._dtype)
            for row, event in enumerate(self._recording.events)
            if event["kind"] != "memory"  # of all changes, not of those alone that are events
        }
        for row, around in enumerate(tree.parents(self._session).tolist()):
            if row in nodes:
                nodes[row].parent = nodes.get(around)
        found: list[ProfilerEvent | AllocationEvent] = [*nodes.values(), *self._changes(nodes)]
        if len(found) > len(nodes):
            found.sort(key=lambda node: node.start_time_ns)
        roots: list[ProfilerEvent | AllocationEvent] = []
        for node in found:
            (roots if node.parent is None else node.parent.children).append(node)
        return roots

    def _changes(self, nodes: dict[int, ProfilerEvent]) -> Iterator[AllocationEvent]:
        log = self._session.memory
        if log is None:
            return
        devices = [self._device("cpu" if t.device_type == "CPU" else f"npu:{t.device_index}") for t in self._session.tracks]
        columns = (log.time_ns, log.track, log.address, log.size_bytes, log.total_bytes, log.event)
        live: dict[int, int] = {}  # allocations by address
        count = 0
        for number, row in enumerate(zip(*(column.tolist() for column in columns), strict=True), 1):
            time_ns, track, address, size, total, event = row
            if size > 0 or address not in live:
                count += 1
                live[address] = count
            allocation = live[address] if size > 0 else live.pop(address)
            fields = AllocationFields(address, size, total, devices[track], allocation)
            yield AllocationEvent(-number, track + 1, time_ns, fields, nodes.get(event))
