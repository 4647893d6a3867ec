"""Callbacks for storages that get their array, and that die. Without any, the storage class is as it was written."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...._forking import new_lock
from ...._storage import UntypedStorage
from ..late_exceptions import begin_without_handlers, kept

__all__ = ["Hooks", "add", "array_slot", "remove", "replace"]

Array = np.ndarray[Any, Any]

array_slot: Any = vars(UntypedStorage)["array"]


class Hooks(NamedTuple):
    """The callbacks. `on_array` puts the array into `array_slot` itself: a call less for each storage.

    Operators whose records tell of their results assign to `memory` instead of `array`, which is not told to who reads records.
    """

    on_array: Callable[[UntypedStorage, Array], None]
    on_free: Callable[[UntypedStorage], None]  # at the end of a storage, or of its array when another takes the place
    reads_records: bool = False
    # in place of `on_free` where these hooks are alone: what takes the array out, and what is `__del__`
    on_replaced: Callable[[UntypedStorage], None] | None = None
    finaliser: Any = None


_hooks: list[Hooks] = []
_lock = new_lock()  # a storage may die while hooks are added, and nothing here waits for another thread


def add(hooks: Hooks) -> None:
    """Tell these from now on."""
    with _lock:
        _hooks.append(hooks)
        _install()


def remove(hooks: Hooks) -> None:
    """Tell these no more; harmless for those who are not told."""
    with _lock:
        if hooks in _hooks:
            _hooks.remove(hooks)
        _install()  # in any case: an interrupt may have come between the two


def replace(old: Hooks, new: Hooks) -> None:
    """Tell others in place of these, and miss nothing in between."""
    with _lock:
        _hooks[_hooks.index(old)] = new
        _install()


def _install() -> None:
    if not _hooks:
        if "__del__" in vars(UntypedStorage):
            del UntypedStorage.__del__  # type: ignore[attr-defined]
        UntypedStorage.array = UntypedStorage.memory = array_slot
        return
    UntypedStorage.array = _telling(_hooks)
    UntypedStorage.memory = _telling([h for h in _hooks if not h.reads_records])
    told = _all_of(_hooks)
    UntypedStorage.__del__ = told.finaliser or _finaliser(told.on_free)  # type: ignore[attr-defined]


def _finaliser(on_free: Callable[[UntypedStorage], None]) -> Callable[[UntypedStorage], None]:
    """As `on_free`, from which no exception gets out: Python would drop that of a signal's handler."""

    def finalise(storage: UntypedStorage) -> None:
        try:
            on_free(storage)
        except BaseException as error:
            request: Any = kept(error)
            request = None  # noqa: F841 - it is made here

    begin_without_handlers(finalise)
    return finalise


def _telling(hooks: list[Hooks]) -> Any:
    """The slot in a form that tells these hooks."""
    if not hooks:
        return array_slot
    told = _all_of(hooks)

    def on_replaced(storage: UntypedStorage) -> None:
        told.on_free(storage)
        del storage._array_slot

    return property(array_slot.__get__, told.on_array, told.on_replaced or on_replaced)


def _all_of(hooks: list[Hooks]) -> Hooks:
    if len(hooks) == 1:
        return hooks[0]
    told = tuple(hooks)

    def on_array(storage: UntypedStorage, array: Array) -> None:
        for each in told:
            each.on_array(storage, array)

    def on_free(storage: UntypedStorage) -> None:
        for each in told:
            each.on_free(storage)

    return Hooks(on_array, on_free)


# A forked process completes what another thread was about to install.
os.register_at_fork(after_in_child=_install)
