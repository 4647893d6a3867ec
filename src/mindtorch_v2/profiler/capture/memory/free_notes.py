"""Notes of storages that die, written by functions in C alone.

A finaliser written in Python is a place where Python looks for signals, and what a signal's handler raises there is lost: a Ctrl-C or
a time-out that the program never sees, and a free that is not noted. It costs a Python call, and with stacks its two reports. So each
array has a note: a built-in function without arguments that appends the time to the list of its address. A storage has the note of its
array in a slot, and that slot is its `__del__`.
"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable
from itertools import repeat, starmap
from typing import Any

import numpy as np

__all__ = ["FORGET", "Ends", "count", "new_note", "notes", "read"]

Note = Callable[[], object]
Column = np.ndarray[Any, np.dtype[Any]]

notes: dict[int, Note] = {}  # by the address of the array
_times: dict[int, list[Any]] = {}  # of the ends noted for each address; a time, or time and track

# What each note appends. A `partial`, because its function can be exchanged.
_reading: Any = functools.partial(int)
_readings = starmap(_reading, repeat(()))
# Functions that forget all notes. They are called one after the other by who must not be interrupted in between.
FORGET: tuple[Callable[[], object], ...] = (notes.clear, _times.clear)


def new_note(address: int) -> Note:
    """The note of an array that has none yet."""
    times: list[Any] = []
    note = map(times.append, _readings).__next__
    # no call from here on to where the note is taken: no other thread comes in between, and neither does an interrupt
    if address in notes:  # another thread was faster
        return notes[address]
    _times[address] = times
    notes[address] = note
    return note


def read(clock: Callable[[], float], track: Callable[[], int] | None = None) -> None:
    """Have notes tell the time, and where they are written. As long as there is one thread, not asking for it saves 55 of 180 ns."""
    function: Callable[[], Any] = clock
    if track is not None:
        function = zip(starmap(clock, repeat(())), starmap(track, repeat(())), strict=False).__next__
    _reading.__setstate__((function, (), {}, None))


def count() -> int:
    """How many ends are noted."""
    return sum(map(len, list(_times.values())))


class Ends:
    """The ends that were noted, a row each. Times without a track are of thread `alone`."""

    def __init__(self, alone: int) -> None:
        self._alone = alone
        self._addresses, self._times, self._tracks = array("q"), array("d"), array("q")

    def take(self) -> tuple[Column, Column, Column]:
        """Addresses, times and tracks of the ends, which are forgotten. If memory runs out, the next call goes on."""
        while _times:
            address, ends = _times.popitem()
            try:
                self._read(address, ends)
            except MemoryError:
                _times[address] = ends
                raise
        for forget in FORGET:
            forget()
        return np.frombuffer(self._addresses, np.int64), np.frombuffer(self._times), np.frombuffer(self._tracks, np.int64)

    def read_meanwhile(self) -> None:
        """Read the ends that are noted by now, while others are."""
        for address in list(_times):
            ends = _times[address][:]
            if not ends:
                continue
            pairs = [end if end.__class__ is tuple else (end, self._alone) for end in ends]
            count = len(self._tracks)
            try:
                self._addresses.extend(repeat(address, len(ends)))
                self._times.extend(time for time, _ in pairs)
                self._tracks.extend(track for _, track in pairs)
            except MemoryError:
                del self._addresses[count:], self._times[count:], self._tracks[count:]
                raise
            del _times[address][: len(ends)]

    def since(self, first: int) -> tuple[Column, Column, Column]:
        """Addresses, times and tracks of the ends that were read, from a row on."""
        addresses, times, tracks = self._addresses[first:], self._times[first:], self._tracks[first:]
        return np.frombuffer(addresses, np.int64), np.frombuffer(times), np.frombuffer(tracks, np.int64)

    def __len__(self) -> int:
        return len(self._tracks)

    def _read(self, address: int, ends: list[Any]) -> None:
        """Move ends here one by one: the list shrinks while the columns grow."""
        while ends:
            end, count = ends[-1], len(self._tracks)
            time, track = end if end.__class__ is tuple else (end, self._alone)
            try:
                self._addresses.append(address)
                self._times.append(time)
                self._tracks.append(track)
            except MemoryError:
                del self._addresses[count:], self._times[count:]
                raise
            ends.pop()
