"""Ctrl-C and the signals that end a process: results that are being made come first."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

__all__ = ["Signals", "interrupts_later"]

# the folders of what starts a program and makes its results
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_OWN = tuple(os.path.join(_PACKAGE, *parts, "") for parts in (("profiler", "whole_program"), ("profiler", "cli"), ("cli",)))

MESSAGES = (
    "results are being made; Ctrl-C again gives up those that are not complete",
    "giving up what is not complete",
)


class Signals:
    """Counts Ctrl-C in the profiler's own code, where an exception would lose results. In the program's it does what it did."""

    def __init__(self, command: str) -> None:
        self._command = command  # what messages begin with
        self.interrupts = 0
        self.is_guarded = False
        self._ending: int | None = None  # a signal that ends the process when results are made
        self._end: Callable[[int], None] | None = None  # makes the results, and ends the process by a signal
        self._before: Any = signal.SIG_IGN
        self._leave = os._exit  # the one of now, which ends the process

    def guard(self) -> None:
        """Take over Ctrl-C, in the main thread. A signal's handler may raise here: call it until `is_guarded`."""
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if before not in (signal.SIG_IGN, None, self._on_interrupt):
                self._before = before
                signal.signal(signal.SIGINT, self._on_interrupt)
        self.is_guarded = True

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        if _is_own(frame):
            self.count()
        elif callable(self._before):
            self._before(number, frame)
        else:
            _die(number)

    def count(self) -> None:
        """Note a Ctrl-C that came while results were made, and say what it does."""
        self.interrupts += 1
        if self.interrupts <= len(MESSAGES):
            # not by a stream, which may be in the middle of writing
            with contextlib.suppress(OSError):
                os.write(2, f"\n{self._command}: {MESSAGES[self.interrupts - 1]}\n".encode())

    @property
    def gave_up(self) -> bool:
        return self.interrupts >= len(MESSAGES)

    def on_immediate_ends(self, finish: Callable[[], Any], is_busy: Callable[[], bool]) -> None:
        """Have `finish` called when the process is about to end without running its exit handlers.

        A signal that comes while the thread `is_busy` with what `finish` needs is kept until `catch_up`, or until results are made.
        """
        leave = self._leave

        def finish_and_leave(status: int) -> None:
            finish()
            leave(status)

        os._exit = finish_and_leave  # type: ignore[assignment]

        def finish_and_die(number: int, frame: FrameType | None) -> None:
            if is_busy():
                self._ending = number
            else:
                finish()
                _die(number)

        self._end = lambda number: finish_and_die(number, None)

        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)  # not every system has both
            if number is None or threading.current_thread() is not threading.main_thread():
                continue
            before = signal.getsignal(number)
            # in a forked process, the handler is that of its parent's recording
            if before is signal.SIG_DFL or getattr(before, "__qualname__", "") == finish_and_die.__qualname__:
                signal.signal(number, finish_and_die)

    def catch_up(self) -> None:
        """End the process by the signal that came meanwhile, if one did."""
        if self._ending is not None and self._end is not None and threading.current_thread() is threading.main_thread():
            self._end(self._ending)

    def end_process_if_asked(self) -> None:
        """End the process as the signals wanted that came while results were made."""
        if self._ending is not None:
            _die(self._ending)
        if self.interrupts:
            self._leave(128 + signal.SIGINT)


@contextlib.contextmanager
def interrupts_later() -> Iterator[None]:
    """A Ctrl-C that comes meanwhile, in the main thread, comes at the end of this."""
    before: Any = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[FrameType | None] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            before(signal.SIGINT, came[-1])


def _is_own(frame: FrameType | None) -> bool:
    """Whether this is the profiler's command, or called by it."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(_OWN):
            return True
        frame = frame.f_back
    return False


def _die(number: int) -> None:
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
