"""Threads, and tasks of asyncio that have a scope open. Tasks interleave on their thread, and slices must nest.

A track number is the thread's identifier, or a negative number for a task.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..._dispatch import dispatcher, keys
from ..._forking import new_lock

__all__ = ["Task", "forget", "known", "own_track", "track_number", "tracks"]


class Task(NamedTuple):
    name: str
    thread: int


_count = itertools.count(1)
tracks: dict[int, int] = {}  # by the address of the task
# Each takes the entry of its task out when that dies. (A `WeakKeyDictionary` is written in Python: its methods would be among the
# recorded functions, and an interrupt that came while one runs would be lost, as what such a function raises is.)
_references: list[weakref.ref[Any]] = []
known: dict[int, Task] = {}  # the tasks of this recording
_active = False
on_first: Callable[[], None] | None = None  # called when a task gets a track and no other has one
_lock = new_lock()


def forget() -> None:
    """End a recording: operators need not ask for tasks any more."""
    global _active
    tracks.clear()
    _references.clear()
    known.clear()
    if _active:
        _active = False
        dispatcher.deactivate(keys.RECORD_TASKS)


def _task_of_loop() -> Callable[[Any], Any]:
    """Return the function that gives the task of a running loop, and None for no loop."""
    running = getattr(asyncio.tasks, "_current_tasks", None)  # Python 3.14 has no such dictionary
    return _task_or_none if running is None else running.get


def _task_or_none(loop: asyncio.AbstractEventLoop | None) -> asyncio.Task[Any] | None:
    return None if loop is None else asyncio.current_task(loop)


def _calls(function: Callable[[], Any]) -> Iterator[Any]:
    """Iterate over what a function returns, call after call."""
    return itertools.starmap(function, itertools.repeat(()))


def _tasks() -> Iterator[Any]:
    """The task that runs now, at each reading; None outside of any."""
    return map(_task_of_loop(), _calls(asyncio._get_running_loop))


_current = _tasks().__next__
# Where an event of the running code belongs. Put together of functions that are written in C: none of them is among the recorded
# functions, and it may be read where an exception would be lost.
track_number: Callable[[], int] = map(tracks.get, map(id, _tasks()), _calls(threading.get_ident)).__next__  # type: ignore[assignment]


def own_track() -> int:
    """`track_number` for a scope that begins: a task gets a track of its own with its first."""
    global _active
    task = _current()
    if task is None:
        return threading.get_ident()
    found = tracks.get(id(task))
    if found is not None:
        return found
    track = -next(_count)
    _references.append(
        weakref.ref(task, functools.partial(tracks.pop, id(task)))
    )  # called with the reference, what `pop` is to return
    tracks[id(task)] = track
    known[track] = Task(task.get_name(), threading.get_ident())
    with _lock:
        if not _active:
            _active = True
            dispatcher.activate(keys.RECORD_TASKS)
            if on_first is not None:
                on_first()
    return track
