"""Storage made and freed. While memory is recorded, the storage class itself tells; otherwise it is as it was, and nobody counts.

A storage is counted from the moment it gets its array to the end of its life, in whichever thread that comes. Storages that share one
array (`x.data`) are one piece of memory.
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np

from .._storage import UntypedStorage
from . import recorder, tasks

__all__ = ["Changes", "begin", "end", "take"]

Array = np.ndarray[Any, Any]

# time, thread, address, bytes (negative for a free), over and over
changes: list[Any] = []
_held: dict[int, list[int]] = {}  # address of the array → storages that have it, bytes
_slot: Any = vars(UntypedStorage)["array"]
_get_slot, _set_slot = _slot.__get__, _slot.__set__
_baseline = 0


class Changes:
    """What happened to memory in a recording: columns, and the bytes that were live before."""

    def __init__(self, records: list[Any], baseline: int) -> None:
        self.time = np.array(records[0::4], np.float64)
        self.thread = np.array(records[1::4], np.int64)
        self.address = np.array(records[2::4], np.int64)
        self.size_bytes = np.array(records[3::4], np.int64)
        self.baseline = baseline


def begin() -> None:
    """Count from here on; what lives already is the baseline."""
    global _baseline
    changes.clear()
    _held.clear()
    _baseline = 0
    gc.collect(0)
    for storage in gc.get_objects():
        if type(storage) is UntypedStorage:
            _hold(storage.array)
    _baseline = sum(size for _, size in _held.values())
    UntypedStorage.array = property(_get_slot, _set, _delete)  # type: ignore[assignment, misc]
    UntypedStorage.__del__ = _on_free  # type: ignore[attr-defined]


def end() -> None:
    """Count no more."""
    if vars(UntypedStorage)["array"] is not _slot:
        del UntypedStorage.__del__  # type: ignore[attr-defined]
        UntypedStorage.array = _slot  # type: ignore[misc]
        _held.clear()


def take() -> Changes:
    """What was recorded."""
    found = Changes(changes[: len(changes) - len(changes) % 4], _baseline)
    changes.clear()
    return found


def _hold(array: Array) -> bool:
    """Count a storage's claim on its array; True for the first."""
    held = _held.get(id(array))
    if held is None:
        _held[id(array)] = [1, array.nbytes]
        return True
    held[0] += 1
    return False


def _set(storage: UntypedStorage, array: Array) -> None:
    _set_slot(storage, array)
    address = id(array)
    held = _held.get(address)
    if held is None:
        size = array.nbytes
        _held[address] = [1, size]
        if size:
            changes.extend((recorder.clock(), tasks.track_number(), address, size))
    else:
        held[0] += 1


def _delete(storage: UntypedStorage) -> None:
    _on_free(storage)
    _slot.__delete__(storage)


def _on_free(storage: UntypedStorage) -> None:
    try:
        address = id(_get_slot(storage))
    except AttributeError:  # it never got an array
        return
    held = _held.get(address)
    if held is None:
        return  # made by another thread while counting began
    if held[0] > 1:
        held[0] -= 1
        return
    del _held[address]
    if held[1]:
        changes.extend((recorder.clock(), tasks.track_number(), address, -held[1]))
