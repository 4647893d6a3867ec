"""The records of a log, taken out of it while the recording goes on and when it ends."""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
import time
from typing import Any, NamedTuple

import numpy as np

from ..._allocation_failure import reserve
from ..._forking import new_lock
from ..bounds import Bounds
from .keeping import Column, Kept, SpoolRecords, in_nanoseconds
from .memory.storages import NOTHING, Notes, joined
from .operators.recorder import FUNCTION_ID, Log
from .source import Findings, Source
from .turns import Turns

__all__ = ["SMALLEST_PIECE", "LogRecords", "Records", "drain", "later_ones", "make_room", "types"]

PIECE = 1 << 16  # records converted at a time, so that the list shrinks while the columns grow
SMALLEST_PIECE = 1 << 6  # where memory runs out
# Of a recording that goes on, fewer: nobody else runs meanwhile, some 1 ms.
PIECE_MEANWHILE = 1 << 13
# To a spool, more: each piece has to wait for the other threads, and what waits is lost in a crash. Some 5 ms; far behind, twice that.
PIECE_SPOOLED = 1 << 15
PIECE_DROPPED = 1 << 12  # where memory is short: cutting off a list takes memory, too
FEW = 1 << 14  # events that are kept even then, less than a megabyte
BACKLOG = 1 << 18  # records that stay in the list, some 35 MB, where nobody waits for them
MOST_UNREAD = 1 << 20  # records of a spool that are in its file, and not yet looked at
LOOKING_S = 0.1  # for which records are looked at before the next are written


class Records(NamedTuple):
    """The records of a recording, in the order in which events ended."""

    label: Column
    start: Column  # ns of the recorder's clock
    end: Column
    track: Column
    sequence: Column
    inputs: Column | None
    stack: Column | None
    operand_count: Column | None  # how many of the addresses are of each record
    operands: Column | None
    results: Notes = NOTHING  # memory of operators' results, by the time of their end
    heap: tuple[Column, Column] | None = None  # before and after
    function_id: Column | None = None
    lost: int = 0  # records for which there was no memory, the earliest
    results_lost: int = 0  # of these, records whose results are not known either


class LogRecords(Source):
    """The records of a log, and those that were taken out of it so far."""

    def __init__(self, log: Log, bounds: Bounds | None = None, turns: Turns | None = None) -> None:
        self._log = log
        self._turns = turns or Turns()
        self._bounds = bounds or Bounds()
        self._lock = new_lock()  # one thread takes records out at a time
        self.spool: SpoolRecords | None = None
        self.kept = Kept(log, self._bounds)

    def begin(self) -> None:
        self._log.records.clear()
        self._log.lost = 0
        self.kept = Kept(self._log, self._bounds, self.spool)

    @property
    def count(self) -> int:
        """How many events were recorded so far."""
        with self._lock:  # what is being taken out of the log is in neither place twice
            return self.kept.seen + len(self._log.records) // self._log.width

    def meanwhile(self, free_bytes: int) -> None:
        self.kept.mind_memory(free_bytes)
        if self.spool is None and 3 * self._log_bytes() > 2 * free_bytes:
            self.drop_all()
        if self.spool is None:
            self.take_meanwhile(backlog=min(BACKLOG, free_bytes // 8 // self._record_bytes))

    @property
    def _record_bytes(self) -> int:
        """About the memory of a record in the list: eight bytes for each number, two readings of the clock, a thread, and what else is asked for."""
        return 20 * self._log.width + 36

    def _log_bytes(self) -> int:
        return len(self._log.records) // self._log.width * self._record_bytes

    def drop_all(self) -> None:
        """Drop the records of the log, and of now on keep no more than are kept: the program outran the thread that takes them out, and memory is short.

        To a spool they are written before, as far as there is memory for that.
        """
        records, width = self._log.records, self._log.width
        while self.kept.unread:  # these come first
            with self._lock:
                self.kept.look_at_raw()
        if self._bounds.max_events is not None:
            self._keep_first()
        self.kept.keep_no_more()
        if self.spool is not None:
            with contextlib.suppress(MemoryError):
                self._write_rest()
        left = len(records) // width
        while left > 0:
            with self._lock:
                count = min(left, PIECE_DROPPED, len(records) // width)
                events = count - records[: count * width : width].count(FUNCTION_ID)
                del records[: count * width]
                self.kept.count_dropped(events)
            left -= max(count, 1)
        if records and records[0] == FUNCTION_ID:  # of an event that is gone
            del records[:width]

    def _keep_first(self) -> None:
        """Keep some of the first events, less than a megabyte of them: who asks for a thousand has these where memory is short, too."""
        records, width = self._log.records, self._log.width
        for _ in range(FEW // PIECE_DROPPED):
            with self._lock:
                count = min(PIECE_DROPPED, FEW - self.kept.count, len(records) // width)
                if count <= 0 or not self.kept.has_room:
                    return
                self.kept.add(_converted(records[: count * width], self._log))
                del records[: count * width]

    def _write_rest(self) -> None:
        """Write the records of the log to the spool, a few at a time, and take them out. No more of them are kept."""
        records, width = self._log.records, self._log.width
        left = len(records) // width
        while left > 0:
            with self._lock:
                count, seen = min(left, PIECE_DROPPED, len(records) // width), self.kept.seen
                try:
                    self.kept.add(_converted(records[: count * width], self._log))
                except MemoryError:
                    self.kept.seen = seen
                    raise
                del records[: count * width]
            left -= max(count, 1)

    def take_meanwhile(self, *, backlog: int) -> bool:
        """Take records out of the log while others are added to its end, and leave so many there; False if memory is too short for that."""
        records, width = self._log.records, self._log.width
        left = len(records) // width - backlog  # asked for once: taking them may itself be recorded
        # Far behind, more at a time: between two pieces each thread of the program may run for the switch interval, 5 ms.
        size = PIECE if left >= max(backlog, PIECE) else PIECE_MEANWHILE if self.spool is None else PIECE_SPOOLED
        # when memory has run out, the reserve is gone, and what is left of it is for the program
        while left > 0 and reserve:
            with self._lock:
                count = min(left, size, len(records) // width)
                self.kept.add(_converted(records[: count * width], self._log))
                del records[: count * width]
            left -= max(count, 1)
            if self.spool is None:  # writing to it lets others run
                time.sleep(0)  # who waits to run does so now, and not after the switch interval
        return left <= 0

    def spool_meanwhile(self) -> bool:
        """Write the records of the log to the spool, and take them out; False if memory is too short for that.

        What a crash would lose comes first, and in few calls: of several threads each runs before the recorder's has another turn. What is kept in memory is
        looked at later, when there is much of it.
        """
        if not self.kept.keeps_all:
            return self.take_meanwhile(backlog=0)
        records, width = self._log.records, self._log.width
        left, began = len(records) // width, time.monotonic()
        while left > 0 and reserve:
            with self._lock, self._turns.holding():
                count = min(left, PIECE if left > PIECE_SPOOLED else PIECE_SPOOLED, len(records) // width)
                self.kept.add_raw(_read(records[: count * width], self._log))
                del records[: count * width]
            left -= max(count, 1)
        while self.kept.unread > BACKLOG and (self.kept.unread > MOST_UNREAD or time.monotonic() < began + LOOKING_S):
            with self._lock:
                self.kept.look_at_raw()
        return left <= 0

    def take(self, findings: Findings) -> None:
        with self._lock:
            apart = self._moved() if findings.read_later and self._can_be_read_later() else None
            read = functools.partial(drain, apart or self._log, self.kept, round(findings.stopped * 1e9))
            if apart is None:
                findings.records = read()
            else:
                findings.read_records = read
        findings.dropped = self.kept.dropped

    def _can_be_read_later(self) -> bool:
        """Whether nothing has to be known of records that is forgotten at the stop: names of labels and of threads, and the spool."""
        bounds = self._bounds
        return self.spool is None and not bounds.include and not bounds.exclude and bounds.threads is None

    def _moved(self) -> Log | None:
        """A log with the records of this one, which loses them; None if there is no memory for that. 262,144 take 20 ms."""
        records, moved = self._log.records, copy.copy(self._log)
        count = len(records) // self._log.width * self._log.width
        try:
            moved.records = records[:count]
            del records[:count]
        except MemoryError:
            return None
        return moved

    def make_room(self) -> bool:
        return self.kept.make_room()

    def discard(self) -> None:
        self._log.records.clear()
        self.kept = Kept(self._log, self._bounds)


def drain(log: Log, kept: Kept | None = None, now_ns: int | None = None) -> Records:
    """Take the records out of a log, and those that were taken out of it before. Threads may still be adding to its end.

    If memory runs out, the latest records are kept, as many as there is memory for; the others are freed and counted.
    """
    count = len(log.records) // log.width  # asked for once: threads may be adding more, which are neither kept nor lost
    if kept is None:
        kept = Kept(log, Bounds())
    pieces = _pieces(log, count)
    lost = log.lost + kept.lost + count - sum(len(piece[0]) for piece in pieces)
    while pieces:
        kept.add(pieces.pop())  # the earliest first
    pieces = kept.take(now_ns)
    of_pieces = sum(len(piece[0]) for piece in pieces)
    found = _joined(pieces, log)
    lost += of_pieces - len(found[0])
    addresses = found.pop() if log.operands else None
    found, function_id = _without_numbers(found)
    label, start, end, track, sequence, *rest = found
    extras = iter(rest)
    drained = Records(
        label,
        start,
        end,
        track,
        sequence,
        inputs=next(extras) if log.shapes else None,
        stack=next(extras) if log.stacks else None,
        heap=(next(extras), next(extras)) if log.storages or log.heap else None,
        operand_count=next(extras) if log.operands else None,
        operands=addresses,
        function_id=function_id,
        lost=lost,
    )
    while log.storages:
        try:
            return _with_results(drained, kept)
        except MemoryError:  # the log is empty by now: what is not handed over is lost
            if len(drained.label) < SMALLEST_PIECE:
                raise
            drained = later_ones(drained)
    return drained


def types(log: Log) -> list[str]:
    """The types of the columns; with operands, the last is of all their addresses, and the one before of how many each record has."""
    memory = ["i8"] * (2 * (log.storages or log.heap))
    return ["i4", "i8", "i8", "i8", "i8", *["i4"] * (log.shapes + log.stacks), *memory, *["i4", "i8"] * log.operands]


def _pieces(log: Log, count: int) -> list[list[Column]]:
    """The first `count` records as columns in pieces, the latest first: the end is cheap to cut off a list."""
    records, width = log.records, log.width
    count, size = count * width, PIECE
    found: list[list[Column]] = []
    while count:
        first = max(0, count - size * width)
        try:
            piece = _converted(records[first:count], log)
            del records[first:count]  # which takes memory, too
        except MemoryError:
            if size > SMALLEST_PIECE:
                size //= 4
                continue
            records.clear()
            break
        found.append(piece)
        count = first
    return found


def _converted(records: list[Any], log: Log) -> list[Column]:
    return in_nanoseconds(_read(records, log))


def _read(records: list[Any], log: Log) -> list[Column]:
    """The columns of records, with the readings of the clock as they are. Nothing here lets another thread run."""
    columns = [records[i :: log.width] for i in range(log.width)]
    if log.operands:
        columns[-1:] = [list(map(len, columns[-1])), list(itertools.chain.from_iterable(columns[-1]))]
    kinds = ("f8" if i in (1, 2) else kind for i, kind in enumerate(types(log)))
    return [np.fromiter(values, kind, len(values)) for values, kind in zip(columns, kinds, strict=True)]


def _joined(pieces: list[list[Column]], log: Log) -> list[Column]:
    """Join pieces to columns, without the earlier ones if there is no memory for all. A column at a time: its pieces are freed before the next."""
    counts, found = [len(piece[0]) for piece in pieces], list[Column]()
    for i, nothing in enumerate([np.empty(0, t) for t in types(log)]):
        while len(found) == i:
            try:
                found.append(np.concatenate([nothing, *(piece[i] for piece in reversed(pieces))]))
            except MemoryError:
                if not pieces:
                    raise
                later = len(pieces) // 2
                for column in found:
                    _cut_off(column, sum(counts[later:]))
                del pieces[later:], counts[later:]
        for piece in pieces:
            piece[i] = nothing
    return found


def _with_results(records: Records, kept: Kept) -> Records:
    """Records of operators whose memory is not that of the heap, but of results; those of events that were not kept count, too."""
    assert records.heap is not None
    address, size_bytes = records.heap
    made = np.flatnonzero(size_bytes)
    results = Notes(records.end[made], records.track[made], address[made], size_bytes[made], np.full(len(made), -1))
    if kept.results:
        results = joined([*kept.results, results])
    return records._replace(results=results, heap=None, results_lost=records.lost + kept.results_lost)


def _without_numbers(found: list[Column]) -> tuple[list[Column], Column | None]:
    """Columns of events alone, and the numbers that some of the records gave to the events before them."""
    is_number = found[0] == FUNCTION_ID
    if not is_number.any():
        return found, None
    ids = np.zeros(len(is_number), np.int64)
    ids[np.flatnonzero(is_number) - 1] = found[4][is_number]
    return [column[~is_number] for column in found], ids[~is_number]


def make_room(log: Log, findings: Findings) -> bool:
    """Give up the earliest records, of the log or of what was read of it; False if there are hardly any."""
    if findings.records is None:
        return log.make_room()
    if len(findings.records.label) < SMALLEST_PIECE:
        return False
    findings.records = later_ones(findings.records)
    return True


def later_ones(records: Records) -> Records:
    """Three quarters of the records, the later. The memory of all operators' results stays known."""
    left_out = len(records.label) // 4
    operands_left_out = 0 if records.operand_count is None else int(records.operand_count[:left_out].sum())
    for name, column in records._asdict().items():
        if isinstance(column, np.ndarray):
            _cut_off(column, operands_left_out if name == "operands" else left_out)
    for column in records.heap or ():
        _cut_off(column, left_out)
    return records._replace(lost=records.lost + left_out)


def _cut_off(column: Column, count: int) -> None:
    """Take the first values off a column in its place, which takes no memory and frees theirs."""
    for first in range(0, len(column) - count, max(1, count)):
        later = column[first + count : first + 2 * count]
        column[first : first + len(later)] = later
    column.resize(len(column) - count, refcheck=False)
