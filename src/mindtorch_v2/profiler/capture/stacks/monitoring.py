"""Calls and returns of Python functions by `sys.monitoring`, from Python 3.12 on.

Code of the dispatcher, the engine and the profiler is switched off at its first call, and costs nothing after.
"""

from __future__ import annotations

import itertools
import operator
import sys
import threading
import warnings
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from ...model.callers_level import callers_level
from ..late_exceptions import begin_without_handlers, kept
from ..operators import recorder
from . import python_tracer, stack_walk
from .python_tracer import follow_if_first, note_present, on_c_call, on_c_return, on_call, on_return, shown_codes, waits
from .stack_walk import running

__all__ = ["forget_gaps", "install", "uninstall", "warn_of_gaps"]

assert sys.version_info >= (3, 12)

_monitoring = sys.monitoring
_EVENTS = _monitoring.events
# first those that are no tool's by name: cProfile fails when it finds its own taken
_TOOL_IDS = (4, 3, _monitoring.PROFILER_ID)
_NAME = "mindtorch_v2.profiler"
_tool: int | None = None


# What a signal's handler raises in these is raised a moment later where Python would drop it (`late_exceptions`): in a generator that is freed, in the
# profiler's own callbacks, and before a call, which would then not be made.


def _on_start(code: CodeType, offset: int) -> Any:
    try:
        return None if on_call(sys._getframe(1), code) else _monitoring.DISABLE
    except BaseException as raised:
        if not stack_walk.is_internal(code):
            raise
        request: Any = kept(raised)
        request = None  # noqa: F841 - it is made here, as in the next ones


def _on_end(code: CodeType, offset: int, value: object) -> Any:
    try:
        return None if on_return(sys._getframe(1)) or _on_unmet(sys._getframe(1), code) else _monitoring.DISABLE
    except BaseException as raised:
        if not stack_walk.is_internal(code):
            raise
        request: Any = kept(raised)
        request = None  # noqa: F841


def _on_unwind(code: CodeType, offset: int, error: BaseException) -> None:
    try:
        if not on_return(sys._getframe(1)):
            _on_unmet(sys._getframe(1), code)
    except BaseException as raised:
        request: Any = kept(raised)
        on_return(sys._getframe(1))
        request = None  # noqa: F841


def _on_unmet(frame: FrameType, code: CodeType) -> bool:
    """Note the end of a call whose beginning was not noted; False if calls of its code are not shown."""
    if not stack_walk.is_shown(code):
        return False
    if follow_if_first(frame):
        on_return(frame)
    return True


def _on_throw(code: CodeType, offset: int, error: BaseException) -> None:
    try:
        on_call(sys._getframe(1), code)
    except BaseException as raised:
        request: Any = kept(raised)
        if sys._getframe(1) not in running:
            on_call(sys._getframe(1), code)
        request = None  # noqa: F841


def _on_c_call(code: CodeType, offset: int, function: object, first: object) -> Any:
    try:
        return None if on_c_call(function) else _monitoring.DISABLE
    except BaseException as raised:
        request: Any = kept(raised)
        request = None  # noqa: F841


for _handler in (_on_start, _on_end, _on_unwind, _on_throw, _on_c_call):
    begin_without_handlers(_handler)


def _on_c_return(code: CodeType, offset: int, function: object, first: object) -> None:
    if waits:
        on_c_return()


_HANDLERS: dict[int, Callable[..., Any]] = {
    _EVENTS.PY_START: _on_start,
    _EVENTS.PY_RESUME: _on_start,
    _EVENTS.PY_RETURN: _on_end,
    _EVENTS.PY_YIELD: _on_end,
    _EVENTS.PY_UNWIND: _on_unwind,
    _EVENTS.PY_THROW: _on_throw,
}
# Of functions that are shown, and of no others: a call in the code of an operator costs nothing for these.
_HANDLERS_OF_CALLS: dict[int, Callable[..., Any]] = {
    _EVENTS.CALL: _on_c_call,
    _EVENTS.C_RETURN: _on_c_return,
    _EVENTS.C_RAISE: _on_c_return,
}


def _report_calls_of(code: CodeType) -> None:
    """Have the calls of functions written in C reported that a function makes."""
    if _tool is not None:
        _monitoring.set_local_events(_tool, code, _EVENTS.CALL)


def install() -> None:
    global _tool
    free = [i for i in _TOOL_IDS if _monitoring.get_tool(i) is None]
    if not free:
        warnings.warn(
            "with_stack=True: sys.monitoring is used by another profiler, so Python functions are not recorded; stacks of operators are",
            stacklevel=callers_level(),
        )
        running.clear()  # no more would come
        return
    _tool = free[0]
    _monitoring.use_tool_id(_tool, _NAME)
    for event, handler in (_HANDLERS | _HANDLERS_OF_CALLS).items():
        _monitoring.register_callback(_tool, event, handler)
    python_tracer.on_shown = _report_calls_of
    for code in shown_codes():  # of functions that run already
        _report_calls_of(code)
    python_tracer.began_at = recorder.clock()
    _monitoring.set_events(_tool, sum(_HANDLERS))
    for thread in sys._current_frames().keys() - {threading.get_ident()}:
        note_present(thread, _frames_of(thread))


def _frames_of(thread: int) -> list[FrameType]:
    """The frames of another thread at one moment, from the innermost outwards.

    No Python code runs inside of `extend`, and so no other thread: the list grows by what the last one of it was called by.
    """
    frames: list[FrameType | None] = []
    innermost = map(operator.methodcaller("get", thread), itertools.starmap(sys._current_frames, [()]))
    frames.extend(itertools.chain(innermost, map(operator.attrgetter("f_back"), filter(None, frames))))
    return [frame for frame in frames if frame is not None]


def uninstall() -> None:
    """Have no more calls reported. After an interrupt, the next call does the rest."""
    global _tool
    if _tool is None:
        return
    if _monitoring.get_tool(_tool) == _NAME:  # else an interrupt came before it was taken, or after it was freed
        _monitoring.set_events(_tool, 0)
        for code in shown_codes():
            _monitoring.set_local_events(_tool, code, 0)
        for event in _HANDLERS | _HANDLERS_OF_CALLS:
            _monitoring.register_callback(_tool, event, None)
        _monitoring.free_tool_id(_tool)
    python_tracer.on_shown = None
    _monitoring.restart_events()  # what was switched off for us is on again for the next
    _tool = None


def warn_of_gaps() -> None:
    """There are none: nobody else can take a tool's place."""


def forget_gaps() -> None:
    """There are none."""
