"""Memory: the timeline by category, as the page of its own shows it; else the bytes in use over time."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....model.memory_timeline import timeline_of
from ....model.time_parts import intervals
from ... import memory_page
from ..packing import Delta
from ..sources import Process

__all__ = ["memory"]

POINTS = 20_000  # of a curve: of the changes between two, the highest


def memory(process: Process) -> dict[str, Any]:
    """The data of `memory_page`, if all that it needs was recorded; else a curve, or what to record."""
    session = process.session
    info = session.info
    missing = [f"{flag}=True" for flag in ("record_shapes", "profile_memory", "with_stack") if not getattr(info, flag)]
    if session.memory is None:
        return {"needs": ", ".join(missing) if missing else "profile_memory=True"}
    if missing or session.flow is None:
        return {"needs": ", ".join(missing), "curve": _curve(process)}
    return {"timeline": memory_page.page_columns(timeline_of(session).of_device("cpu"))}


def _curve(process: Process) -> dict[str, Any]:
    """Bytes of live storage on the CPU over time."""
    log = process.session.memory
    assert log is not None, "memory was not recorded"
    on_cpu = np.array([track.device_type == "CPU" for track in process.session.tracks], bool)[log.track]
    time_ns, total = log.time_ns[on_cpu], log.total_bytes[on_cpu]
    if len(total) > POINTS:
        edges = np.linspace(0, len(total), POINTS + 1).astype(np.int64)[:-1]
        time_ns, total = time_ns[edges], np.maximum.reduceat(total, edges)
    return {"time": Delta(time_ns - intervals(process.session)[0][0]), "bytes": total}
