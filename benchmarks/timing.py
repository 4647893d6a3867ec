"""Measuring two implementations on a noisy machine: short chunks of both in turn, and the minimum of each."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass

from mindtorch_v2.profiler.writing.text_table import Column, TextTable

__all__ = ["Comparison", "compare", "print_table"]

Statement = Callable[[], object]


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


def print_table(title: str, rows: list[Comparison]) -> None:
    columns = [
        Column("", lambda row: row.name, 38, "<"),
        Column("ours", lambda row: f"{row.ours:.2f}"),
        Column("torch", lambda row: f"{row.theirs:.2f}"),
        Column("", lambda row: row.unit, 5, "<"),
        Column("ratio", lambda row: f"{row.ratio:.2f}", 7),
        Column("aim", lambda row: "" if row.aim is None else f"{row.aim:.1f}", 6),
        Column("", lambda row: "<-" if row.aim is not None and row.ratio > row.aim else "", 2),
    ]
    table = TextTable(columns, rows)
    print(f"\n{title}")
    for line in [table.heading, *table.rows]:
        print(f"  {line}".rstrip())
