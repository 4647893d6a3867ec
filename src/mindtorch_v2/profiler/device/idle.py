"""Why a device, or one of its streams, had nothing to do: by what the host did before it launched the work that ended the gap."""

from __future__ import annotations

import numpy as np

from ..model import links, tree
from ..model.session import Column, Label, Session
from .intervals import Intervals
from .work import Work

__all__ = ["CAUSES", "causes"]

HOST_LATE, SYNCHRONIZATION, COPY, LAUNCH, QUEUED, UNKNOWN = CAUSES = (
    "host late",  # nothing was launched: the host was busy with something else
    "synchronization",  # nothing was launched: the host had waited for the device
    "memory copy",  # nothing was launched: the host was in a call that copies
    "launch",  # it was launched in the gap, and began so much later
    "waiting for work",  # it was launched before the gap: it waited for other work, another stream or an event
    "unknown",  # the file does not say what launched it
)


def causes(work: Work, gaps: Intervals) -> dict[str, int]:
    """The time of the gaps by cause, in nanoseconds. A gap ends where the next of `work` begins."""
    next_work = np.minimum(np.searchsorted(work.start, gaps.end), len(work) - 1)
    launch = work.launch[next_work]
    told = launch >= 0
    length = gaps.end - gaps.start
    found = dict.fromkeys(CAUSES, 0)
    found[UNKNOWN] = int(length[~told].sum())
    began, ended, launch = gaps.start[told], gaps.end[told], launch[told]
    launched = work.session.start_ns[launch]
    was_queued = launched <= began
    found[QUEUED] = int((ended - began)[was_queued].sum())
    began, ended, launch, launched = (column[~was_queued] for column in (began, ended, launch, launched))
    launched = np.minimum(launched, ended)
    found[LAUNCH] = int((ended - launched).sum())
    late = launched - began
    why = _host_calls(work.session, work.session.track[launch], began)
    for cause, number in ((HOST_LATE, 0), (SYNCHRONIZATION, 1), (COPY, 2)):
        found[cause] = int(late[why == number].sum())
    return found


def _host_calls(session: Session, track: Column, moment: Column) -> Column:
    """What each thread was doing at a moment: 1 inside of a call that waits for the device, 2 of one that copies, 0 otherwise."""
    by_label = np.array([1 if links.waits_for_device(label) else 2 if _copies(label) else 0 for label in session.labels], np.int8)
    calls = np.flatnonzero(by_label[session.label])
    found = np.zeros(len(moment), np.int8)
    for rows in tree.groups(session.track[calls]):
        mine = calls[rows]
        here = np.flatnonzero(track == session.track[mine[0]])
        at = np.searchsorted(session.start_ns[mine], moment[here], side="right") - 1
        inside = (at >= 0) & (session.end_ns[mine[np.maximum(at, 0)]] >= moment[here])
        found[here] = np.where(inside, by_label[session.label[mine[np.maximum(at, 0)]]], 0)
    return found


def _copies(label: Label) -> bool:
    return label.kind == "runtime" and "memcpy" in label.name.lower()
