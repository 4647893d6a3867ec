"""Python functions as events: `sys.monitoring` where there is one (3.12), `sys.setprofile` before.

Calls of the user's functions, and of this package's `nn` and `optim`, become `python_function` events; code of the dispatcher, the
engine and the profiler does not. With `sys.monitoring` such code is switched off at its first call and costs nothing after.
"""

from __future__ import annotations

import inspect
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

from ..._dispatch import codegen, quiet, soon
from ..model import places
from ..model.session import Label
from . import recorder, stack_walk, tasks, threads
from .labels import label_number
from .module_calls import ModuleCalls
from .recorder import Log
from .source import Source
from .stack_walk import Call, Chain, internal_files, running

__all__ = ["PythonFunctions", "warn_of_gaps"]

# In place of a label: code of the package, which is not shown; a call that is followed and makes no event; that of a module, which has a
# label of its own.
INTERNAL, HIDDEN, MODULE = -1, -2, -3

# By the address of the code, because hashing a code object hashes its constants: the label of its calls, whether it is a library's. The
# codes are kept, so that an address means one.
_known: dict[int, tuple[int, bool]] = {}
_codes: list[CodeType] = []

_active = False
_gap = False  # whether functions are missing because a thread was not traced for a while
_modules: ModuleCalls | None = None
_clock: Callable[[], float]
_extend: Callable[[tuple[Any, ...]], None]  # of the log
_nothing: tuple[Any, ...]  # in place of what functions have not


class PythonFunctions(Source):
    """Records calls of Python functions, those of modules by what `modules` calls them; without it, somebody else records these.

    It is the last to resume: functions that run begin when all else is on, so that what starting the recording took is in nobody's frame.
    """

    def __init__(self, log: Log, modules: ModuleCalls | None) -> None:
        self._log = log
        self._modules = modules

    def resume(self) -> None:
        from ...nn.modules.module import CALL_CODE

        global _active, _modules, _clock, _extend, _nothing
        _active, _modules = True, self._modules
        _clock, _extend, _nothing = recorder.clock, self._log.records.extend, (-1, *self._log.nothing)
        _know(CALL_CODE, HIDDEN if _modules is None else MODULE, of_library=False)
        if _modules is not None:
            _modules.running.clear()  # as it was when the last collecting stopped
        _call_of(stack_walk.shown_caller(sys._getframe(1)))
        _install()
        thread = threading.get_ident()
        for frame, call in list(running.items()):
            if call[0] == thread:
                running[frame] = (*call[:4], _clock(), call[5])  # the outermost first: each begins before what it calls

    def pause(self, now: float) -> None:
        global _active, _modules
        if not _active:
            return
        _uninstall()
        _active, _modules = False, None
        _end_calls(list(running), now)
        _known.clear()
        _codes.clear()

    def discard(self) -> None:
        global _gap
        if _active:
            self.pause(_clock())
        _gap = False  # of a recording that nobody sees
        running.clear()  # an interrupt may have come in between
        _known.clear()
        _codes.clear()


def _end_calls(frames: list[FrameType | None], end: float) -> None:
    """Record calls up to this moment, the innermost first."""
    for frame in reversed(frames):
        call = running.pop(frame, None)  # None: it has just returned on its own thread
        if call is not None and call[3] != HIDDEN and call[4] <= end:
            _extend((call[3], call[4], end, call[0], *_nothing))


def _know(code: CodeType, label: int, *, of_library: bool) -> tuple[int, bool]:
    _codes.append(code)
    known = _known[id(code)] = (label, of_library)
    return known


def _meet(frame: FrameType) -> tuple[int, bool]:
    code = frame.f_code
    if stack_walk.is_internal(code):
        return _know(code, INTERNAL, of_library=False)
    name = f"{places.below(code.co_filename, places.search_path())}({code.co_firstlineno}): {code.co_name}"
    return _know(code, label_number(Label(name, "python_function")), of_library=stack_walk.is_librarys(frame))


def _on_call(frame: FrameType, code: CodeType, thread: int | None = None) -> bool:
    """Note a call, on this thread unless another is named; False if calls of this code are not shown."""
    back = frame.f_back
    caller = running.get(back)
    if caller is not None and back is not None:
        chain = caller[2].callees.get((back.f_lasti, id(code)))
        if chain is not None:  # mostly: it was called from here before
            if chain.label >= 0:  # written out: a call less
                running[frame] = (caller[0], chain.numbers, chain, chain.label, _clock(), None)
                if not _active:
                    running.pop(frame, None)
            elif chain.label != INTERNAL:
                _begin(frame, caller[0], chain)
            return chain.label != INTERNAL
    label, of_library = _known.get(id(code)) or _meet(frame)
    if label == INTERNAL:
        if caller is not None and back is not None:
            caller[2].enter(back.f_lasti, code, INTERNAL, directly=True)  # so that it is known next time
        return False
    directly = caller is not None
    if caller is None:
        between, back = back, stack_walk.shown_caller(back)
        caller = _call_of(back, thread)
        by_internals = between is not back
    else:
        # what a library's function calls for the dispatcher, a kernel or the profiler is theirs too
        by_internals = caller[3] == HIDDEN
    if of_library and by_internals:
        label = HIDDEN
    _begin(frame, caller[0], caller[2].enter(-1 if back is None else back.f_lasti, code, label, directly=directly))
    return True


def _begin(frame: FrameType, thread: int, chain: Chain) -> None:
    label, modules = chain.label, None
    if label == MODULE:
        modules = _modules
        label = HIDDEN if modules is None else modules.note(frame.f_locals["self"], thread)
    running[frame] = (thread, chain.numbers, chain, label, _clock(), modules)
    if not _active:
        running.pop(frame, None)  # another thread has just stopped recording


def _call_of(frame: FrameType | None, thread: int | None = None) -> Call:
    """The call that runs in a frame. It begins now, with those around it, if it ran before its thread was traced."""
    missed, outer = [], frame
    while outer is not None and outer not in running:
        missed.append(outer)
        outer = outer.f_back
    for outer in reversed(missed):
        _on_call(outer, outer.f_code, thread)
    return running.get(frame) or (thread or threading.get_ident(), {}, stack_walk.outermost, HIDDEN, 0.0, None)


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _on_return(frame: FrameType) -> bool:
    """Note the end of a call; False if its beginning was not noted."""
    call = running.get(frame)
    if call is None:
        return False
    thread, _, _, label, began, modules = call
    end, track = _clock(), tasks.track_number() if tasks.tracks else thread
    # Python 3.11 runs handlers of signals after a call, and so not from here to the end of `_extend`: if one raises, the call is recorded
    # or still among those that run.
    try:
        del running[frame]
    except KeyError:
        return True  # another thread has just stopped recording
    if label != HIDDEN:
        _extend((label, began, end, track) + _nothing)
    if modules is not None:
        modules.leave(thread)
    return True


if sys.version_info >= (3, 12):
    _monitoring = sys.monitoring
    _EVENTS = _monitoring.events
    # first those that are no tool's by name: cProfile fails when it finds its own taken
    _TOOL_IDS = (4, 3, _monitoring.PROFILER_ID)
    _tool: int | None = None

    def _on_start(code: CodeType, offset: int) -> Any:
        return None if _on_call(sys._getframe(1), code) else _monitoring.DISABLE

    def _on_end(code: CodeType, offset: int, value: Any) -> Any:
        return None if _on_return(sys._getframe(1)) or not stack_walk.is_internal(code) else _monitoring.DISABLE

    def _on_unwind(code: CodeType, offset: int, error: Any) -> None:
        _on_return(sys._getframe(1))

    def _on_throw(code: CodeType, offset: int, error: Any) -> None:
        _on_call(sys._getframe(1), code)

    _HANDLERS: dict[int, Callable[..., Any]] = {
        _EVENTS.PY_START: _on_start,
        _EVENTS.PY_RESUME: _on_start,
        _EVENTS.PY_RETURN: _on_end,
        _EVENTS.PY_YIELD: _on_end,
        _EVENTS.PY_UNWIND: _on_unwind,
        _EVENTS.PY_THROW: _on_throw,
    }

    def _install() -> None:
        global _tool
        free = [i for i in _TOOL_IDS if _monitoring.get_tool(i) is None]
        if not free:
            _warn_taken("sys.monitoring")
            running.clear()  # no more would come
            return
        _tool = free[0]
        _monitoring.use_tool_id(_tool, "mindtorch_v2.profiler")
        for event, handler in _HANDLERS.items():
            _monitoring.register_callback(_tool, event, handler)
        began = _clock()
        _monitoring.set_events(_tool, sum(_HANDLERS))
        for thread in sys._current_frames().keys() - {threading.get_ident()}:
            _begin_calls_of(thread, began)

    def _staying(thread: int) -> FrameType | None:
        """The innermost frame of another thread, or the one around it if that is just being reported to return."""
        innermost = frame = sys._current_frames().get(thread)
        while frame is not None and internal_files[frame.f_code.co_filename]:
            if frame.f_code in (_on_end.__code__, _on_unwind.__code__) and frame.f_back is not None:
                return frame.f_back.f_back
            frame = frame.f_back
        return innermost

    def _begin_calls_of(thread: int, began: float) -> None:
        """Begin the calls that another thread is in, and was in before its calls were reported. It runs meanwhile."""
        innermost = stack_walk.shown_caller(_staying(thread))
        unreported = [frame for frame in _outwards(innermost) if frame not in running]
        _call_of(innermost, thread)
        for outer in unreported:
            if (call := running.get(outer)) is not None:
                running[outer] = (*call[:4], began, call[5])
        # what returned before it was noted would never end
        noted = [(frame, call) for frame, call in list(running.items()) if call[0] == thread]
        frames = set(_outwards(_staying(thread)))
        for frame, call in noted:
            if frame not in frames and running.pop(frame, None) is not None and call[5] is not None:
                call[5].leave(thread)

    def _uninstall() -> None:
        global _tool
        if _tool is not None:
            _monitoring.set_events(_tool, 0)
            for event in _HANDLERS:
                _monitoring.register_callback(_tool, event, None)
            _monitoring.free_tool_id(_tool)
            _monitoring.restart_events()  # what was switched off for us is on again for the next
            _tool = None

else:
    _SUSPENDABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

    def _on_event(frame: FrameType, event: str, arg: Any) -> None:
        try:
            pass  # noqa: PIE790 - as in `quiet._on_collection`
            pass  # noqa: PIE790 - the code begins here, so that an exception of a signal's handler comes no earlier
            if event == "call":
                if _active:
                    _on_call(frame, frame.f_code)
                else:
                    sys.setprofile(None)  # a thread of a recording that is over
            elif event == "return":
                _on_return(frame)
            elif not _active:
                sys.setprofile(None)
        except RecursionError:
            raise  # nothing can be called here; the next operator finds the tracer gone
        except BaseException as error:
            # Requests are made when they die: nothing runs between that and the end, in which they could be met already.
            # Python would print and drop the exception of a generator that is freed before its end, and of a callback of the collector. And it
            # would not call a built-in function whose call is reported: the end of a `with lock:` that never comes.
            is_builtin = event not in ("call", "return")
            in_generator = not is_builtin and frame.f_code.co_flags & _SUSPENDABLE
            if in_generator:
                if event == "return":
                    _on_return(frame)
                elif _active and frame not in running:
                    _on_call(frame, frame.f_code)
            if is_builtin or in_generator or frame.f_code is quiet.COLLECTION_CODE:
                soon.errors.append(error)
                request: Any = soon.Raise()
                request = None
                return
            _note_interruption(frame, event)
            request = _Again()
            request = None  # noqa: F841
            raise

    _on_event.__code__ = quiet.reported_later(_on_event.__code__, _on_event.__code__.co_firstlineno + 3)

    # Python takes a profile function away that raises. What raises in it is most often not its own: a handler of a signal runs there as it
    # would in the function that was called. So the end of tracing on a thread is noted, or noticed by the next operator, scope or step; then
    # calls of which no frame is left end, and tracing goes on.
    _interrupted: dict[int, float] = {}  # by thread, when

    def _note_interruption(frame: FrameType, event: str) -> None:
        """The exception ends a function that is being called or that returns; in another, it may be caught."""
        _interrupted[threading.get_ident()] = _clock()
        if event == "return":
            _on_return(frame)
        elif event == "call":
            running.pop(frame, None)

    def _go_on() -> None:
        if _active and threading.get_ident() in _interrupted:
            _trace_again(sys._getframe(2))

    _Again = soon.request_type(_go_on)

    def _regained() -> bool:
        """For an entry point without a tracer: whether there is one now."""
        caller: FrameType | None = sys._getframe(1)  # of the entry point, whose frame is not seen before its RESUME
        while caller is not None and caller.f_code.co_filename == codegen.__file__:
            caller = caller.f_back  # it has just been compiled
        if caller is None or internal_files[caller.f_code.co_filename]:
            return False  # most often an operator inside of another, where it is quiet
        return _notice(caller)

    def _notice(frame: FrameType | None) -> bool:
        """Trace this thread, which runs in a frame, if it is not traced; False if it is, or must not be."""
        if not _is_untraced(frame):
            return False
        if sys.getprofile() is not None:  # somebody else's, who comes first
            if next(reversed(running), None) is not stack_walk.nearest_running(frame):
                _end_left(threading.get_ident(), frame, _clock())
            return False
        _trace_again(frame)
        return True

    def _is_untraced(frame: FrameType | None) -> bool:
        """Whether this thread has no tracer, and not because it is kept quiet."""
        global _gap
        if not _active or sys.getprofile() is _on_event:
            return False
        while frame is not None and frame not in running:
            if internal_files[frame.f_code.co_filename] and quiet.holds_guard(frame):
                return False
            frame = frame.f_back
        # not for a thread that was there before the recording, and calls its first operator
        _gap = _gap or frame is not None or threading.get_ident() in _interrupted
        return True

    def _trace_again(frame: FrameType | None) -> None:
        thread = threading.get_ident()
        interrupted = _interrupted.pop(thread, None)
        _end_left(thread, frame, _clock() if interrupted is None else interrupted)
        _call_of(stack_walk.shown_caller(frame))
        if sys.getprofile() is None:
            sys.setprofile(_on_event)

    def _end_left(thread: int, innermost: FrameType | None, end: float) -> None:
        """End the calls on a thread that have no frame any more."""
        frames = set(_outwards(innermost))
        calls = [(frame, call) for frame, call in list(running.items()) if call[0] == thread]
        _end_calls([frame for frame, _ in calls if frame not in frames], end)
        if _modules is not None:
            _modules.keep(thread, sum(call[5] is not None for frame, call in calls if frame in frames))

    def _install() -> None:
        if sys.getprofile() is not None:
            _warn_taken("sys.setprofile")
            running.clear()
            return
        if threads.profiled_by_another():
            _warn_taken("threading.setprofile", functions="functions of new threads")
        threads.trace_new(_on_event)
        quiet.start(_on_event, lambda frame: stack_walk.nearest_running(frame) is not None, _regained)
        stack_walk.notice = _notice
        sys.setprofile(_on_event)

    def _uninstall() -> None:
        threads.trace_new(None)
        quiet.stop()
        if stack_walk.notice is not None:
            stack_walk.notice = None
            _is_untraced(sys._getframe(1))
            stacks = sys._current_frames()
            stacks[threading.get_ident()] = sys._getframe(1)  # this frame would keep itself alive
            for thread in {call[0] for call in list(running.values())}:
                _end_left(thread, stacks.get(thread), _interrupted.get(thread) or _clock())
            _interrupted.clear()
        if sys.getprofile() is _on_event:
            sys.setprofile(None)


def warn_of_gaps() -> None:
    """Warn if functions are missing in what was recorded since the last time."""
    global _gap
    if _gap:
        _gap = False
        warnings.warn(
            "with_stack=True: the tracing of Python functions was interrupted, by another profiler (cProfile) or an exception inside the "
            "tracer (RecursionError), so functions that were called until the next operator are missing; stacks of operators are complete",
            stacklevel=2,
        )


def _warn_taken(mechanism: str, functions: str = "functions") -> None:
    warnings.warn(
        f"with_stack=True: {mechanism} is used by another profiler, so Python {functions} are not recorded; stacks of operators are",
        stacklevel=2,
    )
