"""Graphs that live in this process, and the steps of a recording in which their nodes were made."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..._autograd.node import LEAF, node_and_index
from ..._tensor import Tensor
from ..capture.memory import live_objects
from . import owners
from .facts import Facts

__all__ = ["LiveGraph", "live_graphs"]


@dataclass(frozen=True, kw_only=True)
class LiveGraph:
    """The graph of one tensor that is alive. Nothing here refers to it."""

    steps: frozenset[int]  # of the recording, in which its nodes were made
    sequence: int  # number of its last node
    node: str  # name of its last node
    nodes: int
    kept_bytes: int  # of its nodes, and of tensors that they saved for backward
    owner: str  # the way from a variable to the tensor; empty if none was found


class _Found(NamedTuple):
    tensor: Any
    nodes: list[Any]  # its own first
    steps: frozenset[int]

    @property
    def kind(self) -> str:
        return type(self.nodes[0]).__name__


def live_graphs(facts: Facts, at_least: int) -> list[LiveGraph]:
    """The graphs that have nodes of so many steps, and those of which another is made in each step and kept; most nodes first.

    Only what lives in the process that was recorded can be looked at.
    """
    steps = _steps(facts)
    if facts.session.info.pid != os.getpid() or len(set(steps.values())) < at_least:
        return []
    graphs = [
        _Found(tensor, nodes, frozenset(steps[node._seq] for node in nodes if node._seq in steps))
        for tensor, nodes in _split(_tensors())
    ]
    of_kind: dict[str, set[int]] = {}
    for graph in graphs:
        of_kind.setdefault(graph.kind, set()).update(graph.steps)
    kept = [graph for graph in graphs if graph.steps and len(of_kind[graph.kind]) >= at_least]
    # of many that are alike, the owner of the last is looked for: they are usually in one container
    last = {graph.kind: graph.tensor for graph in reversed(kept)}
    owner = dict(zip(last, owners.owners(list(last.values())), strict=True)) if last else {}
    found = [
        LiveGraph(
            steps=graph.steps,
            sequence=graph.nodes[0]._seq,
            node=graph.kind,
            nodes=len(graph.nodes),
            kept_bytes=_kept_bytes(graph.nodes),
            owner=owner[graph.kind],
        )
        for graph in kept
    ]
    return sorted(found, key=lambda graph: -graph.nodes)


def _steps(facts: Facts) -> dict[int, int]:
    """The step in which each node of the recording was made, by its number."""
    session = facts.session
    made = np.flatnonzero(facts.is_operator & (session.sequence >= 0))
    return dict(zip(session.sequence[made].tolist(), facts.step[made].tolist(), strict=True))


def _tensors() -> list[Any]:
    """The tensors that are alive and have a history, last made first."""
    found = {id(tensor): tensor for tensor in live_objects.find(Tensor)}
    if gc.get_freeze_count():  # those that were frozen are not among them
        found.update((id(tensor), tensor) for tensor in owners.reachable(Tensor))
    tensors = [tensor for tensor in found.values() if tensor._node is not None]
    return sorted(tensors, key=lambda tensor: -node_and_index(tensor._node)[0]._seq)


def _split(roots: Iterable[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """Each tensor that is in the graph of no other, with the nodes that were not met in one before; its own node first."""
    seen: set[int] = set()
    for root in roots:
        waiting, nodes = [node_and_index(root._node)[0]], []
        while waiting:
            node = waiting.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            nodes.append(node)
            waiting += [node_and_index(edge)[0] for edge in node._edges if edge is not None and edge._kind != LEAF]
        if nodes:
            yield root, nodes


def _kept_bytes(nodes: Iterable[Any]) -> int:
    """Bytes of nodes and of the tensors that they saved, those of leaves left out, which are there anyway."""
    total, storages = 0, {}
    for node in nodes:
        # attributes of an object are in a dict, or the object refers to them itself; its edges are in a tuple
        held = gc.get_referents(node)
        total += sys.getsizeof(node) + sum(sys.getsizeof(each) for each in held if isinstance(each, dict | list | tuple))
        held += [value for each in held if isinstance(each, dict) for value in each.values()]
        held += [value for each in held if isinstance(each, list) for value in each]
        for value in held:
            if isinstance(value, Tensor) and not (value.requires_grad and value._node is None):
                storages[id(value._storage)] = value._storage.nbytes()
    return total + sum(storages.values())
