"""How soon the recorder's thread gets its turn where a program keeps the interpreter busy with several threads.

Who waits for the interpreter may have it after the switch interval (`sys.setswitchinterval`), and each of the program's threads that waits as well is as likely to be
next: with three of them and 5 ms, one wait took 44 ms in the median and 386 ms at most, and with 1 ms, 6 and 56.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

__all__ = ["Turns"]

SHORT_S = 0.0005
LONG_S = 0.05
LATE_S = 0.02  # more than the switch intervals of two threads


class Turns:
    """Sets the switch interval for the recorder's thread, from the first time that it was late: short while it waits, and long while it has a few milliseconds to do.

    The program has its own interval back when the thread ends, or at once if it sets another.
    """

    def __init__(self) -> None:
        self.is_on = False
        self._own = 0.0  # what the program wants
        self._wanted = 0.0  # 0 stands for that

    @contextlib.contextmanager
    def waiting(self, seconds: float = 0.0) -> Iterator[None]:
        """Around what gives up the interpreter for so long and waits to have it again."""
        began, before = time.monotonic(), self._want(SHORT_S)
        try:
            yield
        finally:
            self.is_on = self.is_on or time.monotonic() - began - seconds > LATE_S
            self._want(before)

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """Around a few milliseconds of work after which the interpreter is given up: to lose it in between would be one wait more."""
        before = self._want(LONG_S)
        try:
            yield
        finally:
            self._want(before)

    def end(self) -> None:
        """Give the program its interval back."""
        self._want(0.0)
        self.is_on = False

    def _want(self, seconds: float) -> float:
        """Set the interval; returns what was wanted before."""
        before = self._wanted
        if self.is_on:
            current = sys.getswitchinterval()
            if round(current * 1e6) not in (SHORT_S * 1e6, LONG_S * 1e6):
                self._own = current
            self._wanted = seconds
            sys.setswitchinterval(seconds or self._own or current)
        return before
