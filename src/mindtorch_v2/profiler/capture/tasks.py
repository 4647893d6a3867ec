"""Who runs: a thread, or a task of asyncio that has a scope open. Tasks interleave on their thread, and slices must nest.

A track number is the thread's identifier, or a negative number for a task.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from ..._dispatch import dispatcher, keys

__all__ = ["Task", "forget", "known", "own_track", "track_number", "tracks"]


class Task(NamedTuple):
    name: str
    thread: int


_count = itertools.count(1)
# By the address of the task; a reference to it takes the entry out when the task dies. (A `WeakKeyDictionary` is written in Python, and
# its methods would be among the recorded functions.)
tracks: dict[int, tuple[int, weakref.ref[Any]]] = {}
known: dict[int, Task] = {}  # the tasks of this recording
_active = False
on_first: Callable[[], None] | None = None  # called when a task gets a track and no other has one
_lock = threading.Lock()


def forget() -> None:
    """End a recording: operators need not ask for tasks any more."""
    global _active, _lock
    _lock = threading.Lock()  # after a fork, the old one may be held by a thread that is not there
    tracks.clear()
    known.clear()
    if _active:
        _active = False
        dispatcher.deactivate(keys.RECORD_TASKS)


if sys.version_info >= (3, 12):
    _task_of: Callable[[Any], Any] = asyncio.current_task
else:
    _task_of = vars(asyncio.tasks)["_current_tasks"].get  # `current_task` is written in Python there


def _current() -> Any:
    """The task that runs; None outside of any."""
    loop = asyncio._get_running_loop()
    return None if loop is None else _task_of(loop)


def track_number() -> int:
    """Where an event of the running code belongs."""
    if not tracks:
        return threading.get_ident()
    task = _current()
    found = None if task is None else tracks.get(id(task))
    return threading.get_ident() if found is None else found[0]


def _forget_task(address: int, dead: weakref.ref[Any]) -> None:
    tracks.pop(address, None)


def own_track() -> int:
    """As `track_number`, for a scope that begins: a task gets a track of its own with its first."""
    global _active
    task = _current()
    if task is None:
        return threading.get_ident()
    found = tracks.get(id(task))
    if found is not None:
        return found[0]
    track = -next(_count)
    tracks[id(task)] = (track, weakref.ref(task, functools.partial(_forget_task, id(task))))
    known[track] = Task(task.get_name(), threading.get_ident())
    with _lock:
        if not _active:
            _active = True
            dispatcher.activate(keys.RECORD_TASKS)
            if on_first is not None:
                on_first()
    return track
