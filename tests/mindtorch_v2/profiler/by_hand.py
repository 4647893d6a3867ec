"""Sessions written down by hand: `record([op("aten::linear", 0, 100, op("aten::addmm", 20, 90))])`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mindtorch_v2.profiler.model.session import USER_SCOPE, Distinct, Frame, Info, Label, Session, Track

__all__ = ["Event", "kernel", "op", "python_function", "record", "runtime", "scope"]


class Event(NamedTuple):
    """An event and what happened inside."""

    label: Label
    start_ns: int
    end_ns: int
    children: tuple[Event, ...] = ()
    tid: int = 1
    step: int = 0
    sequence: int = -1
    inputs: tuple[Any, ...] | None = None
    stack: tuple[Frame, ...] | None = None
    correlation: int = -1  # the same for a call of a device's runtime and the kernel that it started


def op(name: str, start_ns: int, end_ns: int, *children: Event, overload: str = "", **facts: Any) -> Event:
    return Event(Label(name, overload=overload), start_ns, end_ns, children, **facts)


def scope(name: str, start_ns: int, end_ns: int, *children: Event, **facts: Any) -> Event:
    return Event(Label(name, "scope", USER_SCOPE), start_ns, end_ns, children, **facts)


def python_function(name: str, start_ns: int, end_ns: int, *children: Event, **facts: Any) -> Event:
    return Event(Label(name, "python_function"), start_ns, end_ns, children, **facts)


def runtime(name: str, start_ns: int, end_ns: int, *, correlation: int, **facts: Any) -> Event:
    return Event(Label(name, "runtime"), start_ns, end_ns, correlation=correlation, **facts)


def kernel(name: str, start_ns: int, end_ns: int, *, stream: int, correlation: int, **facts: Any) -> Event:
    return Event(Label(name, "kernel"), start_ns, end_ns, tid=stream, correlation=correlation, **facts)


def record(events: Iterable[Event], *, info: Info | None = None, tracks: Sequence[Track] | None = None) -> Session:
    """A session of these events; children are on the thread and in the step of the event around them."""
    flat: list[tuple[int, Event]] = []
    for event in events:
        _flatten(event, 0, flat)
    flat.sort(key=lambda row: row[1].start_ns)  # stable: an enclosing event stays first
    rows = [event for _, event in flat]
    if tracks is None:
        tracks = [Track(tid, tid, f"thread {tid}") for tid in sorted({e.tid for e in rows})]
    numbers = {t.tid: i for i, t in enumerate(tracks)}
    labels, inputs, stacks, frames = Distinct(), Distinct(), Distinct(), Distinct()
    label = [labels.number(e.label) for e in rows]
    input_rows = [-1 if e.inputs is None else inputs.number(e.inputs) for e in rows]
    stack_rows = [-1 if e.stack is None else stacks.number(tuple(frames.number(f) for f in e.stack)) for e in rows]
    info = info or Info(started_ns=0, stopped_ns=max((e.end_ns for e in rows), default=0))
    return Session(
        label=np.array(label, "i4"),
        track=np.array([numbers[e.tid] for e in rows], "i4"),
        start_ns=np.array([e.start_ns for e in rows], "i8"),
        end_ns=np.array([e.end_ns for e in rows], "i8"),
        depth=np.array([depth for depth, _ in flat], "i4"),
        step=np.array([e.step for e in rows], "i4"),
        sequence=np.array([e.sequence for e in rows], "i8"),
        inputs=np.array(input_rows, "i4") if info.record_shapes else None,
        stack=np.array(stack_rows, "i4") if info.with_stack else None,
        launch=_launches(rows),
        labels=tuple(labels),
        tracks=tuple(tracks),
        input_table=tuple(inputs),
        frames=tuple(frames),
        stack_table=tuple(stacks),
        info=info,
    )


def _flatten(event: Event, depth: int, flat: list[tuple[int, Event]]) -> None:
    flat.append((depth, event))
    for child in event.children:
        _flatten(child._replace(tid=event.tid, step=event.step), depth + 1, flat)


def _launches(rows: Sequence[Event]) -> np.ndarray[Any, Any] | None:
    calls = {e.correlation: i for i, e in enumerate(rows) if e.label.kind == "runtime"}
    if not calls:
        return None
    return np.array([calls.get(e.correlation, -1) if e.label.kind == "kernel" else -1 for e in rows], "i4")
