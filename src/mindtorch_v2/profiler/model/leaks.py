"""Leaks of a recording: storages that were made inside and are alive at the end, by operator and stack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..writing import units
from ..writing.text_table import Column as TableColumn
from ..writing.text_table import TextTable, end_of, printable
from . import modules, tree
from .recording import Recording
from .session import ROLE_NAMES, MemoryLog, Session

__all__ = ["Leak", "Leaks", "Place", "Survivor"]

Column = np.ndarray[Any, np.dtype[Any]]

GROWS_FROM = 3  # steps that all leave something behind


class Place(NamedTuple):
    """A place where storages are made."""

    operator: str  # empty outside of any
    stack: tuple[str, ...]  # innermost first; empty if stacks were not recorded
    module: str  # empty if modules were not recorded


class Survivor(NamedTuple):
    """A storage that is alive."""

    size_bytes: int
    place: Place
    role: str = ""
    step: int | None = None


@dataclass(frozen=True)
class Leak:
    """Storages that were made in one place and are alive: facts, and no judgement. A cache is alive as a leak is."""

    size_bytes: int
    count: int
    operator: str  # that made them; empty outside of any
    stack: tuple[str, ...]  # innermost first; empty if stacks were not recorded
    module: str  # of which the operator was; empty if modules were not recorded
    role: str  # "parameter", "gradient", "optimizer state" or "buffer", where the runtime knows
    step_bytes: Mapping[int, int]  # of each step, the bytes made in it that are alive; empty for a history, which knows no steps
    grows: bool  # three steps or more made something here, and of each something is alive

    @property
    def bytes_per_step(self) -> float:
        """Return the bytes that each step adds; 0 if they do not grow."""
        return self.size_bytes / len(self.step_bytes) if self.grows else 0.0


class Leaks(list[Leak]):
    """The storages that are alive, largest first; as text, a table."""

    def __init__(self, rows: Iterable[Leak] = ()) -> None:
        super().__init__(rows)

    @classmethod
    def of(cls, session: Session, group_by_stack_n: int | None = None, *, without: Collection[int] = ()) -> Leaks:
        """Find what a session made and did not free, less the storages at some addresses."""
        log = session.memory
        if log is None:
            raise ValueError(
                "the recording has no changes of memory: there were none, or memory ran out before they were kept; then record fewer steps at a "
                "time (torch.profiler.schedule)"
                if session.info.profile_memory and session.heap_before is None
                else "what is alive at the end is known with memory recorded: profile(profile_memory=True)"
            )
        made = np.flatnonzero(log.size_bytes > 0)
        places, number = _places(session, log, made, group_by_stack_n)
        step = _steps(session, log.time_ns[made])
        makes: dict[Place, set[int]] = {}
        for row in _distinct(number, step)[0].tolist():
            i, k = number.item(row), step.item(row)
            makes.setdefault(places[i], set()).add(k)
        lives = np.isin(made, _alive(log)) & ~np.isin(log.address[made], list(without))
        rows = made[lives]
        facts = zip(
            log.size_bytes[rows].tolist(), number[lives].tolist(), _roles(session, log, rows), step[lives].tolist(), strict=True
        )
        return cls.grouped([Survivor(size, places[i], role, k) for size, i, role, k in facts], makes)

    @classmethod
    def grouped(cls, alive: Iterable[Survivor], makes: Mapping[Place, set[int]] | None = None) -> Leaks:
        """Storages by place and role; `makes` are the steps in which each place made any."""
        groups: dict[tuple[Place, str], list[Survivor]] = {}
        for each in alive:
            groups.setdefault((each.place, each.role), []).append(each)
        rows = [_leak(place, role, group, (makes or {}).get(place, set())) for (place, role), group in groups.items()]
        return cls(sorted(rows, key=lambda row: (-row.size_bytes, -row.count, row.operator, row.stack)))

    @property
    def total_bytes(self) -> int:
        """All bytes that are alive."""
        return sum(row.size_bytes for row in self)

    @property
    def total_count(self) -> int:
        """All storages that are alive."""
        return sum(row.count for row in self)

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int | None = 75) -> str:
        """The list as a table, in its order or by a field of `Leak`, largest first; all of it if the limit is -1."""
        rows = list(self) if sort_by is None else sorted(self, key=lambda row: getattr(row, sort_by), reverse=True)
        shown = rows if row_limit < 0 else rows[:row_limit]

        def places_of(row: Leak) -> list[str]:
            return [end_of(printable(place), max_src_column_width) for place in row.stack]

        columns = [
            TableColumn("Bytes", lambda row: units.memory(row.size_bytes), None),
            TableColumn("Count", lambda row: row.count, None),
            TableColumn("Growth", lambda row: f"{units.memory(round(row.bytes_per_step))}/step" if row.grows else "", None),
            TableColumn("Steps", lambda row: _ranges(row.step_bytes), None, "<"),
            TableColumn("Role", lambda row: row.role, None, "<"),
            TableColumn("Operator", lambda row: printable(row.operator or "(no operator)"), None, "<"),
            TableColumn("Module", lambda row: printable(row.module), None, "<"),
            TableColumn("Source Location", lambda row: "".join(places_of(row)[:1]), None, "<"),
        ]
        columns = [c for c in columns if c.heading in ("Bytes", "Count", "Operator") or any(c.value(row) for row in shown)]
        with_places = columns[-1].heading == "Source Location"
        text = TextTable(columns, shown, (lambda row: places_of(row)[1:]) if with_places else None)
        heading, *lines = [line.rstrip() for line in [text.heading, *text.rows]]
        rule = "-" * max(map(len, [heading, *lines]))
        count = self.total_count
        total = f"Alive: {units.memory(self.total_bytes)} in {count:,} {'storage' if count == 1 else 'storages'}"
        return "\n".join([rule, heading, rule, *lines, rule, total, ""])

    def __str__(self) -> str:
        return self.table()


def _leak(place: Place, role: str, group: Sequence[Survivor], makes: set[int]) -> Leak:
    steps: Counter[int] = Counter()
    for each in group:
        if each.step is not None:
            steps[each.step] += each.size_bytes
    grows = len(steps) >= GROWS_FROM and steps.keys() == makes
    total = sum(each.size_bytes for each in group)
    return Leak(total, len(group), *place, role, dict(sorted(steps.items())), grows)


# --- from a session -------------------------------------------------------------------------------------------------------------------


def _alive(log: MemoryLog) -> Column:
    """Rows of allocations after which nothing more happened at their address.

    An allocation over one whose end was not seen, between two recordings, shows that it had ended.
    """
    last: Column = len(log.address) - 1 - np.unique(log.address[::-1], return_index=True)[1]
    return last[log.size_bytes[last] > 0]


def _places(session: Session, log: MemoryLog, made: Column, group_by_stack_n: int | None) -> tuple[list[Place], Column]:
    """The distinct places of allocations, and the number of each one's."""
    recording, event = Recording(session), log.event[made]
    operator = _around(session, event, np.array([label.kind == "op" for label in session.labels], bool)[session.label])
    label = np.where(operator >= 0, session.label[operator] if len(session) else -1, -1)
    stack = _stacks(recording, event)
    if log.stack is not None:
        stack = np.where(log.stack[made] >= 0, log.stack[made], stack)
    module, paths = np.full(len(event), -1), [""]
    if session.info.with_modules:
        found = recording.attribution
        module = np.where(event >= 0, found.module[event], -1)
        paths = [*map(modules.path, found.modules), ""]
    texts = [tuple(recording.places[frame] for frame in frames[:group_by_stack_n]) for frames in session.stack_table]
    names, texts = [*(label.name for label in session.labels), ""], [*texts, ()]
    first, number = _distinct(label, stack, module)
    rows = zip(label[first].tolist(), stack[first].tolist(), module[first].tolist(), strict=True)
    return [Place(names[i], texts[j], paths[k]) for i, j, k in rows], number


def _distinct(*columns: Column) -> tuple[Column, Column]:
    """Return the first row of each distinct combination, and the number of each row's combination. Values are -1 or more."""
    combined = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        # one number for what came so far, so that numbers stay small
        combined = np.unique(combined, return_inverse=True)[1] * (column.max(initial=-1) + 2) + column + 1
    _, first, number = np.unique(combined, return_index=True, return_inverse=True)
    return first, number


def _around(session: Session, event: Column, wanted: Column) -> Column:
    """The event itself or the nearest around it that is wanted, -1 for none."""
    parent, found = tree.parents(session), event.copy()
    while len(wanted) and (over := (found >= 0) & ~wanted[found]).any():
        found[over] = parent[found[over]]
    return found


def _stacks(recording: Recording, event: Column) -> Column:
    """The stack of the event, or of the nearest around it that has one; -1 for none."""
    row = _around(recording.session, event, recording.stack >= 0)
    return np.where(row >= 0, recording.stack[row] if len(recording.stack) else -1, -1)


def _steps(session: Session, time_ns: Column) -> Column:
    """The step of each time: that of the last event that began before it."""
    if not len(session):
        return np.zeros(len(time_ns), np.int64)
    row = np.searchsorted(session.start_ns, time_ns, side="right") - 1
    return session.step[np.maximum(row, 0)].astype(np.int64)


def _roles(session: Session, log: MemoryLog, rows: Column) -> list[str]:
    """Return what the runtime knew each storage to be at the end of its recording."""
    if session.roles is None:
        return [""] * len(rows)
    looks: dict[int, list[tuple[int, int]]] = {}
    for time_ns, address, role in zip(*(column.tolist() for column in session.roles), strict=True):
        looks.setdefault(address, []).append((time_ns, role))
    found = []
    for address, time_ns in zip(log.address[rows].tolist(), log.time_ns[rows].tolist(), strict=True):
        later = [look for look in looks.get(address, ()) if look[0] >= time_ns]
        found.append(ROLE_NAMES[min(later)[1]] if later else "")
    return found


# --- text -----------------------------------------------------------------------------------------------------------------------------


def _ranges(steps: Iterable[int]) -> str:
    """`0, 2-5`."""
    ranges: list[list[int]] = []
    for step in steps:
        if ranges and ranges[-1][1] == step - 1:
            ranges[-1][1] = step
        else:
            ranges.append([step, step])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
