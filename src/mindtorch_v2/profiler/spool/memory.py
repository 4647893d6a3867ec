"""Changes of memory in a spool: what was made and freed outside of records, and the roles of tensors, as the columns of its frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..capture.log_records import Records
from ..capture.memory import roles
from ..capture.memory.storages import ALWAYS, FREED, Noted, Notes, Storages, joined
from ..capture.source import Findings

__all__ = ["MemoryFound", "MemoryWritten"]

Column = np.ndarray[Any, np.dtype[Any]]
RolesNoted = tuple[Column, Column, Column]  # times, addresses, roles

NO_ROLES: RolesNoted = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int8))


class MemoryWritten:
    """The changes of memory already written to the file. What is written stays; only later changes are added."""

    def __init__(self, storages: Storages) -> None:
        self._storages = storages
        self._has_first = False
        self._pieces = self._made = self._freed = self._roles = 0
        self._results: list[Notes] = []  # of operators that are not in the file

    def add_results(self, results: Sequence[Notes]) -> None:
        """Add memory made by operators whose records are not written."""
        self._results += results

    def new(self) -> tuple[Notes, RolesNoted] | None:
        """Return the changes since the last call; None if the notes were given up."""
        if not self._storages.read_meanwhile():
            return None
        pieces, freed = self._storages.since(self._pieces, self._freed)
        self._pieces += len(pieces)
        self._made += sum(len(piece.address) for piece in pieces)
        first = [] if self._has_first else [self._storages.live_before()]
        return self._written([*first, *pieces], freed, roles.noted(self._roles))

    def rest(self, findings: Findings) -> tuple[Notes, RolesNoted] | None:
        """Return the changes since the last call of `new`, when the recording has ended."""
        if findings.memory is None:
            return None
        before, made, freed = findings.memory
        first = [] if self._has_first else [before]
        later = Notes(*(column[self._made :] for column in made))
        since = findings.roles or NO_ROLES
        ends = Notes(*(column[self._freed :] for column in freed))
        return self._written([*first, later], ends, (since[0][self._roles :], since[1][self._roles :], since[2][self._roles :]))

    def _written(self, made: list[Notes], freed: Notes, known: RolesNoted) -> tuple[Notes, RolesNoted]:
        results, self._results = self._results, []
        self._has_first = True
        self._freed += len(freed.address)
        self._roles += len(known[0])
        return joined([*made, *results, freed]), known


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
