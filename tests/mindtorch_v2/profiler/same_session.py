"""Whether two sessions are the same: all of them, or what a trace keeps."""

from __future__ import annotations

import dataclasses

import numpy as np

from mindtorch_v2.profiler.model import tree
from mindtorch_v2.profiler.model.grouping import GroupBy
from mindtorch_v2.profiler.model.session import Copies, DataFlow, MemoryLog, Roles, Session
from mindtorch_v2.profiler.model.session_check import check
from mindtorch_v2.profiler.opening import open_recording
from mindtorch_v2.profiler.output import chrome_trace
from mindtorch_v2.profiler.output.event_list import EventList
from mindtorch_v2.profiler.output.slice_times import slice_times

FACTS = [field.name for field in dataclasses.fields(Session)]


def assert_same(one: Session, other: Session) -> None:
    for name in FACTS:
        assert_same_fact(getattr(one, name), getattr(other, name))


def assert_same_fact(a, b) -> None:
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, MemoryLog | Roles | DataFlow | Copies):
        for x, y in zip(a, b, strict=True):
            assert_same_fact(x, y)
    else:
        assert repr(a) == repr(b)  # nan is nan, and 1 is neither True nor 1.0


def as_written(session):
    """The session as its trace has it: some ends are a nanosecond earlier, and what is no character is written out."""
    base = chrome_trace.base_time_ns(session)
    times = slice_times(session, base)
    labels = [label._replace(name=label.name.encode("utf-8", "backslashreplace").decode()) for label in session.labels]
    return session.replace(start_ns=times.start + base, end_ns=times.end + base, labels=labels)


def read_back(session, folder, name="trace.json"):
    chrome_trace.write(session, folder / name)
    (found,) = open_recording(folder / name).sessions
    check(found)
    return found


def rows(session):
    """What is known of each event, in an order that does not depend on ties between tracks."""
    labels = session.labels
    parents = tree.parents(session)
    names = [labels[i].name for i in session.label.tolist()]
    facts = [
        (start, end, session.tracks[track].tid, depth, names[at], labels[label].kind, labels[label].scope, step, sequence)
        + (names[parent] if parent >= 0 else None,)
        for at, (start, end, track, depth, label, step, sequence, parent) in enumerate(
            zip(
                *(
                    column.tolist()
                    for column in (
                        session.start_ns, session.end_ns, session.track, session.depth, session.label, session.step,
                        session.sequence, parents,
                    )
                )
            )
        )
    ]  # fmt: skip
    return sorted(facts)


def sums(session, **by):
    return sorted(
        (
            row.key,
            row.count,
            row.self_cpu_time_total,
            row.cpu_time_total,
            row.flops,
            str(row.input_shapes),
            str(row.stack),
            row.module,
        )
        for row in EventList.averages_of(session, GroupBy(**by))
    )
