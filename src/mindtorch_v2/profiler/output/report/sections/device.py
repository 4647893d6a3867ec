"""What devices did: kernels, copies, streams, idle time and its causes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....device import Stream
from ....device.idle import CAUSES
from ..packing import Delta
from ..sources import Process

__all__ = ["device"]

POINTS = 4_000  # of the queue of a stream: of the changes between two, the longest

# Why a device had nothing to do, by the causes of `idle`.
MEANINGS = dict(
    zip(
        CAUSES,
        (
            "The host launched nothing: it was busy with something else, such as the program's own Python.",
            "The host launched nothing: it had waited for the device, in a synchronising call or in item().",
            "The host launched nothing: it was in a call that copies.",
            "The work was launched in the gap, and began so much later.",
            "The work was launched before: it waited for work of another stream, or for an event.",
            "The recording does not say what launched the work that ended the gap.",
        ),
        strict=True,
    )
)


def device(process: Process, base_ns: int) -> dict[str, Any]:
    """The devices of a process, with the queues of their streams over time; times are nanoseconds since `base_ns`."""
    activity = process.devices
    if not activity:
        return {"needs": "a device: ProfilerActivity.NPU, or a trace of a machine that has one"}
    found = activity.as_dict()["devices"]
    for facts, each in zip(found, activity.devices, strict=True):
        facts["started_ns"], facts["ended_ns"] = each.started_ns - base_ns, each.ended_ns - base_ns
        facts["queues"] = [_queue(stream, base_ns) for stream in each.streams]
    return {"devices": found, "means": MEANINGS}


def _queue(stream: Stream, base_ns: int) -> dict[str, Any]:
    time_ns, length = stream.queue.time_ns, stream.queue.length
    if len(length) > POINTS:
        edges = np.linspace(0, len(length), POINTS + 1).astype(np.int64)[:-1]
        time_ns, length = time_ns[edges], np.maximum.reduceat(length, edges)
    return {"time": Delta(time_ns - base_ns), "length": length}
