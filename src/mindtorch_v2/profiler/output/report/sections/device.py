"""What devices did: kernels, copies, streams, idle time and its causes, and the critical path."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....device import Stream
from ....device.critical_path import DEVICE, EARLIER, HOST, LAUNCH, CriticalPath
from ....device.idle import CAUSES
from ..packing import Delta
from ..sources import Process

__all__ = ["device"]

PATH_ROWS = 12  # names on the critical path, those with most time
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

# What a piece of the critical path was, by its place.
PLACES = {
    HOST: "The step would be shorter if the host were faster here: its Python, its operators, its calls of the runtime.",
    LAUNCH: "Work had been launched and had not begun: what a launch takes, or waiting for another stream.",
    DEVICE: "The step would be shorter if these kernels were.",
    EARLIER: "The device was still busy with work that was launched before the step began.",
}


def device(process: Process, base_ns: int) -> dict[str, Any]:
    """The devices of a process, with the queues of their streams over time; times are nanoseconds since `base_ns`."""
    activity = process.devices
    if not activity:
        return {"needs": "a device: ProfilerActivity.NPU, or a trace of a machine that has one"}
    found = activity.as_dict()["devices"]
    for facts, each in zip(found, activity.devices, strict=True):
        facts["started_ns"], facts["ended_ns"] = each.started_ns - base_ns, each.ended_ns - base_ns
        facts["queues"] = [_queue(stream, base_ns) for stream in each.streams]
    path = process.critical_path
    return {
        "devices": found,
        "means": MEANINGS,
        "path": _path(process, path, base_ns) if path is not None and path.pieces else None,
        "places": PLACES,
    }


def _path(process: Process, path: CriticalPath, base_ns: int) -> dict[str, Any]:
    """The path as the command `device` shows it, from when to when it is, and which names are those of events."""
    facts = path.as_dict()
    events = {label.name for label in process.session.labels}
    names = [each | {"is_event": each["name"] in events} for each in facts["names"][:PATH_ROWS]]
    start_ns, end_ns = path.pieces[0].start_ns, path.pieces[-1].end_ns
    return facts | {"names": names, "start": start_ns - base_ns, "end": end_ns - base_ns}


def _queue(stream: Stream, base_ns: int) -> dict[str, Any]:
    time_ns, length = stream.queue.time_ns, stream.queue.length
    if len(length) > POINTS:
        edges = np.linspace(0, len(length), POINTS + 1).astype(np.int64)[:-1]
        time_ns, length = time_ns[edges], np.maximum.reduceat(length, edges)
    return {"time": Delta(time_ns - base_ns), "length": length}
