"""The critical path of a step: the chain of work, on host and devices, that its length depends on.

It is followed backwards from the end. Work on a device began when its stream was free, or when its launch had reached it, whichever came
later: the path goes on there. If it began later still, when work of another stream ended, it had waited for that, and the path goes on with it. The host goes on from one event to the one before; where it had waited for a device, the path goes on
with the last work that ended before the wait did. Where the thread of the step had nothing of its own to do while another thread worked, as
in a backward pass, the path goes on there.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..model import links, tree
from ..model.session import Column, Session
from .work import Work

__all__ = ["CriticalPath", "Piece", "critical_path"]

HOST, LAUNCH, DEVICE, EARLIER = "host", "launch", "device", "earlier work"
AT_ONCE = 0.1  # of the time that work waited: what ended so shortly before it began is what it waited for
MOST_ENDS = 64  # of those that are looked at
LONGEST = 1_000_000  # pieces; a path has fewer than its step has events


@dataclass(frozen=True)
class Piece:
    """A part of the path: a row of the session, from when to when it is on the path, and where that was."""

    name: str
    place: str
    start_ns: int
    end_ns: int
    row: int  # -1 for time without an event


@dataclass(frozen=True)
class NameSums:
    name: str
    place: str
    total_ns: int
    count: int


@dataclass(frozen=True)
class CriticalPath:
    """The pieces of a path, in order of time; together they are as long as the step."""

    name: str
    step: int
    pieces: tuple[Piece, ...]

    @property
    def total_ns(self) -> int:
        return sum(piece.end_ns - piece.start_ns for piece in self.pieces)

    def by_place(self) -> dict[str, int]:
        """The time on the host, between launches and their work, on the device, and with work that was launched before the step."""
        found = dict.fromkeys((HOST, LAUNCH, DEVICE, EARLIER), 0)
        for piece in self.pieces:
            found[piece.place] += piece.end_ns - piece.start_ns
        return found

    def by_name(self) -> list[NameSums]:
        """Sums over pieces of one name, the longest first."""
        found: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for piece in self.pieces:
            found[piece.name, piece.place].append(piece.end_ns - piece.start_ns)
        sums = [NameSums(name, place, sum(lengths), len(lengths)) for (name, place), lengths in found.items()]
        return sorted(sums, key=lambda each: -each.total_ns)

    def as_dict(self) -> dict[str, Any]:
        names = [dataclasses.asdict(each) for each in self.by_name()]
        return {"name": self.name, "step": self.step, "total_ns": self.total_ns, "places": self.by_place(), "names": names}


def critical_path(session: Session, step: int | None = None) -> CriticalPath | None:
    """The path of a step, or of the longest one; of the whole recording, if it has no steps. None without work on a device."""
    work = Work(session)
    if not len(work):
        return None
    span = _span(session, step)
    return None if span is None else _Walk(session, work, span).path()


@dataclass(frozen=True)
class _Span:
    name: str
    step: int
    track: int
    start_ns: int
    end_ns: int


def _span(session: Session, step: int | None) -> _Span | None:
    """The step, with the work on devices that it launched; where several are of one length, the first."""
    names = [label.name if label.name.startswith("ProfilerStep#") else "" for label in session.labels]
    on_cpu = np.array([track.device_type == "CPU" for track in session.tracks], bool)[session.track]
    marks = [row for row in np.flatnonzero(on_cpu).tolist() if names[session.label[row]]] if any(names) else []
    if not marks and step is None:
        main = int(np.argmax(np.bincount(session.track[on_cpu], minlength=len(session.tracks)))) if on_cpu.any() else -1
        return _Span("the whole recording", 0, main, int(session.start_ns[0]), int(session.end_ns.max()))
    spans = [
        _Span(
            names[session.label[row]],
            session.step.item(row),
            session.track.item(row),
            session.start_ns.item(row),
            _end_of(session, row),
        )
        for row in marks
    ]
    if step is None:
        return max(spans, key=lambda span: span.end_ns - span.start_ns)
    return next((span for span in spans if span.name == f"ProfilerStep#{step}"), None)


def _end_of(session: Session, row: int) -> int:
    """When the last work ends that was launched in a step."""
    if session.launch is None:
        return session.end_ns.item(row)
    launched = np.flatnonzero(session.launch >= 0)
    began = session.start_ns[session.launch[launched]]
    mine = launched[(began >= session.start_ns[row]) & (began < session.end_ns[row])]
    return max(session.end_ns.item(row), int(session.end_ns[mine].max(initial=0)))


class _Walk:
    def __init__(self, session: Session, work: Work, span: _Span) -> None:
        self.session, self.work, self.span = session, work, span
        self.pieces: list[Piece] = []
        lasting = np.flatnonzero(work.duration > 0)  # without length, nothing ends that was waited for
        self.by_end = lasting[np.argsort(work.end[lasting], kind="stable")]
        self.ends = work.end[self.by_end]
        self.before = self._before_on_stream()
        self.host: dict[int, tuple[Column, Column]] = {}
        self.parent = tree.parents(session)
        on_cpu = np.array([track.device_type == "CPU" for track in session.tracks], bool)[session.track]
        is_op = np.array([label.kind == "op" for label in session.labels], bool)[session.label]
        outer = np.flatnonzero(on_cpu & is_op & (session.depth == 0) & (session.track != span.track))
        outer = outer[session.end_ns[outer] > session.start_ns[outer]]  # an event without length takes the path nowhere
        outer = outer[np.argsort(session.end_ns[outer], kind="stable")]
        self.outer_ends, self.outer_tracks = session.end_ns[outer], session.track[outer]
        self.waits = np.array([links.waits_for_device(label) for label in session.labels], bool)

    def _before_on_stream(self) -> Column:
        """By place in `work`: the work that its stream did before, -1 for none."""
        before = np.full(len(self.work), -1, np.int64)
        keys = self.work.device * (1 << 32) + self.work.stream
        for places in tree.groups(keys):
            before[places[1:]] = places[:-1]
        return before

    def path(self) -> CriticalPath:
        now, span = self.span.end_ns, self.span
        place = self._last_work(now)
        if place >= 0 and self.work.end[place] < now:  # the host was last
            place = -1
        track = span.track
        while now > span.start_ns and len(self.pieces) < LONGEST:
            if place >= 0:
                now, place, track = self._on_device(now, place, track)
            else:
                now, place, track = self._on_host(now, track)
        return CriticalPath(span.name, span.step, tuple(reversed(self.pieces)))

    def _last_work(self, before_ns: int) -> int:
        """The work that ended last, not later than this; -1 for none inside of the span."""
        at = int(np.searchsorted(self.ends, before_ns, side="right")) - 1
        return int(self.by_end[at]) if at >= 0 and self.ends[at] > self.span.start_ns else -1

    def _on_device(self, now: int, place: int, track: int) -> tuple[int, int, int]:
        """Take work to its start; go on with the work before it on its stream, or with its launch."""
        work, session = self.work, self.session
        launch = int(work.launch[place])
        if launch >= 0 and session.start_ns.item(launch) < self.span.start_ns:
            self._add("launched before the step", EARLIER, self.span.start_ns, now, int(work.rows[place]))
            return self.span.start_ns, -1, track
        began = max(int(work.start[place]), self.span.start_ns)
        self._add(session.labels[work.name[place]].name, DEVICE, began, now, int(work.rows[place]))
        earlier = int(self.before[place])
        free = int(work.end[earlier]) if earlier >= 0 else self.span.start_ns
        launched = session.end_ns.item(launch) if launch >= 0 else self.span.start_ns
        launched = min(launched, began)
        ready = max(launched, min(free, began)) if earlier >= 0 else launched
        if launch >= 0 and (other := self._waited_for(ready, began, place)) >= 0:
            ended = int(work.end[other])
            self._add("waiting on the stream", LAUNCH, ended, began, -1)
            return ended, other, track
        if earlier >= 0 and min(free, began) >= launched and free > self.span.start_ns:
            if free < began:
                self._add("waiting on the stream", LAUNCH, free, began, -1)
            return min(free, began), earlier, track
        if launch < 0:
            return began, -1, self.span.track  # what launched it is not known: the thread of the step did, as like as not
        if launched < began:
            self._add("from launch to start", LAUNCH, max(launched, self.span.start_ns), began, -1)
        return launched, -1, session.track.item(launch)

    def _waited_for(self, ready: int, began: int, place: int) -> int:
        """The work of another stream whose end let this begin, which was ready long before; of several, the longest. -1 for none."""
        work, least = self.work, max(began - AT_ONCE * (began - ready), ready + 1)
        first, last = np.searchsorted(self.ends, [least, began + 1]).tolist()
        ended = self.by_end[max(first, last - MOST_ENDS) : last]
        ended = ended[(work.stream[ended] != work.stream[place]) | (work.device[ended] != work.device[place])]
        return int(ended[np.argmin(work.start[ended])]) if len(ended) and began > ready else -1

    def _on_host(self, now: int, track: int) -> tuple[int, int, int]:
        """Take what the host did before this moment; go on with a device where it had waited for one, or with another thread."""
        session = self.session
        row, began = self._open_before(now, track)
        began = max(began, self.span.start_ns)
        name = "between events" if row < 0 else session.labels[session.label.item(row)].name
        if row >= 0 and self.waits[session.label.item(row)]:
            place = self._last_work(now)
            if place >= 0 and self.work.end[place] > began:
                ended = int(self.work.end[place])
                self._add(name, HOST, ended, now, row)
                return ended, place, track
        if track != self.span.track and row < 0:
            return now, -1, self.span.track
        if track == self.span.track and (row < 0 or session.labels[session.label.item(row)].kind != "runtime"):
            ended, other = self._other_thread(began, now)
            if other >= 0:
                self._add(name, HOST, ended, now, row)
                return ended, -1, other
        self._add(name, HOST, began, now, row)
        return began, -1, track

    def _open_before(self, now: int, track: int) -> tuple[int, int]:
        """The innermost event of a thread just before a moment, -1 for none, and since when it was the innermost."""
        session = self.session
        rows, starts = self._rows_of(track)
        at = int(np.searchsorted(starts, now)) - 1
        if at < 0:
            return -1, self.span.start_ns
        row = rows.item(at)
        since = session.start_ns.item(row)
        while row >= 0 and session.end_ns.item(row) < now:
            since, row = session.end_ns.item(row), self.parent.item(row)
        return row, since

    def _rows_of(self, track: int) -> tuple[Column, Column]:
        """The rows of a thread, and when they start."""
        if track not in self.host:
            rows = np.flatnonzero(self.session.track == track)
            self.host[track] = rows, self.session.start_ns[rows]
        return self.host[track]

    def _other_thread(self, began: int, now: int) -> tuple[int, int]:
        """When the last outermost event of another thread ended in this time, and on which track; -1 for none."""
        at = int(np.searchsorted(self.outer_ends, now, side="right")) - 1
        ended = int(self.outer_ends[at]) if at >= 0 else began
        return (ended, int(self.outer_tracks[at])) if ended > began else (now, -1)

    def _add(self, name: str, place: str, start_ns: int, end_ns: int, row: int) -> None:
        if end_ns > start_ns:
            self.pieces.append(Piece(name, place, start_ns, end_ns, row))
