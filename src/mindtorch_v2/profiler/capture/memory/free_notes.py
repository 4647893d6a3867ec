"""Notes of storages that die, written by functions in C alone.

A finaliser written in Python is a place where Python looks for signals, and what a signal's handler raises there is lost: a Ctrl-C or
a time-out that the program never sees, and a free that is not noted. It costs a Python call, and with stacks its two reports. So each
array has a note: a built-in function without arguments that appends the time to the list of its address. A storage has the note of its
array in a slot, and that slot is its `__del__`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from itertools import repeat, starmap
from typing import Any

import numpy as np

__all__ = ["FORGET", "new_note", "notes", "read", "take"]

Note = Callable[[], object]
Column = np.ndarray[Any, np.dtype[Any]]
PIECE = 1 << 14  # ends converted at a time

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


def take(alone: int) -> tuple[Column, Column, Column]:
    """Addresses, times and tracks of the ends that were noted, which are then forgotten. Times without a track are of thread `alone`.

    The lists shrink while the columns grow: memory may be short.
    """
    found = [piece for address, ends in list(_times.items()) for piece in _pieces(address, ends, alone)]
    for forget in FORGET:
        forget()
    empty = np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64)
    addresses, times, tracks = map(np.concatenate, zip(empty, *found, strict=True))
    return addresses, times, tracks


def _pieces(address: int, ends: list[Any], alone: int) -> Iterator[tuple[Column, Column, Column]]:
    while count := min(len(ends), PIECE):
        piece = ends[-count:]
        with_tracks = [end if end.__class__ is tuple else (end, alone) for end in piece]
        times, tracks = np.array([time for time, _ in with_tracks]), np.array([track for _, track in with_tracks], np.int64)
        del piece, ends[-count:]
        yield np.full(count, address), times, tracks
