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

__all__ = ["call_traced", "guard", "holds_guard", "is_quiet", "resume_tracing", "start", "stop", "unreported"]

Tracer = Callable[[FrameType, str, Any], None]

_tracer: Tracer | None = None
_Guard: type[Any] | None = None
_is_traced: Callable[[FrameType], bool]


def start(tracer: Tracer, is_traced: Callable[[FrameType], bool], guard_type: type[Any]) -> None:
    """Turn this tracer off in operators. `is_traced` says whether it traces a frame's thread; a guard turns it off for its thread while the guard is alive."""
    global _tracer, _is_traced, _Guard
    _is_traced, _Guard, _tracer = is_traced, guard_type, tracer


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
    if is_quiet():
        sys.setprofile(_tracer)


def call_traced(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call code of the program, with tracing on."""
    if not is_quiet():
        return function(*arguments)
    tracer = _tracer
    sys.setprofile(tracer)
    try:
        return function(*arguments)
    finally:
        if sys.getprofile() is tracer:
            sys.setprofile(None)


def is_quiet() -> bool:
    """Whether tracing is turned off on this thread, which is traced otherwise."""
    return _tracer is not None and sys.getprofile() is None and _is_traced(sys._getframe(1))


def unreported(value: Any) -> Any:
    """A built-in function in a form of which no calls are reported, for what runs outside of operators too."""
    if sys.version_info >= (3, 12) or not isinstance(value, BuiltinFunctionType):
        return value
    return functools.partial(value)
