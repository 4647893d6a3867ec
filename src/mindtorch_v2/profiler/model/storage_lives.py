"""The lives of storages: which storage was at an address at a time, and which ones operators and roles refer to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .session import Session

__all__ = ["NEVER", "Lives", "Storage", "Storages", "lives_of"]

Column = np.ndarray[Any, np.dtype[Any]]

# What happens at one time happens in this order.
BEGIN, HELD, MAKE, OPERAND, ROLE, FREE = range(6)
NEVER = -1
FAR = np.iinfo(np.int64).max


class Storage(NamedTuple):
    """A storage from its allocation to its end."""

    address: int
    size_bytes: int
    device: str
    made_ns: int | None  # None if it lived when the recording began
    made_by: int  # row of the innermost event, -1 for none
    freed_ns: int | None
    freed_by: int
    writes: list[int]  # starts of the nodes that gave it versions 1, 2, …


@dataclass(frozen=True)
class Storages:
    """The storages of a recording in order of their making, as columns."""

    address: Column
    size_bytes: Column
    track: Column  # where it was made; -1 for what was there when a recording began, on the CPU
    devices: list[str]  # of tracks
    made_ns: Column  # NEVER for what lived when the recording began
    made_by: Column
    freed_ns: Column  # NEVER for what was not freed
    freed_by: Column
    roles: Column  # a bit for each role that it had
    write_ns: Column  # of all storages, one after the other
    first_write: Column  # of each storage, and the number of writes

    def __len__(self) -> int:
        return len(self.address)

    def __getitem__(self, number: int) -> Storage:
        made, freed = self.made_ns.item(number), self.freed_ns.item(number)
        return Storage(
            self.address.item(number),
            self.size_bytes.item(number),
            [*self.devices, "cpu"][self.track.item(number)],
            None if made == NEVER else made,
            self.made_by.item(number),
            None if freed == NEVER else freed,
            self.freed_by.item(number),
            self.write_ns[self.first_write[number] : self.first_write[number + 1]].tolist(),
        )

    def __iter__(self) -> Iterator[Storage]:
        return (self[number] for number in range(len(self)))

    def on(self, device: str) -> Column:
        """The numbers of the storages on a device."""
        return np.flatnonzero(np.array([name == device for name in (*self.devices, "cpu")], bool)[self.track])

    def has_role(self, role: int) -> Column:
        return (self.roles >> role & 1).astype(bool)

    @property
    def first_value(self) -> Column:
        """Return the number of each storage's first version, where all versions of all storages are numbered in turn, and the total."""
        return self.first_write + np.arange(len(self) + 1)

    @property
    def of_value(self) -> Column:
        """Return the storage that each version belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.first_value))


class Lives(NamedTuple):
    """The storages, without their writes, and for each use of an address the number of the storage that was there; -1 for none."""

    storages: Storages
    operand: Column  # for each of the flow
    made: Column  # for each change of memory
    freed: Column


class _Happenings(NamedTuple):
    """All that a recording tells about addresses, in order of time."""

    kind: Column
    entry: Column  # of the table that it comes from
    time_ns: Column
    address: Column


def lives_of(session: Session) -> Lives:
    """The storages of a recording that has operands."""
    flow = session.flow
    assert flow is not None
    happenings = _happenings(session)
    by_address = np.argsort(happenings.address, kind="stable")
    is_change = np.isin(happenings.kind[by_address], (HELD, MAKE, FREE))
    stretches = _Stretches(session, happenings, by_address[is_change])
    # who looks an address up finds what the last change before has left there
    lookups = by_address[~is_change]
    found = stretches.at(happenings.address[lookups], lookups, last=np.cumsum(is_change)[~is_change] - 1)
    kind, entry = happenings.kind[lookups], happenings.entry[lookups]
    operand, roles = np.full(len(flow.operand_row), -1), np.zeros(len(stretches.first), np.int64)
    operand[entry[kind == OPERAND]] = found[kind == OPERAND]
    is_role = (kind == ROLE) & (found >= 0)
    np.bitwise_or.at(roles, found[is_role], 1 << flow.role[entry[is_role]].astype(np.int64))
    made, freed = stretches.made_and_freed()
    return Lives(stretches.storages(roles), operand, made, freed)


def _happenings(session: Session) -> _Happenings:
    memory, flow = session.memory, session.flow
    assert memory is not None
    assert flow is not None
    began = np.unique(flow.began_ns)
    tables = (
        (np.full(len(began), BEGIN), began, np.zeros(len(began), np.int64)),
        (np.full(len(flow.held_time_ns), HELD), flow.held_time_ns, flow.held_address),
        (np.where(memory.size_bytes > 0, MAKE, FREE), memory.time_ns, memory.address),
        (np.full(len(flow.operand_row), OPERAND), session.start_ns[flow.operand_row], np.abs(flow.operand_address)),
        (np.full(len(flow.role), ROLE), flow.role_time_ns, flow.role_address),
    )
    entry = np.concatenate([np.arange(len(kind)) for kind, _, _ in tables])
    kind, time_ns, address = (np.concatenate(columns) for columns in zip(*tables, strict=True))
    order = np.lexsort((kind, time_ns))
    return _Happenings(kind[order], entry[order], time_ns[order], address[order])


class _Stretches:
    """Changes of what is at an address, one address after the other. Each begins or ends a stretch of a storage's life."""

    def __init__(self, session: Session, happenings: _Happenings, at: Column) -> None:
        memory, flow = session.memory, session.flow
        assert memory is not None
        assert flow is not None
        self.session, self.memory, self.flow, self.when = session, memory, flow, at
        self.kind, self.entry, self.time_ns, self.address = (column[at] for column in happenings)
        self.is_held = is_held = self.kind == HELD
        logged = self.entry[~is_held]
        self.size, self.row = np.empty(len(at), np.int64), np.full(len(at), -1)
        self.size[is_held], self.size[~is_held] = flow.held_bytes[self.entry[is_held]], memory.size_bytes[logged]
        self.row[~is_held] = memory.event[logged]
        self._find_ends(happenings)
        self._number()

    def _find_ends(self, happenings: _Happenings) -> None:
        """Find how each stretch ends: at the next change, between two recordings, or not at all."""
        at, address, size = self.when, self.address, self.size
        after = np.minimum(np.arange(len(at)) + 1, max(len(at) - 1, 0))
        has_next = (address[after] == address) & (after > np.arange(len(at)))
        began = np.flatnonzero(happenings.kind == BEGIN)
        era = np.searchsorted(began, at)
        self.until = np.append(began, len(happenings.kind))[era]  # the next recording begins
        self.until_ns = np.append(happenings.time_ns[began], NEVER)[era]
        self.lives = size > 0
        # what is held when another recording begins lives on; what is not was freed unseen, at the latest then
        self.lives_on = self.lives & has_next & self.is_held[after] & (size[after] == size) & (era[after] == era + 1)
        ends = self.lives & ~self.lives_on
        self.ends_unseen = ends & (self.until < np.where(has_next, at[after], len(happenings.kind)))
        self.ends_seen = ends & ~self.ends_unseen & has_next
        self.after = after

    def _number(self) -> None:
        """The storage of each stretch, -1 for none; storages are numbered as they were made."""
        is_first = self.lives & ~np.concatenate([[False], self.lives_on])[: len(self.when)]
        firsts = np.flatnonzero(is_first)
        order = np.argsort(self.when[firsts])
        self.first = firsts[order]
        numbers = np.empty(len(order) + 1, np.int64)
        numbers[order] = np.arange(len(order))
        self.storage = np.where(self.lives, numbers[np.cumsum(is_first) - 1], -1)

    def at(self, address: Column, when: Column, *, last: Column) -> Column:
        """The storages at these addresses, where `last` is the change before; -1 for none."""
        found = np.full(len(address), -1)
        known = np.flatnonzero(last >= 0)
        known = known[self.address[last[known]] == address[known]]
        known = known[self.until[last[known]] > when[known]]
        found[known] = self.storage[last[known]]
        return found

    def made_and_freed(self) -> tuple[Column, Column]:
        """For each change in the log of memory the storage that it made, and the one that it freed."""
        made, freed = np.full(len(self.memory.event), -1), np.full(len(self.memory.event), -1)
        is_make, is_freed = self.kind == MAKE, self.ends_seen & (self.kind[self.after] == FREE)
        made[self.entry[is_make]] = self.storage[is_make]
        freed[self.entry[self.after[is_freed]]] = self.storage[is_freed]
        return made, freed

    def storages(self, roles: Column) -> Storages:
        first, seen, unseen = self.first, self.ends_seen, self.ends_unseen
        freed_ns, freed_by = np.full(len(first), NEVER), np.full(len(first), -1)
        freed_ns[self.storage[unseen]] = self.until_ns[unseen]
        freed_ns[self.storage[seen]], freed_by[self.storage[seen]] = self.time_ns[self.after[seen]], self.row[self.after[seen]]
        track = np.full(len(first), -1)
        is_held = self.is_held[first]
        track[~is_held] = self.memory.track[self.entry[first[~is_held]]]
        was_there = is_held & (self.time_ns[first] == self.flow.began_ns.min(initial=FAR))
        return Storages(
            address=self.address[first],
            size_bytes=self.size[first],
            track=track,
            devices=[t.device_type.lower() + ("" if t.device_type == "CPU" else f":{t.device_index}") for t in self.session.tracks],
            made_ns=np.where(was_there, NEVER, self.time_ns[first]),
            made_by=self.row[first],
            freed_ns=freed_ns,
            freed_by=freed_by,
            roles=roles,
            write_ns=np.empty(0, np.int64),
            first_write=np.zeros(len(first) + 1, np.int64),
        )
