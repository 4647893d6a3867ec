"""The module that each event belongs to: the innermost that was running, or in a backward pass the one that made the node.

GPT.blocks.0.mlp                                                                          the path
TOP(GPT)::forward.blocks.0(Block)::forward.mlp(Sequential)::forward.                      the hierarchy, as torch writes it
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from . import links, tree
from .session import ModulePart, Session

__all__ = ["BACKWARD", "FORWARD", "PHASES", "Attribution", "attribute", "hierarchy", "path"]

Column = np.ndarray[Any, np.dtype[Any]]

PHASES = ("", "forward", "backward")
NEITHER, FORWARD, BACKWARD = range(3)

_UNKNOWN, _NONE = -1, -2  # while looking: goes by what is around it; belongs to no module, whatever is around it


class Attribution(NamedTuple):
    """Return the module of each event, -1 for none, and its phase. `modules` are the places of the modules by number."""

    module: Column
    phase: Column
    modules: Sequence[tuple[ModulePart, ...]]


def path(parts: Sequence[ModulePart]) -> str:
    """The names that lead to a module: `GPT.blocks.0.mlp`."""
    return ".".join(part.name for part in parts)


def hierarchy(parts: Sequence[ModulePart]) -> str:
    """The hierarchy as torch writes it for scripted modules: names, classes, and the method that was running."""
    if not parts:
        return ""
    top, *inner = parts
    return f"TOP({top.name})::forward." + "".join(f"{part.name}({part.class_name})::forward." for part in inner)


def attribute(session: Session) -> Attribution:
    """The module and the phase of each event.

    A backward node belongs to the module whose operator made it, and what it calls with it. The gradient of a parameter is added up
    for the module that has the parameter. What an optimizer does belongs to none.
    """
    numbers, modules = _numbers(session)
    parent = tree.parents(session)
    own = np.array(
        [
            _NONE if e.kind == "scope" and e.name.startswith("Optimizer.") else numbers.get(path(e.module), _UNKNOWN)
            for e in session.labels
        ],
        np.int32,
    )[session.label]
    forward = links.first_forward(session)
    runs = np.flatnonzero((own == _UNKNOWN) & (forward >= 0))
    found = _inherited(session, own, parent)
    # What a node calls may make nodes in turn, for second derivatives: one round for each order.
    while True:
        made_by = np.where(found[forward[runs]] >= 0, found[forward[runs]], _NONE)
        if (own[runs] == made_by).all():
            break
        own[runs] = made_by
        found = _inherited(session, own, parent)
    callers, kernels = links.launches(session)
    found[kernels] = found[callers]
    module = np.maximum(found, -1)
    nodes = links.backward(session)
    backward = nodes | tree.inside(session, nodes, parent)
    backward[kernels] = backward[callers]
    phase = np.where(backward, BACKWARD, np.where(module >= 0, FORWARD, NEITHER)).astype(np.int8)
    return Attribution(module, phase, modules)


def _numbers(session: Session) -> tuple[dict[str, int], list[tuple[ModulePart, ...]]]:
    """The modules of a session by their paths. The same names may come in fewer parts, where less of the calls was known."""
    longest: dict[str, tuple[ModulePart, ...]] = {}
    used = np.unique(session.label).tolist()
    for parts in (session.labels[i].module for i in used):
        if parts and len(parts) > len(longest.get(path(parts), ())):
            longest[path(parts)] = parts
    return {name: i for i, name in enumerate(longest)}, list(longest.values())


def _inherited(session: Session, own: Column, parent: Column) -> Column:
    """Return the value of each event, or of the nearest event around it that has one."""
    found = own.copy()
    for rows in tree.levels(session)[1:]:
        silent = rows[(own[rows] == _UNKNOWN) & (parent[rows] >= 0)]
        found[silent] = found[parent[silent]]
    return found
