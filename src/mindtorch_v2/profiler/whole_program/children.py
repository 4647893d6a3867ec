"""Processes that a recorded program starts: each records itself, and leaves its session in the folder of the first.

A forked process has the plan of its parent in memory. Any other Python (a spawned worker, `subprocess`) finds it in an environment variable, and
begins to record when it imports torch: `_launch/startup` sees to that.
"""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import asdict, dataclass, field
from typing import Any

from ..._launch import finder
from ..bounds import Bounds
from ..options import Options
from ..schedule import schedule
from .folder import CHILD_SPOOL, Folder
from .program_recording import ProgramRecording, TimeLimit
from .whole_run import WholeRun

__all__ = ["Plan", "begin_in_this_process", "follow", "follow_no_more"]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to record in each process of a program, and where the results go. All of it can be written as JSON."""

    folder: str
    flags: dict[str, Any] = field(default_factory=dict)  # arguments of `Options`
    cycle: dict[str, int] | None = None  # arguments of `schedule`; None records all
    time_limit: dict[str, Any] = field(default_factory=dict)  # of `TimeLimit`
    bounds: dict[str, Any] = field(default_factory=dict)  # of `Bounds`

    def recording(self, spool: str) -> ProgramRecording:
        """A recording by this plan, in the process that asks; it is spooled to a file of the folder."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a cycle without warm-up, which was asked for
            action = None if self.cycle is None else schedule(**self.cycle)
        bounds = Bounds(**self.bounds, spool=os.path.join(self.folder, spool))
        options = Options(**self.flags, acc_events=True, bounds=bounds)
        return ProgramRecording(options, schedule=action, time_limit=TimeLimit(**self.time_limit))


class ChildRun(WholeRun):
    """Records a process that the program started. It prints nothing: its results are part of those of the first process."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan.recording(CHILD_SPOOL.format(pid=os.getpid())))
        self._folder = Folder(plan.folder)

    def _make_results(self) -> None:
        if len(self.session):
            try:
                self._folder.save_child(self.session)
            except OSError as error:
                self._problems.append(f"cannot save what process {os.getpid()} did: {error.strerror or error}")
        self._saved = not self._problems
        self._print_problems()


_plan: Plan | None = None
_current: WholeRun | None = None  # of this process


def follow(run: WholeRun, plan: Plan) -> None:
    """Have the processes that this one starts record themselves."""
    global _plan, _current
    first = _plan is None
    _plan, _current = plan, run
    os.environ[finder.PROFILE_VARIABLE] = json.dumps(asdict(plan))
    if first:
        os.register_at_fork(after_in_child=_begin_after_fork)


def follow_no_more() -> None:
    """End what `follow` began."""
    global _plan, _current
    _plan = _current = None
    os.environ.pop(finder.PROFILE_VARIABLE, None)


def begin_in_this_process() -> None:
    """Record this process, which was started by one that records itself; called when torch has been imported."""
    text = os.environ.get(finder.PROFILE_VARIABLE)
    if text and _plan is None:
        _begin(Plan(**json.loads(text)))


def _begin_after_fork() -> None:
    if _plan is not None and _current is not None:
        _current.recording.forget()  # it is the parent's
        _begin(_plan)


def _begin(plan: Plan) -> None:
    run = ChildRun(plan)
    follow(run, plan)
    run.start()
