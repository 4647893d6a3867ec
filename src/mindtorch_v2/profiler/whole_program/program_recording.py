"""What is recorded of a program: everything until a limit, or the steps that a schedule picks. Steps are found from its optimizers."""

from __future__ import annotations

import _thread
import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..._forking import new_lock
from ...optim.optimizer import Optimizer, step_observers
from ..autograd_profile import profile
from ..capture.scopes import scopes
from ..model.session import Session
from ..options import Options
from ..record_function import step_scope
from ..schedule import ProfilerAction, record_always
from ..spool.reader import read_spool
from .signals import interrupts_later

__all__ = ["UNLIMITED", "ProgramRecording", "TimeLimit"]

STEP = "ProfilerStep#"
LATEST_STEP = 1_000_000  # by which a schedule has begun to record
WARMUP_STEPS = 3  # steps after which the time of a limit begins: the first ones load, compile and fill caches
POLL_SECONDS = 0.05


@dataclass(frozen=True, kw_only=True)
class TimeLimit:
    """When a recording ends although its program goes on: at the end of the step in which so many seconds have passed.

    A program without steps has no warm-up, after which `seconds` would begin: its recording is limited with `from_start` alone.
    """

    seconds: float | None = None  # of recording, after the warm-up
    from_start: bool = False  # whether `seconds` begin with the program


UNLIMITED = TimeLimit()

_RECORDS = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def _nothing() -> None:
    return


class ProgramRecording:
    """The recording of the program that runs in this process.

    `schedule` says what to do in each step. A step ends when the optimizer that stepped first steps again; without a `schedule`, all of them are
    recorded until a limit is reached: the time's, or a bound of the options where the first events are kept. The step in which that happens is whole. `steps` are
    those that have ended. `ended_by` says which limit ended the recording.
    """

    def __init__(
        self,
        options: Options,
        *,
        schedule: Callable[[int], ProfilerAction] | None = None,
        time_limit: TimeLimit = UNLIMITED,
        steps: bool = True,
    ) -> None:
        # events after the first ones are not recorded, instead of not kept
        self._bounds = dataclasses.replace(options.bounds, ends_recording=not options.bounds.keeps_last)
        self._profile = profile._with(dataclasses.replace(options, bounds=self._bounds))
        self.spool = None if options.bounds.spool is None else os.fspath(options.bounds.spool)
        self.on_change: Callable[[], None] = _nothing  # called when it has begun or ended to record
        self._is_cut = False  # whether ending a recording failed
        self._schedule = schedule or record_always
        self._time_limit = time_limit
        self._find_steps = steps
        self._leader: int | None = None  # the optimizer whose steps count
        self._scope: step_scope | None = None
        self._lock = new_lock()  # the program's thread and the one that looks after limits
        self._action = ProfilerAction.NONE  # what happens now
        self._rests = self._over = False
        self._began_at = self._warm_at = 0.0
        self._has_begun = False  # whether a step was to be recorded
        self.steps = 0
        self.ended_by = ""
        self.ended_in_step = 0

    @property
    def session(self) -> Session:
        """What was recorded so far, of all times that were recorded."""
        return self._recovered() if self._is_cut else self._profile.session

    def _recovered(self) -> Session:
        """What the spool has, where what was in memory is lost."""
        return self._profile.session if self.spool is None else read_spool(self.spool).session

    @property
    def awaited_step(self) -> int | None:
        """The first step that the schedule records, if the program has ended before it."""
        if self._has_begun or self.ended_by:
            return None
        return next((step for step in range(LATEST_STEP) if self._schedule(step) in _RECORDS), None)

    def is_changing(self) -> bool:
        """Whether this thread begins or ends a recording."""
        return self._lock._is_owned()  # type: ignore[attr-defined]

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """No other thread begins or ends a recording meanwhile, and no signal ends the process."""
        try:
            with self._lock:
                yield
        finally:
            if not self.is_changing():
                self.on_change()

    def begin(self) -> None:
        """Record from here on, as the schedule says for the first step."""
        self._began_at = self._warm_at = time.monotonic()
        if self._find_steps:
            step_observers.append(self._on_optimizer_step)
        with self._alone():
            self._change(self._schedule(0))
        if self._time_limit.seconds is not None or (self._bounds.is_given and not self._bounds.keeps_last):
            # not by `threading`: a program that counts or joins its threads does not meet this one
            _thread.start_new_thread(self._look_after_limits, ())

    def rest(self) -> None:
        """Leave the process to another profiler."""
        with self._alone():
            self._rests = True
            self._stop()

    def go_on(self) -> None:
        """Record again after `rest`."""
        with self._alone():
            self._rests = False
            if not self._over:
                self._change(self._schedule(self.steps))

    def end(self) -> None:
        """End the recording for good."""
        with self._alone():
            self._over = True
            self._stop_observing()
            self._stop()

    def forget(self) -> None:
        """Have nothing to do with the recording, which goes on in the process that this one was forked from."""
        self._over = True
        self._scope = None
        self._stop_observing()

    def _stop_observing(self) -> None:
        if self._on_optimizer_step in step_observers:
            step_observers.remove(self._on_optimizer_step)

    # --- steps ------------------------------------------------------------------------------------------------------

    def _on_optimizer_step(self, optimizer: Optimizer) -> None:
        if self._leader is None:
            self._leader = id(optimizer)
        if id(optimizer) == self._leader:
            self._next_step()

    def _next_step(self) -> None:
        with self._alone():
            if self._over:
                return
            self.steps += 1
            if self.steps == WARMUP_STEPS:
                self._warm_at = time.monotonic()
            reached = self._limit_reached()
            if reached:
                self._end_by(reached)
            elif not self._rests:
                self._change(self._schedule(self.steps))

    def _change(self, action: ProfilerAction) -> None:
        """Go from what happens now to the action of a new step."""
        self._close_step()
        if action in _RECORDS:
            self._has_begun = True
            if self._action not in _RECORDS:
                if self._action is not ProfilerAction.WARMUP:
                    self._profile._prepare_trace()
                self._profile._start_trace(self.steps)
            elif self._profile._capture is not None:
                self._profile._capture.mark_step(self.steps)
            self._action = action
            if self._find_steps:
                self._open_step()
            return
        self._stop()
        if action is ProfilerAction.WARMUP:
            self._profile._prepare_trace(warm=True)
            self._action = action

    def _open_step(self) -> None:
        self._scope = step_scope(f"{STEP}{self.steps}")
        self._scope.__enter__()

    def _close_step(self) -> None:
        if self._scope is not None:
            self._scope.__exit__(None, None, None)
            self._scope = None

    def _drop_step(self) -> None:
        """Have nothing of the step that is open in the recording, nor in its spool: a program of which no step has ended has none."""
        scope, self._scope = self._scope, None
        if scope is not None and scope.record is not None:
            scopes.drop(scope.record)

    def _stop(self) -> None:
        self._close_step() if self.steps else self._drop_step()
        action, self._action = self._action, ProfilerAction.NONE
        try:
            if action in _RECORDS:
                with interrupts_later():
                    self._profile._stop_trace()
            elif action is ProfilerAction.WARMUP:
                self._profile._cancel_trace()
        except Exception:
            self._is_cut = True
            raise

    # --- limits -----------------------------------------------------------------------------------------------------

    def _limit_reached(self, *, slack: int = 1) -> str:
        """The limit that was reached, in words; empty if none was. `slack` multiplies the limits."""
        limits, capture, bounds = self._time_limit, self._profile._capture, self._bounds
        if capture is not None and not bounds.keeps_last:
            most, name = bounds.most_events(capture.bytes_per_event)
            if len(self._profile._session or ()) + capture.event_count >= most * slack:
                return f"{bounds.max_bytes:,} bytes of records" if name == "max_bytes" else f"{most:,} events"
        is_counted = limits.from_start or self.steps >= WARMUP_STEPS
        since = self._began_at if limits.from_start else self._warm_at
        if limits.seconds is not None and is_counted and time.monotonic() - since >= limits.seconds * slack:
            return f"{limits.seconds:g} seconds"
        return ""

    def _end_by(self, reached: str) -> None:
        self.end()
        self.ended_in_step, self.ended_by = self.steps, reached

    def _look_after_limits(self) -> None:
        """End the recording of a program without steps, or of one whose step takes very long."""
        while not self._over:
            time.sleep(POLL_SECONDS)
            if self._rests or not self._limit_reached(slack=2 if self.steps else 1):
                continue
            with self._alone():
                reached = "" if self._over or self._rests else self._limit_reached(slack=2 if self.steps else 1)
                if reached:
                    self._end_by(reached)
