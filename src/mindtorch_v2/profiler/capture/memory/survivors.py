"""Storages that are alive when a recording ends, and which of them only the garbage collector would free."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable
from typing import Any

from ...._storage import UntypedStorage
from .storage_hooks import array_slot

__all__ = ["References", "freed_by_collecting", "references"]

References = dict[int, list[weakref.ref[UntypedStorage]]]  # by the address of the array


def references(objects: Iterable[Any]) -> References:
    """The storages among these objects, without keeping them alive."""
    found: References = {}
    for storage in [s for s in objects if type(s) is UntypedStorage]:
        try:
            address = id(array_slot.__get__(storage))
        except AttributeError:  # another thread is about to give it an array
            continue
        found.setdefault(address, []).append(weakref.ref(storage))
    return found


def freed_by_collecting(known: References) -> set[int]:
    """Collect garbage: the addresses at which storages lived until then, and none does now."""
    before = {address for address, found in known.items() if _lives(found)}
    gc.collect()
    return {address for address in before if not _lives(known[address])}


def _lives(found: Iterable[weakref.ref[UntypedStorage]]) -> bool:
    return any(reference() is not None for reference in found)
