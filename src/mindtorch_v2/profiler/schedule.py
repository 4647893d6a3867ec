"""When to record: a function from the step number to an action, and what changes between two actions."""

from __future__ import annotations

import enum
import random
import warnings
from collections.abc import Callable

from .activity import InvalidArgumentError

__all__ = ["ProfilerAction", "schedule"]


class ProfilerAction(enum.Enum):
    """The action of the profiler in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4  # set by the profiler itself when a device stopped collecting


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Cycles of `wait` steps without recording, `warmup` steps to get ready and `active` steps recorded.

    Returns a function of the step number, for `profile(schedule=…)`.

    Args:
        wait: the number of steps at the start of each cycle in which nothing is done.
        warmup: the number of steps after that in which the recorder gets ready, so that the first recorded step costs no more than others.
        active: the number of steps that are recorded, at least one. The results are handed to `on_trace_ready` after the last of them.
        repeat: the number of cycles; 0 goes on until the profiler stops.
        skip_first: the number of steps before the first cycle.
        skip_first_wait: if this is not 0, the first cycle begins with its `warmup`, without `wait`.
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise InvalidArgumentError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), active={active} (need > 0), "
            f"repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)
    cycle = wait + warmup + active

    def action_of(step: int) -> ProfilerAction:
        if step < 0:
            raise InvalidArgumentError(f"Step must be non-negative. Got {step}.")
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait != 0:
            step += wait
        if repeat and step >= repeat * cycle:
            return ProfilerAction.NONE
        position = step % cycle
        if position < wait:
            return ProfilerAction.NONE
        if position < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if position == cycle - 1 else ProfilerAction.RECORD

    action_of.first_active_step = skip_first + (0 if skip_first_wait else wait) + warmup  # type: ignore[attr-defined]
    return action_of


def sampled(steps: float | None) -> Callable[[int], bool] | None:
    """Which steps are recorded: one of so many, the first of each (a whole number), or a share of them (a number below 1), drawn at random.

    The same steps in each run, and the program's own random numbers are left alone. None for all.
    """
    if steps is None or steps == 1:
        return None
    if isinstance(steps, int) and steps > 1:
        return lambda step: step % steps == 0
    if not 0 < steps < 1:
        raise ValueError(f"sample_steps must be a whole number of steps above 0, or a share between 0 and 1, got {steps!r}")
    return lambda step: random.Random(step).random() < steps


def record_always(step: int) -> ProfilerAction:
    """The schedule of a profiler that was given none."""
    return ProfilerAction.RECORD


NONE, WARMUP, RECORD, SAVE, STOPPED = ProfilerAction

# (action of the last step, of this one) → names of the profiler's methods to call. None stands for the end of the profiler.
TRANSITIONS: dict[tuple[ProfilerAction, ProfilerAction | None], tuple[str, ...]] = {
    (NONE, NONE): (),
    (NONE, WARMUP): ("prepare_trace",),
    (NONE, RECORD): ("prepare_trace", "start_trace"),
    (NONE, SAVE): ("prepare_trace", "start_trace"),
    (WARMUP, NONE): ("_warn_warmup_without_record", "_cancel_trace"),
    (WARMUP, WARMUP): (),
    (WARMUP, RECORD): ("start_trace",),
    (WARMUP, SAVE): ("start_trace",),
    (RECORD, NONE): ("_warn_record_without_save", "stop_trace"),
    (RECORD, WARMUP): ("_warn_record_without_save", "stop_trace", "prepare_trace"),
    (RECORD, RECORD): (),
    (RECORD, SAVE): (),
    (SAVE, NONE): ("stop_trace", "_trace_ready"),
    (SAVE, WARMUP): ("stop_trace", "_trace_ready", "prepare_trace"),
    (SAVE, RECORD): ("stop_trace", "_trace_ready", "prepare_trace", "start_trace"),
    (SAVE, SAVE): ("stop_trace", "_trace_ready", "prepare_trace", "start_trace"),
    (WARMUP, STOPPED): ("_cancel_trace",),
    (RECORD, STOPPED): ("stop_trace", "_trace_ready"),
    (STOPPED, STOPPED): (),
    (STOPPED, NONE): (),
    (STOPPED, WARMUP): ("prepare_trace",),
    (STOPPED, RECORD): ("prepare_trace", "start_trace"),
    (STOPPED, SAVE): ("prepare_trace", "start_trace"),
    (NONE, None): (),
    (WARMUP, None): ("_cancel_trace",),
    (RECORD, None): ("stop_trace", "_trace_ready"),
    (SAVE, None): ("stop_trace", "_trace_ready"),
    (STOPPED, None): (),
}
