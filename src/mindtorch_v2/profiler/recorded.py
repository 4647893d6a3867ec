"""The events of a session: each looks its facts up in the columns when they are asked for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import inputs, links, tree
from .device_type import DeviceType
from .events import FunctionEvent, Interval
from .flops import flops
from .session import BACKWARD_FUNCTION, Frame, Label, Session, Track

__all__ = ["RecordedEvent", "Recording"]

Column = np.ndarray[Any, np.dtype[Any]]

_STEP = "ProfilerStep#"
_ACTIVITY = {
    "op": "cpu_op",
    "scope": "user_annotation",
    "python_function": "python_function",
    "memory": "cpu_instant_event",
    "runtime": "privateuse1_runtime",
    "kernel": "kernel",
    "gc": "python_function",
}
_FORWARD_BACKWARD = 1  # torch's number for the arrow from an operator to its node


class Recording:
    """A session and the events that stand for its rows."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.names = ["ProfilerStep*" if label.name.startswith(_STEP) else label.name for label in session.labels]
        self.opened: set[int] = set()  # rows that someone wrote to, or got something changeable from
        self.parent, self.rows = self._without_repeats(_forests(session))
        self._by_row = self._make_events()
        self.events = [self._by_row[row] for row in self.rows.tolist()]

    def _make_events(self) -> list[RecordedEvent]:
        # Neither a call nor a dictionary for each: 0.1 µs an event where a constructor takes 2.
        make, set_recording, set_row = object.__new__, RecordedEvent._recording.__set__, RecordedEvent._row.__set__  # type: ignore[attr-defined]
        events = []
        for row in range(len(self.session)):
            event = make(RecordedEvent)
            set_recording(event, self)
            set_row(event, row)
            events.append(event)
        return events

    def _without_repeats(self, parent: Column) -> tuple[Column, Column]:
        """Parents and rows without events that are all there is in an event of the same name, as torch leaves them out."""
        if not len(parent):
            return parent, np.empty(0, np.int64)
        numbers = {name: i for i, name in enumerate(dict.fromkeys(self.names))}
        name = np.array([numbers[name] for name in self.names], np.int32)[self.session.label]
        inside = parent >= 0
        alone = np.bincount(parent[inside], minlength=len(parent))[parent] == 1
        repeat = inside & alone & (name == name[parent])
        while (over := (parent >= 0) & repeat[parent]).any():
            parent[over] = parent[parent[over]]
        return parent, np.flatnonzero(~repeat)

    def is_unchanged(self) -> bool:
        """Whether the events still say what the session says."""
        return all(
            _same(value, FACTS[name](self, row))
            for row in self.opened
            for name, value in vars(self._by_row[row]).items()
            if name in FACTS and not name.endswith("_percent")
        )

    def event(self, row: int) -> RecordedEvent | None:
        return None if row < 0 else self._by_row[row]

    def label(self, row: int) -> Label:
        return self.session.labels[self.session.label.item(row)]

    def track(self, row: int) -> Track:
        return self.session.tracks[self.session.track.item(row)]

    def inputs(self, row: int) -> tuple[Any, ...]:
        column = self.session.inputs
        number = -1 if column is None or not self.session.info.record_shapes else column.item(row)
        return self.session.input_table[number] if number >= 0 else ()

    def frames(self, stack: int) -> list[Frame]:
        return [self.session.frames[i] for i in self.session.stack_table[stack]] if stack >= 0 else []

    def children(self, row: int) -> list[FunctionEvent]:
        order, starts = self._children
        return [self._by_row[child] for child in order[starts[row] : starts[row + 1]].tolist()]

    @functools.cached_property
    def _children(self) -> tuple[Column, Column]:
        """Rows in order of their parents, and where the children of each begin."""
        rows = self.rows[self.parent[self.rows] >= 0]
        order = rows[np.argsort(self.parent[rows], kind="stable")]
        return order, np.searchsorted(self.parent[order], np.arange(len(self.session) + 1))

    @functools.cached_property
    def duration_ns(self) -> Column:
        duration: Column = self.session.end_ns - self.session.start_ns
        return duration

    @functools.cached_property
    def on_cpu(self) -> Column:
        """Whether each event is on the CPU."""
        return np.array([track.device_type == "CPU" for track in self.session.tracks], bool)[self.session.track]

    def without_children(self, amount: Column) -> Column:
        """Of each event, what its children do not account for."""
        kept = np.zeros_like(amount)
        kept[self.rows] = amount[self.rows]
        return kept - tree.children_ns(kept, self.parent)

    @functools.cached_property
    def memory_bytes(self) -> Column:
        """Bytes made and not freed while each event was open on its thread."""
        total = np.zeros(len(self.session), np.int64)
        log = self.session.memory
        if log is not None:
            inside = log.event >= 0
            np.add.at(total, log.event[inside], log.size_bytes[inside])
            around = tree.parents(self.session)
            for rows in reversed(_levels(self.session)[1:]):
                np.add.at(total, around[rows], total[rows])
        return total

    @functools.cached_property
    def flops(self) -> Column:
        session = self.session
        counts = np.zeros(len(session), np.int64)
        if session.inputs is not None and session.info.with_flops:
            calls, which = np.unique(np.stack([session.label, session.inputs]), axis=1, return_inverse=True)
            known = [flops(session.labels[e].name, session.input_table[i]) if i >= 0 else 0 for e, i in calls.T.tolist()]
            counts = np.array(known, np.int64)[which.ravel()]
        return counts

    @functools.cached_property
    def forward_track(self) -> Column:
        """For events of a backward pass, the track on which the forward pass made their node; -1 for others."""
        first = links.first_forward(self.session)
        ours = links.backward(self.session) & (self.session.sequence >= 0)
        return np.where(ours, self.session.track[np.where(first >= 0, first, np.arange(len(first)))], -1)

    @functools.cached_property
    def stack(self) -> Column:
        """Into the session's table of stacks. Inside a backward pass: where the forward pass made the node."""
        session = self.session
        if session.stack is None:
            return np.full(len(session), -1, np.int32)
        node = self._node
        made = np.flatnonzero((node < 0) & (session.sequence >= 0))
        # one number for a node and a thread
        key = session.sequence * len(session.tracks)
        keys, where = np.unique(key[made] + session.track[made], return_index=True)
        stack = session.stack.copy()
        inside = np.flatnonzero(node >= 0)
        stack[inside] = -1
        if len(keys):
            asked = key[node[inside]] + self.forward_track[node[inside]]
            at = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
            found = (keys[at] == asked) & (session.sequence[node[inside]] >= 0)
            stack[inside[found]] = session.stack[made[where[at[found]]]]
        return stack

    @functools.cached_property
    def _node(self) -> Column:
        """The innermost node of a backward pass that each event is or is inside of; -1 for none."""
        is_node = np.array([label.scope == BACKWARD_FUNCTION for label in self.session.labels], bool)[self.session.label]
        node = np.where(is_node, np.arange(len(self.session)), -1)
        for rows in _levels(self.session)[1:]:
            inner = rows[(node[rows] < 0) & (self.parent[rows] >= 0)]
            node[inner] = node[self.parent[inner]]
        return node

    @functools.cached_property
    def arrows(self) -> dict[int, tuple[int, bool]]:
        """Number of the arrow between forward and backward that a row begins (True) or ends."""
        forward, back = links.flows(self.session)
        ends = {row: (i, False) for i, row in enumerate(back.tolist(), 1)}
        return ends | {row: (i, True) for i, row in enumerate(forward.tolist(), 1)}


def _forests(session: Session) -> Column:
    """Parents. Python functions are a forest of their own, so that recording them leaves the times of operators alone."""
    parent = tree.parents(session, skip=("python_function",))
    functions = np.array([label.kind == "python_function" for label in session.labels], bool)[session.label]
    if functions.any():
        others = tuple({label.kind for label in session.labels} - {"python_function"})
        parent[functions] = tree.parents(session, skip=others)[functions]
    on_device = np.array([track.device_type != "CPU" for track in session.tracks], bool)[session.track]
    parent[on_device] = -1
    return parent


def _levels(session: Session) -> list[Column]:
    """Rows by depth; everything around a row is in a list before its own."""
    order = np.argsort(session.depth, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(session.depth[order])) + 1) if len(order) else []


def _same(one: Any, other: Any) -> bool:
    return vars(one) == vars(other) if isinstance(one, Interval) else bool(one == other)


def _whole_ns(name: str) -> Any:
    """The property, without what subtracting times in microseconds leaves below a nanosecond."""
    value: Callable[[FunctionEvent], float] = vars(FunctionEvent)[name].fget
    return property(lambda self: round(value(self), 3))


class RecordedEvent(FunctionEvent):
    """An event of a session. Has the attributes of `FunctionEvent`, and reads like a mapping of what was recorded."""

    __slots__ = ("_recording", "_row")
    _recording: Recording
    _row: int

    cpu_time_total = _whole_ns("cpu_time_total")
    self_cpu_time_total = _whole_ns("self_cpu_time_total")
    device_time_total = _whole_ns("device_time_total")
    self_device_time_total = _whole_ns("self_device_time_total")

    def __getattr__(self, name: str) -> Any:
        fact = FACTS.get(name)
        if fact is None:
            raise AttributeError(f"'FunctionEvent' object has no attribute {name!r}", name=name, obj=self)
        value = fact(self._recording, self._row)
        if isinstance(value, list | dict | Interval):
            self._recording.opened.add(self._row)
        object.__setattr__(self, name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if name in FACTS:
            self._recording.opened.add(self._row)
        object.__setattr__(self, name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *FACTS})

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
        if session.info.with_stack and kind in ("op", "scope"):
            keys += STACK
        return keys

    def values(self) -> list[Any]:
        return [self[key] for key in self.keys()]

    def items(self) -> list[tuple[str, Any]]:
        return [(key, self[key]) for key in self.keys()]


Fact = Callable[[Recording, int], Any]


def _time_range(recording: Recording, row: int) -> Interval:
    session, zero = recording.session, recording.session.info.started_ns
    return Interval((session.start_ns.item(row) - zero) / 1000, (session.end_ns.item(row) - zero) / 1000)


def _stack(recording: Recording, row: int) -> list[str]:
    return [f"{frame.file}({frame.line}): {frame.function}" for frame in recording.frames(recording.stack.item(row))]


def _recorded_stack(recording: Recording, row: int) -> list[str]:
    column = recording.session.stack
    frames = recording.frames(-1 if column is None else column.item(row))
    return [f"{frame.file}:{frame.line}:{frame.function}" for frame in frames]


def _device_resource(recording: Recording, row: int) -> int:
    track = recording.track(row)
    return track.thread_id if track.device_type == "CPU" else track.tid


def _device_index(recording: Recording, row: int) -> int:
    track = recording.track(row)
    return recording.session.info.pid if track.device_type == "CPU" else track.device_index  # torch: the process, on a CPU


def _constant(value: Any) -> Fact:
    return lambda recording, row: value


# The attributes of an event, as torch fills them.
FACTS: dict[str, Fact] = {
    "id": lambda recording, row: row + 1,
    "node_id": _constant(-1),
    "name": lambda recording, row: recording.names[recording.session.label.item(row)],
    "overload_name": lambda recording, row: recording.label(row).overload if recording.session.info.overload_names else "",
    "trace_name": lambda recording, row: recording.label(row).name,
    "time_range": _time_range,
    "thread": lambda recording, row: recording.session.track.item(row) + 1,
    "fwd_thread": lambda recording, row: recording.forward_track.item(row) + 1,
    "kernels": lambda recording, row: [],
    "count": _constant(1),
    "cpu_children": lambda recording, row: recording.children(row),
    "cpu_parent": lambda recording, row: recording.event(recording.parent.item(row)),
    "input_shapes": lambda recording, row: inputs.tensor_shapes(recording.inputs(row)),
    "concrete_inputs": lambda recording, row: inputs.concrete(recording.inputs(row)),
    "kwinputs": lambda recording, row: {},
    "stack": _stack,
    "scope": lambda recording, row: recording.label(row).scope,
    "use_device": lambda recording, row: recording.session.info.use_device,
    "cpu_memory_usage": lambda recording, row: recording.memory_bytes.item(row),
    "device_memory_usage": _constant(0),
    "is_async": _constant(False),
    "is_remote": _constant(False),
    "sequence_nr": lambda recording, row: recording.session.sequence.item(row),
    "device_type": lambda recording, row: DeviceType[recording.track(row).device_type],
    "device_index": _device_index,
    "device_resource_id": _device_resource,
    "is_legacy": _constant(False),
    "flops": lambda recording, row: recording.flops.item(row),
    "is_user_annotation": lambda recording, row: recording.label(row).kind == "scope",
    "is_python_function": lambda recording, row: recording.label(row).kind == "python_function",
    "activity_type": lambda recording, row: _ACTIVITY[recording.label(row).kind],
    "self_cpu_percent": _constant(-1),
    "total_cpu_percent": _constant(-1),
    "total_device_percent": _constant(-1),
    "_metadata_json": _constant(""),
    "flow_id": lambda recording, row: recording.arrows.get(row, (0, False))[0],
    "flow_type": lambda recording, row: _FORWARD_BACKWARD if row in recording.arrows else 0,
    "flow_start": lambda recording, row: recording.arrows.get(row, (0, False))[1],
    "external_id": lambda recording, row: row + 1,
    "linked_correlation_id": _constant(0),
    "event_metadata": _constant(None),
    "structured_input_shapes": lambda recording, row: inputs.shapes(recording.inputs(row)),
    "structured_input_strides": lambda recording, row: inputs.strides(recording.inputs(row)),
    "input_dtypes": lambda recording, row: inputs.dtypes(recording.inputs(row)),
    "python_id": _constant(-1),
    "python_parent_id": _constant(-1),
    "python_module_id": _constant(-1),
}

# What an event says as a mapping.
ALWAYS: dict[str, Fact] = {
    "name": lambda recording, row: recording.label(row).name,
    "kind": lambda recording, row: recording.label(row).kind,
    "device_type": lambda recording, row: recording.track(row).device_type,
    "start_ns": lambda recording, row: recording.session.start_ns.item(row),
    "end_ns": lambda recording, row: recording.session.end_ns.item(row),
    "duration_ns": lambda recording, row: recording.duration_ns.item(row),
    "step": lambda recording, row: recording.session.step.item(row),
    "thread_id": lambda recording, row: recording.track(row).thread_id,
}
CORRELATION: dict[str, Fact] = {
    "correlation_id": lambda recording, row: row + 1,
    "runtime_name": _constant("dispatch_kernel"),
    "runtime_tid": lambda recording, row: recording.track(row).thread_id,
}
SHAPES: dict[str, Fact] = {"input_shapes": lambda recording, row: inputs.shapes(recording.inputs(row))}
STACK: dict[str, Fact] = {"stack": _recorded_stack}
KEYS = ALWAYS | CORRELATION | SHAPES | STACK
