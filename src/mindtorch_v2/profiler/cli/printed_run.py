"""What `python -m mindtorch_v2.profiler` makes of a recording: the table that is printed, and the files."""

from __future__ import annotations

import os

from ..advice import advise
from ..model.grouping import GroupBy
from ..model.module_times import ModuleTimes
from ..model.summary import Summary
from ..options import Options
from ..output import chrome_trace
from ..output.event_list import EventList
from ..whole_program.outputs import print_to, size_text, terminal_width
from ..whole_program.program_recording import ProgramRecording
from ..whole_program.whole_run import GivenUpError, WholeRun
from ..writing.atomic_file import write_text

__all__ = ["PrintedRun"]


class PrintedRun(WholeRun):
    """Prints the table of a recording, and writes its files."""

    command = "python -m mindtorch_v2.profiler"

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
        super().__init__(ProgramRecording(options, steps=False))
        self._options = options
        self._sort_by = sort_by
        self._row_limit = row_limit
        self._table = table
        self._advice = advice
        self._files = {"trace": trace, "session": session, "table": None if table in ("stdout", "stderr", "none") else table}
        # absolute: the program may change the directory
        self._paths = {name: os.path.abspath(path) for name, path in self._files.items() if path is not None}
        self._notes: list[str] = []

    def _make_results(self) -> None:
        # the files first: printing ends early where the reader goes away. The session before all: the others can be made of it
        self._write("session")
        self._saved = "session" in self._paths and not self._problems
        self._write("trace")
        text = self._text()
        self._write("table", text)
        self._notes += self._notes_of_gaps()
        # advice that was asked for without a table is printed all the same
        on = {"stdout": self._out, "stderr": self._err, "none": self._out if self._advice else None}.get(self._table)
        if on is not None and text:
            print_to(on, f"\n{text}\n")
        print_to(on or self._err, "".join(f"{note}\n" for note in self._notes))
        self._saved = self._saved or not (self._problems or self._given_up) or not len(self.session)
        self._print_problems()

    def _text(self) -> str:
        """The table, the modules and the advice; what is not given up of them."""
        if not len(self.session):
            return self._why_nothing_was_recorded()
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
        averages = EventList.averages_of(self.session, GroupBy(self._options.record_shapes))
        return averages.table(sort_by=self._sort_by, row_limit=self._row_limit, max_width=self._width())

    def _width(self) -> int | None:
        """The width of the terminal that the table is printed to, if it is."""
        return terminal_width({"stdout": self._out, "stderr": self._err}.get(self._table))

    def _modules_text(self) -> str:
        return ModuleTimes.of(self.session).table(row_limit=self._row_limit)

    def _summary_text(self) -> str:
        return f"{Summary.of(self.session)}\n"

    def _advice_text(self) -> str:
        return f"{advise(self.session)}\n"

    def _write(self, name: str, text: str = "") -> None:
        """Write the file, in full or not at all, and note that, or why not."""
        if name not in self._paths or (name == "table" and not text):
            return
        path, shown = self._paths[name], self._files[name]
        try:
            if name == "session":
                self.session.save(path)
            elif name == "trace":
                chrome_trace.write(self.session, path, progress=self._go_on)
            else:
                write_text(path, text)
            self._notes.append(_NOTES[name].format(path=shown, size=size_text(path)))
        except GivenUpError:
            self._given_up.append(f"the {name} {shown}")
        except OSError as error:
            self._problems.append(f"cannot write the {name} to {shown!r}: {error.strerror or error}")


_NOTES = {
    "trace": "trace    {path} ({size}): open it at https://ui.perfetto.dev",
    "session": "session  {path} ({size}): read it with mindtorch_v2.profiler.Results.load",
    "table": "table    {path}",
}
