"""Storage made and freed. While memory is recorded, the storage class itself tells (see `storage_hooks`); otherwise nobody counts.

Two lists are written, of what becomes memory of a storage outside of an operator's result, and of what storages had when they died;
results are noted in the records of the operators that made them, and count from their end. What that comes to is found at the end:
storages that share one array (`x.data`, `from_numpy` twice) are one piece of memory, from the first of them to the last.
"""

from __future__ import annotations

import gc
import operator
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..._dispatch import quiet
from ..._dispatch.codegen import compile_function
from ..._storage import UntypedStorage
from . import recorder, stack_walk, storage_hooks, tasks, threads
from .storage_hooks import Hooks, array_slot

__all__ = ["NOTHING", "Changes", "Noted", "Notes", "begin", "changes_of", "end", "take"]

Array = np.ndarray[Any, Any]

MADE_WIDTH = 6
FREED = -1  # in place of bytes
ALWAYS = np.iinfo(np.int64).min  # in place of a time
_made: list[Any] = []  # time, thread, address of the array, bytes, number of the stack, address of the storage, over and over
_freed: list[Any] = []  # address of the array, time, thread
_freed_alone: list[Any] = []  # address and time, while there was one thread, and its number
_alone = 0
_live_before: list[tuple[int, int]] = []  # address, bytes
_LISTS: tuple[list[Any], ...] = (_made, _freed, _freed_alone, _live_before)
_hooks: Hooks | None = None


class Notes(NamedTuple):
    """What was noted of arrays, a row each."""

    time_ns: Array  # of the recorder's clock
    thread: Array
    address: Array
    size_bytes: Array  # FREED for a free
    stack: Array  # number of the stack, -1 where it was not asked for or is an operator's


NOTHING = Notes(*[np.empty(0, np.int64)] * 5)


class Noted(NamedTuple):
    """What was noted while storages came and went."""

    live_before: Notes
    made: Notes  # outside of operators' results
    freed: Notes


class Changes(NamedTuple):
    """What happened to memory in a recording, in order of time, and the memory that was live before."""

    time_ns: Array
    thread: Array
    address: Array
    size_bytes: Array  # negative for a free
    stack: Array  # number of the stack, -1 for none
    held_address: Array  # of what lived before
    held_bytes: Array


def begin(*, with_stack: bool = False) -> None:
    """Note storages from here on, with stacks or not; what lives already is the baseline."""
    global _hooks, _alone
    gc.collect(0)
    _alone = threading.get_ident()
    names = {
        "clock": recorder.clock,
        "track": threading.get_ident,
        "id": id,
        "note_made": _made.extend,
        "note_freed": _freed.extend,
        "note_freed_alone": _freed_alone.extend,
        "caller": sys._getframe,
    }
    if with_stack:
        names = {name: quiet.unreported(function) for name, function in names.items()}
    _hooks = _make_hooks(names, with_stack=with_stack)
    storage_hooks.add(_hooks)
    # one after the other without a thread in between, as nothing here is called from Python
    at_once: tuple[Callable[[], Any], ...] = (gc.get_objects, *(written.clear for written in _LISTS))
    objects, *_ = map(_call, at_once)
    live = {id(s): s for s in objects if type(s) is UntypedStorage}
    found = {number: array for number, storage in live.items() if (array := _array_of(storage)) is not None}
    # without storages that another thread was about to give their arrays, which is noted
    for number in _made[MADE_WIDTH - 1 :: MADE_WIDTH]:
        found.pop(number, None)
    for number, array in found.items():
        address = live[number]._address = id(array)
        _live_before.append((address, array.nbytes))


def end() -> None:
    """Note no more."""
    global _hooks
    if _hooks is not None:
        storage_hooks.remove(_hooks)
        _hooks = tasks.on_first = threads.on_new = None


def take() -> Noted:
    """What was noted."""
    made, freed, alone, live_before = (written[:] for written in _LISTS)
    for written in _LISTS:
        written.clear()
    addresses, sizes = zip(*live_before, strict=True) if live_before else ((), ())
    before = _notes([0.0] * len(sizes), [0] * len(sizes), addresses, sizes)
    return Noted(
        before._replace(time_ns=np.full(len(sizes), ALWAYS)),
        _notes(*(made[i::MADE_WIDTH] for i in range(5))),
        _notes(alone[1::2] + freed[1::3], [_alone] * (len(alone) // 2) + freed[2::3], alone[0::2] + freed[0::3]),
    )


def _notes(time: Any, thread: Any, address: Any, size_bytes: Any = None, stack: Any = None) -> Notes:
    sizes = np.full(len(time), FREED) if size_bytes is None else np.array(size_bytes, np.int64)
    stacks = np.full(len(time), -1) if stack is None else np.array(stack, np.int64)
    return Notes(recorder.nanoseconds(time), np.array(thread, np.int64), np.array(address, np.int64), sizes, stacks)


def changes_of(noted: Noted, results: Notes) -> Changes:
    """The memory that was made and freed, by what was noted and by what operators made."""
    notes = map(np.concatenate, zip(noted.live_before, noted.made, noted.freed, results, strict=True))
    time, thread, address, size, stack = notes
    order = np.lexsort((time, address))
    time, thread, address, size, stack = time[order], thread[order], address[order], size[order], stack[order]
    is_first = np.diff(address, prepend=0) != 0
    freed = size == FREED
    owners = _owners(is_first, np.where(freed, -1, 1))
    had = np.where(is_first, 0, np.roll(owners, 1))
    comes, goes = ~freed & (had == 0), freed & (had == 1)
    # where an array goes, the last row in which one came is its own
    came = np.maximum.accumulate(np.where(comes, np.arange(len(size)), 0))
    change = np.where(comes, size, np.where(goes, -size[came], 0))
    held = (time == ALWAYS) & (change != 0)
    rows = np.flatnonzero((change != 0) & (time != ALWAYS))
    rows = rows[np.argsort(time[rows], kind="stable")]
    return Changes(time[rows], thread[rows], address[rows], change[rows], stack[rows], address[held], change[held])


def _owners(is_first: Array, step: Array) -> Array:
    """How many storages have an array after each row, from the first of its rows on. One that goes and was not there is ignored."""
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
        found: Array = array_slot.__get__(storage)
    except AttributeError:
        return None
    return found


# The address is kept with the storage: one number in both notes, instead of two. A storage that never got an array has none, nor has
# one without memory of its own.
_ON_ARRAY = [
    "if storage.__class__ is Storage:",
    "    storage._address = address = id(array)",
    "    note_made((clock(), track(), address, array.nbytes, {stack}, id(storage)))",
    "set_array(storage, array)",  # at last: `begin` takes a storage for noted whose array it sees come
]
_ON_FREE = ["try:", "    {note}", "except AttributeError:", "    pass"]


def _make_hooks(names: dict[str, Any], *, with_stack: bool) -> Hooks:
    """What runs when a storage gets its array, and when it dies. Generated for their globals: calling these is 10 ns faster.

    As long as there is one thread, its number is not asked for at the end of each storage, which saves 40 of 250 ns. A thread that
    neither was there at the beginning nor was started by Python's `threading` is not noticed, and its frees are that one's.
    """
    names = {**names, "set_array": array_slot.__set__, "Storage": UntypedStorage, "stack_number": stack_walk.stack_number}
    stack = "stack_number(caller(1))" if with_stack else "-1"
    on_array = compile_function("on_array", "storage, array", [line.format(stack=stack) for line in _ON_ARRAY], names)
    alone, among_others = (
        compile_function("on_free", "storage", [line.format(note=note) for line in _ON_FREE], names)
        for note in ("note_freed_alone((storage._address, clock()))", "note_freed((storage._address, clock(), track()))")
    )

    def ask_for_threads() -> None:
        alone.__code__ = among_others.__code__

    def ask_for_tasks() -> None:
        ask_for_threads()
        for hook in (on_array, alone):
            hook.__globals__["track"] = tasks.track_number

    tasks.on_first, threads.on_new = ask_for_tasks, ask_for_threads
    if len(sys._current_frames()) > 1:  # only now: one that starts meanwhile is noticed either way
        ask_for_threads()
    return Hooks(on_array, alone, reads_records=True)
