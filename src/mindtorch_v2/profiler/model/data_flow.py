"""The graph of operators and the storages that they read, wrote, made and freed, by the addresses in a recording.

A node is an operator that no other operator called, or the computation of a backward node, with all that happened inside; or an
allocation outside of these. In-place writes give a storage its next version, so that (storage, version) is one value in the program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from . import links, tree
from .session import BACKWARD_FUNCTION, Label, Session
from .storage_lives import Lives, Storages, lives_of

__all__ = ["DataFlowGraph", "Links", "Node", "Value", "graph_of"]

Column = np.ndarray[Any, np.dtype[Any]]
Value = tuple[int, int]  # number of a storage, version


class Links(NamedTuple):
    """Values that nodes read or leave behind, in order of nodes."""

    node: Column
    value: Column  # the number of a version of a storage, as `Storages.first_value` counts


class Node(NamedTuple):
    """A step of the data flow. Inputs are the values it read, wrote or freed, outputs those that it left behind."""

    row: int  # -1 for an allocation outside of operators
    start_ns: int
    is_backward: bool
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]


@dataclass(frozen=True)
class DataFlowGraph:
    """Nodes in order of their start, and the storages that they are about, in order of their making.

    Of each event, the row of what is around it, -1 for none: the node that it is part of, the engine's evaluation of a backward
    node, the step of an optimizer. It is around itself.
    """

    row: Column  # of each node
    start_ns: Column
    is_backward: Column
    inputs: Links
    outputs: Links
    temporaries: Column  # storages that were made and freed inside a node
    storages: Storages
    top: Column
    evaluation: Column
    optimizer_step: Column

    @property
    def nodes(self) -> list[Node]:
        """The nodes as objects."""
        storage, first = self.storages.of_value, self.storages.first_value

        def values(links: Links, node: int) -> tuple[Value, ...]:
            begin, end = np.searchsorted(links.node, [node, node + 1])
            of = links.value[begin:end]
            return tuple(zip(storage[of].tolist(), (of - first[storage[of]]).tolist(), strict=True))

        facts = zip(self.row.tolist(), self.start_ns.tolist(), self.is_backward.tolist(), strict=True)
        return [Node(*fact, values(self.inputs, i), values(self.outputs, i)) for i, fact in enumerate(facts)]


READ, WRITTEN, MADE, FREED = 1, 2, 4, 8  # what a node does with a storage


class _Uses(NamedTuple):
    """What events did with storages; in order of time, but for what was read."""

    row: Column
    time_ns: Column
    storage: Column
    what: Column


def graph_of(session: Session) -> DataFlowGraph:
    """The data flow of a recording that has operands."""
    top = _outermost(session, _is_node)
    evaluation = _outermost(session, lambda label: label.name.startswith(links.EVALUATE))
    step = _outermost(session, lambda label: label.kind == "scope" and label.name.startswith("Optimizer.step#"))
    lives = lives_of(session)
    uses = _uses(session, lives, top)
    node, row, start_ns, is_backward = _nodes(session, uses, top, evaluation)

    # what a node does with a storage in all
    count = max(len(lives.storages), 1)
    pairs = node * count + uses.storage
    order = np.argsort(pairs, kind="stable")
    pairs = pairs[order]
    firsts = np.flatnonzero(np.diff(pairs, prepend=-1))
    what = np.bitwise_or.reduceat(uses.what[order], firsts) if len(firsts) else uses.what
    node, storage = pairs[firsts] // count, pairs[firsts] % count
    is_made, is_freed = what & MADE > 0, what & FREED > 0
    is_write = (what & (WRITTEN | MADE | FREED)) == WRITTEN

    # each write gives the storage its next version
    by_storage = np.argsort(storage, kind="stable")
    written = is_write[by_storage]
    writes = np.bincount(storage[is_write], minlength=len(lives.storages))
    first_write = np.concatenate([[0], np.cumsum(writes)])
    version = np.empty(len(storage), np.int64)
    version[by_storage] = np.cumsum(written) - written - first_write[storage[by_storage]]
    storages = replace(lives.storages, write_ns=start_ns[node[by_storage[written]]], first_write=first_write)
    value = storages.first_value[storage] + version
    is_output = is_write | (is_made & ~is_freed)
    return DataFlowGraph(
        row,
        start_ns,
        is_backward,
        inputs=Links(node[~is_made], value[~is_made]),
        outputs=Links(node[is_output], (value + is_write)[is_output]),
        temporaries=storage[is_made & is_freed],
        storages=storages,
        top=top,
        evaluation=evaluation,
        optimizer_step=step,
    )


def _uses(session: Session, lives: Lives, top: Column) -> _Uses:
    memory, flow = session.memory, session.flow
    assert memory is not None
    assert flow is not None
    read, made = lives.operand >= 0, lives.made >= 0
    # no data flows where nothing else happens
    freed = (lives.freed >= 0) & (memory.event >= 0)
    freed[freed] = top[memory.event[freed]] >= 0
    rows = flow.operand_row[read]
    tables = (
        (rows, session.start_ns[rows], lives.operand[read], np.where(flow.operand_address[read] < 0, READ | WRITTEN, READ)),
        (memory.event[made], memory.time_ns[made], lives.made[made], np.full(made.sum(), MADE)),
        (memory.event[freed], memory.time_ns[freed], lives.freed[freed], np.full(freed.sum(), FREED)),
    )
    return _Uses(*(np.concatenate(columns) for columns in zip(*tables, strict=True)))


def _nodes(session: Session, uses: _Uses, top: Column, evaluation: Column) -> tuple[Column, Column, Column, Column]:
    """The node of each use; of nodes the row, the start, and whether it is of a backward pass."""
    outermost = np.full(len(uses.row), -1)
    inside = uses.row >= 0
    outermost[inside] = top[uses.row[inside]]
    alone = np.flatnonzero(outermost < 0)
    is_top = np.zeros(len(session), bool)
    is_top[outermost[outermost >= 0]] = True
    tops = np.flatnonzero(is_top)
    row = np.concatenate([tops, np.full(len(alone), -1)])
    start_ns = np.concatenate([session.start_ns[tops], uses.time_ns[alone]])
    event = np.concatenate([tops, uses.row[alone]])
    # torch: what the engine itself does, such as adding gradients up, is no backward pass, and so unknown
    is_backward = np.zeros(len(event), bool)
    is_backward[event >= 0] = evaluation[event[event >= 0]] >= 0
    order = np.argsort(start_ns, kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    place = np.cumsum(is_top)[outermost] - 1 if len(session) else outermost
    place[alone] = len(tops) + np.arange(len(alone))
    return number[place], row[order], start_ns[order], is_backward[order]


def _outermost(session: Session, wanted: Callable[[Label], bool]) -> Column:
    """For each event the outermost one with such a label that it is or is inside of, -1 for none."""
    parent = tree.parents(session)
    found = np.full(len(session), -1, np.int64)
    is_wanted = np.array([wanted(label) for label in session.labels], bool)[session.label]
    for rows in tree.levels(session):
        around = np.where(parent[rows] >= 0, found[parent[rows]], -1)
        found[rows] = np.where(around >= 0, around, np.where(is_wanted[rows], rows, -1))
    return found


def _is_node(label: Label) -> bool:
    # what a Function written in Python calls are nodes, itself is none
    return label.kind == "op" and (label.scope == BACKWARD_FUNCTION or links.is_dispatched(label))
