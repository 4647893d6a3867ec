"""What commands print: tables that fit the terminal, JSON, and progress on the error stream."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..profiler.opening import Recordings

__all__ = ["Heading", "add_file", "add_json", "add_output", "opened", "print_json", "print_table", "printed", "progress"]

PATIENCE_S = 1.0  # what takes longer shows its progress
NARROWEST_TEXT = 24  # a column of names is not made narrower, as long as others can be left out

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Heading:
    """A column: its heading, whether it is a text to be shortened, and how soon it is left out where there is no room (0 never)."""

    text: str
    is_text: bool = False
    left_out: int = 0


def add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a saved session, a folder of them, or a trace (.json, .json.gz)")


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_output(parser: argparse.ArgumentParser, *, what: str, required: bool = True) -> None:
    parser.add_argument("-o", "--output", metavar="OUT", required=required, help=what)


def opened(path: str) -> Recordings:
    """The recordings in a file, with progress if that takes long."""
    from ..profiler.opening import open_recording  # costly: NumPy, which help needs not

    with progress(f"reading {os.path.basename(path) or path}") as report:
        return open_recording(path, progress=report)


@contextlib.contextmanager
def progress(what: str) -> Iterator[Progress | None]:
    """Give a function to call with the amount that is done and the whole; None where nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    bar: list[Any] = []
    began = time.monotonic()

    def report(done: int, whole: int) -> None:
        if not bar and time.monotonic() - began > PATIENCE_S:
            from rich.progress import Progress as Bar  # costly: shown where it takes long alone

            shown = Bar(transient=True, console=_console(sys.stderr))
            shown.start()
            bar.extend((shown, shown.add_task(what, total=whole)))
        if bar:
            bar[0].update(bar[1], completed=done, total=whole)

    try:
        yield report
    finally:
        if bar:
            bar[0].stop()


def print_json(value: object) -> None:
    json.dump(value, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def printed(text: object) -> str:
    """A text that moves no cursor and rings no bell: what is no letter is escaped."""
    shown = str(text)
    if shown.isprintable() and shown.isascii():
        return shown
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in shown)


def print_table(headings: Sequence[Heading], rows: Sequence[Sequence[Any]], *, notes: Sequence[str] = ()) -> None:
    """Print a table and notes below it. On a terminal, what is of least use is left out until it fits, and names are shortened."""
    from rich.table import Table  # costly: for tables alone
    from rich.text import Text  # costly: the same

    console = _console(sys.stdout)
    cells = [[printed(cell) for cell in row] for row in rows]
    shown, left_out = list(range(len(headings))), list[str]()
    if console.is_terminal:
        shown, left_out = _fitting(headings, cells, console.width)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for at in shown:
        heading = headings[at]
        table.add_column(
            Text(heading.text),
            justify="left" if heading.is_text else "right",
            no_wrap=True,
            overflow="ellipsis" if heading.is_text else "fold",
        )
    for row in cells:
        table.add_row(*(Text(row[at]) for at in shown))
    console.print(table)
    for note in [*notes, *([f"To fit the terminal: without {', '.join(left_out)}"] if left_out else [])]:
        console.print(Text(note))


def _fitting(headings: Sequence[Heading], cells: Sequence[Sequence[str]], width: int) -> tuple[list[int], list[str]]:
    shown = list(range(len(headings)))
    left_out: list[str] = []

    def needed() -> int:
        return sum(_width_of(headings, cells, at) + 2 for at in shown)

    while needed() > width and (optional := [at for at in shown if headings[at].left_out]):
        least = min(optional, key=lambda at: headings[at].left_out)
        shown.remove(least)
        left_out.append(headings[least].text)
    return shown, left_out


def _width_of(headings: Sequence[Heading], cells: Sequence[Sequence[str]], at: int) -> int:
    width = max([len(headings[at].text), *(len(row[at]) for row in cells)])
    return min(width, NARROWEST_TEXT) if headings[at].is_text else width


def _console(stream: Any) -> Any:
    """A console that has colours on a terminal alone, and elsewhere as much width as a table wants."""
    from rich.console import Console  # costly: for tables and progress alone

    is_terminal = stream.isatty()
    return Console(file=stream, width=None if is_terminal else 10_000, highlight=False, markup=False, emoji=False, soft_wrap=False)
