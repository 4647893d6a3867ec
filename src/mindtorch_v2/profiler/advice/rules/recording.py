"""The rule about the time that recording itself takes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..facts import Facts
from ..registry import Match, rule
from ..text import time

MUCH = 0.3  # of the recorded time


@rule("recording takes much of the time", is_about_recording=True)
def recording_cost(facts: Facts) -> Iterator[Match]:
    """So many events that the times say more about the recorder than about the program."""
    functions = facts.where(lambda label: label.kind == "python_function")
    rows = np.arange(len(facts.session))
    events = len(rows) - len(functions)
    cost = events * facts.event_ns + len(functions) * facts.function_ns
    if not events or cost < MUCH * facts.recorded_ns:
        return
    flags = [flag for flag in ("with_stack", "record_shapes", "profile_memory") if getattr(facts.session.info, flag)]
    without = f"Record without {' or '.join(flags)}, or f" if flags else "F"
    yield Match(
        rows=functions if len(functions) > events else np.flatnonzero(facts.is_operator),
        gain_ns=min(cost, facts.recorded_ns),  # another machine may be faster
        seen=f"{len(rows):,} events were recorded, one every {time(facts.recorded_ns / len(rows))}: much of the recorded time is "
        "the recorder's.",
        instead=f"{without}ewer steps of larger batches, before you trust the times of small operators.",
        estimate="the number of events, times the least that recording one took when measured. The program gains nothing by it, "
        "the recording does.",
        claims=rows[:0],
    )
