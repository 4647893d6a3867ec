"""What the devices of a recording did: kernels, copies, streams, idle time and its causes, and how sorts of work overlap.

    activity = DeviceActivity.of(session)
    for device in activity.devices:
        print(device.name, device.busy_share, device.idle_causes)

All times are nanoseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..model import tree
from ..model.session import DIRECTIONS, Column, Session
from . import idle
from .intervals import Intervals, gaps, union
from .launches import Launches, Queue
from .work import SORTS, Work

__all__ = ["CopySums", "Device", "DeviceActivity", "KernelSums", "Stream"]


@dataclass(frozen=True)
class KernelSums:
    """Sums over the work of one name."""

    name: str
    sort: str  # "computation", "communication" or "memory"
    count: int
    total_ns: int
    mean_ns: float
    median_ns: float
    min_ns: int
    max_ns: int
    share: float  # of the time of all work


@dataclass(frozen=True)
class CopySums:
    """Sums over copies in one direction, or over fills."""

    direction: str
    count: int
    total_ns: int
    size_bytes: int  # of those whose size is known

    @property
    def bandwidth(self) -> float:
        """Gigabytes a second, which are bytes a nanosecond."""
        return self.size_bytes / self.total_ns if self.total_ns else 0.0


@dataclass(frozen=True, eq=False)
class Stream:
    """One stream of a device, from the start of its first work to the end of its last."""

    number: int
    name: str
    count: int
    span_ns: int
    busy_ns: int
    idle_causes: Mapping[str, int]
    queue: Queue

    @property
    def idle_ns(self) -> int:
        return self.span_ns - self.busy_ns


@dataclass(frozen=True, eq=False)
class Device:
    """One device, from the start of its first work to the end of its last."""

    type: str  # "CUDA"
    index: int
    name: str  # as the recording's properties of devices say, or ""
    started_ns: int
    ended_ns: int
    busy_ns: int  # with work on any stream
    idle_causes: Mapping[str, int]
    sorts: Mapping[str, int]  # with work of this sort on any stream
    alone: Mapping[str, int]  # with work of this sort and no other
    overlap: Mapping[str, int]  # by sorts that ran together: "computation, communication"
    kernels: tuple[KernelSums, ...]  # the longest first
    copies: tuple[CopySums, ...]
    streams: tuple[Stream, ...]
    launches: Launches

    @property
    def span_ns(self) -> int:
        return self.ended_ns - self.started_ns

    @property
    def idle_ns(self) -> int:
        return self.span_ns - self.busy_ns

    @property
    def busy_share(self) -> float:
        return self.busy_ns / self.span_ns if self.span_ns else 0.0

    @property
    def communication_overlap(self) -> float:
        """The part of the time of communication in which there was computation, too."""
        together = sum(ns for sorts, ns in self.overlap.items() if "computation" in sorts and "communication" in sorts)
        return together / self.sorts["communication"] if self.sorts["communication"] else 0.0


@dataclass(frozen=True, eq=False)
class DeviceActivity:
    """The devices of a session; none for a recording without device."""

    devices: tuple[Device, ...]

    @classmethod
    def of(cls, session: Session) -> DeviceActivity:
        """What the devices of a session did."""
        return cls(tuple(_device(session, work, track.device_type, track.device_index) for track, work in Work(session).devices()))

    def __bool__(self) -> bool:
        return bool(self.devices)

    def as_dict(self) -> dict[str, Any]:
        """The facts as JSON knows them, without the queues over time."""
        return {"devices": [_device_as_dict(device) for device in self.devices]}


def _device(session: Session, work: Work, device_type: str, index: int) -> Device:
    busy = union(work.start, work.end)
    of_sort = {name: union(part.start, part.end) for name, part in ((name, work.of_sort(i)) for i, name in enumerate(SORTS))}
    properties = [p for p in session.info.device_properties if p.get("id") == index]
    alone, overlap = _overlaps(of_sort)
    return Device(
        type=device_type,
        index=index,
        name=str(properties[0].get("name", "")) if properties else "",
        started_ns=int(busy.start[0]),
        ended_ns=int(busy.end[-1]),
        busy_ns=busy.total,
        idle_causes=idle.causes(work, gaps(busy)),
        sorts={name: intervals.total for name, intervals in of_sort.items()},
        alone=alone,
        overlap=overlap,
        kernels=_kernels(work),
        copies=_copies(work),
        streams=tuple(_stream(number, part) for number, part in work.streams()),
        launches=Launches.of(work),
    )


def _overlaps(of_sort: Mapping[str, Intervals]) -> tuple[dict[str, int], dict[str, int]]:
    """The time with one sort of work alone, and the time with several, each moment once."""
    bounds = np.unique(np.concatenate([column for intervals in of_sort.values() for column in intervals]))
    running = np.zeros(max(len(bounds) - 1, 0), np.int64)
    for bit, intervals in enumerate(of_sort.values()):
        steps = np.zeros(len(bounds), np.int64)
        np.add.at(steps, np.searchsorted(bounds, intervals.start), 1)
        np.add.at(steps, np.searchsorted(bounds, intervals.end), -1)
        running |= (np.cumsum(steps)[:-1] > 0).astype(np.int64) << bit
    names, lengths = list(of_sort), np.diff(bounds)
    alone, overlap = {}, {}
    for mask in range(1, 1 << len(names)):
        together = [name for bit, name in enumerate(names) if mask >> bit & 1]
        length = int(lengths[running == mask].sum())
        if len(together) == 1:
            alone[together[0]] = length
        elif length:
            overlap[", ".join(together)] = length
    return alone, overlap


def _kernels(work: Work) -> tuple[KernelSums, ...]:
    whole = int(work.duration.sum())
    by_name: dict[tuple[str, int], list[Column]] = {}
    for places in tree.groups(work.name):
        name = work.session.labels[work.name[places[0]]].name
        by_name.setdefault((name, int(work.sort[places[0]])), []).append(work.duration[places])
    found = [_sums(name, sort, np.concatenate(parts), whole) for (name, sort), parts in by_name.items()]
    return tuple(sorted(found, key=lambda sums: -sums.total_ns))


def _sums(name: str, sort: int, duration: Column, whole: int) -> KernelSums:
    total = int(duration.sum())
    return KernelSums(
        name=name,
        sort=SORTS[sort],
        count=len(duration),
        total_ns=total,
        mean_ns=total / len(duration),
        median_ns=float(np.median(duration)),
        min_ns=int(duration.min()),
        max_ns=int(duration.max()),
        share=total / whole if whole else 0.0,
    )


def _copies(work: Work) -> tuple[CopySums, ...]:
    copies = work.session.copies
    if copies is None:
        return ()
    mine = np.isin(copies.row, work.rows)
    row, size, direction = copies.row[mine], copies.size_bytes[mine], copies.direction[mine]
    duration = work.session.end_ns[row] - work.session.start_ns[row]
    return tuple(
        CopySums(DIRECTIONS[direction[places[0]]], len(places), int(duration[places].sum()), int(size[places].sum()))
        for places in tree.groups(direction)
    )


def _stream(number: int, work: Work) -> Stream:
    busy = union(work.start, work.end)
    name = work.session.tracks[work.session.track[work.rows[0]]].name
    span = int(busy.end[-1] - busy.start[0])
    return Stream(number, name, len(work), span, busy.total, idle.causes(work, gaps(busy)), Queue.of(work))


def _device_as_dict(device: Device) -> dict[str, Any]:
    found = {
        key: dict(value) if isinstance(value, Mapping) else value
        for key, value in vars(device).items()
        if key not in ("kernels", "copies", "streams", "launches")
    }
    found |= {"span_ns": device.span_ns, "idle_ns": device.idle_ns, "busy_share": device.busy_share}
    found["communication_overlap"] = device.communication_overlap
    found["kernels"] = [dict(vars(kernel)) for kernel in device.kernels]
    found["copies"] = [{**vars(copy), "gigabytes_per_second": copy.bandwidth} for copy in device.copies]
    found["streams"] = [
        {**{key: value for key, value in vars(stream).items() if key != "queue"}, "idle_ns": stream.idle_ns}
        | {"queue_maximum": stream.queue.maximum, "queue_mean": stream.queue.mean, "idle_causes": dict(stream.idle_causes)}
        for stream in device.streams
    ]
    found["launches"] = dict(vars(device.launches))
    return found
