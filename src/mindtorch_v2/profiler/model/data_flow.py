"""The graph of operators and the storages that they read, wrote, made and freed, by the addresses in a recording.

A node is an operator that no other operator called, or the computation of a backward node, with all that happened inside; or an
allocation outside of these. In-place writes give a storage its next version, so that (storage, version) is one value in the program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from . import links, tree
from .session import BACKWARD_FUNCTION, Label, Session

__all__ = ["DataFlowGraph", "Node", "Storage", "Value", "graph_of"]

Column = np.ndarray[Any, np.dtype[Any]]
Value = tuple[int, int]  # number of a storage, version


@dataclass(slots=True)
class Storage:
    """One life of a piece of memory."""

    address: int
    size_bytes: int
    device: str
    made_ns: int | None  # None if it lived when the recording began
    made_by: int = -1  # row of the innermost event
    freed_ns: int | None = None
    freed_by: int = -1
    roles: set[int] = field(default_factory=set)
    writes: list[int] = field(default_factory=list)  # starts of the nodes that gave it versions 1, 2, …


class Node:
    """A step of the data flow. Inputs are the values it read, wrote or freed, outputs those that it left behind."""

    __slots__ = ("freed", "input_storages", "inputs", "is_backward", "made", "output_storages", "outputs", "read", "row", "start_ns", "temporaries", "written")  # fmt: skip

    def __init__(self, row: int, start_ns: int, *, is_backward: bool) -> None:
        self.row = row  # -1 for an allocation outside of operators
        self.start_ns = start_ns
        self.is_backward = is_backward
        self.read: list[int] = []  # storages, maybe several times
        self.written: list[int] = []
        self.made: list[int] = []
        self.freed: list[int] = []

    def number_versions(self, versions: list[int], storages: list[Storage]) -> None:
        """Set inputs, outputs and temporaries; `versions` are those of all storages before this node, and after."""
        made, freed, written = set(self.made), set(self.freed), set(self.written)
        self.temporaries = [number for number in self.made if number in freed]
        outputs = [(number, 0) for number in self.made if number not in freed]
        self.input_storages = tuple([n for n in dict.fromkeys([*self.read, *self.freed]) if n not in made])
        self.inputs = tuple([(number, versions[number]) for number in self.input_storages])
        for number, version in self.inputs:
            if number in written and number not in freed:
                versions[number] = version + 1
                outputs.append((number, version + 1))
                storages[number].writes.append(self.start_ns)
        self.outputs = tuple(outputs)
        self.output_storages = tuple([number for number, _ in outputs])


class DataFlowGraph(NamedTuple):
    """Nodes in order of their start, and the storages that they are about, in order of their making.

    Of each event, the row of what is around it, -1 for none: the node that it is part of, the engine's evaluation of a backward
    node, the step of an optimizer. It is around itself.
    """

    nodes: list[Node]
    storages: list[Storage]
    top: Column
    evaluation: Column
    optimizer_step: Column


def graph_of(session: Session) -> DataFlowGraph:
    """The data flow of a recording that has operands."""
    top = _outermost(session, _is_node)
    evaluation = _outermost(session, lambda label: label.name.startswith(links.EVALUATE))
    step = _outermost(session, lambda label: label.kind == "scope" and label.name.startswith("Optimizer.step#"))
    storages, nodes = _Reader(session, top, evaluation).read()
    versions = [0] * len(storages)
    for node in nodes:
        node.number_versions(versions, storages)
    return DataFlowGraph(nodes, storages, top, evaluation, step)


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


class _Reader:
    """Reads a recording in order of time, knowing which storage is at an address."""

    def __init__(self, session: Session, top: Column, evaluation: Column) -> None:
        assert session.memory is not None
        assert session.flow is not None
        self.session, self.memory, self.flow, self.top = session, session.memory, session.flow, top.tolist()
        self.storages: list[Storage] = []
        self.live: dict[int, int] = {}  # address → number of the storage
        self.nodes: dict[int, Node] = {}  # by row
        self.alone: list[Node] = []
        self.start_ns = session.start_ns.tolist()
        # torch: what the engine itself does, such as adding gradients up, is no backward pass, and so unknown
        self.is_backward = (evaluation >= 0).tolist()
        tracks = [
            t.device_type.lower() if t.device_type == "CPU" else f"{t.device_type.lower()}:{t.device_index}" for t in session.tracks
        ]
        self.devices = [tracks[i] for i in self.memory.track.tolist()]
        # lists, of which an element is read in half the time
        memory, flow = self.memory, self.flow
        self.changes = list(
            zip(*[c.tolist() for c in (memory.event, memory.time_ns, memory.address, memory.size_bytes)], strict=True)
        )
        self.operands = list(zip(flow.operand_row.tolist(), flow.operand_address.tolist(), strict=True))

    def read(self) -> tuple[list[Storage], list[Node]]:
        """Each storage, and the nodes in order of their start."""
        memory, flow = self.memory, self.flow
        # at one time: a recording begins, storages are made, looked up, freed
        frees = memory.size_bytes < 0
        times = (flow.began_ns, memory.time_ns, self.session.start_ns[flow.operand_row], flow.role_time_ns)
        ranks = (np.full(len(flow.began_ns), 0), np.where(frees, 4, 1), *(np.full(len(t), r) for t, r in zip(times[2:], (2, 3))))
        handlers = (self._begin, self._change, self._operand, self._role)
        kind = np.repeat(np.arange(4), [len(t) for t in times])
        index = np.concatenate([np.arange(len(t)) for t in times])
        order = np.lexsort((np.concatenate(ranks), np.concatenate(times)))
        for k, i in zip(kind[order].tolist(), index[order].tolist(), strict=True):
            handlers[k](i)
        return self.storages, sorted([*self.nodes.values(), *self.alone], key=lambda node: node.start_ns)

    def _begin(self, i: int) -> None:
        """A recording begins: what lives then is known, whatever was freed and made since the one before."""
        now = self.flow.began_ns.item(i)
        here = self.flow.held_time_ns == now
        held = dict(zip(self.flow.held_address[here].tolist(), self.flow.held_bytes[here].tolist(), strict=True))
        for address, number in list(self.live.items()):
            if held.get(address) != self.storages[number].size_bytes:
                self._free(address, now, -1)
        for address, size in held.items():
            if address not in self.live and size:
                self._make(Storage(address, size, "cpu", None if i == 0 else now))

    def _change(self, i: int) -> None:
        row, now, address, size = self.changes[i]
        if size > 0:
            if address in self.live:
                self._free(address, now, row)  # freed unseen
            made = self._make(Storage(address, size, self.devices[i], now, row))
            self._node_of(row, now).made.append(made)
        elif address in self.live:
            freed = self._free(address, now, row)
            if row >= 0 and self.top[row] >= 0:  # no data flows where nothing else happens
                self._node_of(row, now).freed.append(freed)

    def _operand(self, i: int) -> None:
        row, address = self.operands[i]
        number = self.live.get(abs(address))
        if number is not None:
            node = self._node_of(row, self.start_ns[row])
            node.read.append(number)
            if address < 0:
                node.written.append(number)

    def _role(self, i: int) -> None:
        number = self.live.get(self.flow.role_address.item(i))
        if number is not None:
            self.storages[number].roles.add(self.flow.role.item(i))

    def _make(self, storage: Storage) -> int:
        number = self.live[storage.address] = len(self.storages)
        self.storages.append(storage)
        return number

    def _free(self, address: int, now: int, row: int) -> int:
        number = self.live.pop(address)
        self.storages[number].freed_ns, self.storages[number].freed_by = now, row
        return number

    def _node_of(self, row: int, now: int) -> Node:
        top = -1 if row < 0 else self.top[row]
        if top < 0:
            node = Node(-1, now, is_backward=row >= 0 and self.is_backward[row])
            self.alone.append(node)
            return node
        found = self.nodes.get(top)
        if found is None:
            found = self.nodes[top] = Node(top, self.start_ns[top], is_backward=self.is_backward[top])
        return found
