"""The time that recording each event took, estimated from the measured cost of its kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from .links import backward
from .session import NESTED, NODE, Session

__all__ = ["costs_ns"]

Column = np.ndarray[Any, np.dtype[Any]]


def costs_ns(session: Session, parent: Column) -> Column:
    """Return the time that recording each event took; 0 where its kind was not measured."""
    per_event = dict(session.info.event_costs_ns)
    if not len(session) or not per_event:
        return np.zeros(len(session), np.int64)
    operator = per_event.get("op", 0)
    cost = np.array([per_event.get(label.kind, 0) for label in session.labels], np.int64)[session.label]
    is_operator = np.array([label.kind == "op" for label in session.labels], bool)[session.label]
    cost[is_operator & (parent >= 0) & is_operator[parent]] = per_event.get(NESTED, operator)
    cost[backward(session)] = per_event.get(NODE, operator)
    return cost
