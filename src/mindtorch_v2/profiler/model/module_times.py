"""Times of each module of a network, forward and backward."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..writing import units
from ..writing.html_table import html_table
from ..writing.text_table import Column as TableColumn
from ..writing.text_table import TextTable, printable
from . import modules
from .recording import Recording
from .session import Session

__all__ = ["ModuleTime", "ModuleTimes", "by_first_event", "sums", "with_inner"]

Column = np.ndarray[Any, np.dtype[Any]]


class ModuleTime(NamedTuple):
    """A module's calls and times, in microseconds. `self_…` is without the modules inside."""

    module: str  # `GPT.blocks.0.mlp`
    class_name: str
    calls: int
    self_forward_us: float
    self_backward_us: float
    forward_us: float
    backward_us: float

    @property
    def total_us(self) -> float:
        return self.forward_us + self.backward_us


class ModuleTimes(list[ModuleTime]):
    """The modules of a recording in the order of their first calls; a table, as text.

    Times are those of the events that belong to a module, each counted once; `recorded_us` is that of all events.
    """

    def __init__(self, rows: Iterable[ModuleTime] = (), recorded_us: float = 0.0) -> None:
        super().__init__(rows)
        self.recorded_us = recorded_us

    @classmethod
    def of(cls, session: Session) -> ModuleTimes:
        """The modules of a recording that was made with `with_modules=True`."""
        return cls.of_recording(Recording(session))

    @classmethod
    def of_recording(cls, recording: Recording) -> ModuleTimes:
        """The same of a recording whose tree is known already."""
        session = recording.session
        if not session.info.with_modules:
            raise ValueError("times of modules need a recording with modules: profile(with_modules=True)")
        found = recording.attribution
        own_ns = recording.without_children(np.where(recording.on_cpu, recording.duration_ns, 0))
        is_call = np.array([e.kind == "python_function" and e.module != () for e in session.labels], bool)[session.label]
        calls = sums(found, is_call)
        own = [sums(found, np.where(found.phase == phase, own_ns, 0)) for phase in (modules.FORWARD, modules.BACKWARD)]
        names = [modules.path(parts) for parts in found.modules]
        whole = [with_inner(names, amounts) for amounts in own]
        rows = [
            ModuleTime(names[i], found.modules[i][-1].class_name, calls[i].item(), *[(a[i] / 1000).item() for a in (*own, *whole)])
            for i in by_first_event(found)
        ]
        return cls(rows, own_ns[recording.rows].sum().item() / 1000)

    def table(self, sort_by: str | None = None, row_limit: int = 100) -> str:
        """The modules as a table, in their order or by a field of `ModuleTime`, largest first; all of them if the limit is -1."""
        rows = list(self) if sort_by is None else sorted(self, key=lambda row: getattr(row, sort_by), reverse=True)
        shown = rows if row_limit < 0 else rows[:row_limit]
        return "\n".join([*TextTable(self._columns(), shown).lines(), f"All events: {units.time(self.recorded_us)}", ""])

    def _repr_html_(self) -> str:
        return html_table(self._columns(), self, [f"All events: {units.time(self.recorded_us)}"])

    def _columns(self) -> list[TableColumn]:
        return [
            TableColumn("Module", lambda row: printable(row.module), None, "<"),
            TableColumn("Class", lambda row: printable(row.class_name), None, "<"),
            TableColumn("Calls", lambda row: row.calls, None),
            TableColumn("Self forward", lambda row: units.time(row.self_forward_us), None),
            TableColumn("Self backward", lambda row: units.time(row.self_backward_us), None),
            TableColumn("Forward", lambda row: units.time(row.forward_us), None),
            TableColumn("Backward", lambda row: units.time(row.backward_us), None),
            TableColumn("Total", lambda row: units.time(row.total_us), None),
            TableColumn("Total %", lambda row: units.share(row.total_us, self.recorded_us), None),
        ]

    def __str__(self) -> str:
        return self.table()


def sums(found: modules.Attribution, amounts: Column) -> Column:
    """The sum of each module's own events."""
    mine = found.module >= 0
    # whole numbers below 2**53, so that the sums are exact
    return np.bincount(found.module[mine], amounts[mine], minlength=len(found.modules)).astype(np.int64)


def with_inner(names: Sequence[str], amounts: Column) -> Column:
    """The amount of each module together with those of the modules inside, by their paths."""
    numbers = {name: i for i, name in enumerate(names)}
    whole = amounts.copy()
    for i, name in enumerate(names):
        while name := name.rpartition(".")[0]:
            if name in numbers:
                whole[numbers[name]] += amounts[i]
    return whole


def by_first_event(found: modules.Attribution) -> list[int]:
    """The numbers of the modules in the order of their first events."""
    numbers, first = np.unique(found.module, return_index=True)
    order: list[int] = numbers[np.argsort(first)].tolist()
    return [i for i in order if i >= 0]
