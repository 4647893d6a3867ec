"""Named blocks that are open: `record_function`, steps, optimizers."""

from __future__ import annotations

import sys
import threading
from typing import Any, NamedTuple

from ...._forking import new_lock
from ...model.session import FUNCTION, USER_SCOPE, Label
from .. import tasks
from ..labels import label_number
from ..operators import call_inputs, recorder
from ..operators.recorder import Log
from ..source import Findings, Source
from ..stacks import stack_walk

__all__ = ["OpenScopes", "Scope", "begin", "drop", "end"]


class Scope(NamedTuple):
    """A block that has begun."""

    log: Log
    track: int
    label: int
    start: float
    inputs: int
    stack: int
    sequence: int = -1
    function_id: int = 0
    heap_before: int = 0


_log = recorder.log_of(0)
_numbers: dict[str, int] = {}  # of labels, by the name of the block; making a Label and hashing it takes 0.7 µs
_open: dict[int, list[Scope]] = {}  # by track, outermost first
_lock = new_lock()  # scopes may end on another thread than they began on


class OpenScopes(Source):
    """Writes scopes to a log. Scopes that are open when the recording ends, end with it."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def begin(self) -> None:
        self.discard()

    def take(self, findings: Findings) -> None:
        with _lock:
            for inside in list(_open.values()):
                _close(inside, findings.stopped)

    def discard(self) -> None:
        global _log, _open, _numbers
        _log, _open, _numbers = self._log, {}, {}


def begin(
    name: str,
    args: str | None = None,
    *,
    of_thread: bool = False,
    call: tuple[tuple[Any, ...], int | None] | None = None,
    function_id: int = 0,
) -> Scope:
    """Open a scope on the running thread, or on the track of the running task unless it is the thread's.

    With a `call`, it is that of an operator written in Python: its arguments, and the number of the node that it makes; or, with None for
    the number, a block that has inputs.
    """
    log = _log
    if call is not None and call[1] is not None:
        label, sequence = label_number(Label(name, "op", FUNCTION)), call[1]
    else:
        numbers, sequence = _numbers, -1
        label = numbers.get(name, -1)
        if label < 0:
            label = numbers[name] = label_number(Label(name, "scope", USER_SCOPE))
    inputs = -1
    if log.shapes:
        inputs = call_inputs.text_inputs(args) if call is None else call_inputs.operand_inputs(call[0])
    if stack_walk.notice is not None:
        stack_walk.notice(sys._getframe(1))
    stack = stack_walk.stack_number(sys._getframe(1)) if log.stacks else -1
    track = threading.get_ident() if of_thread else tasks.own_track() if call is None else tasks.track_number()
    heap_before = log.heap_bytes() if log.heap else 0
    scope = Scope(log, track, label, recorder.clock(), inputs, stack, sequence, function_id, heap_before)
    _open.setdefault(track, []).append(scope)
    return scope


def end(scope: Scope) -> None:
    """Close a scope, and those inside that were never left. One that is closed already stays as it is."""
    with _lock:
        inside = _open.get(scope.track, [])
        # most often the innermost; no generator, which ends early and drops the exception of a signal's handler that comes there
        if inside and (inside[-1] is scope or any([s is scope for s in inside])):  # noqa: C419
            _close(inside, recorder.clock(), until=scope)


def drop(scope: Scope) -> None:
    """Record nothing of a scope that is open. Those inside stay open."""
    with _lock:
        inside = _open.get(scope.track, [])
        if scope in inside:
            inside.remove(scope)  # in one go: its thread may be opening others


def _close(inside: list[Scope], now: float, *, until: Scope | None = None) -> None:
    """Close scopes from the innermost outwards, up to one of them or all."""
    while inside:
        scope = inside.pop()
        if scope.start > now:
            continue  # begun on another thread since the clock was read
        _, track, label, start, inputs, stack, sequence, function_id, heap_before = scope
        scope.log.write(label, start, now, track, sequence, inputs, stack, function_id, heap_before)
        if scope is until:
            return
