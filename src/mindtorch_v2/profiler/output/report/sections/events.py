"""Events for the timeline: columns, and the tables of names, tracks, arguments and stacks that they point into."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....model import links
from ....model.session import BACKWARD_FUNCTION, Label, TensorInput, Track
from ..packing import Delta
from ..sources import Process, depths

__all__ = ["events"]

Column = np.ndarray[Any, np.dtype[Any]]

# What events are, for their colours: by the kind of the label, and for operators by the phase.
CATEGORIES = (
    "operator",
    "backward",
    "scope",
    "optimizer",
    "data",
    "python",
    "module",
    "compile",
    "gc",
    "memory",
    "runtime",
    "kernel",
    "overhead",
    "sync",
)
LONGEST_LIST = 64  # elements of a list among the arguments


def events(process: Process, base_ns: int) -> dict[str, Any]:
    """The events of a process; times are nanoseconds since `base_ns`."""
    session, recording = process.session, process.recording
    rows = recording.rows
    place = np.full(len(session) + 1, -1, np.int64)  # of each row among those shown
    place[rows] = np.arange(len(rows))
    forward, back = (place[side] for side in links.flows(session))
    paired = (forward >= 0) & (back >= 0)
    callers, kernels = (place[side] for side in links.launches(session))
    launched = (callers >= 0) & (kernels >= 0)
    info = session.info
    duration = recording.duration_ns[rows]
    return {
        "pid": info.pid,
        "parent": info.parent_pid,
        "process": info.process_name,
        "started": info.started_ns - base_ns,
        "stopped": info.stopped_ns - base_ns,
        "categories": list(CATEGORIES),
        "labels": [[label.name, _category(label), label.kind] for label in session.labels],
        "tracks": [_track(track) for track in session.tracks],
        "label": session.label[rows],
        "track": session.track[rows],
        "depth": depths(session, recording.around)[rows],
        "start": Delta(session.start_ns[rows] - base_ns),
        "duration": duration,
        "inner": np.where(recording.on_cpu[rows], duration - process.self_ns[rows], 0),  # of it, the time of the events inside
        "part": process.parts.of_events[rows],  # of the wall time: `time_parts.PARTS`
        "module": recording.attribution.module[rows] + 1 if info.with_modules else None,
        "modules": process.module_paths if info.with_modules else [],
        "stack": recording.stack[rows] + 1 if info.with_stack else None,
        "places": recording.places,
        "stackStart": np.cumsum([0, *map(len, session.stack_table)]),
        "stackFrame": np.array([frame for stack in session.stack_table for frame in stack], np.int64),
        "inputs": session.inputs[rows] + 1 if session.inputs is not None and info.record_shapes else None,
        "inputTable": [[_argument(value) for value in values] for values in session.input_table] if info.record_shapes else [],
        "memory": recording.cpu_memory_bytes[rows] if info.profile_memory else None,
        "forward": Delta(forward[paired]),
        "backward": Delta(back[paired]),
        "caller": Delta(callers[launched]),
        "kernel": Delta(kernels[launched]),
        "steps": {
            "number": process.steps.number,
            "start": process.steps.start_ns - base_ns,
            "end": process.steps.end_ns - base_ns,
        },
    }


def _category(label: Label) -> int:
    if label.kind == "scope":
        named = (("Optimizer.", "optimizer"), ("enumerate(DataLoader)", "data"))
        return CATEGORIES.index(next((category for prefix, category in named if label.name.startswith(prefix)), "scope"))
    if label.kind == "op":
        is_node = label.scope == BACKWARD_FUNCTION or label.name.startswith(links.EVALUATE)
        return CATEGORIES.index("backward" if is_node else "operator")
    if label.kind == "python_function":
        return CATEGORIES.index("module" if label.module else "python")
    return CATEGORIES.index(label.kind)


def _track(track: Track) -> dict[str, Any]:
    return {
        "tid": track.tid,
        "thread": track.thread_id,
        "name": track.name,
        "device": track.device_type,
        "index": track.device_index,
    }


def _argument(value: object) -> str:
    """An argument of an operator as text."""
    if isinstance(value, TensorInput):
        contiguous = _contiguous_strides(value.shape)
        strides = "" if value.strides == contiguous else f" strides {list(value.strides)}"
        return f"{value.dtype}{list(value.shape)}{strides}"
    if isinstance(value, list | tuple):
        shown = ", ".join(map(_argument, value[:LONGEST_LIST]))
        return f"[{shown}{f', … {len(value) - LONGEST_LIST} more' if len(value) > LONGEST_LIST else ''}]"
    return str(value)


def _contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
