"""Recorded events that a session does not have, because an option or a bound leaves them out."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np

from . import filtering
from .session import Info, Session

__all__ = ["BY_NAME", "LEFT_OUT", "MEMORY", "TIMEOUT", "gaps", "lacks_operators", "to_depth"]

MEMORY = "memory"  # in place of an option: the bound of a recording that was given none
TIMEOUT = "post_processing_timeout_s"  # of lists of events: the session has them

BY_NAME = "Operators left out by name are not recorded"

LEFT_OUT = "Operators that include and exclude leave out are not recorded: their time counts as own Python."

REASONS = {
    "max_events": "beyond max_events",
    "max_bytes": "beyond max_bytes",
    MEMORY: "beyond what the memory of the machine allows",
    "last_seconds": "before last_seconds",
    "min_duration_us": "shorter than min_duration_us",
    "max_depth": "deeper than max_depth",
    "names": "of other names (include, exclude)",
    "threads": "of other threads",
    TIMEOUT: "made after post_processing_timeout_s",
}


def gaps(info: Info) -> list[str]:
    """What a session does not have, in sentences without their full stops: `1,000 recorded events are not kept: 1,000 beyond max_events`."""
    return [*info.unrecorded, *_dropped(info), *[info.ended] * (info.ended != "")]


def lacks_operators(info: Info) -> bool:
    """Whether time that operators took is counted as that of what is around them."""
    return any(text.startswith(BY_NAME) for text in info.unrecorded) or "names" in dict(info.dropped)


def _dropped(info: Info) -> list[str]:
    if not info.dropped:
        return []
    total = sum(count for _, count in info.dropped)
    reasons = [f"{count:,} {REASONS.get(reason, reason)}" for reason, count in info.dropped]
    verb = "event is" if total == 1 else "events are"
    return [f"{total:,} recorded {verb} not kept: {', '.join(reasons)}"]


def to_depth(session: Session, deepest: int | None) -> Session:
    """The session with events that have fewer than `deepest` others around them, the rest counted. Changes of memory stay."""
    if deepest is None:
        return session
    is_change = np.array([label.kind == "memory" for label in session.labels], bool)[session.label]
    kept = (session.depth < deepest) | is_change
    if kept.all():
        return session
    counts = Counter(dict(session.info.dropped)) + Counter(max_depth=int(np.count_nonzero(~kept)))
    filtered = filtering.keep(session, kept)
    return filtered.replace(info=dataclasses.replace(filtered.info, dropped=tuple(counts.items())))
