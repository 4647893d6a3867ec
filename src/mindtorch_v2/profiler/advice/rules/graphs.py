"""Graphs that are kept from one step to the next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...model import links
from ..facts import Facts
from ..live_graphs import LiveGraph, live_graphs
from ..registry import Match, rule

Column = np.ndarray[Any, np.dtype[Any]]

STEPS = 3  # that all left nodes behind


@rule("graph kept alive")
def graph_kept_alive(facts: Facts) -> Iterator[Match]:
    """`total = total + loss`: the graph of each step hangs on that of the next, and none is freed."""
    again = _run_again(facts)
    pieces, between = facts.outside.calling(again)
    graphs = live_graphs(facts, STEPS)
    if not graphs and not len(again):
        return
    steps = frozenset().union(*(graph.steps for graph in graphs))
    kept_bytes = sum(graph.kept_bytes for graph in graphs)
    yield Match(
        rows=facts.union(_made(graphs, facts), again),
        gain_ns=float(facts.usual_ns(again).sum()) + between if len(again) else 0.0,
        seen=" ".join(_seen(graphs, len(steps), again, facts)),
        instead="Add up numbers instead: total += loss.item(), or loss.detach() for a tensor. Keep of a step only what the next one needs.",
        estimate="the time of running nodes of earlier steps again, and of the engine between them; the memory is that of the nodes and of what they saved.",
        claims=again,
        pieces=pieces,
        kept_bytes=kept_bytes,
    )


def _seen(graphs: list[LiveGraph], steps: int, again: Column, facts: Facts) -> Iterator[str]:
    if graphs:
        nodes = sum(graph.nodes for graph in graphs)
        yield f"Graphs of {steps} steps are still alive, {nodes:,} nodes in all, and one more with each step."
        kept_by = list(dict.fromkeys(graph.owner for graph in graphs if graph.owner))
        if kept_by:
            yield f"Kept by {'; '.join(kept_by)}."
    if len(again):
        yield f"Backward passes ran nodes of earlier steps {facts.times(len(again))}."


def _run_again(facts: Facts) -> Column:
    """The engine's events that ran a node made in an earlier step. What was made before the recording was, for all steps but the first."""
    session = facts.session
    rows = np.flatnonzero(facts.of_labels(lambda label: label.name.startswith(links.EVALUATE)) & (session.sequence >= 0))
    made = np.append(facts.step, 0)[links.first_forward(session)[rows]]
    return np.asarray(rows[made < facts.step[rows]])


def _made(graphs: list[LiveGraph], facts: Facts) -> Column:
    """The operators that made the last node of each graph."""
    numbers = [graph.sequence for graph in graphs]
    return np.flatnonzero(facts.is_operator & np.isin(facts.session.sequence, numbers))
