"""The events of a session: each looks its facts up in the columns when they are asked for."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..device_type import DeviceType
from ..writing.garbage import paused_collection
from .events import FunctionEvent, Interval
from .facts import ATTRIBUTES, fresh
from .recording import Recording
from .session import Session

__all__ = ["RecordedEvent", "events_of", "recording_of", "rows_of"]

Column = np.ndarray[Any, np.dtype[Any]]


def events_of(session: Session) -> list[RecordedEvent]:
    """The events of a session, in order of start."""
    recording = Recording(session)
    make, events = object.__new__, recording.events
    with paused_collection():
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
    if others or not _says_what_was_recorded(recording):
        return None
    return recording, np.fromiter(map(operator.attrgetter("_row"), events), np.int64, len(events))


def _says_what_was_recorded(recording: Recording) -> bool:
    """Whether nobody changed an event, or a list that an event gave away."""
    if not all(recording.events[row].is_unchanged() for row in recording.written):
        return False
    return all(
        all(map(operator.eq, lists.values(), map(recording.facts[name].__getitem__, lists)))
        for name, lists in recording.lists.items()
    )


class _Fact:
    """An attribute of which the recording knows the value, unless another was written."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, event: RecordedEvent | None, owner: type | None = None) -> Any:
        return self if event is None else event._recording.facts[self.name][event._row]


class _ListFact(_Fact):
    """A list: every event gives its own away, the same each time."""

    def __get__(self, event: RecordedEvent | None, owner: type | None = None) -> Any:
        return self if event is None else event._recording.lists[self.name][event._row]


class _TimeRange(_Fact):
    def __get__(self, event: RecordedEvent | None, owner: type | None = None) -> _RecordedInterval | _TimeRange:
        if event is None:
            return self
        ranges, row = event._recording.ranges, event._row
        found = ranges.get(row)
        if found is None:
            found = ranges[row] = object.__new__(_RecordedInterval)
            _set_event(found, event)
        return found


class _RecordedInterval(Interval):
    """The time of an event, which notices when it is written to."""

    __slots__ = ("_event",)
    _event: RecordedEvent

    start = property(lambda self: self._read("start"), lambda self, value: self._write("start", value))
    end = property(lambda self: self._read("end"), lambda self, value: self._write("end", value))

    def _read(self, name: str) -> float:
        event = self._event
        if event._recording.written and name in vars(self):
            return vars(self)[name]
        return event._recording.facts[f"{name}_us"][event._row]

    def _write(self, name: str, value: float) -> None:
        vars(self)[name] = value
        self._event.time_range = self

    def __reduce__(self) -> tuple[Any, ...]:
        return Interval, (self.start, self.end)


def _fact() -> Any:
    return _Fact()


def _list_fact() -> Any:
    return _ListFact()


def _counts_other_children(recording: Recording, row: int) -> bool:
    """Whether someone has changed the list of an event's children, or can have changed one that counts in its place."""
    children, facts = recording.lists["cpu_children"].get(row), recording.facts
    return children is not None and (children != facts["cpu_children"][row] or not facts["has_plain_children"][row])


def _from_columns(name: str) -> property:
    """The property of `FunctionEvent`, from the column as long as nothing was changed that it depends on."""
    from_attributes: Callable[[FunctionEvent], Any] = vars(FunctionEvent)[name].fget
    depends_on_children = name.startswith("self_")

    def value(self: RecordedEvent) -> float:
        recording, row = self._recording, self._row
        if recording.written or (depends_on_children and _counts_other_children(recording, row)):
            return round(from_attributes(self), 3)
        return recording.facts[name][row]

    return property(value)


def _whole_ns(name: str) -> property:
    """The property, without what subtracting times in microseconds leaves below a nanosecond."""
    value: Callable[[FunctionEvent], float] = vars(FunctionEvent)[name].fget
    return property(lambda self: round(value(self), 3))


def _with_self(children: list[FunctionEvent]) -> Iterator[FunctionEvent]:
    """These events, and in place of Python functions without a time of their own, the events inside."""
    for child in children:
        if isinstance(child, RecordedEvent) and not child._recording.has_self.item(child._row):
            yield from _with_self(child.cpu_children)
        else:
            yield child


class RecordedEvent(FunctionEvent):
    """An event of a session. Has the attributes of `FunctionEvent`, and reads like a mapping of what was recorded."""

    __slots__ = ("_recording", "_row")
    _recording: Recording
    _row: int

    id = _fact()
    node_id = -1
    name = _fact()
    overload_name = _fact()
    trace_name = _fact()
    time_range: Any = _TimeRange()
    thread = _fact()
    fwd_thread = _fact()
    kernels = _list_fact()
    count = 1
    cpu_children = _list_fact()
    cpu_parent = _fact()
    input_shapes = _list_fact()
    concrete_inputs = _list_fact()
    kwinputs = _list_fact()
    stack = _list_fact()
    scope = _fact()
    use_device = _fact()
    cpu_memory_usage = _fact()
    device_memory_usage = 0
    is_async = False
    is_remote = False
    sequence_nr = _fact()
    device_type = _fact()
    device_index = _fact()
    device_resource_id = _fact()
    is_legacy = False
    flops = _fact()
    is_user_annotation = _fact()
    is_python_function = _fact()
    activity_type = _fact()
    self_cpu_percent = -1
    total_cpu_percent = -1
    total_device_percent = -1
    _metadata_json = _fact()
    flow_id = _fact()
    flow_type = _fact()
    flow_start = _fact()
    external_id = _fact()
    linked_correlation_id = _fact()
    event_metadata = None
    structured_input_shapes = _list_fact()
    structured_input_strides = _list_fact()
    input_dtypes = _list_fact()
    python_id = _fact()
    python_parent_id = _fact()
    python_module_id = _fact()
    module = _fact()
    module_hierarchy = _fact()
    phase = _fact()

    # A Python function inside an operator: its time and memory are the operator's.
    _has_no_self = property(
        lambda self: not self._recording.has_self.item(self._row) or self.device_type != DeviceType.CPU or self.is_async
    )

    @property
    def _counted_children(self) -> list[FunctionEvent]:
        return list(_with_self(self.cpu_children)) if self._recording.has_self.item(self._row) else []

    cpu_time_total = _from_columns("cpu_time_total")
    self_cpu_time_total = _from_columns("self_cpu_time_total")
    self_cpu_memory_usage = _from_columns("self_cpu_memory_usage")
    device_time_total = _whole_ns("device_time_total")
    self_device_time_total = _whole_ns("self_device_time_total")

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)
        if not name.endswith("_percent"):  # a table notes these, and nothing depends on them
            self._recording.written.add(self._row)

    def __setstate__(self, state: Any) -> None:
        for name, value in itertools.chain.from_iterable(part.items() for part in state if part):
            object.__setattr__(self, name, value)

    def is_unchanged(self) -> bool:
        """Whether it still says what was recorded, whatever was written to it."""
        return all(self._is_as_recorded(name, value) for name, value in vars(self).items() if not name.endswith("_percent"))

    def _is_as_recorded(self, name: str, value: Any) -> bool:
        facts, row = self._recording.facts, self._row
        if name == "time_range":
            return (value.start, value.end) == (facts["start_us"][row], facts["end_us"][row])
        # an attribute of someone else's is no fact
        return bool(value == (facts[name][row] if name in ATTRIBUTES else getattr(RecordedEvent, name, value)))

    def __getitem__(self, key: str) -> Any:
        keys, row = self._recording.keys, self._row
        if key not in keys[""][row]:
            raise KeyError(key)
        value = keys[key][row]
        return value if type(value) is not list else fresh(value)

    def __contains__(self, key: object) -> bool:
        return key in self._recording.keys[""][self._row]

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def get(self, key: str, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default

    def keys(self) -> list[str]:
        """Return what is known of this event; what was not asked for is absent."""
        return list(self._recording.keys[""][self._row])

    def recorded_stack(self) -> list[str]:
        """Return the place of the call, also inside a backward pass, where `stack` has that of the forward pass."""
        return list(self._recording.facts["recorded_stack"][self._row])

    def values(self) -> list[Any]:
        return [self[key] for key in self.keys()]

    def items(self) -> list[tuple[str, Any]]:
        return [(key, self[key]) for key in self.keys()]


# The descriptors of the slots, because a constructor's call would double the 0.3 µs an event, and assignments are noticed as changes.
_set_recording, _set_row = vars(RecordedEvent)["_recording"].__set__, vars(RecordedEvent)["_row"].__set__
_set_event = vars(_RecordedInterval)["_event"].__set__
