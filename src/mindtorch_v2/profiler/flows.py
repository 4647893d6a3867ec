"""Which events cause which: forward operators and their backward nodes, launches and kernels."""

from __future__ import annotations

import numpy as np

from . import tree
from .session import BACKWARD_FUNCTION, KINDS, Column, Session

__all__ = ["EVALUATE", "device_ids", "forward_backward", "forward_tracks", "launches"]

# torch: the engine's row around each backward node
EVALUATE = "autograd::engine::evaluate_function: "


def forward_backward(session: Session) -> tuple[Column, Column]:
    """Rows of operators and of the backward nodes that they made and that ran, in pairs."""
    nodes = np.flatnonzero(_is_node(session)[session.label] & (session.sequence >= 0))
    forward = _makers(session, session.sequence[nodes])
    found = forward >= 0
    return forward[found], nodes[found]


def forward_tracks(session: Session) -> Column:
    """Thread that made the node which a row ran, counted from 1 as torch does; 0 for rows that ran none."""
    track = np.zeros(len(session), np.int32)
    backward = np.flatnonzero(_is_backward(session) & (session.sequence >= 0))
    forward = _makers(session, session.sequence[backward])
    track[backward] = np.where(forward >= 0, session.track[forward] + 1, 0)
    return track


def _makers(session: Session, sequence: Column) -> Column:
    """Rows of the operators that made these nodes, -1 for those made before the recording."""
    rows = np.flatnonzero(~_is_backward(session) & (session.sequence >= 0))
    if not len(rows):
        return np.full(len(sequence), -1)
    rows = rows[np.argsort(session.sequence[rows], kind="stable")]
    numbers = session.sequence[rows]
    last = np.searchsorted(numbers, sequence, side="right") - 1  # the last, as composites come before their parts
    return np.where((last >= 0) & (numbers[last] == sequence), rows[last], -1)


def _is_backward(session: Session) -> Column:
    """Rows of backward nodes and of the engine around them."""
    engine = np.array([x.name.startswith(EVALUATE) for x in session.labels], bool)
    return (engine | _is_node(session))[session.label]


def _is_node(session: Session) -> Column:
    return np.array([x.scope == BACKWARD_FUNCTION and not x.name.startswith(EVALUATE) for x in session.labels], bool)


def launches(session: Session) -> tuple[Column, Column]:
    """Rows of calls of a device's runtime and of the kernels that they started, in pairs."""
    if session.launch is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    kernels = np.flatnonzero(session.launch >= 0)
    return session.launch[kernels], kernels


def device_ids(session: Session) -> tuple[Column, Column]:
    """For each row the number of the operator that it belongs to, and the number that a launch and its kernel share."""
    row = np.arange(len(session))
    caused_by = row.copy()
    callers, kernels = launches(session)
    caused_by[kernels] = callers
    operator = tree.parents(session, skip=tuple(kind for kind in KINDS if kind != "op"))
    is_call = np.array([x.kind == "runtime" for x in session.labels], bool)[session.label][caused_by]
    owner = np.where(is_call & (operator[caused_by] >= 0), operator[caused_by], row)
    return owner + 1, caused_by + 1
