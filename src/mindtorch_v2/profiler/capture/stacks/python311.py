"""Calls and returns of Python functions by `sys.setprofile`, on Python 3.11: all that 3.11 needs and later versions do not.

To be deleted when support for Python 3.11 ends, with `quiet_code`, `quiet_functions`, `_dispatch/quiet.py`, `stack_walk.notice` and the calls of these:
`sys.monitoring` has none of these troubles. Plain tracing is `_on_event_plainly`. It works; what it lacks on CPython 3.11 is repaired here:

- A profile function is told of every call, also of those inside of operators, which it has no use for; and the interpreter runs all
  code in its slow form meanwhile. That alone makes an addition of two small tensors take more than twice as long. So entry points, and the
  functions around them, have code that keeps it quiet (`keep_quiet`).
- A signal's handler may run inside of the profile function, or of a callback of the garbage collector, as it does anywhere. Python takes a
  profile function away that raises, and drops what such a callback raises. So what is raised there is raised a moment later instead
  (`late_exceptions`), or tracing begins again (`_trace_again`).
- Any other tool may take the profile function away. The next operator, scope or step notices (`_notice`).

The first two rely on how CPython 3.11 compiles and counts references. Where the interpreter is not as expected (`IS_AS_EXPECTED`), tracing is plain.
"""

from __future__ import annotations

import dis
import functools
import gc
import sys
import threading
import warnings
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from ...._dispatch import lazy, quiet
from ...._dispatch.lazy import rewrite_lazy_functions
from ...._dispatch.quiet import Tracer
from ...model.callers_level import callers_level
from .. import late_exceptions, threads
from ..late_exceptions import can_wait, guarded, kept, request_type
from ..operators import recorder
from . import quiet_functions, stack_walk
from .python_tracer import end_left, follow, on_c_call, on_c_return, on_call, on_return, waits
from .quiet_code import SUSPENDABLE, Quieter, is_quiet
from .stack_walk import internal_files, running
from .waiting_calls import FUNCTIONS, OWNERS

__all__ = ["forget_gaps", "install", "regained", "uninstall", "warn_of_gaps"]

_installed = False
_gap = False  # whether functions are missing because a thread was not traced for a while


# --- plain tracing --------------------------------------------------------------------------------------------------------------------


def _on_event_plainly(frame: FrameType, event: str, arg: Any) -> None:
    if not _installed:
        sys.setprofile(None)  # a thread of a recording that is over
    elif event == "call":
        on_call(frame, frame.f_code)
    elif event == "return":
        on_return(frame)
    elif event != "c_call":
        if waits:
            on_c_return()
    elif arg in FUNCTIONS or type(arg.__self__) in OWNERS:  # asked here: most calls are of none, and end with this
        on_c_call(arg)


def install() -> None:
    """Have calls of this thread and of new ones reported to the tracer."""
    global _installed
    _installed = True
    if sys.getprofile() is not None:
        _warn_taken("sys.setprofile")
        running.clear()
        return
    if threads.profiled_by_another():
        _warn_taken("threading.setprofile", functions="functions of new threads")
    tracer = _tracer()
    threads.trace_new(tracer)
    if IS_AS_EXPECTED:
        keep_quiet(tracer, running, regained)
    stack_walk.notice = _notice
    sys.setprofile(tracer)


def uninstall() -> None:
    """Have no more calls reported. After an interrupt, the next call does the rest."""
    global _installed
    threads.trace_new(None)
    keep_quiet_no_more()
    if stack_walk.notice is not None:
        stack_walk.notice = None
        _is_untraced(sys._getframe(1))
        stacks = sys._current_frames()
        stacks[threading.get_ident()] = sys._getframe(1)  # this frame would keep itself alive
        for thread in {call[0] for call in list(running.values())}:
            end_left(thread, stacks.get(thread), _interrupted.get(thread) or recorder.clock())
        _interrupted.clear()
    if sys.getprofile() is _tracer():
        sys.setprofile(None)
    _installed = False


def _tracer() -> Tracer:
    return _on_event if IS_AS_EXPECTED else _on_event_plainly


# --- exceptions of signals' handlers, raised a moment later (`late_exceptions`) ---------------------------------------------------------


def reported_later(code: CodeType, line: int) -> CodeType:
    """Code with its RESUME, at which Python 3.11 reports a call and runs handlers of signals, in the place of the `pass` in this line."""
    instructions = list(dis.get_instructions(code))
    resume = next(i.offset for i in instructions if i.opname == "RESUME")
    later = next(i.offset for i in instructions if i.opname == "NOP" and i.positions is not None and i.positions.lineno == line)
    moved = bytearray(code.co_code)
    moved[resume : resume + 2], moved[later : later + 2] = moved[later : later + 2], moved[resume : resume + 2]
    return code.replace(co_code=bytes(moved))


def _on_event(frame: FrameType, event: str, arg: Any) -> None:
    try:
        pass  # noqa: PIE790 - if a handler of a signal raises as the next line begins, Python takes this line for its place
        pass  # noqa: PIE790 - the code begins here, so that an exception of a signal's handler comes no earlier
        if event == "call":
            if _installed:
                on_call(frame, frame.f_code)
            else:
                sys.setprofile(None)  # a thread of a recording that is over
        elif event == "return":
            on_return(frame)
        elif not _installed:
            sys.setprofile(None)
        elif event != "c_call":
            if waits:
                on_c_return()
        elif arg in FUNCTIONS or type(arg.__self__) in OWNERS:
            on_c_call(arg)
    except RecursionError:
        raise  # nothing can be called here; the next operator finds the tracer gone
    except BaseException as error:
        # Requests are made when they die: nothing runs between that and the end, in which they could be met already.
        # Python would print and drop the exception of a generator that is freed before its end, and of a callback of the collector. And it
        # would not call a built-in function whose call is reported: the end of a `with lock:` that never comes.
        is_builtin = event not in ("call", "return")
        in_generator = not is_builtin and frame.f_code.co_flags & SUSPENDABLE
        if in_generator:
            if event == "return":
                on_return(frame)
            elif _installed and frame not in running:
                on_call(frame, frame.f_code)
        if (is_builtin or in_generator or frame.f_code in guarded) and can_wait(error):
            request: Any = kept(error)
            request = None
            return
        _note_interruption(frame, event)
        request = _TraceAgain()
        request = None  # noqa: F841
        raise


_resumed: dict[int, FrameType] = {}  # by thread that calls finalisers in the middle of an operator: the traced call around that
_request: Any = None  # to raise what came in the callback below
_kept_quiet: Tracer | None = None  # the tracer of which `keep_quiet` was told


def _on_collection(phase: str, info: dict[str, int]) -> None:
    """Finalisers are code of the program, and the garbage collector may call them in the middle of an operator."""
    global _request
    try:
        pass  # noqa: PIE790 - as in `_on_event`
        pass  # noqa: PIE790
        if phase == "start":
            _resumed.pop(threading.get_ident(), None)  # of a collection whose end was interrupted
            outer = quiet.quiet_since(sys._getframe())
            if outer is not None:
                _resumed[threading.get_ident()] = outer
                sys.setprofile(_kept_quiet)  # here, and not in a function of which the tracer would be told that it returns
        elif threading.get_ident() in _resumed:
            sys.setprofile(None)
            quiet.forget_inside(_resumed.pop(threading.get_ident()), sys._getframe())
    except RecursionError:
        pass  # the stack is full, and finalisers cannot run either; the collector would print it
    except BaseException as error:  # of the handler: the collector would drop it, and so would finalisers until the end of its run
        _request = kept(error)
    if phase == "stop":
        _request = None  # it is made here


def _move_reports() -> bool:
    """Have the two functions above reported where their `try` begins; whether the interpreter is one of which this is known to work."""
    if sys.implementation.name != "cpython" or sys.version_info[:2] != (3, 11) or not late_exceptions.IS_POSSIBLE:
        return False
    try:
        for function in (_on_event, _on_collection):
            first = function.__code__.co_firstlineno
            at = first + 3 if function is _on_event else first + 5
            function.__code__ = reported_later(function.__code__, at)
    except StopIteration:  # there is no such instruction
        return False
    return True


IS_AS_EXPECTED = _move_reports()
guarded.add(_on_collection.__code__)


# --- operators that keep the tracer quiet ---------------------------------------------------------------------------------------------


def keep_quiet(tracer: Tracer, calls: dict[FrameType | None, Any], regained: Callable[[], bool] = lambda: False) -> None:
    """Tell this tracer, which notes the frames that run in `calls`, nothing of what operators and the functions around them call.

    `regained` is called by those that do not find the tracer, inside of another or where the thread has lost it, and says whether it is there again.
    """
    global _kept_quiet
    quieter = _quieter(tracer, regained)
    _kept_quiet = tracer
    quiet.start(tracer, calls, quieter.guard_type)
    _resumed.clear()
    gc.callbacks.append(_on_collection)
    rewrite_lazy_functions(quieter)
    quiet_functions.rewrite(quieter)


def keep_quiet_no_more() -> None:
    """Undo `keep_quiet`, however much of it was done."""
    if _on_collection in gc.callbacks:
        gc.callbacks.remove(_on_collection)
    rewrite_lazy_functions(None)
    quiet_functions.restore()
    quiet.stop()


_quieter = functools.cache(Quieter)


# --- tracing that was interrupted, and goes on ----------------------------------------------------------------------------------------

# What raises in a profile function is most often not its own, but that of a signal's handler, as it would be in the function that was
# called. So the end of tracing on a thread is noted, or noticed by the next operator, scope or step; then calls of which no frame is left end, and
# tracing goes on.
_interrupted: dict[int, float] = {}  # by thread, when


def _note_interruption(frame: FrameType, event: str) -> None:
    """The exception ends a function that is being called or that returns; in another, it may be caught."""
    _interrupted[threading.get_ident()] = recorder.clock()
    if event == "return":
        on_return(frame)
    elif event == "call":
        running.pop(frame, None)


def _go_on() -> None:
    if _installed and threading.get_ident() in _interrupted:
        _trace_again(sys._getframe(2))


_TraceAgain = request_type(_go_on)


def regained() -> bool:
    """For an entry point without a tracer: whether there is one now."""
    caller: FrameType | None = sys._getframe(1)  # of the entry point, whose frame is not seen before its RESUME
    while caller is not None and internal_files[file := caller.f_code.co_filename]:
        if file != _LAZY:
            return False  # most often an operator inside of another, where it is quiet
        caller = caller.f_back  # it has just been compiled
    return caller is not None and _notice(caller)


_LAZY = lazy.__file__


def _notice(frame: FrameType | None) -> bool:
    """Trace this thread, which runs in a frame, if it is not traced; False if it is, or must not be."""
    if not _is_untraced(frame):
        return False
    if sys.getprofile() is not None:  # somebody else's, who comes first
        if next(reversed(running), None) is not stack_walk.nearest_running(frame):
            end_left(threading.get_ident(), frame, recorder.clock())
        return False
    _trace_again(frame)
    return True


def _is_untraced(frame: FrameType | None) -> bool:
    """Whether this thread has no tracer, and not because it is kept quiet."""
    global _gap
    if not _installed or sys.getprofile() is _tracer():
        return False
    while frame is not None and frame not in running:
        if is_quiet(frame.f_code) or (internal_files[frame.f_code.co_filename] and quiet.holds_guard(frame)):
            return False
        frame = frame.f_back
    if frame is not None and internal_files[frame.f_code.co_filename]:
        return False  # in a backward pass
    # not for a thread that was there before the recording, and calls its first operator
    _gap = _gap or frame is not None or threading.get_ident() in _interrupted
    return True


def _trace_again(frame: FrameType | None) -> None:
    thread = threading.get_ident()
    interrupted = _interrupted.pop(thread, None)
    end_left(thread, frame, recorder.clock() if interrupted is None else interrupted)
    follow(stack_walk.shown_caller(frame))
    if sys.getprofile() is None:
        sys.setprofile(_tracer())


def warn_of_gaps() -> None:
    """Warn if functions are missing in what was recorded since the last time."""
    if _gap:
        forget_gaps()
        warnings.warn(
            "with_stack=True: the tracing of Python functions was interrupted, by another profiler (cProfile) or an exception inside the "
            "tracer (RecursionError), so functions that were called until the next operator are missing; stacks of operators are complete",
            stacklevel=callers_level(),
        )


def forget_gaps() -> None:
    global _gap
    _gap = False


def _warn_taken(mechanism: str, functions: str = "functions") -> None:
    warnings.warn(
        f"with_stack=True: {mechanism} is used by another profiler, so Python {functions} are not recorded; stacks of operators are",
        stacklevel=callers_level(),
    )
