"""Entry points that keep quiet: while an operator runs, a tracer of Python functions is told nothing.

Before Python 3.12 a tracer is told of every call that a thread makes (`sys.setprofile`), also of those inside of operators, which it
has no use for; and the interpreter runs all code in its slow form meanwhile. That alone makes an addition of two small tensors take more
than twice as long. So the entry points are rewritten for as long as somebody traces:

    guard_ = Quiet_() if getprofile_() is tracer_ or regained_() else None      reports end
    try:
        ...                                                                     as it was written
    except BaseException:
        guard_ = None                                                           reports begin: the traceback would keep the guard
        raise
                                                                                reports begin: the guard dies with the frame

Without the tracer, an operator runs inside of another, or the thread has lost its tracer, which `regained_` finds out and repairs.

Backward is quiet likewise. Whatever calls code of the program from within (a mode, a hook, a kernel that was registered) has reports
begin again: `aloud`, `call_aloud`.
"""

from __future__ import annotations

import dis
import functools
import gc
import sys
import threading
from collections.abc import Callable
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType
from typing import Any

from . import codegen, soon
from .codegen import Source, indent

__all__ = ["COLLECTION_CODE", "aloud", "call_aloud", "guard", "holds_guard", "reported_later", "start", "stop", "unreported"]

Tracer = Callable[[FrameType, str, Any], None]

_tracer: Tracer | None = None
_Guard: type[Any]
_is_traced: Callable[[FrameType], bool]


def start(tracer: Tracer, is_traced: Callable[[FrameType], bool], regained: Callable[[], bool] = lambda: False) -> None:
    """Tell this tracer nothing of what operators call.

    `is_traced` says whether a frame's thread is one that it traces. `regained` is called by entry points that do not find the tracer, and says
    whether it is there again.
    """
    global _tracer, _is_traced, _Guard
    _Guard, rewrite = _made_for(tracer, regained)
    _tracer, _is_traced = tracer, is_traced
    _aloud_on.clear()
    gc.callbacks.append(_on_collection)
    codegen.rewrite_lazy_functions(rewrite)


def stop() -> None:
    global _tracer
    if _tracer is not None:
        if _on_collection in gc.callbacks:
            gc.callbacks.remove(_on_collection)
        codegen.rewrite_lazy_functions(None)
        _tracer = None  # last: after an interrupt, the next call does the rest


def guard() -> Any:
    """What keeps this thread quiet for as long as it lives, if the thread is traced. It must not be left to a traceback."""
    return _Guard() if _tracer is not None and sys.getprofile() is _tracer else None


def holds_guard(frame: FrameType) -> bool:
    """Whether a frame of this package keeps its thread quiet."""
    return any(type(value) is _Guard for value in frame.f_locals.values())


def aloud() -> None:
    """Have calls reported again, because code of the program is about to run."""
    if _is_quiet():
        sys.setprofile(_tracer)


def call_aloud(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call code of the program: reports are on meanwhile."""
    if not _is_quiet():
        return function(*arguments)
    tracer = _tracer
    sys.setprofile(tracer)
    try:
        return function(*arguments)
    finally:
        if sys.getprofile() is tracer:
            sys.setprofile(None)


def _is_quiet() -> bool:
    """Whether this thread is traced, and told nothing."""
    return _tracer is not None and sys.getprofile() is None and _is_traced(sys._getframe(1))


def unreported(value: Any) -> Any:
    """A built-in function in a form of which no calls are reported, for what runs outside of operators too."""
    if sys.version_info >= (3, 12) or not isinstance(value, BuiltinFunctionType):
        return value
    return functools.partial(value)


_aloud_on: set[int] = set()  # threads that call finalisers


def _on_collection(phase: str, info: dict[str, int]) -> None:
    """Finalisers are code of the program, and the garbage collector may call them in the middle of an operator."""
    try:
        pass  # noqa: PIE790 - if a handler of a signal raises as the next line begins, Python takes this line for its place
        pass  # noqa: PIE790 - the code begins here, because a handler may run as it begins
        if phase == "start":
            _aloud_on.discard(threading.get_ident())  # of a collection whose end was interrupted
            if _is_quiet():
                _aloud_on.add(threading.get_ident())
                sys.setprofile(_tracer)
        elif threading.get_ident() in _aloud_on:
            _aloud_on.discard(threading.get_ident())
            sys.setprofile(None)
    except BaseException as error:  # of the handler: the collector would drop it
        soon.errors.append(error)
        request = soon.Raise()
        request = None  # noqa: F841 - it is made here


@functools.cache
def _made_for(tracer: Tracer, regained: Callable[[], bool]) -> tuple[type[Any], codegen.Rewrite]:
    class Quiet:
        """While one lives, its thread's calls are not reported. Switching is done by built-in functions alone: nothing of it is seen."""

        __slots__ = ()
        __init__: Any = functools.partial(sys.setprofile, None)
        __del__: Any = functools.partial(sys.setprofile, tracer)

    names = {"Quiet_": Quiet, "getprofile_": functools.partial(sys.getprofile), "tracer_": tracer, "regained_": regained}

    def rewrite(function: FunctionType, source: Source) -> CodeType:
        lines = [
            "guard_ = Quiet_() if getprofile_() is tracer_ or regained_() else None",
            "try:",
            "    pass",
            *indent(source.lines),
            "except BaseException:",
            "    guard_ = None",
            "    raise",
        ]
        function.__globals__.update(names)
        name = function.__name__
        code = codegen.define(name, Source(source.parameters, lines, {}), function.__globals__, name).__code__
        return reported_later(code, code.co_firstlineno + 3)

    return Quiet, rewrite


def reported_later(code: CodeType, line: int) -> CodeType:
    """Code with its RESUME, at which Python 3.11 reports a call and runs handlers of signals, in the place of the `pass` in this line."""
    instructions = list(dis.get_instructions(code))
    resume = next(i.offset for i in instructions if i.opname == "RESUME")
    later = next(i.offset for i in instructions if i.opname == "NOP" and i.positions is not None and i.positions.lineno == line)
    moved = bytearray(code.co_code)
    moved[resume : resume + 2], moved[later : later + 2] = moved[later : later + 2], moved[resume : resume + 2]
    return code.replace(co_code=bytes(moved))


if sys.version_info < (3, 12):
    _on_collection.__code__ = reported_later(_on_collection.__code__, _on_collection.__code__.co_firstlineno + 4)

COLLECTION_CODE = _on_collection.__code__  # of a function from which no exception gets out
