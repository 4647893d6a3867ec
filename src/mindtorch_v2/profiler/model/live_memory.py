"""Memory in use around each event, and its changes."""

from __future__ import annotations

import numpy as np

from . import tree
from .session import COLUMNS, Column, Label, Session

__all__ = ["active_operators", "around", "is_known", "with_rows_of_changes"]

CHANGE = Label("[memory]", "memory")


def is_known(session: Session) -> bool:
    """Whether memory in use is known: a trace of several processes, of which one changed none, may say that it was recorded."""
    return session.memory is not None or (session.heap_before is not None and session.heap_after is not None)


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
    began = np.array(session.info.live_bytes, np.int64).reshape(-1, 2)
    time_ns = np.concatenate([began[:, 0] - 1, log.time_ns[on_cpu]])  # whatever happens is after the beginning
    order = np.argsort(time_ns, kind="stable")
    live = np.concatenate([[0], np.concatenate([began[:, 1], log.total_bytes[on_cpu]])[order]])
    time_ns = time_ns[order]
    return live[np.searchsorted(time_ns, session.start_ns, "left")], live[np.searchsorted(time_ns, session.end_ns, "right")]


def active_operators(session: Session) -> Column:
    """For each change of memory, the row of the innermost operator that was open then on its thread; -1 for none."""
    if session.memory is None or not len(session):
        return np.empty(0, np.int64) if session.memory is None else np.full(len(session.memory.event), -1)
    is_op = np.array([label.kind == "op" for label in session.labels], bool)[session.label]
    parent, found = tree.parents(session), session.memory.event.copy()
    while (over := (found >= 0) & ~is_op[found]).any():
        found[over] = parent[found[over]]
    return found


def with_rows_of_changes(session: Session, first_of_step_ns: Column, step: Column) -> Session:
    """The session with an event for each change of memory that was inside of none, as torch shows them."""
    log = session.memory
    if log is None or not (log.event < 0).any():
        return session
    outside = np.flatnonzero(log.event < 0)
    count, time_ns = len(outside), log.time_ns[outside]
    order = np.argsort(np.concatenate([session.start_ns, time_ns]), kind="stable")
    place = np.empty(len(order), np.int64)  # of each row, and behind them of each new one
    place[order] = np.arange(len(order))
    rows, added = place[: len(session)], place[len(session) :]
    new = {
        "label": np.full(count, len(session.labels)),
        "track": log.track[outside],
        "start_ns": time_ns,
        "end_ns": time_ns,
        "depth": np.zeros(count),
        "step": step[np.maximum(np.searchsorted(first_of_step_ns, time_ns, side="right") - 1, 0)],
    }
    columns = {}
    for name in COLUMNS:
        column = getattr(session, name)
        if column is not None:
            absent = 0 if name in ("function_id", "heap_before", "heap_after") else -1
            columns[name] = np.concatenate([column, new.get(name, np.full(count, absent)).astype(column.dtype)])[order]
    flow, copies, event = session.flow, session.copies, _moved(log.event, rows)
    event[outside] = added
    if session.launch is not None:
        columns["launch"] = _moved(columns["launch"], rows)
    return session.replace(
        **columns,
        labels=(*session.labels, CHANGE),
        memory=log._replace(event=event),
        flow=flow if flow is None else flow._replace(operand_row=rows[flow.operand_row]),
        copies=copies if copies is None else copies._replace(row=rows[copies.row]),
    )


def _moved(numbers: Column, rows: Column) -> Column:
    """Numbers of rows, where each row is in another place now; -1 stays."""
    return np.where(numbers < 0, -1, rows[numbers] if len(rows) else -1).astype(numbers.dtype)
