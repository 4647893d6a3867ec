"""The steps of a recording as intervals of time: by `prof.step()`, or where the program never calls that, by its optimizer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import tree
from .recording import Recording
from .time_parts import intervals, tracks_of_main_thread

__all__ = ["Steps"]

Column = np.ndarray[Any, np.dtype[Any]]

STEP, OPTIMIZER = "ProfilerStep#", "Optimizer.step#"


class Steps(NamedTuple):
    """Intervals in order of time. `by` says how they are told apart: "step()", "optimizer", or "" if there are none."""

    number: Column
    start_ns: Column
    end_ns: Column
    by: str

    def __len__(self) -> int:
        return len(self.number)

    @classmethod
    def of(cls, recording: Recording) -> Steps:
        """The steps of the thread that started the recording."""
        session = recording.session
        mine = tracks_of_main_thread(session)[session.track] if len(session) else np.zeros(0, bool)

        def scopes(prefix: str) -> Column:
            named = recording.of_labels(lambda e: e.kind == "scope" and e.name.startswith(prefix)) if len(session) else mine
            return np.flatnonzero(mine & named & ~tree.inside(session, named, tree.parents(session)))

        rows = scopes(STEP)
        if len(rows):
            names = [session.labels[i].name.removeprefix(STEP) for i in session.label[rows].tolist()]
            numbers = [int(name) if name.isdecimal() else at for at, name in enumerate(names)]
            steps = cls(np.array(numbers, np.int64), session.start_ns[rows], session.end_ns[rows], "step()")
            return steps._without_rest(session.start_ns[scopes(OPTIMIZER)])
        rows = scopes(OPTIMIZER)
        if not len(rows):
            none = np.empty(0, np.int64)
            return cls(none, none, none, "")
        labels, counts = np.unique(session.label[rows], return_counts=True)
        rows = rows[session.label[rows] == labels[counts.argmax()]]  # of several optimizers, the one that makes most steps
        ends = session.end_ns[rows]
        began = min(intervals(session)[0][0], int(session.start_ns[rows[0]]))
        return cls(np.arange(len(rows)), np.concatenate([[began], ends[:-1]]), ends, "optimizer")

    def _without_rest(self, optimizer_ns: Column) -> Steps:
        """These without the last, if an optimizer steps in all of them but that: it is what the program does after its last step."""
        steps_made = np.bincount(self.of_times(optimizer_ns) + 1, minlength=len(self) + 1)[1:]
        is_rest = len(self) > 1 and steps_made[-1] == 0 and (steps_made[:-1] > 0).all()
        return Steps(self.number[:-1], self.start_ns[:-1], self.end_ns[:-1], self.by) if is_rest else self

    @property
    def duration_ns(self) -> Column:
        return np.asarray(self.end_ns - self.start_ns)

    @property
    def median_ns(self) -> int:
        """The median of the steps' times; 0 if there are none."""
        return int(np.median(self.duration_ns)) if len(self) else 0

    def of_times(self, time_ns: Column) -> Column:
        """The place in these steps of each time; -1 for those in none."""
        if not len(self):
            return np.full(len(time_ns), -1)
        at = np.searchsorted(self.start_ns, time_ns, side="right") - 1
        return np.where((at >= 0) & (time_ns < self.end_ns[np.maximum(at, 0)]), at, -1)
