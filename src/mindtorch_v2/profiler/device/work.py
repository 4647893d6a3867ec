"""The work of the devices in a session: which rows it is, on which device and stream, of which sort, and which call launched it."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

import numpy as np

from ..model import tree
from ..model.session import Column, Session, Track

__all__ = ["COMMUNICATION", "COMPUTATION", "MEMORY", "SORTS", "Work"]

COMPUTATION, COMMUNICATION, MEMORY = range(3)
SORTS = ("computation", "communication", "memory")

# Of Ascend, tasks that copy between devices are those of collectives.
_COMMUNICATION = re.compile(r"(nccl|rccl|hccl|hcom_|msccl|oneccl|ccl_|sdma|rdma)", re.IGNORECASE)
_MEMORY = re.compile(r"(memcpy|memset|dma_)", re.IGNORECASE)


class Work:
    """Rows of kernels, copies and fills, in order of start; columns are by place in `rows`."""

    def __init__(self, session: Session, rows: Column | None = None) -> None:
        self.session = session
        if rows is None:
            on_device = np.array([track.device_type != "CPU" for track in session.tracks], bool)
            is_work = np.array([label.kind == "kernel" for label in session.labels], bool)
            rows = np.flatnonzero(is_work[session.label] & on_device[session.track]) if len(session) else np.empty(0, np.int64)
        self.rows: Column = rows
        self.start, self.end = session.start_ns[rows], session.end_ns[rows]
        self.duration = self.end - self.start
        self.launch = np.full(len(rows), -1) if session.launch is None else session.launch[rows].astype(np.int64)

    def __len__(self) -> int:
        return len(self.rows)

    @functools.cached_property
    def sort(self) -> Column:
        """Into SORTS."""
        by_label = [_sort(label.name, label.category) for label in self.session.labels]
        of_track = [COMMUNICATION if _COMMUNICATION.match(t.name) else COMPUTATION for t in self.session.tracks]
        sort = np.array(by_label or [0], np.int8)[self.session.label[self.rows]]
        beside = np.array(of_track or [0], np.int8)[self.session.track[self.rows]]
        return np.where(sort == COMPUTATION, beside, sort)

    @functools.cached_property
    def device(self) -> Column:
        return self._of_tracks([track.device_index for track in self.session.tracks])

    @functools.cached_property
    def stream(self) -> Column:
        return self._of_tracks([track.thread_id for track in self.session.tracks])

    def _of_tracks(self, values: Sequence[int]) -> Column:
        return np.array(values or [0], np.int64)[self.session.track[self.rows]]

    @property
    def name(self) -> Column:
        """The label of each, by number."""
        return self.session.label[self.rows]

    def devices(self) -> list[tuple[Track, Work]]:
        """The work of each device, and a track of it."""
        found = []
        for places in tree.groups(self.device):
            track = self.session.tracks[self.session.track[self.rows[places[0]]]]
            found.append((track, Work(self.session, self.rows[places])))
        return found

    def streams(self) -> list[tuple[int, Work]]:
        """The work of each stream of one device, by the stream's number."""
        return [(self.stream[places[0]].item(), Work(self.session, self.rows[places])) for places in tree.groups(self.stream)]

    def of_sort(self, sort: int) -> Work:
        return Work(self.session, self.rows[self.sort == sort])


def _sort(name: str, category: str) -> int:
    if category == "collective_comm" or _COMMUNICATION.match(name):
        return COMMUNICATION
    return MEMORY if category in ("gpu_memcpy", "gpu_memset") or _MEMORY.match(name) else COMPUTATION
