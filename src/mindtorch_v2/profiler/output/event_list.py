"""Events in a list, and what can be asked of them together."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..device_type import DeviceType
from ..model import grouping
from ..model.averages import FunctionEventAvg
from ..model.callers_level import callers_level
from ..model.dropping import gaps
from ..model.events import FunctionEvent
from ..model.grouping import GroupBy
from ..model.recorded_events import events_of, recording_of, rows_of
from ..model.session import BACKWARD_FUNCTION, Session
from ..writing.atomic_file import replacing
from ..writing.json_text import json_text
from . import stacks, table

__all__ = ["EventList"]


_NOTEBOOK_ROWS = 50


class EventList(list[Any]):
    """A list of `FunctionEvent`s, or of the `FunctionEventAvg`s that sum them up.

    What is asked of recorded events comes straight from the columns of the recording. Events that were made or changed by
    hand are read one by one, with the same result.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        use_device = kwargs.pop("use_device", None)
        profile_memory = kwargs.pop("profile_memory", False)
        with_flops = kwargs.pop("with_flops", False)
        super().__init__(*args, **kwargs)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._gaps: Sequence[str] = ()  # what the recording does not have
        self._tree_built = False

    @classmethod
    def of(cls, session: Session) -> EventList:
        """The events of a session, in order of start."""
        events = _empty_list(session)
        events += events_of(session)
        events._tree_built = True
        return events

    def _like(self, rows: Iterable[FunctionEventAvg]) -> EventList:
        like = EventList(rows, use_device=self._use_device, profile_memory=self._profile_memory, with_flops=self._with_flops)
        like._gaps = self._gaps
        return like

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """The table that a notebook shows: averages by self time, the largest first; events in their order."""
        sums = bool(self) and isinstance(self[0], FunctionEventAvg)
        return table.render_html(
            self,
            "self_cpu_time_total" if sums else None,
            _NOTEBOOK_ROWS,
            with_flops=self._with_flops,
            profile_memory=self._profile_memory,
            gaps=self._gaps,
        )

    @property
    def self_cpu_time_total(self) -> float:
        """Sum the self time of all events."""
        if (recorded := rows_of(self)) is not None:
            return grouping.self_cpu_us(*recorded)
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
        *,
        max_width: int | None = None,
    ) -> str:
        """The list as a table.

        Args:
            sort_by: an attribute, largest value first (`cpu_time_total`, `self_cpu_time_total`, `cpu_time`, `count`,
                `cpu_memory_usage`, …; `cuda`, `xpu`, `privateuse1` and `npu` stand for `device`). By default in order of the list.
            row_limit: how many rows to show, -1 for all.
            max_src_column_width: of the places in the source; None for no limit.
            max_name_column_width: of the names; None for no limit.
            max_shapes_column_width: of the shapes of inputs; None for no limit.
            header: a line above the table.
            top_level_events_only: leave out events inside others.
            time_unit: `s`, `ms` or `us` for all times; by default what suits each.
            max_width: the width to fit the table into, as that of a terminal: names are shortened in their middle, then columns of
                little use are left out, and a last line says which. None for no limit.
        """
        return table.render(
            self,
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
            gaps=self._gaps,
            top_level_events_only=top_level_events_only,
            time_unit=time_unit,
            max_width=max_width,
        )

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        group_by_module: bool = False,
    ) -> EventList:
        """Sums over the events of one name, in order of the first of each.

        Args:
            group_by_input_shapes: a row for each name and shapes of inputs.
            group_by_stack_n: a row for each name and innermost `n` places in the source.
            group_by_overload_name: a row for each overload of a name (`aten::add.Tensor`).
            group_by_module: a row for each name, module and phase (forward, backward); needs `with_modules=True`.
        """
        by = GroupBy(group_by_input_shapes, group_by_stack_n, group_by_overload_name, group_by_module)
        if not self._tree_built:
            raise AssertionError("Expected tree to be built before calling key_averages")
        if (recorded := rows_of(self)) is not None:
            _warn_of_missing(recorded[0].session, by)
            rows = grouping.averages(*recorded, by)
        else:
            rows = self._averages_one_by_one(_key(by))
        return self._like(_described(rows, by))

    @classmethod
    def averages_of(cls, session: Session, by: GroupBy = GroupBy()) -> EventList:
        """Return `of(session).key_averages(*by)` without making the events: ten million would take gigabytes."""
        _warn_of_missing(session, by)
        recording = recording_of(session)
        return _empty_list(session)._like(_described(grouping.averages(recording, recording.rows, by), by))

    def _averages_one_by_one(self, key: Callable[[Any], tuple[str, ...]]) -> list[FunctionEventAvg]:
        rows: dict[tuple[str, ...], FunctionEventAvg] = {}
        for event in self:
            rows.setdefault(key(event), FunctionEventAvg()).add(event)
        return list(rows.values())

    def total_average(self) -> FunctionEventAvg:
        """Sums over all events, of whatever name."""
        if (recorded := rows_of(self)) is not None:
            total = grouping.total(*recorded)
        else:
            total = FunctionEventAvg()
            for event in self:
                total += event
                total.key = None  # any name may follow
        total.key = "Total"
        return total

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as a trace for `chrome://tracing` or Perfetto: slices by thread, without what a session adds."""
        device = self._use_device or "cuda"
        arrows = itertools.count()
        rows = []
        for event in self:
            if event.trace_name is None:
                continue
            thread = f" node_id:{event.node_id}, thread_id:{event.thread} " if event.is_remote else event.thread
            place = {"ts": event.time_range.start, "tid": thread, "pid": "CPU functions"}
            slice_ = {"name": event.trace_name, "ph": "X", "ts": place["ts"], "dur": event.time_range.elapsed_us()}
            rows.append(slice_ | place | {"args": {}})
            rows += [
                {"name": event.trace_name, "ph": "s", **place, "id": next(arrows), "cat": f"cpu_to_{device}", "args": {}}
                for _ in event.kernels
            ]
        with replacing(path) as file:
            file.write(json_text(rows).encode())

    def supported_export_stacks_metrics(self) -> list[str]:
        return list(stacks.METRICS)

    def export_stacks(self, path: str, metric: str) -> None:
        """Write a line for each event that has a stack: frames from the outermost, separated by `;`, and the metric as a number."""
        stacks.check_metric(metric)
        if (recorded := rows_of(self)) is not None:
            stacks.write(path, stacks.lines(*recorded, metric))
            return
        attribute = table.attribute(metric)
        amounts = ((event.stack, int(getattr(event, attribute))) for event in self if event.stack)
        stacks.write(path, (stacks.line(stack, amount) for stack, amount in amounts if amount > 0))

    def _build_tree(self) -> None:
        """Find out which event is inside which, from their times."""
        self._populate_cpu_children()
        self._remove_dup_nodes()
        self._set_backward_stacktraces()
        self._tree_built = True

    def _populate_cpu_children(self) -> None:
        def place(event: FunctionEvent) -> tuple[int, ...]:
            return event.thread, event.node_id

        events = [event for event in self if not event.is_async and event.device_type == DeviceType.CPU]
        # torch: orders by thread alone, and takes neighbours of one node for a group
        for _, group in itertools.groupby(sorted(events, key=lambda event: event.thread), key=place):
            around: list[FunctionEvent] = []
            for event in sorted(group, key=lambda event: (event.time_range.start, -event.time_range.end)):
                while around and not _encloses(around[-1], event):
                    around.pop()
                if around:
                    around[-1].append_cpu_child(event)
                    if event.cpu_parent is not None:
                        raise AssertionError(f"There is already a CPU parent event for {event.key}")
                    event.set_cpu_parent(around[-1])
                around.append(event)

    def _remove_dup_nodes(self) -> None:
        """Leave out events that are all there is in an event of the same name."""
        while True:
            repeats = set()
            for i, event in enumerate(self):
                parent = event.cpu_parent
                if parent is not None and parent.name == event.name and len(parent.cpu_children) == 1:
                    parent.cpu_children = event.cpu_children
                    parent.kernels = event.kernels
                    for child in event.cpu_children:
                        child.cpu_parent = parent
                    repeats.add(i)
            if not repeats:
                return
            self[:] = [event for i, event in enumerate(self) if i not in repeats]

    def _set_backward_stacktraces(self) -> None:
        """Give what ran inside a node of a backward pass the stack of the forward call that made the node."""
        nodes = [_backward_node(event) for event in self]
        forward: dict[tuple[int, int], Any] = {}
        for event, node in zip(self, nodes, strict=True):
            if node is None and event.stack is not None:
                forward.setdefault((event.sequence_nr, event.thread), event.stack)
        for event, node in zip(self, nodes, strict=True):
            if node is not None:
                if node.fwd_thread is None:
                    raise AssertionError("Expected fwd_thread to be set for backward parent")
                event.stack = forward.get((node.sequence_nr, node.fwd_thread), [])


def _encloses(outer: FunctionEvent, inner: FunctionEvent) -> bool:
    return inner.time_range.start < outer.time_range.end and inner.time_range.end <= outer.time_range.end


def _backward_node(event: FunctionEvent | None) -> FunctionEvent | None:
    while event is not None and event.scope != BACKWARD_FUNCTION:
        event = event.cpu_parent
    return event


_OVERLOADS = "experimental_config=_ExperimentalConfig(capture_overload_names=True)"


def _warn_of_missing(session: Session, by: GroupBy) -> None:
    """Say what rows cannot be grouped by, because it was not recorded."""
    info = session.info
    wanted = {
        ("group_by_input_shape=True", "record_shapes=True"): by.shapes and not info.record_shapes,
        (f"group_by_stack_n={by.stack_n}", "with_stack=True"): by.stack_n > 0 and not info.with_stack,
        ("group_by_overload_name=True", _OVERLOADS): by.overloads and not info.overload_names,
        ("group_by_module=True", "with_modules=True"): by.modules and not info.with_modules,
    }
    for (argument, recorded_with), is_missing in wanted.items():
        if is_missing:
            text = f"{argument} has no effect: this needs a recording made with profile({recorded_with})"
            warnings.warn(text, UserWarning, stacklevel=callers_level())


def _key(by: GroupBy) -> Callable[[Any], tuple[str, ...]]:
    """Return the values that events of one row have in common."""

    def key(event: FunctionEvent) -> tuple[str, ...]:
        facts = [event.key, event.node_id, event.device_type, event.is_legacy, event.is_user_annotation]
        if by.overloads:
            facts.append(event.overload_name)
        if by.shapes:
            facts.append(event.input_shapes)
        if by.modules:
            facts += [event.module, event.phase]
        return *map(str, facts), *(event.stack[: by.stack_n] if by.stack_n > 0 else ())

    return key


def _empty_list(session: Session) -> EventList:
    info = session.info
    empty = EventList(use_device=info.use_device, profile_memory=info.profile_memory, with_flops=info.with_flops)
    empty._gaps = gaps(info)
    return empty


def _described(rows: list[FunctionEventAvg], by: GroupBy) -> list[FunctionEventAvg]:
    """The rows without what they were not grouped by."""
    for row in rows:
        row.stack = row.stack[: by.stack_n]
        if not by.shapes:
            row.input_shapes = ""
        if not by.overloads:
            row.overload_name = ""
        if row.phase and not by.modules:
            row.module = row.phase = ""
    return rows
