"""The switch that keeps a tracer of Python functions quiet while an operator runs, and has it told again when operators call the program.

Nobody is kept quiet but on Python 3.11, by `profiler/capture/python311`, which says why; this module goes with it. Whatever calls code of the
program from within an operator or from backward (a mode, a hook, a kernel that was registered) does so by `call_aloud`, or after `aloud`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import BuiltinFunctionType, FrameType
from typing import Any

__all__ = ["aloud", "call_aloud", "guard", "holds_guard", "is_quiet", "start", "stop", "unreported"]

Tracer = Callable[[FrameType, str, Any], None]

_tracer: Tracer | None = None
_Guard: type[Any] | None = None
_is_traced: Callable[[FrameType], bool]


def start(tracer: Tracer, is_traced: Callable[[FrameType], bool], guard_type: type[Any]) -> None:
    """Have this tracer kept quiet. `is_traced` says whether a frame's thread is one that it traces; a guard keeps its thread quiet while it lives."""
    global _tracer, _is_traced, _Guard
    _is_traced, _Guard, _tracer = is_traced, guard_type, tracer


def stop() -> None:
    global _tracer
    _tracer = None


def guard() -> Any:
    """Return the object that keeps this thread quiet for as long as it lives, if the thread is traced. It must not be left to a traceback."""
    return _Guard() if _Guard is not None and _tracer is not None and sys.getprofile() is _tracer else None


def holds_guard(frame: FrameType) -> bool:
    """Whether a frame of this package keeps its thread quiet."""
    return any(type(value) is _Guard for value in frame.f_locals.values())


def aloud() -> None:
    """Have calls reported again, because code of the program is about to run."""
    if is_quiet():
        sys.setprofile(_tracer)


def call_aloud(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call code of the program: reports are on meanwhile."""
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
    """Whether this thread is traced, and told nothing."""
    return _tracer is not None and sys.getprofile() is None and _is_traced(sys._getframe(1))


def unreported(value: Any) -> Any:
    """A built-in function in a form of which no calls are reported, for what runs outside of operators too."""
    if sys.version_info >= (3, 12) or not isinstance(value, BuiltinFunctionType):
        return value
    return functools.partial(value)
