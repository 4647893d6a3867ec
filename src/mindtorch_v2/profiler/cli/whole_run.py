"""The recording of a program from its first line to the end of the process, and what is made of it there."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import traceback
from types import CodeType

from ..._forking import new_lock
from ..advice import advise
from ..autograd_profile import profile
from ..capture import claims
from ..model.module_times import ModuleTimes
from ..options import Options
from ..output import chrome_trace
from ..writing.atomic_file import replacing
from .nothing_recorded import Surroundings
from .outputs import print_to, size_text, terminal_width
from .signals import Signals

__all__ = ["WholeRun"]


class WholeRun:
    """Records until the process ends, and then prints the table and writes the files.

    The end is that of the process: after threads, the program's exit handlers and the text of an error, so that their work is recorded and the
    table comes last. `os._exit` and signals end a process without any of that; they are met on their way. Ctrl-C while results are made
    loses none of them: the first is counted, a second gives up what is not complete.
    """

    def __init__(
        self,
        options: Options,
        *,
        sort_by: str,
        row_limit: int,
        table: str,
        advice: bool,
        trace: str | None,
        session: str | None,
    ) -> None:
        self._options = options
        self._sort_by = sort_by
        self._row_limit = row_limit
        self._table = table
        self._advice = advice
        self._files = {"trace": trace, "session": session, "table": None if table in ("stdout", "stderr", "none") else table}
        # absolute, and the streams of now: the program may change the directory, and put other streams in their place
        self._paths = {name: os.path.abspath(path) for name, path in self._files.items() if path is not None}
        self._out, self._err = sys.stdout, sys.stderr
        self._profile = profile._with(options)
        self._pid = os.getpid()
        self._done = False
        self._finishing = new_lock()  # one thread makes the results, others wait for it
        self._maker: int | None = None  # that thread
        self._notes: list[str] = []
        self._problems: list[str] = []
        self._given_up: list[str] = []
        self._made_way: list[str] = []
        self._surroundings = Surroundings()
        self.signals = Signals()
        self.code: CodeType | None = None  # of the program
        self.failed = False  # whether the program has an exit status of its own other than 0

    def start(self) -> None:
        atexit.register(self._at_exit)  # before the program registers any: the first comes last
        self.signals.on_immediate_ends(self.finish, lambda: self._maker == threading.get_ident())
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
                    print_to(self._err, f"python -m mindtorch_v2.profiler: {self._problems[-1]}\n")
                    print_to(self._err, traceback.format_exc())
                finally:
                    self._maker = None
                self.signals.end_process_if_asked()
        return not self._problems

    def _at_exit(self) -> None:
        if not self.finish() and not self.failed:
            os._exit(1)  # the one way left to say it: an exit handler has no say in the status

    def _make_results(self) -> None:
        # the files first: printing ends early where the reader goes away. The session before all: the others can be made of it
        self._write("session")
        self._write("trace")
        text = self._text()
        self._write("table", text)
        if self._made_way:
            places = ", ".join(dict.fromkeys(self._made_way))
            self._notes.append(f"What ran under the program's own profiler ({places}) is in that profiler's results, not in these.")
        if self._given_up:
            self._problems.append(f"given up after Ctrl-C: {', '.join(self._given_up)}")
        # advice that was asked for without a table is printed all the same
        on = {"stdout": self._out, "stderr": self._err, "none": self._out if self._advice else None}.get(self._table)
        if on is not None and text:
            print_to(on, f"\n{text}\n")
        print_to(on or self._err, "".join(f"{note}\n" for note in self._notes))
        print_to(self._err, "".join(f"python -m mindtorch_v2.profiler: {problem}\n" for problem in self._problems))

    def _text(self) -> str:
        """The table, the modules and the advice; what is not given up of them."""
        if not len(self._profile.session):
            return self._surroundings.why_nothing_was_recorded(self.code, self._made_way)
        wanted = {
            "the table": self._table != "none" and self._table_text,
            "the table of modules": self._table != "none" and self._options.with_modules and self._modules_text,
            "the summary": self._table != "none" and self._summary_text,
            "the advice": self._advice and self._advice_text,
        }
        parts = []
        for name, make in wanted.items():
            if make and self.signals.gave_up:
                self._given_up.append(name)
            elif make:
                parts.append(make())
        return "\n".join(parts)

    def _table_text(self) -> str:
        averages = self._profile.key_averages(group_by_input_shape=self._options.record_shapes)
        return averages.table(sort_by=self._sort_by, row_limit=self._row_limit, max_width=self._width())

    def _width(self) -> int | None:
        """The width of the terminal that the table is printed to, if it is."""
        return terminal_width({"stdout": self._out, "stderr": self._err}.get(self._table))

    def _modules_text(self) -> str:
        return ModuleTimes.of(self._profile.session).table(row_limit=self._row_limit)

    def _summary_text(self) -> str:
        return f"{self._profile.summary()}\n"

    def _advice_text(self) -> str:
        return f"{advise(self._profile.session)}\n"

    def _write(self, name: str, text: str = "") -> None:
        """Write the file, in full or not at all, and note that, or why not."""
        if name not in self._paths or (name == "table" and not text):
            return
        path, shown = self._paths[name], self._files[name]
        try:
            if name == "session":
                self._profile.session.save(path)
            elif name == "trace":
                chrome_trace.write(self._profile.session, path, progress=self._go_on)
            else:
                _write_text(path, text)
            self._notes.append(_NOTES[name].format(path=shown, size=size_text(path)))
        except _GivenUpError:
            self._given_up.append(f"the {name} {shown}")
        except OSError as error:
            self._problems.append(f"cannot write the {name} to {shown!r}: {error.strerror or error}")

    def _go_on(self, done: int, total: int) -> None:
        if self.signals.gave_up:
            raise _GivenUpError


class _GivenUpError(Exception):
    pass


_NOTES = {
    "trace": "trace    {path} ({size}): open it at https://ui.perfetto.dev",
    "session": "session  {path} ({size}): read it with mindtorch_v2.profiler.Results.load",
    "table": "table    {path}",
}


def _write_text(path: str, text: str) -> None:
    with replacing(path) as file:
        file.write(text.encode("utf-8", "backslashreplace"))
