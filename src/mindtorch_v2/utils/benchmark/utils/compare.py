"""torch.utils.benchmark.utils.compare: measurements side by side in a table."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence

from .common import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

__all__ = ["Colorize", "Compare"]

_BOLD, _END = "\033[1m", "\033[0m"
# How a time is shown that is at most so many times the best, or at least so many times.
_GOOD = ((1.01, "\033[92m" + _BOLD), (1.1, "\033[34m" + _BOLD))
_BAD = ((5, "\033[31m" + _BOLD), (2, "\033[2m\033[91m"))
_NO_DIFFERENCE = 100e-9  # seconds


class Colorize(enum.Enum):
    """Which times are compared with each other by colour."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """Tables of measurements: one for each label, with a column for each description and a row for each statement, environment and number of threads."""

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim_significant_figures = False
        self._colorize = Colorize.NONE
        self._highlight_warnings = False

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements."""
        found = list(results)
        for r in found:
            if not isinstance(r, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(r)} instead.")
        self._results += found

    def trim_significant_figures(self) -> None:
        """Show the figures that are certain."""
        self._trim_significant_figures = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour times by how they compare with the best of their column, or row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark measurements whose times are far apart."""
        self._highlight_warnings = True

    def print(self) -> None:
        """Print the tables."""
        print(str(self))

    def __str__(self) -> str:
        by_label: dict[str | None, list[Measurement]] = {}
        for m in Measurement.merge(self._results):
            by_label.setdefault(m.task_spec.label, []).append(m)
        options = (self._colorize, self._trim_significant_figures, self._highlight_warnings)
        return "\n".join(_Table(group, *options).text() for group in by_label.values())


Key = tuple[int, str | None, str]


class _Table:
    """The measurements of one label."""

    def __init__(self, results: list[Measurement], colorize: Colorize, trim: bool, warn: bool) -> None:
        self.results, self.colorize, self.trim = results, colorize, trim
        self.unit, self.scale = select_unit(min(m.median for m in results))
        self.rows: list[Key] = sorted(ordered_unique(map(_row, results)), key=lambda key: (key[0], key[1] or ""))
        self.columns = ordered_unique(m.task_spec.description for m in results)
        self.cells = {(_row(m), m.task_spec.description): m for m in results}
        self.warning = {m.task_spec.description for m in results if warn and m.has_warnings}  # columns

    def text(self) -> str:
        headings = ["", *[column or "" for column in self.columns]]
        texts = [[self._name(i), *self._times(row)] for i, row in enumerate(self.rows)]
        widths = [max(map(len, column)) for column in zip(headings, *texts, strict=True)]
        heading = _joined(text.center(width) for text, width in zip(headings, widths, strict=True))
        title = f" {self.results[0].task_spec.label or ''} ".center(len(heading) - 2, "-")
        lines = [f"[{title}]", heading]
        threads = None
        for row, (name, *times) in zip(self.rows, texts, strict=True):
            if row[0] != threads:
                threads = row[0]
                lines.append(f"{threads} threads: ".ljust(len(heading), "-"))
            colored = [
                self._colored(row, column, text.center(w)) for column, text, w in zip(self.columns, times, widths[1:], strict=True)
            ]
            lines.append(_joined([name.ljust(widths[0]), *colored]))
        lines += ["", f"Times are in {unit_to_english(self.unit)}s ({self.unit})."]
        if self.warning:
            lines.append("(! XX%) Measurement has high variance, where XX is the IQR / median * 100.")
        return "\n".join([*lines, ""])

    def _name(self, index: int) -> str:
        """The first cell of a row, with its environment where that changes."""
        environments = {row[1] for row in self.rows}
        threads, environment, name = self.rows[index]
        if len(environments) == 1:
            return f"      {name}"
        width = max(len(e or "") for e in environments) + 4
        is_new = index == 0 or self.rows[index - 1][:2] != (threads, environment)
        return f"  {f'({environment})'.ljust(width) if is_new else ' ' * width}{name}"

    def _times(self, row: Key) -> list[str]:
        return [self._time(self.cells.get((row, c)), self._digits(c), with_spread=c in self.warning) for c in self.columns]

    def _digits(self, column: str | None) -> tuple[int, int]:
        """The width and the decimals of the times in a column."""
        found = [m for (_, c), m in self.cells.items() if c == column]
        whole = [math.ceil(math.log10(m.median / self.scale)) for m in found]
        decimals = min(max(m.significant_figures - n, 0) for m, n in zip(found, whole, strict=True)) if self.trim else 1
        return max(whole) + decimals + (1 if decimals else 0), decimals

    def _time(self, m: Measurement | None, digits: tuple[int, int], *, with_spread: bool) -> str:
        width, decimals = digits
        if m is None:
            return " " * (max(width, len(f"{1:.{decimals}f}")) + (7 if with_spread else 0))
        value = m.median / self.scale
        if self.trim:
            value = trim_sigfig(value, m.significant_figures)
        spread = f" (! {m.iqr / m.median * 100:.0f}%)" if with_spread and m.has_warnings else ""
        return f"{value:>{max(width, 0)}.{decimals}f}" + (spread.rjust(7) if with_spread else "")

    def _colored(self, row: Key, column: str | None, text: str) -> str:
        m = self.cells.get((row, column))
        if m is None or self.colorize is Colorize.NONE:
            return text
        rivals: Sequence[Measurement] = [
            other
            for (r, c), other in self.cells.items()
            if (r == row if self.colorize is Colorize.ROWWISE else c == column and r[0] == row[0])
        ]
        best = min(other.median for other in rivals)
        if m.median <= best + _NO_DIFFERENCE:
            return _GOOD[0][1] + text + _END * 2
        start = next((code for times, code in _GOOD if m.median <= best * times), "")
        start = start or next((code for times, code in _BAD if m.median >= best * times), "")
        return start + text + _END * 2 if start else text


def _row(m: Measurement) -> Key:
    return m.task_spec.num_threads, m.task_spec.env, m.as_row_name


def _joined(cells: Iterable[str]) -> str:
    return "  |  ".join(cells)
