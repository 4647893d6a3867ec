"""The measured cost of recording an event on this machine, by which a summary separates the recorder's time from the program's.

For each form of records the difference between short loops with and without recording is measured when it is first used in a process,
which takes some 3 ms, before the time of the recording begins.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from ..._autograd.grad_mode import is_grad_enabled
from ..._creation import tensor
from ..._dispatch import dispatcher, keys, registry
from ..._dispatch.codegen import compile_function
from ..model.session import CALL_IN_C, NESTED, NODE
from .operators import recorder
from .operators.recorder import Log
from .scopes import scopes
from .scopes.scopes import OpenScopes
from .source import Findings, Source

if sys.version_info < (3, 12):
    from .stacks import python311

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
        """Measure what operators, backward nodes and scopes cost. Nothing must be on."""
        if recorder.clock is not time.perf_counter or self._key_set in _known:
            return
        stacks = bool(self._key_set & keys.RECORD_STACKS)
        costs = {"op": _operator_ns(self._key_set), "scope": _scope_ns()}
        if stacks:
            costs[NESTED] = _operator_ns(self._key_set, depth=3) + _regained_ns()
        # the loop of backward has the stack already, and makes no memory
        costs[NODE] = _operator_ns(self._key_set & ~_NOT_OF_NODES, fresh=False) if self._key_set & _FORMS else costs["op"]
        self._untraced = [_shortest(loop) for loop in LOOPS.values()] if self._functions else None
        _known[self._key_set] = costs

    def resume(self) -> None:
        if self._untraced is not None:
            costs = _known[self._key_set]
            for (kind, loop), untraced in zip(LOOPS.items(), self._untraced, strict=True):
                costs[kind] = costs.get(kind, 0) + _per_call(_shortest(loop), untraced)
            self._untraced = None

    def take(self, findings: Findings) -> None:
        if recorder.clock is time.perf_counter:
            findings.event_costs_ns = tuple(_known.get(self._key_set, {}).items())


def _shortest(loop: Callable[[], object]) -> float:
    """Seconds that the fastest run of a loop takes."""
    return _least([loop])[0]


def _least(loops: Sequence[Callable[[], object]], running: dict[Any, Any] | None = None) -> list[float]:
    """Seconds that the fastest run of each loop takes. Meanwhile this frame is in `running`, as the program's.

    The loops take turns: a processor that another process slows down for a while would make one of them longer, and the difference wrong.
    """
    found = [float("inf")] * len(loops)
    if running is not None:
        call: Any = (threading.get_ident(), defaultdict(int))
        running[sys._getframe()] = call
    try:
        for _ in range(ROUNDS):
            for number, loop in enumerate(loops):
                began = time.perf_counter()
                loop()
                found[number] = min(found[number], time.perf_counter() - began)
    finally:
        if running is not None:
            running.clear()  # the frame would keep itself alive
    return found


def _per_call(seconds: float, without: float) -> int:
    """Nanoseconds by which a call takes longer."""
    return max(round((seconds - without) / CALLS * 1e9), 0)


_NOT_OF_NODES = keys.RECORD_STACKS | keys.RECORD_STORAGES | keys.RECORD_HEAP | keys.RECORD_OPERANDS
_FORMS = _NOT_OF_NODES | keys.RECORD_SHAPES


def _operator_ns(key_set: int, *, depth: int = 0, fresh: bool = True) -> int:
    """The time that recording adds to an addition of small tensors, of which most are the result of an operator, as in programs.

    `depth` is the number of functions between the operator's entry point and the function of the program.
    """
    op = registry.find("aten::add", "Tensor")
    assert op is not None
    plain, recorded = (dispatcher.compiled(op, keys.CPU | extra) for extra in (0, key_set))
    # its own lists in place of the recording's, and a frame that is known as most are
    running: dict[Any, Any] = {}
    private = {"extend_": [].extend, "notes_": {}, "new_note_": _no_note, "running_": running}
    names = recorded.__globals__
    names.update({name: value for name, value in private.items() if name in names})
    without, with_recording = _least([_adding(function, depth, fresh) for function in (plain, recorded)], running)
    return _per_call(with_recording, without)


def _adding(function: Callable[..., Any], depth: int, fresh: bool) -> Callable[[], object]:
    """A loop that adds a tensor to itself, by functions that call each other."""
    for _ in range(depth):
        function = _through(function)
    return functools.partial(_add_fresh if fresh else _add_same, function, tensor([1.0]))


def _through(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, y: Any, alpha: int) -> Any:
        return function(x, y, alpha)

    return call


def _add_fresh(add: Callable[..., Any], x: Any) -> None:
    for _ in range(CALLS):
        x = add(x, x, 1)


def _add_same(add: Callable[..., Any], x: Any) -> None:
    for _ in range(CALLS):
        add(x, x, 1)


def _regained_ns() -> int:
    """What an entry point takes to learn that the tracer is off because of the one around it."""
    return _per_call(_shortest(_loop("call()", {"call": python311.regained})), 0.0) if sys.version_info < (3, 12) else 0


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
# sys.monitoring tells of no call in C but those that wait; what two measurements differ by is chance
if sys.version_info < (3, 12):
    LOOPS[CALL_IN_C] = _shown(_call_in_c, _nothing=len)
    LOOPS["op"] = _shown(_call_nothing, _nothing=is_grad_enabled)  # turns the tracer off and on, as the entry point of an operator
