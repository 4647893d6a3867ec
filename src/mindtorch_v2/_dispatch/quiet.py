"""A switch that turns the tracer of Python functions off while an operator runs, and on again while operators call the program.

Only Python 3.11 needs it (`profiler/capture/stacks/python311` says why); this module is deleted with that one. Code of the program that is called
from within an operator or from backward (a mode, a hook, a registered kernel) is called by `call_traced`, or after `resume_tracing`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import BuiltinFunctionType, FrameType
from typing import Any

__all__ = ["call_traced", "forget_inside", "guard", "holds_guard", "quiet_since", "resume_tracing", "start", "stop", "unreported"]

Tracer = Callable[[FrameType, str, Any], None]

_tracer: Tracer | None = None
_Guard: type[Any] | None = None
_calls: dict[FrameType | None, Any] = {}


def start(tracer: Tracer, calls: dict[FrameType | None, Any], guard_type: type[Any]) -> None:
    """Turn this tracer off in operators. It notes the frames that run in `calls`; a guard turns it off for its thread while the guard is alive."""
    global _tracer, _calls, _Guard
    _calls, _Guard, _tracer = calls, guard_type, tracer


def stop() -> None:
    global _tracer
    _tracer = None


def guard() -> Any:
    """Return an object that turns tracing off on this thread while it is alive, None if the thread is not traced. No traceback may keep it."""
    return _Guard() if _Guard is not None and _tracer is not None and sys.getprofile() is _tracer else None


def holds_guard(frame: FrameType) -> bool:
    """Whether a frame of this package has turned tracing off on its thread."""
    return any(type(value) is _Guard for value in frame.f_locals.values())


def resume_tracing() -> None:
    """Turn tracing on again: code of the program is about to run."""
    if quiet_since(sys._getframe(1)) is not None:
        sys.setprofile(_tracer)


def call_traced(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call code of the program, with tracing on."""
    outer = quiet_since(sys._getframe())
    if outer is None:
        return function(*arguments)
    tracer = _tracer
    sys.setprofile(tracer)
    try:
        return function(*arguments)
    finally:
        if sys.getprofile() is tracer:
            sys.setprofile(None)
            forget_inside(outer, sys._getframe())


def quiet_since(frame: FrameType) -> FrameType | None:
    """The call that is traced around a frame of this thread, if tracing is turned off inside of it; else None."""
    if _tracer is None or sys.getprofile() is not None:
        return None
    nearest: FrameType | None = frame
    while nearest is not None and nearest not in _calls:
        nearest = nearest.f_back
    return nearest


def forget_inside(outer: FrameType, frame: FrameType | None) -> None:
    """Forget the calls from a frame outwards to another: the tracer noted them for what they called, and is not told when they return.

    Kept any longer, their frames would keep those around them, and so the guard of the operator: tracing would stay off after it.
    """
    while frame is not None and frame is not outer:
        _calls.pop(frame, None)
        frame = frame.f_back


def unreported(value: Any) -> Any:
    """A built-in function in a form of which no calls are reported, for what runs outside of operators too."""
    if sys.version_info >= (3, 12) or not isinstance(value, BuiltinFunctionType):
        return value
    return functools.partial(value)
