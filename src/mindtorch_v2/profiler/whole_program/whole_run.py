"""The recording of a program from its first line to the end of the process."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import traceback
from abc import ABC, abstractmethod
from types import CodeType

from ..._forking import new_lock
from ..capture import claims
from ..model.session import Session
from . import crash_text
from .nothing_recorded import Surroundings
from .outputs import print_to
from .program_recording import ProgramRecording
from .signals import Signals

__all__ = ["GivenUpError", "WholeRun"]


class GivenUpError(Exception):
    """Ctrl-C ended the making of a result."""


class WholeRun(ABC):
    """Records until the process ends, and then makes the results, which a subclass defines.

    The end is that of the process: after threads, the program's exit handlers and the text of an error, so that their work is recorded and the
    results come last. `os._exit` and signals end a process without any of that; they are met on their way. Ctrl-C while results are made
    loses none of them: the first is counted, a second gives up what is not complete.
    """

    command = "mindtorch"  # what messages begin with

    def __init__(self, recording: ProgramRecording) -> None:
        self.recording = recording
        self._saved = False  # whether what was recorded is in a file other than the spool
        # the streams of now: the program may put others in their place
        self._out, self._err = sys.stdout, sys.stderr
        self._pid = os.getpid()
        self._done = False
        self._finishing = new_lock()  # one thread makes the results, others wait for it
        self._maker: int | None = None  # that thread
        self._problems: list[str] = []
        self._given_up: list[str] = []
        self._made_way: list[str] = []
        self._surroundings = Surroundings()
        self.signals = Signals(self.command)
        self.code: CodeType | None = None  # of the program
        self.failed = False  # whether the program has an exit status of its own other than 0

    def start(self) -> None:
        atexit.register(self._at_exit)  # before the program registers any: the first comes last
        if self.recording.spool is not None:
            crash_text.write_behind(self.recording.spool)
        self.signals.on_immediate_ends(self.finish, self._is_busy)
        self.recording.on_change = self.signals.catch_up
        claims.set_background(self._make_way, self.recording.go_on)
        self.recording.begin()

    def _is_busy(self) -> bool:
        """Whether this thread makes results, or begins or ends a recording."""
        return self._maker == threading.get_ident() or self.recording.is_changing()

    def _make_way(self, place: str) -> None:
        """A profiler of the program's own starts here. There is one at a time, and the program's comes first."""
        self._made_way.append(place)
        self.recording.rest()

    def discard(self) -> None:
        """End the recording, and make nothing of it."""
        self._done = True
        claims.set_background(None, None)
        self.recording.end()

    def abandon(self) -> None:
        """End the recording of a program that there is not."""
        self.discard()
        self._remove_spool()

    def finish(self) -> bool:
        """End the recording and make its results, once; whether all of them could be made."""
        if os.getpid() != self._pid:  # a forked process has no part in this
            return True
        with self._finishing:
            if not self._done:
                self.signals.guard()
                self._maker = threading.get_ident()
                try:
                    self.discard()
                    self._make_results()
                except Exception as error:  # memory, or a defect: the program's own end must not hide it
                    self._problems.append(f"making the results failed: {type(error).__name__}: {error}")
                    print_to(self._err, f"{self.command}: {self._problems[-1]}\n")
                    print_to(self._err, traceback.format_exc())
                finally:
                    self._maker = None
                self._leave_spool()
                self.signals.end_process_if_asked()
        return not self._problems

    def _leave_spool(self) -> None:
        """Remove the spool if its contents are saved, or say what it is for."""
        if self._saved:
            self._remove_spool()
        elif self.recording.spool is not None and os.path.exists(self.recording.spool):
            print_to(self._err, f"{self.command}: what was recorded is in {self.recording.spool}; mindtorch recover reads it\n")

    def _remove_spool(self) -> None:
        if self.recording.spool is not None:
            with contextlib.suppress(OSError):
                os.unlink(self.recording.spool)

    def _at_exit(self) -> None:
        if not self.finish() and not self.failed:
            os._exit(1)  # the one way left to say it: an exit handler has no say in the status

    @abstractmethod
    def _make_results(self) -> None:
        """Write and print what the recording is for."""

    @property
    def session(self) -> Session:
        return self.recording.session

    def _why_nothing_was_recorded(self) -> str:
        step = self.recording.awaited_step
        if step is not None and not self._made_way:
            return (
                f"Nothing was recorded: the schedule begins to record after {step} steps, and the program made {self.recording.steps}. "
                "A step ends when an optimizer steps; a program without one is recorded without --wait, --warmup and --active.\n"
            )
        return self._surroundings.why_nothing_was_recorded(self.code, self._made_way)

    def _notes_of_gaps(self) -> list[str]:
        """What is not in the recording, in sentences."""
        if not self._made_way:
            return []
        places = ", ".join(dict.fromkeys(self._made_way))
        return [f"What ran under the program's own profiler ({places}) is in that profiler's results, not in these."]

    def _print_problems(self) -> None:
        if self._given_up:
            self._problems.append(f"given up after Ctrl-C: {', '.join(self._given_up)}")
        print_to(self._err, "".join(f"{self.command}: {problem}\n" for problem in self._problems))

    def _go_on(self, done: int, total: int) -> None:
        """Called while a result is made; ends it if a second Ctrl-C came."""
        if self.signals.gave_up:
            raise GivenUpError
