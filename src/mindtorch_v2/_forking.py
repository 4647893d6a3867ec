"""Locks that survive a fork, and what else a forked process begins anew. The forked process has one thread; a lock that another thread held at the fork would stay locked for ever.

What is guarded by such a lock is changed in steps that leave it usable after each of them, since the thread that was at it is gone.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _thread import RLock

__all__ = ["call_in_child", "new_condition", "new_lock", "renew_in_child"]

_locks: set[weakref.ref[Any]] = set()


def new_lock() -> RLock:
    """A reentrant lock that a forked process finds unlocked, unless the thread that forked holds it."""
    lock = threading.RLock()
    renew_in_child(lock)
    return lock


def new_condition() -> threading.Condition:
    """A condition with such a lock. In a forked process nobody waits for it."""
    condition = threading.Condition()
    renew_in_child(condition)
    return condition


def renew_in_child(lock: Any) -> None:
    """Have a lock of somebody else's renewed, too."""
    _locks.add(weakref.ref(lock, _locks.discard))


def call_in_child(function: Callable[[], None]) -> None:
    """Have a function called in each forked process, before it goes on."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


def _renew_all() -> None:
    for reference in list(_locks):
        _renew(reference())
    if sys.version_info < (3, 12):
        for held in _locks_of_cached_properties():
            _renew(held)


def _renew(lock: Any) -> None:
    """Unlock it in place, for whoever holds a reference to it."""
    if lock is not None and not (hasattr(lock, "_is_owned") and lock._is_owned()):
        lock._at_fork_reinit()


def _locks_of_cached_properties() -> list[Any]:
    """Before Python 3.12, each `functools.cached_property` has a lock that is held while the value is computed."""
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == __package__]
    classes = {value for module in modules for value in list(vars(module).values()) if isinstance(value, type)}
    found = [value for cls in classes for value in vars(cls).values() if isinstance(value, functools.cached_property)]
    return [vars(each)["lock"] for each in found]


call_in_child(_renew_all)
