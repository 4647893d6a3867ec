"""The recording of a program from its first line to the end of the process, and what is made of it there."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from ...autograd.profiler import profile
from ..advice import advise
from ..capture import claims
from ..model.module_times import ModuleTimes
from .outputs import print_to, size_text

__all__ = ["WholeRun"]


class WholeRun:
    """Records until the process ends, and then prints the table and writes the files.

    The end is that of the process: after threads, the program's exit handlers and the text of an error, so that their work is recorded and the
    table comes last. `os._exit` and signals end a process without any of that; they are met on their way.
    """

    def __init__(
        self,
        *,
        record_shapes: bool,
        with_stack: bool,
        profile_memory: bool,
        with_modules: bool,
        with_flops: bool,
        sort_by: str,
        row_limit: int,
        table: str,
        advice: bool,
        trace: str | None,
        session: str | None,
    ) -> None:
        self._by_shape = record_shapes
        self._sort_by = sort_by
        self._row_limit = row_limit
        self._table = table
        self._advice = advice
        self._files = {"trace": trace, "session": session, "table": None if table in ("stdout", "stderr", "none") else table}
        # absolute, and the streams of now: the program may change the directory, and put other streams in their place
        self._paths = {name: os.path.abspath(path) for name, path in self._files.items() if path is not None}
        self._out, self._err = sys.stdout, sys.stderr
        self._profile = profile(
            use_kineto=True,
            record_shapes=record_shapes,
            with_stack=with_stack,
            profile_memory=profile_memory,
            with_modules=with_modules,
            with_flops=with_flops,
            acc_events=True,
        )
        self._pid = os.getpid()
        self._done = False
        self._made_way: list[str] = []
        self.failed = False  # whether the program has an exit status of its own other than 0

    def start(self) -> None:
        atexit.register(self._at_exit)  # before the program registers any: the first comes last
        _before_immediate_ends(self.finish)
        claims.set_background(self._make_way, self._record)
        self._record()

    def _record(self) -> None:
        if not self._done:
            self._profile._prepare_trace()
            self._profile._start_trace()

    def _make_way(self, place: str) -> None:
        """A profiler of the program's own starts here. There is one at a time, and the program's comes first."""
        self._made_way.append(place)
        self._profile._stop_trace()

    def discard(self) -> None:
        """End the recording, and make nothing of it."""
        self._done = True
        claims.set_background(None, None)
        self._profile._stop_trace()

    def finish(self) -> bool:
        """End the recording, write its files and show its table, once; whether all of it could be written."""
        if self._done or os.getpid() != self._pid:  # a forked process has no part in this
            return True
        self.discard()
        # the files first: printing ends early where the reader goes away
        text = self._text()
        notes, problems = self._write(text)
        # advice that was asked for without a table is printed all the same
        on = {"stdout": self._out, "stderr": self._err, "none": self._out if self._advice else None}.get(self._table)
        if on is not None:
            print_to(on, f"\n{text}\n")
        print_to(on or self._err, "".join(f"{note}\n" for note in notes))
        print_to(self._err, "".join(f"python -m mindtorch_v2.profiler: {problem}\n" for problem in problems))
        return not problems

    def _at_exit(self) -> None:
        if not self.finish() and not self.failed:
            os._exit(1)  # the one way left to say it: an exit handler has no say in the status

    def _text(self) -> str:
        if not len(self._profile.session):
            return "Nothing was recorded: the program called no operator of mindtorch_v2. Does it import torch?\n"
        parts = []
        if self._table != "none":
            averages = self._profile.key_averages(group_by_input_shape=self._by_shape)
            parts.append(averages.table(sort_by=self._sort_by, row_limit=self._row_limit))
            if self._profile.with_modules:
                parts.append(ModuleTimes.of(self._profile.session).table(row_limit=self._row_limit))
        if self._advice:
            parts.append(f"{advise(self._profile.session)}\n")
        return "\n".join(parts)

    def _write(self, text: str) -> tuple[list[str], list[str]]:
        """Write the files; lines that say so, and lines about those that could not be written."""
        writers: dict[str, Callable[[str], Any]] = {
            "trace": self._profile.export_chrome_trace,
            "session": lambda path: self._profile.session.save(path),
            "table": lambda path: _write_text(path, text),
        }
        notes, problems = [], []
        for name, path in self._paths.items():
            try:
                writers[name](path)
                notes.append(_NOTES[name].format(path=self._files[name], size=size_text(path)))
            except OSError as error:
                problems.append(f"cannot write the {name} to {self._files[name]!r}: {error.strerror or error}")
        if self._made_way:
            places = ", ".join(dict.fromkeys(self._made_way))
            notes.append(f"What ran under the program's own profiler ({places}) is in that profiler's results, not in these.")
        return notes, problems


_NOTES = {
    "trace": "trace    {path} ({size}): open it at https://ui.perfetto.dev",
    "session": "session  {path} ({size}): read it with mindtorch_v2.profiler.model.session.Session.load",
    "table": "table    {path}",
}


def _write_text(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)


def _before_immediate_ends(finish: Callable[[], Any]) -> None:
    """Have this called when the process is about to end without running its exit handlers."""
    leave = os._exit

    def finish_and_leave(status: int) -> None:
        finish()
        leave(status)

    os._exit = finish_and_leave  # type: ignore[assignment]

    def finish_and_die(number: int, frame: Any) -> None:
        finish()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # not every system has both
        if (
            number is not None
            and signal.getsignal(number) is signal.SIG_DFL
            and threading.current_thread() is threading.main_thread()
        ):
            signal.signal(number, finish_and_die)
