"""Storage made and freed. While memory is recorded, the storage class itself tells (see `storage_hooks`); otherwise nobody counts.

A list is written of what becomes memory of a storage outside of an operator's result, and the ends of storages are noted (see
`free_notes`); results are noted in the records of the operators that made them, and count from their end. What that comes to is found at the end:
storages that share one array (`x.data`, `from_numpy` twice) are one piece of memory, from the first of them to the last.
"""

from __future__ import annotations

import gc
import operator
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ...._dispatch import quiet
from ...._dispatch.codegen import compile_function
from ...._forking import new_lock
from ...._storage import UntypedStorage
from .. import tasks, threads
from ..operators import recorder
from ..source import Findings, Source
from ..stacks import stack_walk
from . import free_notes, live_objects, roles, storage_hooks, survivors
from .storage_hooks import Hooks

__all__ = ["NOTHING", "Changes", "Noted", "Notes", "Storages", "changes_of", "joined", "without_early"]

Array = np.ndarray[Any, Any]

MADE_WIDTH = 5
FREED = -1  # in place of bytes
ALWAYS = np.iinfo(np.int64).min  # in place of a time
PIECE = 1 << 14  # notes converted at a time
SHORT = 1 << 29  # of memory that is left
BYTES_OF_NUMBER = 32  # in a list
BYTES_OF_END = 24  # when it is read
BYTES_OF_ROW = 40  # of columns


class Notes(NamedTuple):
    """Notes about arrays, a row each."""

    time_ns: Array  # of the recorder's clock
    thread: Array
    address: Array
    size_bytes: Array  # FREED for a free
    stack: Array  # number of the stack, -1 where it was not asked for or is an operator's


NOTHING = Notes(*[np.empty(0, np.int64)] * 5)


def joined(parts: Iterable[Notes]) -> Notes:
    """Notes one after the other."""
    return Notes(*map(np.concatenate, zip(NOTHING, *parts, strict=True)))


class Noted(NamedTuple):
    """Notes about storages that came and went."""

    live_before: Notes
    made: Notes  # outside of operators' results
    freed: Notes


class Changes(NamedTuple):
    """The changes of memory in a recording, in order of time, and the memory that was live before."""

    time_ns: Array
    thread: Array
    address: Array
    size_bytes: Array  # negative for a free
    stack: Array  # number of the stack, -1 for none
    held_address: Array  # of what lived before
    held_bytes: Array


class Storages(Source):
    """Notes storages, with stacks or not. What lives at the beginning is the baseline."""

    def __init__(self, *, with_stack: bool) -> None:
        self._with_stack = with_stack
        self._made: list[Any] = []  # time, thread, address of the array, bytes, number of the stack, over and over
        self._live_before: list[tuple[int, int]] = []  # address, bytes
        self._taken: list[Notes] = []  # of what was made, while the recording went on
        self._pieces: list[Notes] = []  # of what was made since then, the latest first
        self._lock = new_lock()  # one thread takes notes at a time
        self._ends = free_notes.Ends(0)
        self._hooks: Hooks | None = None
        self._is_lost = False  # whether the notes made room

    def resume(self) -> None:
        """Note from here on, until the end: what is made and freed during a pause counts."""
        if self._hooks is not None:
            return
        gc.collect(0)
        self._ends = free_notes.Ends(threading.get_ident())  # the only thread, until others come
        self._hooks = _make_hooks(self._made, with_stack=self._with_stack)
        storage_hooks.add(self._hooks)
        # one after the other without a thread in between, as nothing here is called from Python
        at_once: tuple[Callable[[], Any], ...] = (gc.get_objects, *free_notes.FORGET, self._made.clear)
        objects, *_ = map(_call, at_once)
        for storage in [s for s in objects if type(s) is UntypedStorage]:
            array = _array_of(storage)
            # without storages to which another thread has given their arrays since then, and of which that is noted
            if array is not None and not _is_noted(storage, id(array)):
                storage._note_free = free_notes.notes.get(id(array)) or free_notes.new_note(id(array))
                self._live_before.append((id(array), array.nbytes))

    def end(self) -> None:
        if self._hooks is not None:
            storage_hooks.remove(self._hooks)
        self._hooks = tasks.on_first = threads.on_new = None

    def take(self, findings: Findings) -> None:
        """The memory events recorded so far, and the live storages with what is known of them, unless memory is too short for that."""
        if findings.memory is None and not self._is_lost:
            findings.memory = self._noted()
        findings.memory_lost = self._is_lost
        self._forget()  # which takes as much memory as the columns
        try:
            objects = live_objects.find(*roles.KINDS, UntypedStorage)
            findings.survivors = survivors.references(objects)
            findings.roles_at_end = roles.now(objects)
        except MemoryError:
            findings.survivors, findings.roles_at_end, findings.owners_known = {}, {}, False

    def _noted(self) -> Noted:
        """The notes as columns. If memory runs out, the next call goes on."""
        with self._lock:
            freed, times, tracks = self._ends.take()
            self._read_made()
            made = joined([*self._taken, *reversed(self._pieces)])
            return Noted(self.live_before(), made, _notes(times, tracks, freed))

    def live_before(self) -> Notes:
        """The storages that were there at the beginning."""
        addresses, sizes = zip(*self._live_before, strict=True) if self._live_before else ((), ())
        notes = _notes([0.0] * len(sizes), [0] * len(sizes), addresses, sizes)
        return notes._replace(time_ns=np.full(len(sizes), ALWAYS))

    def _read_made(self) -> None:
        count = len(self._made) // MADE_WIDTH * MADE_WIDTH  # asked for once: threads may be adding more
        while count:
            first = max(0, count - PIECE * MADE_WIDTH)
            piece = self._made[first:count]
            self._pieces.append(_notes(*(piece[i::MADE_WIDTH] for i in range(MADE_WIDTH))))
            del self._made[first:count]
            count = first

    def read_meanwhile(self) -> bool:
        """Turn the notes of now into columns, while others are made; False if notes were given up."""
        with self._lock:
            self._ends.read_meanwhile()
        left = len(self._made) // MADE_WIDTH  # asked for once, as there may always be more
        while left > 0 and not self._is_lost:
            with self._lock:
                piece = self._made[: min(left, PIECE) * MADE_WIDTH]
                self._taken.append(_notes(*(piece[i::MADE_WIDTH] for i in range(MADE_WIDTH))))
                del self._made[: len(piece)]
            left -= max(1, len(piece) // MADE_WIDTH)
            time.sleep(0)  # who waits to run does so now, and not after the switch interval
        return not self._is_lost

    def since(self, pieces: int, ends: int) -> tuple[list[Notes], Notes]:
        """The pieces of what was made that became columns, and what was freed, without the first ones of both."""
        addresses, times, tracks = self._ends.since(ends)
        return self._taken[pieces:], _notes(times, tracks, addresses)

    def meanwhile(self, free_bytes: int) -> None:
        """Give up the notes when they take more than the memory that is left: reading them takes as much again."""
        if self._is_lost or (free_bytes < SHORT and self._notes_bytes() > free_bytes):
            self._is_lost = True
            self._forget()

    def _notes_bytes(self) -> int:
        in_lists = len(self._made) * BYTES_OF_NUMBER + free_notes.count() * (BYTES_OF_NUMBER + BYTES_OF_END)
        return in_lists + sum(len(piece.address) for piece in self._taken) * BYTES_OF_ROW + len(self._ends) * BYTES_OF_END

    def make_room(self) -> bool:
        """Give up the notes as a whole: what is left of them would not add up."""
        if self._is_lost:
            return False
        self._is_lost = True
        self._forget()
        return True

    def _forget(self) -> None:
        self._taken, self._pieces, self._ends = [], [], free_notes.Ends(0)
        self._made.clear()
        self._live_before.clear()
        for forget in free_notes.FORGET:
            forget()

    def discard(self) -> None:
        self.end()


def _notes(time: Any, thread: Any, address: Any, size_bytes: Any = None, stack: Any = None) -> Notes:
    sizes = np.full(len(time), FREED) if size_bytes is None else np.array(size_bytes, np.int64)
    stacks = np.full(len(time), -1) if stack is None else np.array(stack, np.int64)
    return Notes(recorder.nanoseconds(time), np.array(thread, np.int64), np.array(address, np.int64), sizes, stacks)


class _Arrays(NamedTuple):
    """Notes by address and time, with what they come to."""

    notes: Notes
    owners: Array  # storages that have the array after each row
    change: Array  # bytes that come or go
    came: Array  # row in which the array came that is there


def _arrays_of(*parts: Notes) -> _Arrays:
    order = np.lexsort([np.concatenate([getattr(part, name) for part in parts]) for name in ("time_ns", "address")])
    # one column at a time: memory may be short
    notes = Notes(*(np.concatenate(column)[order] for column in zip(*parts, strict=True)))
    del order
    is_first = np.diff(notes.address, prepend=0) != 0
    freed = notes.size_bytes == FREED
    owners = _owners(is_first, np.where(freed, -1, 1))
    had = np.where(is_first, 0, np.roll(owners, 1))
    comes, goes = ~freed & (had == 0), freed & (had == 1)
    del had, is_first
    # where an array goes, the last row in which one came is its own
    came = np.maximum.accumulate(np.where(comes, np.arange(len(freed)), 0))
    change = np.where(comes, notes.size_bytes, np.where(goes, -notes.size_bytes[came], 0))
    return _Arrays(notes, owners, change, came)


def changes_of(noted: Noted, results: Notes) -> Changes:
    """The memory that was made and freed, by what was noted and by what operators made."""
    notes, _, change, _ = _arrays_of(*noted, results)
    held = (notes.time_ns == ALWAYS) & (change != 0)
    rows = np.flatnonzero((change != 0) & (notes.time_ns != ALWAYS))
    rows = rows[np.argsort(notes.time_ns[rows], kind="stable")]
    time, thread, address, _, stack = (column[rows] for column in notes)
    return Changes(time, thread, address, change[rows], stack, notes.address[held], change[held])


def without_early(noted: Noted, results: Notes, until_ns: int) -> Noted:
    """What is left of notes when all until a moment are forgotten, in their place. The memory that is live then is the baseline."""
    parts = noted.made, noted.freed, results
    early = [part.time_ns <= until_ns for part in parts]
    notes, owners, _, came = _arrays_of(
        noted.live_before, *(Notes(*(column[is_early] for column in part)) for part, is_early in zip(parts, early, strict=True))
    )
    lasts = np.flatnonzero(np.diff(notes.address, append=0) != 0)
    count = owners[lasts]
    address, size = np.repeat(notes.address[lasts], count), np.repeat(notes.size_bytes[came[lasts]], count)
    nothing = np.full(len(address), -1)
    for part, is_early in zip(parts, early, strict=True):
        for column in {id(column): column for column in part}.values():
            _keep(column, ~is_early)
    return noted._replace(live_before=Notes(np.full(len(address), ALWAYS), nothing + 1, address, size, nothing))


def _keep(column: Array, wanted: Array) -> None:
    """Shorten a column in its place, which frees the memory of the rest."""
    kept = column[wanted]
    column[: len(kept)] = kept
    column.resize(len(kept), refcheck=False)


def _owners(is_first: Array, step: Array) -> Array:
    """Count the storages that have an array after each row, from the first of its rows on. One that goes and was not there is ignored."""
    group = np.cumsum(is_first) - 1
    total = np.cumsum(step)
    total -= (total - step)[is_first][group]
    # how far below zero each group has come so far, found for all at once: each group lies lower than all before it
    floor = group * (len(step) + 1)
    lowest = np.minimum.accumulate(np.minimum(total, 0) - floor) + floor
    return total - lowest


_call: Callable[[Callable[[], Any]], Any] = operator.call


def _array_of(storage: UntypedStorage) -> Array | None:
    try:
        return storage._array_slot
    except AttributeError:
        return None


def _is_noted(storage: UntypedStorage, address: int) -> bool:
    """Whether the end of a storage will be noted in this recording."""
    try:
        return storage._note_free is free_notes.notes.get(address)
    except AttributeError:
        return False


# The array is noted, and then the storage has it, and no interrupt comes in between: Python looks for signals when a call returns, and
# there is no call.
_ON_ARRAY = [
    "if storage.__class__ is Storage:",
    "    address = id(array)",
    "    notes = all_made",
    "    made = (clock(), track(), address, array.nbytes, {stack})",
    "    try:",
    "        note = free_notes[address]",
    "    except KeyError:",
    "        note = new_note(address)",
    "    notes += made",
    "    storage._note_free = note",
    "storage._array_slot = array",
]


def _make_hooks(made: list[Any], *, with_stack: bool) -> Hooks:
    """The functions that run when a storage gets its array, which is noted in `made`, and when it is freed.

    Generated for their globals: calling these is 10 ns faster.
    """
    names: dict[str, Any] = {"clock": recorder.clock, "track": threading.get_ident, "id": id, "caller": sys._getframe}
    if with_stack:
        names = {name: quiet.unreported(function) for name, function in names.items()}
    names |= {
        "all_made": made,
        "free_notes": free_notes.notes,
        "new_note": free_notes.new_note,
        "Storage": UntypedStorage,
        "stack_number": stack_walk.stack_number,
    }
    stack = "stack_number(caller(1))" if with_stack else "-1"
    on_array: Any = compile_function("on_array", "storage, array", [line.format(stack=stack) for line in _ON_ARRAY], names)
    clock = recorder.clock

    def ask_for_threads() -> None:
        free_notes.read(clock, threading.get_ident)

    def ask_for_tasks() -> None:
        threads.on_new = None  # their numbers are asked for along with the tasks'
        free_notes.read(clock, tasks.track_number)
        on_array.__globals__["track"] = tasks.track_number

    free_notes.read(clock)
    tasks.on_first, threads.on_new = ask_for_tasks, ask_for_threads
    if len(sys._current_frames()) > 1:  # only now: one that starts meanwhile is noticed either way
        ask_for_threads()
    return Hooks(on_array, _on_free, on_replaced=_on_replaced, finaliser=vars(UntypedStorage)["_note_free"], reads_records=True)


def _on_free(storage: UntypedStorage) -> None:
    note = getattr(storage, "_note_free", None)
    if note is not None:  # else it never got an array, or has no memory of its own
        del storage._note_free
        note()


def _on_replaced(storage: UntypedStorage) -> None:
    array = storage._array_slot  # nothing else gets its address until the end is noted
    note = getattr(storage, "_note_free", None)
    del storage._array_slot
    if note is not None:
        del storage._note_free
        note()
    del array
