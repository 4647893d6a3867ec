"""Links between events: forward operators and backward nodes, launches and kernels."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from . import tree
from .session import BACKWARD_FUNCTION, KINDS, Label, Session

__all__ = [
    "EVALUATE",
    "backward",
    "device_rows",
    "first_forward",
    "flows",
    "ids",
    "is_dispatched",
    "launches",
    "module_id",
    "python_ids",
    "runtime_labels",
    "waits_for_device",
]

Column = np.ndarray[Any, np.dtype[Any]]

# The engine's event around each node starts with this.
EVALUATE = "autograd::engine::evaluate_function: "


# Calls of a device's runtime that return when the device has come so far. Queries, and calls that make a stream wait, return at once.
WAITING_CALLS = re.compile(r"synchronize|^(ur|pi)(EventWait|EventsWait|QueueFinish)$", re.IGNORECASE)


def _of_labels(session: Session, facts: list[bool]) -> Column:
    return np.array(facts, bool)[session.label]


def is_dispatched(label: Label) -> bool:
    """Whether events of this label are dispatched operators: no scopes, `Function`s of a program, backward nodes or the engine's events."""
    # an operator has a namespace; a Function written in Python has none
    is_operator = "::" in label.name and not label.name.startswith(EVALUATE)
    return label.kind == "op" and label.scope != BACKWARD_FUNCTION and is_operator


def waits_for_device(label: Label) -> bool:
    """Whether the host waits for a device in calls of this label."""
    return label.kind == "runtime" and WAITING_CALLS.search(label.name) is not None


def backward(session: Session) -> Column:
    """Whether each event is a node of a backward pass, or the engine's event around one."""
    return _of_labels(session, [e.scope == BACKWARD_FUNCTION or e.name.startswith(EVALUATE) for e in session.labels])


def first_forward(session: Session) -> Column:
    """For each event of a backward pass, the row of the first event that made its node; -1 for none, and for other events."""
    runs = backward(session)
    made = np.flatnonzero(~runs & (session.sequence >= 0))
    first = np.full(len(session), -1, np.int64)
    numbers, where = np.unique(session.sequence[made], return_index=True)
    if len(numbers):
        rows = np.flatnonzero(runs & (session.sequence >= 0))
        at = np.minimum(np.searchsorted(numbers, session.sequence[rows]), len(numbers) - 1)
        found = numbers[at] == session.sequence[rows]
        first[rows[found]] = made[where[at[found]]]
    return first


def flows(session: Session) -> tuple[Column, Column]:
    """Pairs of rows, forward and backward: the innermost event that made a node, and the run of this node. In order of the runs."""
    node = _of_labels(session, [e.scope == BACKWARD_FUNCTION for e in session.labels])
    runs = np.flatnonzero(node & (session.sequence >= 0))
    made = np.flatnonzero(~backward(session) & (session.sequence >= 0))[::-1]
    numbers, where = np.unique(session.sequence[made], return_index=True)
    if not len(numbers):
        return made, made
    at = np.minimum(np.searchsorted(numbers, session.sequence[runs]), len(numbers) - 1)
    found = numbers[at] == session.sequence[runs]
    return made[where[at[found]]], runs[found]


def launches(session: Session) -> tuple[Column, Column]:
    """Rows of calls of a device's runtime and of the kernels that they started, in pairs."""
    if session.launch is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    kernels = np.flatnonzero(session.launch >= 0)
    return session.launch[kernels], kernels


def ids(session: Session) -> Column:
    """The number of each event. Numbers rise with the start, and recordings of one process have none in common."""
    numbers = np.empty(len(session), np.int64)
    for row, first in session.info.first_ids:
        numbers[row:] = np.arange(first, first + len(numbers[row:]))
    return numbers


def device_rows(session: Session) -> tuple[Column, Column]:
    """For each row, the row of the operator that it belongs to, and the row that a launch and its kernel share: the launch."""
    row = np.arange(len(session))
    if session.launch is None:
        return row, row
    caused_by = row.copy()
    callers, kernels = launches(session)
    caused_by[kernels] = callers
    operator = tree.parents(session, skip=tuple(kind for kind in KINDS if kind != "op"))
    is_call, is_operator = (
        np.array([x.kind == kind for x in session.labels], bool)[session.label][caused_by] for kind in ("runtime", "op")
    )
    # where a trace has no calls of the runtime, it says which operator started a kernel
    direct = np.where(is_operator, caused_by, row)
    return np.where(is_call & (operator[caused_by] >= 0), operator[caused_by], direct), caused_by


def runtime_labels(session: Session) -> Column | None:
    """For each operator that called the device's runtime, the label of the first such call; -1 for the others."""
    is_runtime = np.array([label.kind == "runtime" for label in session.labels], bool)
    if not is_runtime.any():
        return None
    calls = np.flatnonzero(is_runtime[session.label])[::-1]
    operators = tree.parents(session, skip=tuple(kind for kind in KINDS if kind != "op"))[calls]
    labels = np.full(len(session), -1, np.int64)
    inside = operators >= 0
    labels[operators[inside]] = session.label[calls[inside]]
    return labels


def python_ids(session: Session) -> tuple[Column | None, Column | None]:
    """Numbers of the Python functions, from 1, and of the function around each; 0 where there is none."""
    is_function = np.array([label.kind == "python_function" for label in session.labels], bool)
    if not is_function.any():
        return None, None
    ids = np.cumsum(is_function[session.label], dtype=np.int32) * is_function[session.label]
    parent = tree.parents(session, skip=tuple(kind for kind in KINDS if kind != "python_function"))
    return ids, np.where(parent >= 0, ids[parent], 0)


def module_id(label: Label) -> int:
    """Return the number of the instance in `nn.Module: Linear_0`; -1 for what is no call of a module."""
    name, _, number = label.name.rpartition("_")
    return int(number) if name.startswith("nn.Module: ") and number.isdecimal() else -1
