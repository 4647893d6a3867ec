"""Sessions without some of their events."""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import tree
from .session import COLUMNS, Session

__all__ = ["is_named", "keep", "operators"]

Column = np.ndarray[Any, np.dtype[Any]]


def operators(session: Session, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> Session:
    """The session with the operators and backward nodes whose names match a pattern of `include`, if there are any, and none of `exclude`.

    Patterns are those of file names (`aten::*norm*`). Scopes and functions stay. What is left out has no row, and its time is in the self time of
    the event around it; `info.metadata` says how many there were.
    """
    wanted = [label.kind != "op" or is_named(label.name, include, exclude) for label in session.labels]
    kept = np.array(wanted, bool)[session.label]
    left_out = int(len(kept) - kept.sum())
    if not left_out:
        return session
    filtered = keep(session, kept)
    note = {"operators left out": left_out, "include": list(include), "exclude": list(exclude)}
    info = dataclasses.replace(filtered.info, metadata={**filtered.info.metadata, "filter": note})
    return filtered.replace(info=info)


def is_named(name: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """Whether a name matches a pattern of `include`, if there are any, and none of `exclude`."""
    included = not include or any(fnmatch.fnmatchcase(name, pattern) for pattern in include)
    return included and not any(fnmatch.fnmatchcase(name, pattern) for pattern in exclude)


def keep(session: Session, kept: Column) -> Session:
    """The session with the events of which `kept` is True. What belonged to others belongs to the innermost event around them that is kept."""
    if not len(session):
        return session
    parent = tree.parents(session)
    above = np.zeros(len(session), np.int32)  # how many events around each are left out
    owner = np.where(kept, np.arange(len(session)), -1)  # each event itself, or the innermost kept one around it
    for rows in tree.levels(session)[1:]:
        around = parent[rows]
        above[rows] = above[around] + ~kept[around]
        owner[rows] = np.where(kept[rows], rows, owner[around])
    place = np.where(kept, np.cumsum(kept) - 1, -1)  # in the new session
    place = np.where(owner >= 0, place[owner], -1).astype(np.int32)
    columns = {name: None if (c := getattr(session, name)) is None else c[kept] for name in COLUMNS}
    columns["depth"] = (session.depth - above)[kept]
    if session.launch is not None:
        columns["launch"] = _moved(session.launch[kept], place)
    memory, flow = session.memory, session.flow
    if memory is not None:
        memory = memory._replace(event=_moved(memory.event, place))
    if flow is not None:
        stays = kept[flow.operand_row]
        rows = place[flow.operand_row[stays]].astype(flow.operand_row.dtype)
        flow = flow._replace(operand_row=rows, operand_address=flow.operand_address[stays])
    before = np.concatenate([[0], np.cumsum(kept)])
    first_ids = tuple((int(before[min(row, len(kept))]), number) for row, number in session.info.first_ids)
    info = dataclasses.replace(session.info, first_ids=first_ids)
    return session.replace(**columns, memory=memory, flow=flow, info=info)


def _moved(rows: Column, place: Column) -> Column:
    """A column of rows, as rows of the new session; -1 stays."""
    return np.where(rows < 0, -1, place[rows]).astype(rows.dtype)
