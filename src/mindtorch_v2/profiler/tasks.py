"""Who runs: a thread, or a task of asyncio that has a scope open. Tasks interleave on their thread, and slices must nest.

A track number is the thread's identifier, or a negative number for a task.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import weakref
from typing import Any, NamedTuple

from .._dispatch import dispatcher, keys

__all__ = ["Task", "forget", "known", "own_track", "track_number"]


class Task(NamedTuple):
    name: str
    thread: int


_count = itertools.count(1)
_tracks: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
known: dict[int, Task] = {}  # the tasks of this recording
_active = False
_lock = threading.Lock()


def forget() -> None:
    """End a recording: operators need not ask for tasks any more."""
    global _active, _lock
    _lock = threading.Lock()  # after a fork, the old one may be held by a thread that is not there
    _tracks.clear()
    known.clear()
    if _active:
        _active = False
        dispatcher.deactivate(keys.RECORD_TASKS)


def _current() -> Any:
    return None if asyncio._get_running_loop() is None else asyncio.current_task()


def track_number() -> int:
    """Where an event of the running code belongs."""
    task = _current()
    return threading.get_ident() if task is None else _tracks.get(task) or threading.get_ident()


def own_track() -> int:
    """As `track_number`, for a scope that begins: a task gets a track of its own with its first."""
    global _active
    task = _current()
    if task is None:
        return threading.get_ident()
    track = _tracks.get(task)
    if track is None:
        track = _tracks[task] = -next(_count)
        known[track] = Task(task.get_name(), threading.get_ident())
        with _lock:
            if not _active:
                _active = True
                dispatcher.activate(keys.RECORD_TASKS)
    return track
