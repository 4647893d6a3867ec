"""Facts of events: a fact is a number of a column, or the entry of a table that the number points to.

Few readings look the number up in the column. Many readings convert the column to a list, once for all events: an element of a
list is read four times as fast, and the conversion costs less than the readings that came before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..device_type import DeviceType
from ..writing.garbage import paused_collection
from . import inputs, links, live_memory, modules
from .session import Label, Track

if TYPE_CHECKING:
    from .recording import Recording

__all__ = ["ATTRIBUTES", "KEYS", "Fact", "Facts", "ListsByName", "fresh"]

Column = np.ndarray[Any, np.dtype[Any]]

_ACTIVITY = {
    "op": "cpu_op",
    "scope": "user_annotation",
    "python_function": "python_function",
    "memory": None,  # torch: of those outside of operators, which alone are events
    "runtime": "privateuse1_runtime",
    "kernel": "kernel",
    "gc": "python_function",
    "compile": "overhead",
    "overhead": "overhead",
    "sync": "cuda_sync",
}
_FORWARD_BACKWARD = 1  # torch's number for the arrow from an operator to its node
_CONVERTED_AFTER = 32  # one reading for so many events: by then a column is worth its conversion
_MADE_AHEAD = 1 << 14  # lists at a time, at most


class _Entries(dict[int, Any]):
    """The entries of a table by number, each made when it is first asked for: tables of inputs and stacks can be long."""

    def __init__(self, make: Callable[[int], Any]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, number: int) -> Any:
        value = self[number] = self._make(number)
        return value


Table = Sequence[Any] | _Entries


class Fact(NamedTuple):
    """A value for each event: the number of the column, or the entry of the table at that number. The last entry is that of -1."""

    column: Callable[[Recording], Column]
    table: Callable[[Recording], Table] | None = None

    def source(self, recording: Recording) -> _Source:
        return _Source(self.column(recording), None if self.table is None else self.table(recording))


@dataclass(frozen=True, slots=True)
class _Source:
    """The values of a fact in one recording, by row."""

    column: Column
    table: Table | None

    def __getitem__(self, row: int) -> Any:
        number = self.column.item(row)
        return number if self.table is None else self.table[number]

    def as_list(self) -> list[Any]:
        numbers: list[Any] = self.column.tolist()
        return numbers if self.table is None else list(map(self.table.__getitem__, numbers))


class RowFact(NamedTuple):
    """A value for each event that is made when it is asked for, or where there is a way to make all, with those of all others."""

    look: Callable[[Recording, int], Any]
    look_at_all: Callable[[Recording], list[Any]] | None = None

    def source(self, recording: Recording) -> _Made:
        return _Made(recording, self.look, self.look_at_all)


@dataclass(frozen=True, slots=True)
class _Made:
    recording: Recording
    look: Callable[[Recording, int], Any]
    look_at_all: Callable[[Recording], list[Any]] | None

    def __getitem__(self, row: int) -> Any:
        return self.look(self.recording, row)

    def as_list(self) -> list[Any] | _Made:
        return self if self.look_at_all is None else self.look_at_all(self.recording)


class Facts(dict[str, Any]):
    """Values of facts by name and row: `facts["name"][row]`. Lists in them are shared: readers get copies (see `fresh`)."""

    def __init__(self, recording: Recording, known: Mapping[str, Fact | RowFact]) -> None:
        super().__init__()
        self._recording = recording
        self._known = known
        self._sources: dict[str, Any] = {}
        self._readings: Counter[str] = Counter()

    def __missing__(self, name: str) -> Any:
        if (source := self._sources.get(name)) is None:
            source = self._sources[name] = self._known[name].source(self._recording)
        self._readings[name] += 1
        if self._readings[name] * _CONVERTED_AFTER > len(self._recording.session):
            with paused_collection():
                source = self[name] = source.as_list()
        return source


class Lists(dict[int, Any]):
    """The lists of one attribute that readers have got, by row.

    Where rows are read in their order, more and more are made at a time, and no garbage is looked for in between, which took half of the time.
    """

    def __init__(self, recording: Recording, name: str) -> None:
        super().__init__()
        self._recording = recording
        self._name = name
        self._next = -1
        self._ahead = 1

    def __missing__(self, row: int) -> Any:
        facts, name = self._recording.facts, self._name
        if row != self._next:
            self._ahead, self._next = 1, row + 1
            return self.setdefault(row, fresh(facts[name][row]))
        self._ahead = min(2 * self._ahead, _MADE_AHEAD)
        self._next = min(row + self._ahead, len(self._recording.session))
        with paused_collection():
            for number in range(row, self._next):
                self.setdefault(number, fresh(facts[name][number]))
        return self[row]


class ListsByName(dict[str, Lists]):
    """The lists that readers have got, by attribute and row."""

    def __init__(self, recording: Recording) -> None:
        super().__init__()
        self._recording = recording

    def __missing__(self, name: str) -> Lists:
        return self.setdefault(name, Lists(self._recording, name))


def fresh(value: Any) -> Any:
    """A copy of a list, of a list of lists and so on; other values themselves."""
    if type(value) is not list:
        return value
    if list not in map(type, value):
        return value.copy()
    # what is in a list of lists is lists
    return [
        inner if type(inner) is not list else fresh(inner) if inner and type(inner[0]) is list else inner.copy() for inner in value
    ]


def _by_label(fact: Callable[[Label], Any]) -> Fact:
    return Fact(lambda recording: recording.session.label, lambda recording: list(map(fact, recording.session.labels)))


def _by_track(fact: Callable[[Track], Any]) -> Fact:
    return Fact(lambda recording: recording.session.track, lambda recording: list(map(fact, recording.session.tracks)))


def _by_inputs(fact: Callable[[Sequence[Any]], Any]) -> Fact:
    def column(recording: Recording) -> Column:
        session = recording.session
        return _none(recording) if session.inputs is None or not session.info.record_shapes else session.inputs

    def table(recording: Recording) -> _Entries:
        calls = recording.session.input_table
        return _Entries(lambda number: fact(calls[number] if number >= 0 else ()))

    return Fact(column, table)


def _by_module(fact: Callable[..., str]) -> Fact:
    def column(recording: Recording) -> Column:
        return recording.attribution.module if recording.session.info.with_modules else _none(recording)

    def table(recording: Recording) -> Sequence[str]:
        return [*map(fact, recording.attribution.modules), fact(())] if recording.session.info.with_modules else [fact(())]

    return Fact(column, table)


def _none(recording: Recording) -> Column:
    return np.full(len(recording.session), -1, np.int32)


def _is_memory(recording: Recording) -> Column:
    return recording.of_labels(lambda label: label.kind == "memory")


def _lines(recording: Recording) -> _Entries:
    """Stacks as torch writes them."""
    return _of_stacks(recording, recording.places)


def _of_stacks(recording: Recording, texts: Sequence[str]) -> _Entries:
    stacks = recording.session.stack_table
    return _Entries(lambda number: [texts[frame] for frame in stacks[number]] if number >= 0 else [])


def _recorded_stack(recording: Recording) -> Column:
    return _none(recording) if recording.session.stack is None else recording.session.stack


def _written_stacks(recording: Recording) -> _Entries:
    return _of_stacks(recording, [f"{frame.file}:{frame.line}:{frame.function}" for frame in recording.session.frames])


def _forward_thread(recording: Recording) -> Column:
    return np.where(_is_memory(recording), recording.session.track, recording.forward_track) + 1


def _device_index(recording: Recording) -> Column:
    pid = recording.session.info.pid  # torch: the process, on a CPU
    index = np.array([pid if t.device_type == "CPU" else t.device_index for t in recording.session.tracks], np.int64)
    return np.where(_is_memory(recording), 0, index[recording.session.track])


def _operator_id(recording: Recording) -> Column:
    return np.where(recording.operator >= 0, recording.ids[recording.operator], 0)


def _external_id(recording: Recording) -> Column:
    operator = _operator_id(recording)
    return np.where(_is_memory(recording), 0, np.where(operator > 0, operator, recording.ids))


def _python_ids(which: int) -> Callable[[Recording], Column]:
    def column(recording: Recording) -> Column:
        ids, found = recording.python_ids[0], recording.python_ids[which]
        if ids is None or found is None:
            return _none(recording)
        return np.where((ids > 0) & (found > 0), found, -1)

    return column


def _metadata(recording: Recording, row: int) -> str:
    shown = recording.session.info.expose_metadata and recording.label(row).kind in ("op", "scope")
    return f'"Ev Idx": {row}' if shown else ""


def _phases(recording: Recording) -> Column:
    return recording.attribution.phase if recording.session.info.with_modules else _none(recording)


def _memory(which: int) -> Fact:
    return Fact(lambda recording: recording.live_memory[which])


_NAME = _by_label(lambda label: label.name)
_STRUCTURED_SHAPES = _by_inputs(inputs.shapes)
_MODULE, _HIERARCHY = _by_module(modules.path), _by_module(modules.hierarchy)
_PHASE = Fact(_phases, lambda recording: [*modules.PHASES, ""])
_FLOPS = Fact(lambda recording: recording.flops)
_THREAD_ID = _by_track(lambda track: track.thread_id)

# The attributes of an event that differ between events. Lists are those that readers get copies of.
ATTRIBUTES: dict[str, Fact | RowFact] = {
    "id": Fact(lambda recording: recording.device_id),
    "name": Fact(lambda recording: recording.session.label, lambda recording: recording.names),
    "overload_name": Fact(
        lambda recording: recording.session.label,
        lambda recording: [label.overload if recording.session.info.overload_names else "" for label in recording.session.labels],
    ),
    "trace_name": _by_label(lambda label: None if label.kind == "memory" else label.name),
    "start_us": Fact(lambda recording: (recording.session.start_ns - recording.session.info.started_ns) / 1000),
    "end_us": Fact(lambda recording: (recording.session.end_ns - recording.session.info.started_ns) / 1000),
    "cpu_time_total": Fact(lambda recording: recording.cpu_ns / 1000),
    "self_cpu_time_total": Fact(lambda recording: recording.without_children(recording.cpu_ns) / 1000),
    "self_cpu_memory_usage": Fact(lambda recording: recording.without_children(recording.cpu_memory_bytes)),
    "thread": Fact(lambda recording: recording.session.track + 1),
    "fwd_thread": Fact(_forward_thread),
    "kernels": RowFact(lambda recording, row: recording.kernels_of(row)),
    "cpu_children": RowFact(lambda recording, row: recording.children(row), lambda recording: recording.all_children()),
    "cpu_parent": RowFact(lambda recording, row: recording.event(recording.around.item(row)), lambda r: r.all_around()),
    "has_plain_children": Fact(lambda recording: recording.has_plain_children),
    "input_shapes": _by_inputs(inputs.tensor_shapes),
    "concrete_inputs": _by_inputs(inputs.concrete),
    "kwinputs": RowFact(lambda recording, row: {}),
    "stack": Fact(lambda recording: recording.stack, _lines),
    "recorded_stack": Fact(_recorded_stack, _lines),
    "scope": _by_label(lambda label: label.scope),
    "use_device": RowFact(lambda recording, row: recording.session.info.use_device),
    "cpu_memory_usage": Fact(lambda recording: recording.memory_bytes),
    "sequence_nr": Fact(lambda recording: recording.session.sequence),
    "device_type": _by_track(lambda track: DeviceType[track.device_type]),
    "device_index": Fact(_device_index),
    "device_resource_id": _by_track(lambda track: track.thread_id),
    "flops": _FLOPS,
    "is_user_annotation": _by_label(lambda label: label.kind == "scope"),
    "is_python_function": _by_label(lambda label: label.kind == "python_function"),
    "activity_type": _by_label(lambda label: _ACTIVITY[label.kind]),
    "_metadata_json": RowFact(_metadata),
    "flow_id": RowFact(lambda recording, row: recording.arrows.get(row, (0, False))[0]),
    "flow_type": RowFact(lambda recording, row: _FORWARD_BACKWARD if row in recording.arrows else 0),
    "flow_start": RowFact(lambda recording, row: recording.arrows.get(row, (0, False))[1]),
    "external_id": Fact(_external_id),
    "linked_correlation_id": Fact(_operator_id),
    "structured_input_shapes": _STRUCTURED_SHAPES,
    "structured_input_strides": _by_inputs(inputs.strides),
    "input_dtypes": _by_inputs(inputs.dtypes),
    "python_id": Fact(_python_ids(0)),
    "python_parent_id": Fact(_python_ids(1)),
    "python_module_id": _by_label(links.module_id),
    "module": _MODULE,
    "module_hierarchy": _HIERARCHY,
    "phase": _PHASE,
}

# What an event says as a mapping.
_ALWAYS: dict[str, Fact | RowFact] = {
    "name": _NAME,
    "kind": _by_label(lambda label: label.kind),
    "device_type": _by_track(lambda track: track.device_type),
    "start_ns": Fact(lambda recording: recording.session.start_ns),
    "end_ns": Fact(lambda recording: recording.session.end_ns),
    "duration_ns": Fact(lambda recording: recording.duration_ns),
    "step": Fact(lambda recording: recording.session.step),
    "thread_id": _THREAD_ID,
}
_CORRELATION: dict[str, Fact | RowFact] = {
    "correlation_id": Fact(lambda recording: recording.ids),
    "runtime_name": RowFact(lambda recording, row: recording.runtime_name(row)),
    "runtime_tid": _THREAD_ID,
}
_SHAPES: dict[str, Fact | RowFact] = {"input_shapes": _STRUCTURED_SHAPES}
_COUNTED: dict[str, Fact | RowFact] = {"flops": _FLOPS}
_STACK: dict[str, Fact | RowFact] = {"stack": Fact(_recorded_stack, _written_stacks)}
_MODULES: dict[str, Fact | RowFact] = {"module": _MODULE, "module_hierarchy": _HIERARCHY, "phase": _PHASE}
_MEMORY: dict[str, Fact | RowFact] = {
    "cpu_memory_allocated_before": _memory(0),
    "cpu_memory_allocated_after": _memory(1),
    "cpu_memory_allocated_delta": Fact(lambda recording: recording.live_memory[1] - recording.live_memory[0]),
}
_COMPILATION: dict[str, Fact | RowFact] = {"operator": _by_label(lambda label: label.operator)}
_CHANGE: dict[str, Fact | RowFact] = {
    "address": RowFact(lambda recording, row: recording.change(row).address),
    "bytes": RowFact(lambda recording, row: recording.change(row).size_bytes),
    "total_allocated": RowFact(lambda recording, row: recording.change(row).total_bytes),
}


def _keys(recording: Recording) -> list[dict[str, None]]:
    """The keys that events of each label have: what was not asked for is absent."""
    return [dict.fromkeys(_keys_of(recording, label)) for label in recording.session.labels]


def _keys_of(recording: Recording, label: Label) -> list[str]:
    info, kind = recording.session.info, label.kind
    is_block = kind in ("op", "scope")
    wanted = [
        (_ALWAYS, True),
        (_CORRELATION, kind == "op"),
        (_SHAPES, kind == "op" and info.record_shapes),
        (_COUNTED, kind == "op" and info.with_flops),
        (_MEMORY, kind == "op" and info.profile_memory and live_memory.is_known(recording.session)),
        (_CHANGE, kind == "memory"),
        (_COMPILATION, kind == "compile"),
        (_STACK, (is_block or kind == "compile") and info.with_stack),
        (_MODULES, info.with_modules and (is_block or links.module_id(label) >= 0)),
    ]
    return [key for group, is_there in wanted if is_there for key in group]


KEYS: dict[str, Fact | RowFact] = {
    **(_CHANGE | _COMPILATION | _ALWAYS | _CORRELATION | _SHAPES | _COUNTED | _STACK | _MEMORY | _MODULES),
    "": Fact(lambda recording: recording.session.label, _keys),  # the keys themselves
}
