"""What matters of a recorded program, on one screen and as JSON: the wall time and its parts, the steps, the costliest rows, the first advice."""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..advice import RULES, Advice, Finding, Part
from ..model import dropping
from ..model.grouping import GroupBy, groups
from ..model.recording import Recording
from ..model.session import Session
from ..model.steps import Steps
from ..model.summary import Summary
from ..writing import units
from ..writing.text_table import Column, TextTable, middle_cut, printable

__all__ = ["Digest", "Row"]

ROWS = 5  # that are shown
NAME_WIDTH = 44
BAR_WIDTH = 24


@dataclass(frozen=True)
class Row:
    """Events of one name."""

    name: str
    self_ns: int
    share: float  # of the wall time
    calls: int


@dataclass(frozen=True)
class Process:
    """A process that the first one started."""

    pid: int
    parent_pid: int
    events: int
    ended: str  # where and why its recording ends, if it was killed


@dataclass(frozen=True, kw_only=True)
class Digest:
    """The answer to "where did the time go?" for the process that was started, with a line for each that it started."""

    command: tuple[str, ...]
    summary: Summary
    step_ns: tuple[int, ...]
    rows: tuple[Row, ...]
    finding: Finding | None  # the first advice
    unexplained: str  # the largest part of the time that no advice is about
    events: int
    dropped: tuple[tuple[str, int], ...]
    lacks_operators: bool  # some were left out by their names
    processes: tuple[Process, ...]  # others than the first

    @classmethod
    def of(cls, sessions: Sequence[Session], found: Advice) -> Digest:
        """The digest of these processes, with the advice on the first."""
        session, *others = sessions
        recording = Recording(session)
        summary, steps = Summary.of(session), Steps.of(recording)
        return cls(
            command=session.info.command,
            summary=summary,
            step_ns=tuple((steps.end_ns - steps.start_ns).tolist()),
            rows=tuple(_costliest(recording, summary.wall_ns)),
            finding=_first(found),
            unexplained=_part(found.unexplained[0]) if found.unexplained else "",
            events=len(session),
            dropped=session.info.dropped,
            lacks_operators=dropping.lacks_operators(session.info),
            processes=tuple(Process(s.info.pid, s.info.parent_pid, len(s), s.info.ended) for s in others),
        )

    def as_dict(self) -> dict[str, Any]:
        """All of it, for JSON. Times are nanoseconds."""
        return {
            "command": list(self.command),
            "wall_ns": self.summary.wall_ns,
            "parts_ns": self.summary.parts,
            "on_processor_ns": self.summary.on_processor_ns,
            "delayed_ns": self.summary.delayed_ns,
            "events": self.events,
            "dropped": dict(self.dropped),
            "steps": _of_steps(self.step_ns),
            "rows": [{"name": r.name, "self_ns": r.self_ns, "share": r.share, "calls": r.calls} for r in self.rows],
            "advice": None if self.finding is None else self.finding.as_dict(),
            "unexplained": self.unexplained,
            "processes": [asdict(process) for process in self.processes],
        }

    def __str__(self) -> str:
        notes = [*[dropping.LEFT_OUT] * self.lacks_operators, *[self.summary.delay] * (self.summary.delay != "")]
        blocks = [self._head(), *self._parts(), *notes, "", *self._table()]
        if self.finding is not None:
            blocks += ["", f"First advice: {printable(self.finding.message)}"]
        elif self.unexplained:
            blocks += ["", f"No advice. {printable(self.unexplained)}"]
        killed = [f"Process {process.pid}: {printable(process.ended)}." for process in self.processes if process.ended]
        blocks += [""] * bool(killed) + killed
        return "\n".join(line.rstrip() for line in blocks)

    def _head(self) -> str:
        wall = units.time(self.summary.wall_ns / 1000)
        text = f"{wall} of {printable(shlex.join(self.command))}"
        if self.step_ns:
            median, slowest = statistics.median(self.step_ns), max(self.step_ns)
            count = f"{len(self.step_ns)} {'step' if len(self.step_ns) == 1 else 'steps'}"
            text += f", {count} (median {units.time(median / 1000)}, slowest {units.time(slowest / 1000)})"
        if self.processes:
            others = len(self.processes)
            text += f", and {others} other {'process' if others == 1 else 'processes'}"
        return text

    def _parts(self) -> list[str]:
        wall = self.summary.wall_ns or 1
        columns = [
            Column("", lambda part: f"  {part[0]}", width=None, align="<"),
            Column("", lambda part: units.time(part[1] / 1000), width=None),
            Column("", lambda part: f"{part[1] / wall:.1%}", width=None),
            Column("", lambda part: "▇" * round(BAR_WIDTH * part[1] / wall), width=None, align="<"),
        ]
        return TextTable(columns, self.summary.parts.items()).rows

    def _table(self) -> list[str]:
        columns = [
            Column("Most time in", lambda row: middle_cut(printable(row.name), NAME_WIDTH), width=None, align="<"),
            Column("self", lambda row: units.time(row.self_ns / 1000), width=None),
            Column("share", lambda row: f"{row.share:.1%}", width=None),
            Column("calls", lambda row: f"{row.calls:,}", width=None),
        ]
        table = TextTable(columns, self.rows)
        return [table.heading, *table.rows]


def _first(found: Advice) -> Finding | None:
    """The advice to begin with; None if there is none about the program."""
    return next((finding for finding in found if not RULES[finding.rule].is_about_recording), None)


def _part(part: Part) -> str:
    return f"{part.share:.1%} of the wall time ({units.time(part.time_ns / 1000)}) is {part.name}. {part.hint}".strip()


def _costliest(recording: Recording, wall_ns: int) -> list[Row]:
    # what no event has inside a step, and compilation, are parts of the time
    counts = recording.of_labels(lambda label: label.kind != "compile" and not label.name.startswith("ProfilerStep#"))
    found = groups(recording, recording.rows[counts[recording.rows]], GroupBy())
    self_ns, calls = found.sums["self_cpu_time_total"], found.sums["count"]
    names = [recording.names[i] for i in recording.session.label[found.first].tolist()]
    largest = np.argsort(-self_ns, kind="stable")[:ROWS].tolist()
    return [Row(names[i], int(self_ns[i]), float(self_ns[i] / (wall_ns or 1)), int(calls[i])) for i in largest]


def _of_steps(step_ns: Sequence[int]) -> dict[str, Any]:
    if not step_ns:
        return {"count": 0}
    return {"count": len(step_ns), "median_ns": statistics.median(step_ns), "min_ns": min(step_ns), "max_ns": max(step_ns)}
