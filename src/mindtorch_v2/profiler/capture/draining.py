"""The thread that takes records out of a log while the recording goes on, so that a long recording takes little memory."""

from __future__ import annotations

import _thread
import contextlib
import os
import threading
import time
from collections.abc import Sequence

from ..._allocation_failure import give_back
from ..bounds import free_bytes
from .log_records import LogRecords
from .operators import recorder
from .source import Findings, Source
from .turns import Turns

__all__ = ["Draining"]

INTERVAL_S = 0.25
PAUSE_S = 0.05  # after work that took longer than the interval
FASTEST = 200e6  # bytes of records that a program writes in a second at most
SHORTEST_S = 0.01  # where a quarter of the free memory would be taken before that
PATIENCE_S = 10.0


class Draining(Source):
    """Calls `meanwhile` of the other sources four times a second, in a thread of its own, from the first `resume` to the end.

    The thread is not one of Python's `threading`: a program that counts or joins its threads does not meet it. What goes wrong in it is counted,
    and the program goes on. Before a fork it ends, since a process with threads is not forked without a warning, and after that it begins anew.
    """

    def __init__(self, sources: Sequence[Source], records: LogRecords, turns: Turns | None = None) -> None:
        self._turns = turns or Turns()
        self._sources = sources
        self._records = records
        self._has_begun = False
        # a lock that is held until the thread is to end, and one until it has ended
        self._thread: tuple[_thread.LockType, _thread.LockType] | None = None
        self._idents: set[int] = set()
        self.errors = 0
        self.first_error = ""
        self._free_at = 0, 0.0  # bytes of memory that were free, and when

    def begin(self) -> None:
        self._has_begun = False
        self._idents.clear()
        self.errors, self.first_error = 0, ""
        self._free_at = free_bytes(), time.monotonic()

    def resume(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._records.kept.began = round(recorder.clock() * 1e9)
        self._turns.resume()
        self.begin_thread()

    def pause(self, now: float) -> None:
        self._turns.pause()

    def begin_thread(self) -> None:
        if self._thread is not None:
            return
        stop, gone = _thread.allocate_lock(), _thread.allocate_lock()
        stop.acquire()
        gone.acquire()
        _running.add(self)
        with contextlib.suppress(RuntimeError):  # no more threads: all is done when the recording ends
            _thread.start_new_thread(self._run, (stop, gone))
            self._thread = stop, gone  # after an interrupt before this, it ends by itself

    def end(self) -> None:
        thread, self._thread = self._thread, None
        _running.discard(self)
        if thread is not None:
            stop, gone = thread
            stop.release()
            if threading.get_ident() not in self._idents:  # the collector may end a lost recording in this thread
                gone.acquire(True, PATIENCE_S)  # when the interpreter ends, threads do not go on

    def take(self, findings: Findings) -> None:
        findings.recorder_threads = frozenset(self._idents)

    def discard(self) -> None:
        self.end()

    def _run(self, stop: _thread.LockType, gone: _thread.LockType) -> None:
        self._idents.add(threading.get_ident())
        try:
            wait_s = min(INTERVAL_S, self._free_at[0] / 4 / FASTEST)
            while not self._waited(stop, wait_s) and self._thread == (stop, gone):
                try:
                    wait_s = self._work()
                except Exception as error:  # memory could not be looked at
                    self._note_error(error)
                    wait_s = INTERVAL_S
        finally:
            self._turns.end()
            gone.release()

    def _waited(self, stop: _thread.LockType, wait_s: float) -> bool:
        """Wait so long; whether the thread is to end."""
        with self._turns.waiting(wait_s):
            return stop.acquire(True, wait_s)

    def _note_error(self, error: Exception) -> None:
        self.errors += 1
        self.first_error = self.first_error or f"{type(error).__name__}: {error}"

    def _work(self) -> float:
        """Let the sources do their work; returns the seconds until the next time."""
        now = time.monotonic()
        before, then = self._free_at
        is_hurried = self._turns.is_on and now - then < INTERVAL_S  # looking at memory gives up the interpreter many times
        free = before if is_hurried else free_bytes()
        for source in self._sources:
            try:
                source.meanwhile(free)
            except MemoryError:
                give_back()
                with contextlib.suppress(MemoryError):  # the next time, then
                    self._records.drop_all()
            except Exception as error:
                self._note_error(error)
        if is_hurried:
            return PAUSE_S
        self._free_at = free_bytes(), time.monotonic()
        bytes_a_second = max(1.0, (before - free) / max(now - then, SHORTEST_S))
        took_s = self._free_at[1] - now  # long where the program's threads are many
        interval_s = PAUSE_S if self._turns.is_on else INTERVAL_S
        return min(max(interval_s - took_s, PAUSE_S), max(SHORTEST_S, self._free_at[0] / 4 / bytes_a_second))


_running: set[Draining] = set()
_paused: list[Draining] = []


def _before_fork() -> None:
    _paused[:] = list(_running)
    for each in _paused:
        each.end()


def _after_fork() -> None:
    for each in _paused:
        each.begin_thread()
    _paused.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_paused.clear)
