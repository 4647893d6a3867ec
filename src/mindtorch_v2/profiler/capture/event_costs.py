"""The measured cost of recording an event on this machine, by which a summary separates the recorder's time from the program's.

For each form of records the difference between short loops with and without recording is measured when it is first used in a process,
which takes some 3 ms, before the time of the recording begins.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..._creation import tensor
from ..._dispatch import dispatcher, keys, registry
from ..._dispatch.codegen import compile_function
from ..model.session import CALL_IN_C
from .operators import recorder
from .operators.recorder import Log
from .scopes import scopes
from .scopes.scopes import OpenScopes
from .source import Findings, Source

__all__ = ["EventCosts"]

CALLS = 40  # in one loop
ROUNDS = 9  # of which the fastest counts: whatever else the machine does only adds

_known: dict[int, dict[str, int]] = {}  # by the keys of the form: kind of event → nanoseconds


class EventCosts(Source):
    """Measures what an event costs when its form of records is first used. Costs are not known on a clock that is not the machine's.

    It resumes after all that records, because a call of a Python function costs something only while functions are traced. The records of
    the calls that it makes then are from before the recording.
    """

    def __init__(self, key_set: int, *, functions: bool) -> None:
        self._key_set = key_set
        self._functions = functions
        self._untraced: list[float] | None = None

    def measure(self) -> None:
        """Measure what operators and scopes cost. Nothing must be on."""
        if recorder.clock is not time.perf_counter or self._key_set in _known:
            return
        costs = {"op": _operator_ns(self._key_set), "scope": _scope_ns()}
        self._untraced = [_shortest(loop) for loop in LOOPS.values()] if self._functions else None
        _known[self._key_set] = costs

    def resume(self) -> None:
        if self._untraced is not None:
            for (kind, loop), untraced in zip(LOOPS.items(), self._untraced, strict=True):
                _known[self._key_set][kind] = _per_call(_shortest(loop), untraced)
            self._untraced = None

    def take(self, findings: Findings) -> None:
        if recorder.clock is time.perf_counter:
            findings.event_costs_ns = tuple(_known.get(self._key_set, {}).items())


def _shortest(loop: Callable[[], object]) -> float:
    """Seconds that the fastest run of a loop takes."""
    found = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        loop()
        found.append(time.perf_counter() - began)
    return min(found)


def _per_call(seconds: float, without: float) -> int:
    """Nanoseconds by which a call takes longer."""
    return max(round((seconds - without) / CALLS * 1e9), 0)


def _operator_ns(key_set: int) -> int:
    """The time that recording adds to an addition of two small tensors."""
    x = tensor([1.0])
    op = registry.find("aten::add", "Tensor")
    assert op is not None
    plain, recorded = (dispatcher.compiled(op, keys.CPU | extra) for extra in (0, key_set))
    call: Any = (threading.get_ident(), defaultdict(int))
    # its own lists in place of the recording's, and a frame that is known as most are
    private = {"extend_": [].extend, "notes_": {}, "new_note_": _no_note, "running_": {sys._getframe(): call}}
    names = recorded.__globals__
    names.update({name: value for name, value in private.items() if name in names})
    loops = [_loop("function(x, x, 1)", {"function": function, "x": x}) for function in (plain, recorded)]
    try:
        without, with_recording = map(_shortest, loops)
    finally:
        private["running_"].clear()  # type: ignore[attr-defined]  # the frame would keep itself alive
    return _per_call(with_recording, without)


def _no_note(address: int) -> Callable[[], object]:
    return tuple


def _scope_ns() -> int:
    """The time of a scope, without its stack."""
    OpenScopes(Log(shapes=False, stacks=False, storages=False, heap=False, operands=False)).begin()
    loop = _loop('end(begin("cost", of_thread=True))', {"begin": scopes.begin, "end": scopes.end})
    return _per_call(_shortest(loop), 0.0)


def _loop(statement: str, names: dict[str, Any]) -> Callable[[], object]:
    return compile_function("loop", "", [f"for _ in range({CALLS}):", f"    {statement}"], names)


def _nothing() -> None:
    pass


def _call_nothing() -> None:
    for _ in range(CALLS):
        _nothing()


def _call_in_c() -> None:
    for _ in range(CALLS):
        _nothing(())  # type: ignore[call-arg]  # it is `len` here


def _shown(function: Callable[[], None], **names: Callable[..., object]) -> FunctionType:
    """The function as one of a program, whose calls are recorded; `names` are what it calls."""
    return FunctionType(function.__code__.replace(co_filename="<cost of a function>"), globals() | names)


# of calls, by what the cost of one is called
LOOPS: dict[str, Callable[[], object]] = {"python_function": _shown(_call_nothing, _nothing=_shown(_nothing))}
if sys.version_info < (
    3,
    12,
):  # sys.monitoring tells of no call in C but those that wait; what two measurements differ by is chance
    LOOPS[CALL_IN_C] = _shown(_call_in_c, _nothing=len)
