"""The records that are kept of those that were taken out of a log: all, the first, the last, or some of them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..bounds import Bounds
from ..model.dropping import MEMORY
from ..model.filtering import is_named
from . import labels, tasks, threads
from .memory.storages import Notes
from .operators.recorder import FUNCTION_ID, Log, nanoseconds

__all__ = ["Column", "Kept", "Piece", "SpoolRecords", "in_nanoseconds"]

Column = np.ndarray[Any, np.dtype[Any]]
Piece = list[Column]  # label, start, end, track, sequence, and what the form of the records has besides

# Is given records, and the memory that operators made which passed no filter.
SpoolRecords = Callable[[Piece, Sequence[Notes]], None]

LABEL, START, END, TRACK = range(4)
PASSED, KEPT = "passed", "kept"
EARLY = ""  # in place of an option
# What an event takes at most when the recording stops: its columns, and the arrays by which they are put in order.
BYTES_AT_STOP = 160
BYTES_OF_NOTE = 80  # about the memory of a result; while notes are joined there are two of each


class Kept:
    """Pieces of records in the order in which events ended, as many as the bounds allow. What is not kept is counted by the option that says so.

    The first events are those that ended first, and all that were open around them. Memory that operators made is known of events that are
    not kept, too: changes of memory add up, whatever is left out.
    """

    def __init__(self, log: Log, bounds: Bounds, spool: SpoolRecords | None = None) -> None:
        self._log = log
        self._spool = spool  # is given the records that pass the filters
        self._bounds = bounds
        self._most, self._reason = bounds.most_kept(8 * log.width)
        self._pieces: deque[Piece] = deque()
        self._count = 0  # of events that are kept
        self._latest = 0  # end of an event that is kept
        self._full_at: int | None = None  # when the last of the first events ended
        self._had_last: dict[str, bool] = {}  # whether the last event of the piece before is kept, or passed the filters
        self._names: dict[int, bool] = {}  # numbers of labels, and whether their events are kept
        self.began = 0  # what ended before is no part of the recording, and not counted
        self.seen = 0
        self.lost = 0  # for want of memory
        self.dropped: Counter[str] = Counter()
        self.results: list[Notes] = []  # memory that events made which are not kept
        self.results_lost = 0  # of these, how many were given up
        self._keeps_results = True
        self._raw: deque[Piece] = deque()  # written to the spool; what is kept of them is found later
        self.unread = 0  # records of these

    @property
    def keeps_all(self) -> bool:
        """Whether no filter leaves out what would be in the spool."""
        bounds = self._bounds
        return not bounds.min_duration_us and not bounds.include and not bounds.exclude and bounds.threads is None

    def add_raw(self, piece: Piece) -> None:
        """Write a piece, which comes after all others, to the spool. Its times are readings of the clock."""
        assert self._spool is not None
        self._spool(piece, ())  # if it fails, the piece was not taken
        self._raw.append(piece)
        self.unread += len(piece[LABEL])
        self.seen += len(piece[LABEL])

    def look_at_raw(self) -> None:
        """Keep what is wanted of the earliest piece that was written, and not looked at yet."""
        piece, spool, seen = self._raw[0], self._spool, self.seen
        try:
            self._spool = None
            self.add(in_nanoseconds(piece))
        finally:
            self._spool, self.seen = spool, seen
        self._raw.popleft()
        self.unread -= len(piece[LABEL])

    def add(self, piece: Piece) -> None:
        """Keep what is wanted of a piece, which comes after all others."""
        self.seen += len(piece[LABEL])
        wanted = np.ones(len(piece[LABEL]), bool)
        known = len(self.results)
        for reason, unwanted in self._filtered(piece):
            self._drop(piece, wanted, unwanted, reason)
        if self._spool is not None:
            passed = self._with_numbers(piece, wanted, PASSED)
            self._spool(piece if passed.all() else self._rows(piece, passed), self.results[known:])
        if not self._bounds.keeps_last:
            self._drop(piece, wanted, self._beyond(piece, wanted), self._reason)
        wanted = self._with_numbers(piece, wanted, KEPT)
        kept = piece if wanted.all() else self._rows(piece, wanted)
        if len(kept[LABEL]):
            self._pieces.append(kept)
            self._count += _events(kept)
            self._latest = max(self._latest, int(kept[END].max()))
        if self._bounds.keeps_last:
            self._forget_early()

    def mind_memory(self, free_bytes: int) -> None:
        """Keep no more events than are kept now, if making a session of them could take more than a quarter of the memory that is free."""
        if (self._count + self.unread) * BYTES_AT_STOP > free_bytes // 4 and self._count < self._most:
            self._most, self._reason = self._count, MEMORY
        if sum(len(notes.address) for notes in self.results) * BYTES_OF_NOTE > free_bytes // 4:
            self._keeps_results = False
        if not self._keeps_results:
            self.results_lost += sum(len(notes.address) for notes in self.results)
            self.results.clear()

    @property
    def count(self) -> int:
        """How many events are kept."""
        return self._count

    @property
    def has_room(self) -> bool:
        """Whether the first events are kept, and more of them."""
        return not self._bounds.keeps_last and self._count < self._most

    def keep_no_more(self) -> None:
        """Keep no more events than are kept now, for want of memory. A ring is emptied, and takes those that follow."""
        if self._bounds.keeps_last:
            while self._pieces:
                self._forget(MEMORY)
        elif self._count < self._most:
            self._most, self._reason = self._count, MEMORY

    def count_dropped(self, count: int) -> None:
        """Count events that were given up for want of memory before anything was known of them."""
        self.seen += count
        self.dropped[MEMORY] += count
        if self._log.storages:
            self.results_lost += count

    def _with_numbers(self, piece: Piece, wanted: Column, which: str) -> Column:
        """The wanted rows, and the number of an event, which follows it, with the event."""
        is_number = piece[LABEL] == FUNCTION_ID
        if is_number.any():
            before = np.concatenate([[self._had_last.get(which, True)], wanted[:-1]])
            wanted = np.where(is_number, before, wanted)
        if len(wanted):
            self._had_last[which] = bool(wanted[-1])
        return wanted

    def _filtered(self, piece: Piece) -> Iterator[tuple[str, Column]]:
        """The options that leave out events of a piece, and which ones."""
        bounds = self._bounds
        yield EARLY, piece[END] < self.began
        if bounds.min_duration_us:
            yield "min_duration_us", piece[END] - piece[START] < bounds.min_duration_us * 1000
        if bounds.include or bounds.exclude:
            yield "names", ~self._is_named(piece[LABEL])
        if bounds.threads is not None:
            yield "threads", ~self._is_of_threads(piece[TRACK])

    def _beyond(self, piece: Piece, wanted: Column) -> Column:
        """The events that come after the first ones, as many as there may be."""
        if self._full_at is not None:
            return np.asarray(piece[START] > self._full_at)
        within = np.cumsum(wanted & (piece[LABEL] != FUNCTION_ID)) <= self._most - self._count
        if not within.all():
            self._full_at = int(piece[END][within & wanted].max(initial=self._latest))
            return ~within & (piece[START] > self._full_at)
        return ~within

    def _is_named(self, numbers: Column) -> Column:
        found = np.unique(numbers)
        table = None
        for number in found.tolist():
            if number not in self._names:
                table = labels.table() if table is None else table
                label = table.get(number)
                self._names[number] = (
                    label is None or label.kind != "op" or is_named(label.name, self._bounds.include, self._bounds.exclude)
                )
        return np.isin(numbers, [number for number in found.tolist() if self._names[number]])

    def _is_of_threads(self, tracks: Column) -> Column:
        wanted = set(self._bounds.threads or ())
        idents = {t.ident for t in threads.known() if {t.name, t.native_id} & wanted}
        of_tasks = {number for number, task in tasks.known.items() if task.thread in idents}
        return np.isin(tracks, list(idents | of_tasks))

    def _drop(self, piece: Piece, wanted: Column, unwanted: Column, reason: str) -> None:
        """Take events out of `wanted`, and count them."""
        unwanted = unwanted & wanted & (piece[LABEL] != FUNCTION_ID)
        wanted &= ~unwanted
        self._note_dropped(piece, unwanted, reason)

    def _note_dropped(self, piece: Piece, rows: Column, reason: str) -> None:
        count = int(np.count_nonzero(rows))
        if not count:
            return
        if reason != EARLY:
            self.dropped[reason] += count
        if self._log.storages:
            at = 5 + self._log.shapes + self._log.stacks
            address, size_bytes = piece[at], piece[at + 1]
            made = np.flatnonzero(rows & (size_bytes != 0))
            if len(made):
                self.results.append(
                    Notes(piece[END][made], piece[TRACK][made], address[made], size_bytes[made], np.full(len(made), -1))
                )

    def _rows(self, piece: Piece, wanted: Column) -> Piece:
        if not self._log.operands:
            return [column[wanted] for column in piece]
        *columns, count, addresses = piece
        return [*(column[wanted] for column in columns), count[wanted], addresses[np.repeat(wanted, count)]]

    def _forget_early(self) -> None:
        """Forget whole pieces that are followed by enough."""
        since = self._since(self._latest)
        while len(self._pieces) > 1:
            first = self._pieces[0]
            if self._count - _events(first) >= self._most:
                self._forget(self._reason)
            elif since is not None and first[END].max() < since:
                self._forget("last_seconds")
            else:
                return

    def _since(self, now_ns: int) -> int | None:
        seconds = self._bounds.last_seconds
        return None if seconds is None else now_ns - round(seconds * 1e9)

    def _forget(self, reason: str) -> None:
        first = self._pieces.popleft()
        self._count -= _events(first)
        self._note_dropped(first, first[LABEL] != FUNCTION_ID, reason)

    def take(self, now_ns: int | None = None) -> list[Piece]:
        """Hand over the pieces, the latest first. Of the last ones, exactly as many as are wanted."""
        while self._raw:
            self.look_at_raw()
        if self._bounds.keeps_last and self._pieces:
            self._cut_early(self._since(self._latest if now_ns is None else now_ns))
        taken, self._pieces, self._count = list(reversed(self._pieces)), deque(), 0
        return taken

    def _cut_early(self, since: int | None) -> None:
        room = self._most
        cut: deque[Piece] = deque()
        for piece in reversed(self._pieces):
            is_event = piece[LABEL] != FUNCTION_ID
            from_end = np.cumsum(is_event[::-1])[::-1]  # how many events come from here on
            late = np.ones(len(is_event), bool) if since is None else piece[END] >= since
            fits = from_end <= room
            self._note_dropped(piece, is_event & ~fits, self._reason)
            self._note_dropped(piece, is_event & fits & ~late, "last_seconds")
            # the number of an event follows it, and has no time
            wanted = np.where(is_event, fits & late, np.concatenate([[True], (fits & late)[:-1]]))
            room -= int(np.count_nonzero(is_event & fits))
            cut.appendleft(self._rows(piece, wanted))
        while cut and len(cut[0][LABEL]) and cut[0][LABEL][0] == FUNCTION_ID:  # of an event that is gone
            cut[0] = self._rows(cut[0], np.arange(len(cut[0][LABEL])) > 0)
        self._pieces = cut

    def make_room(self) -> bool:
        """Forget the earliest piece, because memory is short; False if there is none."""
        if not self._pieces:
            return False
        first = self._pieces.popleft()
        self._count -= _events(first)
        self.lost += len(first[LABEL])
        return True


def in_nanoseconds(piece: Piece) -> Piece:
    """A piece with times as integers."""
    return [nanoseconds(column) if column.dtype.kind == "f" else column for column in piece]


def _events(piece: Piece) -> int:
    return int(np.count_nonzero(piece[LABEL] != FUNCTION_ID))
