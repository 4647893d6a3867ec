"""Measuring two implementations on a noisy machine: short chunks of both in turn, and the minimum of each."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Protocol

from mindtorch_v2.profiler.writing.text_table import Column, TextTable

__all__ = ["Comparison", "Row", "as_markdown", "compare", "print_table"]

Statement = Callable[[], object]


class Row(Protocol):
    """A row of figures."""

    def cells(self) -> dict[str, str]:
        """Texts by their headings; bold ones miss their aim."""


@dataclass(frozen=True)
class Comparison:
    """What both took, or came to, in one unit."""

    name: str
    ours: float
    theirs: float
    aim: float | None = None
    unit: str = "µs"

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs

    def cells(self) -> dict[str, str]:
        missed = self.aim is not None and self.ratio > self.aim
        return {
            "": self.name,
            "ours": f"{self.ours:.2f}",
            "torch": f"{self.theirs:.2f}",
            " ": self.unit,
            "ratio": f"**{self.ratio:.2f}**" if missed else f"{self.ratio:.2f}",
            "aim": "" if self.aim is None else str(self.aim),
        }


def _chunk_size(statement: Statement, chunk_seconds: float) -> int:
    statement()
    began = time.perf_counter()
    statement()
    once = time.perf_counter() - began
    return max(1, int(chunk_seconds / max(once, 1e-7)))


def _time(statement: Statement, count: int) -> float:
    repeat = range(count)
    began = time.perf_counter()
    for _ in repeat:
        statement()
    return (time.perf_counter() - began) / count


def compare(
    name: str, ours: Statement, theirs: Statement, *, aim: float | None = None, chunks: int = 40, chunk_seconds: float = 0.004
) -> Comparison:
    """Time both statements. Garbage collection is off meanwhile, as in `timeit`."""
    counts = [_chunk_size(s, chunk_seconds) for s in (ours, theirs)]
    best = [float("inf"), float("inf")]
    gc.collect()
    gc.disable()
    try:
        for _ in range(chunks):
            for i, statement in enumerate((ours, theirs)):
                best[i] = min(best[i], _time(statement, counts[i]))
    finally:
        gc.enable()
    return Comparison(name, best[0] * 1e6, best[1] * 1e6, aim)


def print_table(title: str, rows: Sequence[Row]) -> None:
    cells = [row.cells() for row in rows]
    columns = [Column(heading.strip(), itemgetter(heading), None, "<" if i == 0 else ">") for i, heading in enumerate(cells[0])]
    table = TextTable(columns, cells)
    print(f"\n{title}")
    for line in [table.heading, *table.rows]:
        print(f"  {line}".rstrip())


def as_markdown(title: str, rows: Sequence[Row]) -> str:
    cells = [row.cells() for row in rows]
    lines = [list(cells[0]), ["---", *["--:"] * (len(cells[0]) - 1)], *[list(row.values()) for row in cells]]
    return "\n".join([f"### {title}", "", *[f"| {' | '.join(line)} |" for line in lines]]) + "\n"
