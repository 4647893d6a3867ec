"""The hot half of the profiler: what runs inside every recorded call.

A record is a few numbers at the end of a list: label, start, end, thread, sequence number of the autograd node that was made, and, where
they are asked for, the numbers of the inputs and of the stack, two of memory (the address and the bytes of the result's array, or the
bytes of Python's heap before and after), and the memory of the operands. The list is flat, because extending it by a tuple that dies at once
costs 70 ns less than keeping the tuple (to be allocated, and looked at by the garbage collector). It is shared by all threads, because
reading the thread's number costs 31 ns and a list of its own, through `threading.local`, 114. Inner events end first, and so precede
what is around them.
"""

from __future__ import annotations

import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...._allocation_failure import give_back
from ...._dispatch import dispatcher, keys, quiet
from ...._dispatch.codegen import Body, indent
from ...._dispatch.entry import NUMBERS
from ...._dispatch.op import Op
from ...model import session
from .. import tasks
from ..labels import operator_number
from ..memory import free_notes
from ..stacks import stack_walk
from . import operands
from .call_inputs import CallInputs

__all__ = ["FUNCTION_ID", "Log", "clock", "log_of", "nanoseconds", "set_clock"]

# Seconds. As a float it is read 17 ns faster than in nanoseconds, and exact to the nanosecond in the first 26 days of a machine.
clock: Callable[[], float] = time.perf_counter


def nanoseconds(seconds: Sequence[float] | np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Readings of the clock as integers."""
    return np.rint(np.array(seconds, np.float64) * 1e9).astype(np.int64)


def set_clock(new: Callable[[], float]) -> None:
    """Take times from somewhere else. A clock returns seconds, and more at each reading."""
    global clock
    clock = new
    dispatcher.unregister_layer(keys.PROFILER)  # the clock is bound into what was compiled
    dispatcher.register_layer(keys.PROFILER, recording_layer)


# In a label's place: not an event, but the number that an execution trace knows the event of the record before by. It stands where
# sequence numbers do.
FUNCTION_ID = -1


def heap_bytes() -> int:
    """Return the bytes that Python has allocated; 0 while `tracemalloc` is not running."""
    return tracemalloc.get_traced_memory()[0]


_PIECE = 1 << 10  # records that are forgotten at a time


class Log:
    """Records of one form: with or without inputs, stacks, memory and operands.

    Each form has a list of its own, so that a call that began in another recording and ends in this one disturbs nothing.
    """

    def __init__(self, *, shapes: bool, stacks: bool, storages: bool, heap: bool, operands: bool) -> None:
        self.shapes = shapes
        self.stacks = stacks
        self.storages = storages
        self.heap = heap
        self.operands = operands
        # in place of what else is asked for
        self.nothing: tuple[Any, ...] = (-1,) * (shapes + stacks) + (0, 0) * (storages or heap) + ((),) * operands
        self.width = 5 + len(self.nothing)
        self.records: list[Any] = []
        self.lost = 0  # records that made room, the earliest

    def make_room(self) -> bool:
        """Forget a sixteenth of the records, the earliest; False if there are hardly any. Little by little: deleting takes memory, too."""
        count = len(self.records) // self.width // 16
        for first in range(0, count, _PIECE):
            del self.records[: min(_PIECE, count - first) * self.width]
        self.lost += count
        if self.records and self.records[0] == FUNCTION_ID:  # of an event that is gone
            del self.records[: self.width]
        return count > 0

    def heap_bytes(self) -> int:
        """Heap bytes now, to be passed to `write` when the scope ends."""
        return heap_bytes() if self.heap else 0

    def write(
        self,
        label: int,
        start: float,
        end: float,
        thread: int,
        sequence: int = -1,
        inputs: int = -1,
        stack: int = -1,
        function_id: int = 0,
        heap_before: int = 0,
    ) -> None:
        extras: tuple[Any, ...] = ((inputs,) if self.shapes else ()) + ((stack,) if self.stacks else ())
        if self.storages or self.heap:
            extras += (heap_before, self.heap_bytes() if heap_before else 0)
        if self.operands:
            extras += ((),)
        number = (FUNCTION_ID, 0.0, 0.0, 0, function_id, *self.nothing) if function_id else ()
        self.records.extend((label, start, end, thread, sequence, *extras, *number))


FORMS = {
    "shapes": keys.RECORD_SHAPES,
    "stacks": keys.RECORD_STACKS,
    "storages": keys.RECORD_STORAGES,
    "heap": keys.RECORD_HEAP,
    "operands": keys.RECORD_OPERANDS,
}
_logs: dict[int, Log] = {}


def log_of(key_set: int) -> Log:
    """Return the log that operators write to when they are called with these keys."""
    form = key_set & sum(FORMS.values())
    if form not in _logs:
        _logs[form] = Log(**{name: bool(form & key) for name, key in FORMS.items()})
    return _logs[form]


def recording_layer(op: Op, full: int, body: Body) -> Body:
    """Put an operator's body between two readings of the clock, and its record into the log."""
    log = log_of(full)
    if log.stacks and (full & keys.CALLING_BACK or "foreign" in op.tags):
        body = body.edited(["resume_tracing_()", *body.lines], {"resume_tracing_": quiet.resume_tracing})
    if "transparent" in op.tags:
        return body
    # names that no schema uses (`diff` has an argument called append)
    names: dict[str, Any] = {
        "clock_": clock,
        "extend_": log.records.extend,
        "give_back_": give_back,
        "thread_": tasks.track_number if full & keys.RECORD_TASKS else threading.get_ident,
    }
    before: list[str] = []
    extras = ""
    if body.makes_node:
        before.append("seq_ = -1")
    if log.shapes:
        inputs = CallInputs(op, numbers=op.numbers if full & keys.NUMBER else ())
        before += [*inputs.lines, "try:", f"    inputs_ = calls_[{inputs.expression}]"]
        before += ["except TypeError:", f"    inputs_ = calls_.unusual({inputs.expression})"]  # not hashable
        extras += ", inputs_"
        names |= {"calls_": inputs, **inputs.names}
    if log.stacks:
        before += STACK_LINES
        extras += ", stack_"
        names |= _stack_names()
    body_lines = body.lines
    if log.storages:
        body_lines = body.owning_by(_NOTING_ARRAY)
        before += ["array_ = NO_ARRAY_", "address_ = 0"] * body.owns_array
        extras += ", address_, array_.nbytes" if body.owns_array else ", 0, 0"
        names |= {"id_": id, "NO_ARRAY_": NO_ARRAY, "notes_": free_notes.notes, "new_note_": free_notes.new_note}
    if log.heap:
        before.append("heap_ = traced_memory_()[0]")
        extras += ", heap_, traced_memory_()[0]"
        names["traced_memory_"] = tracemalloc.get_traced_memory
    if log.operands:
        before.append(f"operands_ = {operands.addresses(op, numbers=op.numbers if full & keys.NUMBER else ())}")
        extras += ", operands_"
        names |= {"id_": id, "NUMBERS_": NUMBERS}
    label = operator_number(session.Label(op.qualified_name, overload=op.schema.overload))
    thread = "ident_" if log.stacks and not full & keys.RECORD_TASKS else "thread_()"
    if full & keys.EXECUTION_TRACE:  # whose layer is around this one
        extras += f", {FUNCTION_ID}, 0.0, 0.0, 0, rf_" + "".join(f", {value}" for value in log.nothing)
    record = f"({label}, start_, clock_(), {thread}, {'seq_' if body.makes_node else -1}{extras})"
    lines = [
        *before,
        "start_ = clock_()",
        "try:",
        *indent(body_lines),
        f"    record_ = {record}",  # an interrupt by now is followed by the record below, and one from here on by this record
        "except MemoryError:",
        "    give_back_()",  # before anything else: what follows takes memory
        f"    extend_({record})",
        "    raise",
        "except BaseException:",
        f"    extend_({record})",
        "    raise",
        "extend_(record_)",
    ]
    if log.shapes and _makes_tensor(op, full, body):
        lines.append("result._geometry = None")  # which saves the next operator that takes it an exception
    return body.edited(lines, names)


def _makes_tensor(op: Op, full: int, body: Body) -> bool:
    """Whether the backend's body makes a tensor at each call, and no mode or subclass puts something else in its place."""
    is_view = op.schema.is_view and keys.CPU in op.array_kernels and [r.type for r in op.schema.returns] == ["Tensor"]
    return (body.result_is_new or is_view) and not full & keys.CALLING_BACK


NO_ARRAY = np.empty(0)


# In place of the line that gives the result's storage its array. The storage gets its array, the record the bytes, and the end its note, and no interrupt comes in between: Python looks for signals
# when a call returns, and there is no call. The storage is kept: that it dies is not noted before the record is written.
_NOTING_ARRAY = [
    "address_ = id_(a)",
    "try:",
    "    note_ = notes_[address_]",
    "except KeyError:",
    "    note_ = new_note_(address_)",
    "s.memory = array_ = a",
    "s._note_free = note_",
    "storage_ = s",
]


# The thread and the number of the stack, found by the nearest frame of a traced function, which most often is the one that called the
# operator's entry point; `stack_number` finds others. The frame must not outlive the call.
STACK_LINES = [
    "try:",
    "    frame_ = caller_(2)",
    "    call_ = running_.get(frame_)",
    "    while call_ is None:",
    *["        if not internal_files_[frame_.f_code.co_filename]: raise LookupError"] * (not stack_walk.ALL_OR_NONE),
    "        frame_ = frame_.f_back",
    "        call_ = running_.get(frame_)",
    "    ident_ = call_[0]",
    "    stack_ = call_[1][frame_.f_lasti]",
    "except (AttributeError, LookupError, ValueError):",  # there is none
    "    ident_ = get_ident_()",
    "    stack_ = stack_number_(caller_(1))",
    "frame_ = None",
]


def _stack_names() -> dict[str, Any]:
    return {
        "caller_": sys._getframe,
        "internal_files_": stack_walk.internal_files,
        "running_": stack_walk.running,
        "get_ident_": threading.get_ident,
        "stack_number_": stack_walk.stack_number,
    }


dispatcher.register_layer(keys.PROFILER, recording_layer)
