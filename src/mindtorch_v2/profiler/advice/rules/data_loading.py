"""Waiting for the next batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..facts import Facts
from ..registry import Match, rule

NEXT = "enumerate(DataLoader)#"
IN_PROCESS = "_SingleProcess"  # begins the name of the iterator that a DataLoader without workers makes


@rule("DataLoader without workers")
def loaded_in_process(facts: Facts) -> Iterator[Match]:
    """Batches made between the steps, while nothing else runs."""
    rows = facts.scopes(NEXT + IN_PROCESS)
    loading = facts.time_ns(rows)
    computing = facts.recorded_ns - loading
    yield Match(
        rows=rows,
        gain_ns=min(loading, computing),
        seen=f"The program made a batch itself {facts.times(len(rows))}, and computed nothing meanwhile.",
        instead="Give the DataLoader num_workers=1 or more: workers make the next batches while this one is computed.",
        estimate="the shorter of loading and computing, which would run side by side; it takes a core that is free.",
        claims=facts.where(lambda label: False),  # what makes the batches can be slow for reasons of its own
    )


@rule("DataLoader too slow")
def waits_for_workers(facts: Facts) -> Iterator[Match]:
    """Workers that do not keep up."""
    rows = facts.scopes(NEXT)
    rows = rows[~np.isin(rows, facts.scopes(NEXT + IN_PROCESS))]
    yield Match(
        rows=rows,
        gain_ns=facts.time_ns(rows),
        seen=f"The program waited for a batch {facts.times(len(rows))}.",
        instead="Give the DataLoader more workers or a larger prefetch_factor, keep workers with persistent_workers=True, "
        "or make batches more cheaply.",
        estimate="the time of waiting; workers that keep up leave none of it.",
        claims=facts.where(lambda label: False),
        pieces=facts.outside.inside(rows),
    )
