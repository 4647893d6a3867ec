"""Elements read into Python one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..facts import Facts
from ..kinds import repeats
from ..registry import Match, rule

Column = np.ndarray[Any, np.dtype[Any]]

READING = ("aten::item", "aten::is_nonzero", "aten::_local_scalar_dense")
COMPARING = tuple(f"aten::{name}" for name in ("gt", "lt", "ge", "le", "eq", "ne"))
LOOP = 10  # so many directly inside one event are a loop


@rule("item() in a loop")
def item_in_loop(facts: Facts) -> Iterator[Match]:
    """`x[i].item()`, `float(x[i])`, `if x[i] > 0`, for every i."""
    rows = facts.called_by_program(facts.outermost(facts.find(*READING)))
    rows = rows[repeats(facts.siblings[rows]) >= LOOP]
    if not len(rows):
        return
    together = facts.union(rows, _making_the_element(rows, facts))
    pieces, calling = facts.outside.calling(together)
    waits = " Each waits until the device has finished all work before it." if facts.has_device else ""
    yield Match(
        rows=together,
        gain_ns=float(facts.usual_ns(together).sum()) + calling,
        seen=f"An element was read into Python {facts.times(len(rows))}, one at a time.{waits}",
        instead="Read them at once with tolist(), or leave the decision to tensors: torch.where, masks, any().",
        estimate="the time of these calls, of the indexing and comparing just before them, and of Python between.",
        pieces=pieces,
    )


def _making_the_element(rows: Column, facts: Facts) -> Column:
    """The indexing just before each, and the comparison between."""
    before = facts.neighbour(rows, -1)
    compared = facts.is_named(before, COMPARING) & facts.is_named(facts.neighbour(before, -1), ("aten::select",))
    found = [before[compared]]
    before = np.where(compared, facts.neighbour(before, -1), before)
    for _ in range(3):  # x[i, j, k]
        before = facts.called(before, ("aten::select",))
        found.append(before)
        before = facts.neighbour(before, -1)
    return np.concatenate(found)
