"""What torch_npu's `trace_view.json` says without categories: the names of processes tell what rows are, and their numbers the device."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ..model.session import Column
from .trace_columns import RawTrack

__all__ = ["DEVICE", "category", "device_index", "host_of", "joined", "kind", "stream"]

HOST, CALLS, DEVICE = "Python", "CANN", "Ascend Hardware"
COMMUNICATION = ("HCCL", "Communication")
# Other processes sum up rows of these, or have counters alone.
KIND_OF_PROCESS = {HOST: "op", CALLS: "runtime", DEVICE: "kernel"} | dict.fromkeys(COMMUNICATION, "kernel")

# Tasks in which a stream waits for another stream or another device, or tells them that it has come so far: no work.
WAITING_TASKS = re.compile(r"(event|notify|stream|capture)[ _]?(wait|record)", re.IGNORECASE)
FIRST_PLANE = 10_000  # planes of communication are numbered as streams are; from here on they have numbers of their own

DEVICE_BITS, NUMBER_BITS = (
    5,
    10,
)  # the number of a process is that of the host's with ten bits behind it, the last five of which are the device's


def kind(process: str, name: str) -> str | None:
    """The kind of rows without a category; None if they are no events."""
    found = KIND_OF_PROCESS.get(process)
    return "sync" if found == "kernel" and WAITING_TASKS.match(name) else found


def category(process: str) -> str:
    """Return the category of rows that name none: that of collectives, or empty."""
    return "collective_comm" if process in COMMUNICATION else ""


def host_of(names: Mapping[Any, Any]) -> Hashable:
    """The process of the program; None if the file is of another kind."""
    pids = {str(name): key[1] for key, name in names.items() if key[0] == "process_name"}
    return pids.get(HOST) if DEVICE in pids else None


def device_index(pid: Hashable, host: Hashable) -> int:
    """The number of the device that a process stands for; 0 where the numbers do not say it."""
    if isinstance(pid, int) and isinstance(host, int) and pid >> NUMBER_BITS == host:
        return pid & ((1 << DEVICE_BITS) - 1)
    return 0


def stream(process: str, tid: int) -> int:
    """The number of a stream, or of a plane of communication."""
    return tid + FIRST_PLANE if process in COMMUNICATION else tid


def joined(tracks: Sequence[RawTrack], names: Mapping[Any, Any]) -> Column:
    """Return for each track the one that its rows belong to: calls of CANN are in a process of their own, and were made by the program's threads."""
    host = host_of(names)
    threads = {track.tid: number for number, track in enumerate(tracks) if track.pid == host}
    of_host = [names.get(("process_name", track.pid)) == CALLS for track in tracks]
    return np.array([threads.get(t.tid, i) if calls else i for i, (t, calls) in enumerate(zip(tracks, of_host))], np.int64)
