"""Memory that grows with every step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...model.session import MemoryLog
from ...writing import units
from ..facts import Facts
from ..registry import RULES, Match, rule

Column = np.ndarray[Any, np.dtype[Any]]

LATER = 3  # steps after which storage of a step is still in use
LEAST = 5  # steps that must show it
LEAST_BYTES = 4096  # a step: less is a number that is kept for printing


@rule("memory grows with each step", needs=("profile_memory",))
def memory_grows(facts: Facts) -> Iterator[Match]:
    """Each step makes storages that are still in use some steps later, so that the program needs more and more."""
    log = facts.session.memory
    if log is None or facts.step_count < LATER + LEAST or any(RULES["graph kept alive"].check(facts)):
        return
    made, freed = _lives(log)
    step = _step_at(facts, log.time_ns)
    last = facts.step_count - 1
    freed_in = np.where(freed >= 0, step[freed], last + LATER + 1)
    kept = made[(freed_in - step[made] >= LATER) & (step[made] <= last - LATER)]
    by_step = np.bincount(step[kept], log.size_bytes[kept], minlength=last - LATER + 1)[: last - LATER + 1]
    grows_by = float(np.median(by_step[1:]))  # the first step makes what stays, as an optimizer's state
    if grows_by < LEAST_BYTES:
        return
    rows = np.unique(log.event[kept][(log.event[kept] >= 0) & (step[kept] > 0)])
    yield Match(
        rows=rows,
        gain_ns=0.0,
        seen=f"Memory grows by {units.memory(round(grows_by))} a step: what each step makes is still in use {LATER} steps later.",
        instead=(
            "Find who keeps it: a list of results or losses, or a sum of losses with their graphs. "
            "Keep numbers (loss.item()) or detached tensors instead."
        ),
        estimate="memory alone; the time of making it stays.",
        claims=np.empty(0, np.int64),
        kept_bytes=int(by_step.sum()),
    )


def _lives(log: MemoryLog) -> tuple[Column, Column]:
    """The places in the log at which storages were made, and at which each was freed; -1 if it was not."""
    order = np.lexsort((np.arange(len(log.address)), log.address))
    is_made = log.size_bytes[order] > 0
    following = np.append(order[1:], -1)
    is_freed = np.append((log.address[order][1:] == log.address[order][:-1]) & (log.size_bytes[order][1:] < 0), False)
    return order[is_made], np.where(is_freed, following, -1)[is_made]


def _step_at(facts: Facts, time_ns: Column) -> Column:
    """The step of each time: that of the last event that began before it."""
    row = np.searchsorted(facts.session.start_ns, time_ns, side="right") - 1
    return np.asarray(facts.step[np.maximum(row, 0)])
