"""Storage made and freed. While memory is recorded, the storage class itself tells (see `storage_hooks`); otherwise nobody counts.

A storage is counted from the moment it gets its array to the end of its life, in whichever thread that comes. Storages that share one
array (`x.data`) are one piece of memory.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from .._storage import UntypedStorage
from . import recorder, storage_hooks, tasks
from .storage_hooks import Hooks, array_slot

__all__ = ["Changes", "begin", "end", "take"]

Array = np.ndarray[Any, Any]

# time, thread, address, bytes (negative for a free), over and over
changes: list[Any] = []
_held: dict[int, list[int]] = {}  # address of the array → storages that have it, bytes
_baseline: dict[int, int] = {}  # bytes of the arrays that lived when counting began, by address
_hooks: Hooks | None = None


class Changes:
    """What happened to memory in a recording: columns, and the addresses and bytes that were live before."""

    def __init__(self, records: list[Any], held: dict[int, int]) -> None:
        self.time = np.array(records[0::4], np.float64)
        self.thread = np.array(records[1::4], np.int64)
        self.address = np.array(records[2::4], np.int64)
        self.size_bytes = np.array(records[3::4], np.int64)
        self.held_address = np.fromiter(held.keys(), np.int64, len(held))
        self.held_bytes = np.fromiter(held.values(), np.int64, len(held))
        self.baseline = int(self.held_bytes.sum())


def begin() -> None:
    """Count from here on; what lives already is the baseline."""
    global _baseline, _hooks
    changes.clear()
    _held.clear()
    gc.collect(0)
    for storage in gc.get_objects():
        if type(storage) is UntypedStorage:
            held = _held.setdefault(id(storage.array), [0, storage.array.nbytes])
            held[0] += 1
    _baseline = {address: size for address, (_, size) in _held.items()}
    _hooks = _make_hooks(recorder.clock)
    storage_hooks.add(_hooks)


def end() -> None:
    """Count no more."""
    global _hooks
    if _hooks is not None:
        storage_hooks.remove(_hooks)
        _hooks = None
        _held.clear()


def take() -> Changes:
    """What was recorded."""
    found = Changes(changes[: len(changes) - len(changes) % 4], _baseline)
    changes.clear()
    return found


def _make_hooks(clock: Callable[[], float]) -> Hooks:
    """What runs when a storage gets its array, and when it dies. All they use is bound here: a global costs a tenth of each."""
    set_slot, get_slot, held_by, extend = array_slot.__set__, array_slot.__get__, _held, changes.extend
    thread, task_tracks, track_number = threading.get_ident, tasks.tracks, tasks.track_number

    def on_array(storage: UntypedStorage, array: Array) -> None:
        set_slot(storage, array)
        address = id(array)
        if address in held_by:
            held_by[address][0] += 1
            return
        size = array.nbytes
        held_by[address] = [1, size]
        if size:
            extend((clock(), track_number() if task_tracks else thread(), address, size))

    def on_free(storage: UntypedStorage) -> None:
        try:
            address = id(get_slot(storage))
            held = held_by[address]
        except (AttributeError, KeyError):  # it never got an array, or got it while counting began
            return
        if held[0] > 1:
            held[0] -= 1
            return
        del held_by[address]
        if held[1]:
            extend((clock(), track_number() if task_tracks else thread(), address, -held[1]))

    return Hooks(on_array, on_free)
