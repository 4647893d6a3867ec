"""Handlers of finished recordings that run beside the program."""

from __future__ import annotations

import _thread
import os
from collections.abc import Callable
from typing import Any

__all__ = ["BackgroundHandler"]


class BackgroundHandler:
    """Calls a function in a thread of its own, one call at a time. What it raises is raised by the next `start` or `wait`.

    The thread is not one of Python's `threading`: a recording that goes on does not trace it.
    """

    def __init__(self) -> None:
        self._done: _thread.LockType | None = None  # held while the function runs
        self._pid = 0  # of the process in which it runs: in a forked one the thread is gone
        self._error: BaseException | None = None

    def start(self, handler: Callable[[Any], Any], argument: object) -> None:
        """Call the function, when the call before has ended."""
        self.wait()
        done = _thread.allocate_lock()
        done.acquire()
        self._done, self._pid = done, os.getpid()
        try:
            _thread.start_new_thread(self._run, (handler, argument, done))
        except RuntimeError:  # no more threads
            self._run(handler, argument, done)

    def _run(self, handler: Callable[[Any], Any], argument: object, done: _thread.LockType) -> None:
        try:
            handler(argument)
        except BaseException as error:
            self._error = error
        finally:
            done.release()

    def wait(self) -> None:
        """Wait until the function has returned."""
        if self._done is not None and self._pid == os.getpid():
            with self._done:
                pass
        self._done = None
        error, self._error = self._error, None
        if error is not None:
            raise error
