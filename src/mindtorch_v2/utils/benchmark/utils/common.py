"""torch.utils.benchmark.utils.common: what was measured, its statistics, and numbers as they are shown."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ...._threads import get_num_threads, set_num_threads

__all__ = ["Measurement", "TaskSpec", "ordered_unique", "select_unit", "set_torch_threads", "trim_sigfig", "unit_to_english"]

_MOST_FIGURES = 4
_RESOLUTION = 25e-9  # seconds; no time is known better
_WIDE, _VERY_WIDE = 0.1, 0.25  # interquartile ranges, as parts of the median, of which a measurement warns

_UNITS = {"ns": (1e-9, "nanosecond"), "us": (1e-6, "microsecond"), "ms": (1e-3, "millisecond"), "s": (1, "second")}


@dataclasses.dataclass(frozen=True, repr=False)
class TaskSpec:
    """What a `Timer` measures, without the names that its statement uses."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement, with the label below it."""
        if self.label is None and "\n" in self.stmt:
            below = f" ({self.sub_label})" if self.sub_label else ""
            return f"stmt:{below}\n{textwrap.indent(self.stmt, '  ')}"
        first = self.stmt if self.label is None else self.label
        return f"{first}: {self.sub_label}" if self.sub_label else first

    def setup_str(self) -> str:
        """The setup as it is shown; empty if there is none."""
        if self.setup in ("", "pass"):
            return ""
        return f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup."""
        parts = [part for part in (self.title, self.description, self.setup_str()) if part]
        return "\n".join(f"{part}\n" if "\n" in part else part for part in parts)


@dataclasses.dataclass(repr=False)
class Measurement:
    """Times of runs of a statement, in seconds, each of `number_per_run` executions."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in {field.name for field in dataclasses.fields(TaskSpec)}:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute {name!r}")

    @property
    def times(self) -> list[float]:
        """The time of one execution, for each run."""
        return [t / self.number_per_run for t in self.raw_times]

    @functools.cached_property
    def _quartiles(self) -> tuple[float, float, float]:
        first, median, third = np.quantile(self.times, [0.25, 0.5, 0.75]).tolist()
        return first, median, third

    @property
    def median(self) -> float:
        return self._quartiles[1]

    @property
    def mean(self) -> float:
        return float(np.mean(self.times))

    @property
    def iqr(self) -> float:
        """The interquartile range."""
        return self._quartiles[2] - self._quartiles[0]

    @property
    def significant_figures(self) -> int:
        """How many figures of the median are certain, judged by the middle half of the times at 90 % confidence."""
        ordered = sorted(self.times)
        middle = ordered[len(ordered) // 4 : math.ceil(3 * len(ordered) / 4)]
        interval = max(1.645 * float(np.std(middle)) / math.sqrt(len(middle)), _RESOLUTION)
        return min(max(math.floor(math.log10(self.median / interval)), 1), _MOST_FIGURES)

    @property
    def has_warnings(self) -> bool:
        """Whether the times are far apart."""
        return bool(self._warning)

    @property
    def _warning(self) -> str:
        if self.meets_confidence(_WIDE):
            return ""
        cause = "This could indicate system fluctuation."
        if not self.meets_confidence(_VERY_WIDE):
            cause = "This suggests significant environmental influence."
        part = self.iqr / self.median * 100
        return f"  WARNING: Interquartile range is {part:.1f}% of the median measurement.\n           {cause}"

    def meets_confidence(self, threshold: float = _WIDE) -> bool:
        """Whether the interquartile range is below this part of the median."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """What a row of a table is called."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        first, median, third = (value / scale for value in self._quartiles)
        count, threads = len(self.raw_times), self.task_spec.num_threads
        lines = [object.__repr__(self), self.task_spec.summarize()]
        lines.append(f"  {'Median: ' if count > 1 else ''}{median:.2f} {unit}")
        if count >= 4:
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({first:.2f} to {third:.2f})")
        runs = f"{self.number_per_run} runs {'per measurement,' if count > 1 else ','}"
        lines.append(f"  {count} measurement{'s' if count > 1 else ''}, {runs} {threads} thread{'s' if threads > 1 else ''}")
        return "\n".join([*lines, *([self._warning] if self._warning else [])])

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, with the times of all of its."""
        by_task: dict[TaskSpec, list[float]] = {}
        for m in measurements:
            by_task.setdefault(m.task_spec, []).extend(m.times)
        return [Measurement(1, times, task) for task, times in by_task.items()]


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which a time has up to three digits, and its seconds."""
    exponent = math.floor(math.log10(t) / 3) if t > 0 else 0
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(exponent, "s")
    return unit, _UNITS[unit][0]


def unit_to_english(u: str) -> str:
    """The name of a unit."""
    return _UNITS[u][1]


def trim_sigfig(x: float, n: int) -> float:
    """A number with so many significant figures, and zeros behind."""
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    scale = float(10 ** (math.ceil(math.log10(abs(x))) - n))
    return round(x / scale) * scale


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Each element once, in the order of their first appearance."""
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """A context in which operators use so many threads."""
    previous = get_num_threads()
    set_num_threads(n)
    try:
        yield
    finally:
        set_num_threads(previous)
