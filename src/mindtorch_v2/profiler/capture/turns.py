"""How soon the recorder's thread gets its turn where a program keeps the interpreter busy with several threads.

Who waits for the interpreter may have it after the switch interval (`sys.setswitchinterval`), and each of the program's threads that waits as well is as likely to be
next: with three of them and 5 ms, one wait took 44 ms in the median and 386 ms at most, and with 1 ms, 6 and 56.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

from ..._forking import new_lock

__all__ = ["Turns"]

SHORT_S = 0.0005
LONG_S = 0.05
LATE_S = 0.02  # more than the switch intervals of two threads


class Turns:
    """Sets the switch interval for the recorder's thread, from the first time that it was late: short while it waits, and long while it has a few milliseconds to do.

    The program has its own interval back while nothing is collected, and at the end. If it sets another, it keeps that: from then on none is set here.
    """

    def __init__(self, *, is_wanted: bool = True) -> None:
        """Unless `is_wanted`, the interval is left alone."""
        self._lock = new_lock()  # the thread sets the interval, and whoever pauses or stops the recording gives it back
        self._is_wanted = is_wanted
        self._was_late = self._is_paused = self._is_left = False
        self._wanted = 0  # microseconds, as all that follow; 0 stands for what the program had
        self._own = 0  # what the program had when the thread was late first
        self._latest = self._next = 0  # set here, or found then; two while it is being set, which may be interrupted

    @property
    def is_on(self) -> bool:
        """Whether the thread was late, and something is collected."""
        return self._was_late and not self._is_paused

    @contextlib.contextmanager
    def waiting(self, seconds: float = 0.0) -> Iterator[None]:
        """Around what gives up the interpreter for so long and waits to have it again."""
        began, before = time.monotonic(), self._wanted
        try:
            self._want(_microseconds(SHORT_S))
            yield
        finally:
            if self._is_wanted and time.monotonic() - began - seconds > LATE_S:
                self._note_late()
            self._want(before)

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """Around a few milliseconds of work after which the interpreter is given up: to lose it in between would be one wait more."""
        before = self._wanted
        try:
            self._want(_microseconds(LONG_S))
            yield
        finally:
            self._want(before)

    def resume(self) -> None:
        """Set the interval again after `pause`."""
        self._is_paused = False

    def pause(self) -> None:
        """Give the program its interval back until `resume`."""
        with self._lock:
            self._is_paused = True
            self._give_back()

    def end(self) -> None:
        """Give the program its interval back until the thread is late again."""
        with self._lock:
            self._was_late, self._wanted = False, 0
            self._give_back()

    def _note_late(self) -> None:
        with self._lock:
            if not self._is_paused:
                if not self._own:
                    self._own = self._latest = self._next = _microseconds(sys.getswitchinterval())
                self._was_late = True

    def _want(self, microseconds: int) -> None:
        self._wanted = microseconds
        if not self.is_on:
            return
        with self._lock:
            if self.is_on and not self._is_left:  # asked again: it may have been given back meanwhile
                self._set(microseconds or self._own)

    def _give_back(self) -> None:
        if self._own:
            self._set(self._own)

    def _set(self, microseconds: int) -> None:
        """Set the interval, unless it is another than the one set last: then the program has set it."""
        if _microseconds(sys.getswitchinterval()) not in (self._latest, self._next):
            self._is_left = True
            return
        self._next = microseconds
        sys.setswitchinterval((microseconds + 0.5) / 1e6)  # which cuts off fractions
        self._latest = microseconds


def _microseconds(seconds: float) -> int:
    return round(seconds * 1e6)
