"""How much memory was in use around each event."""

from __future__ import annotations

import numpy as np

from .session import Column, Session

__all__ = ["around"]


def around(session: Session) -> tuple[Column, Column] | None:
    """Bytes in use on the CPU when each event began and when it ended; None if memory was not recorded.

    What was made or freed in the nanosecond in which an event begins or ends belongs to it.
    """
    if session.heap_before is not None and session.heap_after is not None:
        return session.heap_before, session.heap_after
    log = session.memory
    if log is None:
        return None
    on_cpu = np.array([track.device_type == "CPU" for track in session.tracks], bool)[log.track]
    time_ns, total, size = log.time_ns[on_cpu], log.total_bytes[on_cpu], log.size_bytes[on_cpu]
    live = np.concatenate([(total - size)[:1] if len(total) else [0], total])  # before the first change, and after each
    return live[np.searchsorted(time_ns, session.start_ns, "left")], live[np.searchsorted(time_ns, session.end_ns, "right")]
