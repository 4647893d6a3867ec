"""The modules of a network as a tree: forward and backward time, memory, floating point operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....model import module_times, modules
from ....model.module_times import ModuleTimes
from ..sources import Process, Texts

__all__ = ["module_tree"]

Column = np.ndarray[Any, np.dtype[Any]]


def module_tree(process: Process) -> dict[str, Any]:
    """Columns with an entry for each module, in the order of `by_module()`; times are in nanoseconds."""
    info = process.session.info
    if not info.with_modules:
        return {"needs": "with_modules=True"}
    times, found = ModuleTimes.of_recording(process.recording), process.recording.attribution
    names = process.module_paths
    order = module_times.by_first_event(found)
    classes = Texts()

    def sums(amounts: Column, phase: int) -> Column:
        own = module_times.sums(found, np.where(found.phase == phase, amounts, 0))
        return module_times.with_inner(names, own)[order]

    place = {times[i].module: i for i in range(len(times))}
    columns = {
        key: np.array([round(getattr(row, field) * 1000) for row in times], np.int64)
        for key, field in (
            ("forward", "forward_us"),
            ("backward", "backward_us"),
            ("selfForward", "self_forward_us"),
            ("selfBackward", "self_backward_us"),
        )
    }
    amounts = process.amounts
    return {
        "path": [row.module for row in times],
        "class": classes.numbers(row.class_name for row in times),
        "parent": np.array([_parent(row.module, place) for row in times], np.int64),
        "calls": np.array([row.calls for row in times], np.int64),
        **columns,
        "recorded": round(times.recorded_us * 1000),
        "memory": sums(amounts["self_cpu_memory_usage"], modules.FORWARD) if info.profile_memory else None,
        "flopsForward": sums(amounts["flops"], modules.FORWARD) if info.with_flops else None,
        "flopsBackward": sums(amounts["flops"], modules.BACKWARD) if info.with_flops else None,
    } | {"classes": classes.values}


def _parent(path: str, place: dict[str, int]) -> int:
    """The place of the nearest module around one, -1 for none."""
    while path := path.rpartition(".")[0]:
        if path in place:
            return place[path]
    return -1
