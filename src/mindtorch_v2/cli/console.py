"""What commands print: tables that fit the terminal, JSON, and progress on the error stream."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from ..profiler.opening import Recordings

__all__ = [
    "Heading",
    "add_file",
    "add_json",
    "add_output",
    "no_memory",
    "opened",
    "option_of",
    "print_json",
    "print_table",
    "printed",
    "progress",
    "terminal_width",
]

PATIENCE_S = 1.0  # what takes longer shows its progress
GAP = 2  # between columns
WIDEST_IN_A_PIPE = 100  # a longer text is whole, and moves what follows it in its own row: names of kernels have 1,500 characters
NARROWEST_TEXT = 24  # a column of names is not made narrower, as long as others can be left out

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Heading:
    """A column: its heading, whether it is a text to be shortened, and how soon it is left out where there is no room (0 never)."""

    text: str
    is_text: bool = False
    left_out: int = 0


def add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a saved session, a spool, a folder of them, or a trace (.json, .json.gz)")


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def option_of(flag: str) -> str:
    """The option of `mindtorch profile` for an argument of `profile`: `--with-stack` for `with_stack`."""
    return f"--{flag.replace('_', '-')}"


def no_memory(file: str) -> str:
    return f"{file} has no memory: record with {option_of('profile_memory')}, or profile_memory=True"


def add_output(parser: argparse.ArgumentParser, *, what: str, required: bool = True) -> None:
    parser.add_argument("-o", "--output", metavar="OUT", required=required, help=what)


def opened(path: str) -> Recordings:
    """The recordings in a file, with progress if that takes long."""
    from ..profiler.opening import open_recording  # costly: NumPy, which help needs not

    with progress(f"reading {os.path.basename(path) or path}") as report:
        found = open_recording(path, progress=report)
    for ended in {session.info.ended for session in found.sessions if session.info.ended}:
        print(f"{printed(path)}: {printed(ended)}", file=sys.stderr)
    return found


@contextlib.contextmanager
def progress(what: str, stream: TextIO | None = None) -> Iterator[Progress | None]:
    """Show that something is done, if it takes long. Gives a function for the amount that is done and the whole; None where nobody looks."""
    stream = sys.stderr if stream is None else stream
    if stream is None or stream.closed or not stream.isatty():
        yield None
        return
    late = _LateBar(what, stream)
    timer = threading.Timer(PATIENCE_S, late.show)
    timer.daemon = True
    try:
        timer.start()
    except RuntimeError:  # the interpreter ends, and starts no threads: the bar moves when something is reported
        late.has_threads = False
    try:
        yield late.report
    finally:
        timer.cancel()
        late.close()


class _LateBar:
    """A bar that is drawn when something has taken a while. It moves on its own, and has a length once that is reported."""

    def __init__(self, what: str, stream: TextIO) -> None:
        self._what, self._stream = what, stream
        self.has_threads = True
        self._began = time.monotonic()
        self._lock = threading.Lock()  # a timer shows the bar in a thread of its own
        self._bar: Any = None
        self._task: Any = None
        self._is_closed = False

    def show(self) -> None:
        with self._lock:
            if self._is_closed or self._bar is not None:
                return
            from rich.progress import Progress as Bar  # costly: shown where it takes long alone

            self._bar = Bar(transient=True, auto_refresh=self.has_threads, console=_console(self._stream))
            self._task = self._bar.add_task(self._what, total=None)
            self._bar.start()

    def report(self, done: int, whole: int) -> None:
        if self._bar is None and time.monotonic() - self._began > PATIENCE_S:
            self.show()
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=whole, refresh=not self.has_threads)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            if self._bar is not None:
                self._bar.stop()


def terminal_width() -> int | None:
    """The width of the terminal that is printed to; None if it is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_json(value: object) -> None:
    json.dump(value, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def printed(text: object) -> str:
    """A text that moves no cursor and rings no bell: what is no letter is escaped."""
    from ..profiler.writing.text_table import printable  # costly: NumPy, which help needs not

    return printable(text)


def print_table(headings: Sequence[Heading], rows: Sequence[Sequence[Any]], *, notes: Sequence[str] = ()) -> None:
    """Print a table and notes below it. On a terminal, what is of least use is left out until it fits, and of names the middle."""
    cells = [[printed(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for line in [*_whole_lines(headings, cells), *notes]:
            print(line)
        return
    from rich.table import Table  # costly: for tables alone
    from rich.text import Text  # costly: the same

    from ..profiler.writing.text_table import middle_cut  # costly: NumPy

    console = _console(sys.stdout)
    shown, left_out = _fitting(headings, cells, console.width)
    widths = _widths(headings, cells, shown, console.width)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for at in shown:
        heading = headings[at]
        table.add_column(
            Text(heading.text),
            justify="left" if heading.is_text else "right",
            no_wrap=True,
            width=widths[at],
            overflow="ellipsis" if heading.is_text else "fold",
        )
    for row in cells:
        table.add_row(*(Text(middle_cut(row[at], widths[at]) if headings[at].is_text else row[at]) for at in shown))
    console.print(table)
    for note in [*notes, *([f"To fit the terminal: without {', '.join(left_out)}"] if left_out else [])]:
        console.print(Text(note))


def _whole_lines(headings: Sequence[Heading], cells: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table that leaves nothing out."""
    rows = [[heading.text for heading in headings], *cells]
    widths = [min(max(map(len, column)), WIDEST_IN_A_PIPE) for column in zip(*rows, strict=True)]
    padded = (
        [
            cell.ljust(width) if heading.is_text else cell.rjust(width)
            for heading, cell, width in zip(headings, row, widths, strict=True)
        ]
        for row in rows
    )
    return [(" " * GAP).join(row).rstrip() for row in padded]


def _fitting(headings: Sequence[Heading], cells: Sequence[Sequence[str]], width: int) -> tuple[list[int], list[str]]:
    shown = list(range(len(headings)))
    left_out: list[str] = []

    def needed() -> int:
        return sum(_width_of(headings, cells, at) + GAP for at in shown) - GAP

    while needed() > width and (optional := [at for at in shown if headings[at].left_out]):
        least = min(optional, key=lambda at: headings[at].left_out)
        shown.remove(least)
        left_out.append(headings[least].text)
    return shown, left_out


def _widths(headings: Sequence[Heading], cells: Sequence[Sequence[str]], shown: Sequence[int], width: int) -> dict[int, int]:
    """The width of each column: numbers have what they need, and texts share the rest, none with more than it needs."""
    needed = {at: max([len(headings[at].text), *(len(row[at]) for row in cells)]) for at in shown}
    texts = sorted((at for at in shown if headings[at].is_text), key=lambda at: needed[at])
    room = width - GAP * (len(shown) - 1) - sum(needed[at] for at in shown if not headings[at].is_text)
    for left, at in zip(range(len(texts), 0, -1), texts):
        needed[at] = max(min(needed[at], room // left), 1)
        room -= needed[at]
    return needed


def _width_of(headings: Sequence[Heading], cells: Sequence[Sequence[str]], at: int) -> int:
    width = max([len(headings[at].text), *(len(row[at]) for row in cells)])
    return min(width, NARROWEST_TEXT) if headings[at].is_text else width


def _console(stream: Any) -> Any:
    """A console of a stream, which has colours on a terminal alone."""
    from rich.console import Console  # costly: for tables and progress alone

    is_terminal = stream.isatty()
    return Console(file=stream, width=None if is_terminal else 10_000, highlight=False, markup=False, emoji=False, soft_wrap=False)
