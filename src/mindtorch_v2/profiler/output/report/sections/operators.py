"""Operators, summed in several ways: what `key_averages()` says, with median and maximum, and the program's line."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....model import inputs, modules
from ....model.grouping import GroupBy, Groups, groups, spread
from ..sources import Process, Texts

__all__ = ["GROUPINGS", "operators", "table"]

Column = np.ndarray[Any, np.dtype[Any]]

STACK_FRAMES = 8  # of a stack, the innermost
# by name in addresses: how events are grouped, and what must be recorded for it
GROUPINGS: dict[str, tuple[GroupBy, str]] = {
    "name": (GroupBy(), ""),
    "shape": (GroupBy(shapes=True), "record_shapes"),
    "line": (GroupBy(), "with_stack"),
    "stack": (GroupBy(stack_n=STACK_FRAMES), "with_stack"),
    "module": (GroupBy(modules=True), "with_modules"),
}


def operators(process: Process) -> dict[str, Any]:
    """A table for each way to group."""
    info = process.session.info
    found = {
        name: table(process, name, by) if not needs or getattr(info, needs) else {"needs": f"{needs}=True"}
        for name, (by, needs) in GROUPINGS.items()
    }
    return {
        "groupings": found,
        "has": {"memory": info.profile_memory, "flops": info.with_flops, "device": bool(info.use_device), "lines": info.with_stack},
    }


def table(process: Process, name: str, by: GroupBy) -> dict[str, Any]:
    """Columns with an entry for each row of `key_averages()`; times are in nanoseconds."""
    recording = process.recording
    rows = recording.rows
    line, lines = process.lines
    by_line = name == "line"
    found = groups(recording, rows, by, keys=line + 1 if by_line else None, amounts=process.amounts)
    median, longest = spread(recording.duration_ns[rows], found.of_rows, len(found.first))
    names, details = Texts(), Texts()
    labels = process.session.label[found.first]
    name_of_label = names.numbers(recording.names)
    kinds = Texts()
    kind_of_label = kinds.numbers(process.kinds)
    sums = found.sums
    return {
        "names": names.values,
        "kinds": kinds.values,
        "lines": lines,
        "name": name_of_label[labels],
        "kind": kind_of_label[labels],
        "detail": _details(process, name, found, details),
        "details": details.values,
        "line": line[found.first]
        if by_line
        else _usual_lines(line[rows], found, sums["self_cpu_time_total"], process.self_ns[rows]),
        "count": sums["count"],
        "total": sums["cpu_time_total"],
        "self": sums["self_cpu_time_total"],
        "device": sums["device_time_total"],
        "selfDevice": sums["self_device_time_total"],
        "memory": sums["cpu_memory_usage"],
        "selfMemory": sums["self_cpu_memory_usage"],
        "flops": sums["flops"],
        "median": median,
        "max": longest,
    }


def _details(process: Process, name: str, found: Groups, texts: Texts) -> Column:
    """What rows of one name are told apart by, as text."""
    return texts.numbers(_detail(process, name, row) for row in found.first.tolist())


def _detail(process: Process, name: str, row: int) -> str:
    recording = process.recording
    if name == "shape":
        return str(inputs.shapes(recording.inputs(row)))
    if name == "stack":
        stack = recording.stack.item(row)
        return (
            "\n".join(recording.places[frame] for frame in process.session.stack_table[stack][:STACK_FRAMES]) if stack >= 0 else ""
        )
    if name == "module":
        module = recording.attribution.module.item(row)
        phase = modules.PHASES[process.phase.item(row)]
        return " · ".join(part for part in (process.module_paths[module] if module >= 0 else "", phase) if part)
    return ""


def _usual_lines(line: Column, found: Groups, totals: Column, self_ns: Column) -> Column:
    """For each group the line that most of its self time is from; -1 for none."""
    usual = np.full(len(totals), -1, np.int64)
    known = line >= 0
    if not known.any():
        return usual
    size = int(line.max()) + 1
    pairs, which = np.unique(found.of_rows[known] * size + line[known], return_inverse=True)
    time = np.bincount(which, self_ns[known])
    best = np.lexsort((time, pairs // size))  # of each group, the largest last
    usual[pairs[best] // size] = pairs[best] % size
    return usual
