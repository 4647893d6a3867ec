"""Where the wall time of a recording went: parts that add up to it, to the nanosecond.

The parts are of the thread that started the recording. Each moment belongs to the innermost event then open on that thread, and to one part
by what that event is; a moment without any event is the program's own Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..writing import units
from ..writing.html_table import html_table
from ..writing.text_table import Column as TableColumn
from ..writing.text_table import TextTable, printable
from .dropping import gaps
from .recording import Recording
from .session import Session
from .time_parts import BACKWARD, COMPILATION, DEVICE, FORWARD, LOADING, OPERATORS, OPTIMIZER, PYTHON, WAITS, TimeParts, intervals

__all__ = ["OtherThread", "Summary"]

Column = np.ndarray[Any, np.dtype[Any]]

DELAYED = 0.2  # of the wall time: from here on it is told that the thread did not get the processor


@dataclass(frozen=True)
class OtherThread:
    """A thread that ran operators besides the one that started the recording."""

    name: str
    thread_id: int
    operators_ns: int


@dataclass(frozen=True, kw_only=True)
class Summary:
    """How long was recorded, and what that time was spent on. All times are nanoseconds.

    `python_and_waiting_ns` is the sum of `python_ns` and `waiting_ns`, which are None where they cannot be told apart.
    """

    wall_ns: int
    operators_ns: int  # the sum of the three that follow
    forward_ns: int  # operators in neither a backward pass nor an optimizer
    backward_ns: int
    optimizer_ns: int
    python_and_waiting_ns: int
    python_ns: int | None  # the program's own Python, the modules' and optimizers' included
    waiting_ns: int | None  # inside of functions that wait: for time to pass, a lock, a file, another process
    device_ns: int  # inside of calls that wait for a device
    data_ns: int  # loading of batches, whatever it consists of
    compilation_ns: int
    recorder_ns: int  # what the recorder itself took, by what an event was measured to cost
    events: int  # on the thread that started the recording
    on_processor_ns: int | None  # how long that thread was on the processor; None if that is not known
    other_threads: tuple[OtherThread, ...] = ()
    gaps: tuple[str, ...] = ()  # what the recording does not have

    @classmethod
    def of(cls, session: Session) -> Summary:
        return cls.of_parts(TimeParts(Recording(session)))

    @classmethod
    def of_parts(cls, parts: TimeParts) -> Summary:
        """The summary of time that was taken apart already."""
        session, info = parts.session, parts.session.info
        spent = np.minimum(parts.costs_ns, parts.times_ns)  # of each part, on recording the events inside of it
        times = parts.times_ns - spent
        apart = info.with_stack
        wall_ns = sum(stopped - started for started, stopped in intervals(session))
        return cls(
            wall_ns=wall_ns,
            operators_ns=int(times[list(OPERATORS)].sum()),
            forward_ns=int(times[FORWARD]),
            backward_ns=int(times[BACKWARD]),
            optimizer_ns=int(times[OPTIMIZER]),
            python_and_waiting_ns=int(times[PYTHON] + times[WAITS]),
            python_ns=int(times[PYTHON]) if apart else None,
            waiting_ns=int(times[WAITS]) if apart else None,
            device_ns=int(times[DEVICE]),
            data_ns=int(times[LOADING]),
            compilation_ns=int(times[COMPILATION]),
            recorder_ns=int(spent.sum()),
            events=int(parts.mine[session.track].sum()) if len(session) else 0,
            on_processor_ns=None if info.thread_cpu_ns < 0 else min(info.thread_cpu_ns, wall_ns),
            other_threads=tuple(_other_threads(parts)),
            gaps=tuple(gaps(info)),
        )

    @property
    def parts(self) -> dict[str, int]:
        """The parts by name, in nanoseconds; they add up to `wall_ns`."""
        if self.python_ns is None or self.waiting_ns is None:
            python = {"own Python and waiting": self.python_and_waiting_ns}
        else:
            python = {"own Python": self.python_ns, "waiting": self.waiting_ns}
        return {
            "operators": self.operators_ns,
            **python,
            **({"waiting for the device": self.device_ns} if self.device_ns else {}),
            "data loading": self.data_ns,
            "compilation": self.compilation_ns,
            "recorder": self.recorder_ns,
        }

    @property
    def delayed_ns(self) -> int:
        """How long the thread, at least, had work to do and was not on the processor; 0 if that is not known."""
        if self.on_processor_ns is None:
            return 0
        waited_ns = self.python_and_waiting_ns if self.waiting_ns is None else self.waiting_ns
        return max(self.wall_ns - self.on_processor_ns - waited_ns - self.device_ns - self.data_ns, 0)

    @property
    def delay(self) -> str:
        """A sentence about that, if it is much; else empty."""
        if self.delayed_ns < DELAYED * self.wall_ns or not self.delayed_ns:
            return ""
        return (
            f"For {_share(self.delayed_ns, self.wall_ns)} of the wall time, the thread had work to do and was not on the processor: other programs, "
            "or other threads of this one, used it. All times are longer by that."
        )

    def __str__(self) -> str:
        return "\n".join([*TextTable(self._columns(), self._rows()).rows, *self._notes()])

    def _repr_html_(self) -> str:
        return html_table(self._columns(), self._rows(), self._notes())

    def _rows(self) -> list[tuple[str, int]]:
        parts = [("Wall time of the recording", self.wall_ns), *((f"  {name}", ns) for name, ns in self.parts.items())]
        return parts + [(f"Operators on {printable(thread.name)}", thread.operators_ns) for thread in self.other_threads]

    def _columns(self) -> list[TableColumn]:
        return [
            TableColumn("", lambda row: row[0], width=None, align="<"),
            TableColumn("", lambda row: units.time(row[1] / 1000), width=None),
            TableColumn("", lambda row: _share(row[1], self.wall_ns), width=None),
        ]

    def _notes(self) -> list[str]:
        lines = []
        if self.on_processor_ns is not None:
            lines.append(f"The thread of the recording was on the processor for {units.time(self.on_processor_ns / 1000)} of it.")
        if self.delay:
            lines.append(self.delay)
        if self.python_ns is None:
            lines.append("Own Python and waiting cannot be told apart without with_stack=True.")
        return [*lines, *(f"{gap}." for gap in self.gaps)]


def _share(part_ns: int, whole_ns: int) -> str:
    return f"{part_ns / whole_ns:.1%}" if whole_ns else ""


def _other_threads(parts: TimeParts) -> list[OtherThread]:
    session, recording = parts.session, parts.recording
    if not len(session):
        return []
    self_ns = recording.without_children(recording.cpu_ns)
    is_op = np.isin(parts.of_events, OPERATORS)
    threads: dict[int, OtherThread] = {}
    for number, track in enumerate(session.tracks):
        if parts.mine[number] or track.device_type != "CPU":
            continue
        spent = int(self_ns[(session.track == number) & is_op].sum())
        known = threads.get(track.thread_id)
        name = (track.name or f"thread {track.thread_id}") if known is None else known.name
        threads[track.thread_id] = OtherThread(name, track.thread_id, spent + (0 if known is None else known.operators_ns))
    return list(threads.values())
