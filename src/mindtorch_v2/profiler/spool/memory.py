"""Changes of memory in a spool: what was made and freed outside of records, and the roles of tensors, as the columns of its frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..capture.log_records import Records
from ..capture.memory import roles
from ..capture.memory.storages import ALWAYS, FREED, Noted, Notes, Storages, joined
from ..capture.source import Findings

__all__ = ["MemoryFound", "MemoryWritten"]

Column = np.ndarray[Any, np.dtype[Any]]
RolesNoted = tuple[Column, Column, Column]  # times, addresses, roles

NO_ROLES: RolesNoted = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int8))


class _Counts(NamedTuple):
    """How much is written to the file."""

    has_first: bool = False
    pieces: int = 0  # of what was made
    made: int = 0
    freed: int = 0
    roles: int = 0
    results: int = 0  # of those that wait to be written


class MemoryWritten:
    """The changes of memory already written to the file. What is written stays; only later changes are added.

    What `new` or `rest` returns counts as written after `note_written`: until then, the next call returns it again.
    """

    def __init__(self, storages: Storages) -> None:
        self._storages = storages
        self._written = self._next = _Counts()
        self._results: list[Notes] = []  # of operators that are not in the file

    def add_results(self, results: Sequence[Notes]) -> None:
        """Add memory made by operators whose records are not written."""
        self._results += results

    def new(self) -> tuple[Notes, RolesNoted] | None:
        """Return the changes since the last call; None if the notes were given up."""
        if not self._storages.read_meanwhile():
            return None
        written = self._written
        pieces, freed = self._storages.since(written.pieces, written.freed)
        first = [] if written.has_first else [self._storages.live_before()]
        made = sum(len(piece.address) for piece in pieces)
        return self._unwritten([*first, *pieces], freed, roles.noted(written.roles), pieces=len(pieces), made_count=made)

    def rest(self, findings: Findings) -> tuple[Notes, RolesNoted] | None:
        """Return the changes since the last call of `new`, when the recording has ended."""
        if findings.memory is None:
            return None
        written = self._written
        before, made, freed = findings.memory
        first = [] if written.has_first else [before]
        later = Notes(*(column[written.made :] for column in made))
        since = findings.roles or NO_ROLES
        ends = Notes(*(column[written.freed :] for column in freed))
        known = since[0][written.roles :], since[1][written.roles :], since[2][written.roles :]
        return self._unwritten([*first, later], ends, known)

    def note_written(self) -> None:
        """Note that what was returned last is in the file."""
        del self._results[: self._next.results]
        self._written = self._next._replace(results=0)

    def _unwritten(
        self, made: list[Notes], freed: Notes, known: RolesNoted, *, pieces: int = 0, made_count: int = 0
    ) -> tuple[Notes, RolesNoted]:
        before, count = self._written, len(self._results)
        self._next = _Counts(
            has_first=True,
            pieces=before.pieces + pieces,
            made=before.made + made_count,
            freed=before.freed + len(freed.address),
            roles=before.roles + len(known[0]),
            results=count,
        )
        return joined([*made, *self._results[:count], freed]), known


class MemoryFound:
    """The changes of memory in a file, and the moment until which they are complete."""

    def __init__(self) -> None:
        self._notes: list[Notes] = []
        self._roles: list[RolesNoted] = [NO_ROLES]
        self._until: int | None = None
        self._is_lost = False

    def add(self, until: float | None, columns: Sequence[Column]) -> None:
        """Add the columns of a frame; `until` is None if notes were given up."""
        if until is None:
            self._is_lost = True
            return
        if len(columns) != 8 or any(len(set(map(len, part))) > 1 for part in (columns[:5], columns[5:])):
            raise ValueError("columns of different lengths")
        wide = [column.astype(np.int64) for column in columns]
        self._notes.append(Notes(*wide[:5]))
        self._roles.append((wide[5], wide[6], wide[7].astype(np.int8)))
        self._until = round(until * 1e9)

    def put_into(self, found: Findings, records: Records) -> Records:
        """Put the changes into the findings; results of operators only up to the moment until which changes are complete."""
        if self._until is None or self._is_lost:
            return records
        notes = joined(self._notes)
        notes = _rows(notes, notes.time_ns <= self._until)
        first, freed = notes.time_ns == ALWAYS, notes.size_bytes == FREED
        found.memory = Noted(_rows(notes, first), _rows(notes, ~first & ~freed), _rows(notes, ~first & freed))
        times, addresses, known = (np.concatenate(column) for column in zip(*self._roles, strict=True))
        found.roles = times, addresses, known
        return records._replace(results=_rows(records.results, records.results.time_ns <= self._until))


def _rows(notes: Notes, wanted: Column) -> Notes:
    return Notes(*(column[wanted] for column in notes))
