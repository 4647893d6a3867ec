"""Python functions as events: `sys.monitoring` where there is one (3.12), `sys.setprofile` before.

Calls of the user's functions, and of this package's `nn` and `optim`, become `python_function` events; code of the dispatcher, the
engine and the profiler does not. With `sys.monitoring` such code is switched off at its first call and costs nothing after.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from ..._dispatch import quiet
from ..model import places
from ..model.session import Label
from . import recorder, stack_walk, tasks, threads
from .labels import label_number
from .module_calls import ModuleCalls
from .recorder import Log
from .stack_walk import Call, Chain, library_files, running

__all__ = ["start", "stop"]

# In place of a label: code of the package, which is not shown; a call that is followed and makes no event; that of a module, which has a
# label of its own.
INTERNAL, HIDDEN, MODULE = -1, -2, -3

# By the address of the code, because hashing a code object hashes its constants: the label of its calls, whether it is a library's. The
# codes are kept, so that an address means one.
_known: dict[int, tuple[int, bool]] = {}
_codes: list[CodeType] = []

_active = False
_modules: ModuleCalls | None = None
_clock: Callable[[], float]
_extend: Callable[[tuple[Any, ...]], None]  # of the log
_nothing: tuple[Any, ...]  # in place of what functions have not


def start(log: Log, modules: ModuleCalls | None) -> None:
    """Record calls from here on, those of modules by what `modules` calls them. Functions that are running begin now.

    Without `modules`, somebody else records the calls of modules.
    """
    from ...nn.modules.module import CALL_CODE

    global _active, _modules, _clock, _extend, _nothing
    _active, _modules = True, modules
    _clock, _extend, _nothing = recorder.clock, log.records.extend, (-1, *log.nothing)
    _know(CALL_CODE, HIDDEN if modules is None else MODULE)
    if modules is not None:
        modules.running.clear()  # as it was when the last collecting stopped
    _call_of(stack_walk.shown_caller(sys._getframe(1)))
    _install()


def stop() -> None:
    """Record no more calls, if any were. Functions that are still running end now."""
    global _active, _modules
    if not _active:
        return
    _uninstall()
    _active, _modules = False, None
    end = _clock()
    for frame in reversed(list(running)):
        call = running.pop(frame, None)  # None: it has just returned on its own thread
        if call is not None and call[3] != HIDDEN and call[4] <= end:
            _extend((call[3], call[4], end, call[0], *_nothing))
    _known.clear()
    _codes.clear()


def _know(code: CodeType, label: int) -> tuple[int, bool]:
    _codes.append(code)
    known = _known[id(code)] = (label, library_files[code.co_filename])
    return known


def _meet(code: CodeType) -> tuple[int, bool]:
    if stack_walk.is_internal(code):
        return _know(code, INTERNAL)
    name = f"{places.below(code.co_filename, places.search_path())}({code.co_firstlineno}): {code.co_name}"
    return _know(code, label_number(Label(name, "python_function")))


def _on_call(frame: FrameType, code: CodeType) -> bool:
    """Note a call; False if calls of this code are not shown."""
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
    label, of_library = _known.get(id(code)) or _meet(code)
    if label == INTERNAL:
        if caller is not None and back is not None:
            caller[2].enter(back.f_lasti, code, INTERNAL, directly=True)  # so that it is known next time
        return False
    directly = caller is not None
    if caller is None:
        between, back = back, stack_walk.shown_caller(back)
        caller = _call_of(back)
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
        label = HIDDEN if modules is None else modules.begin(frame.f_locals["self"], thread)
    running[frame] = (thread, chain.numbers, chain, label, _clock(), modules)
    if not _active:
        running.pop(frame, None)  # another thread has just stopped recording


def _call_of(frame: FrameType | None) -> Call:
    """The call that runs in a frame. It begins now, with those around it, if it ran before its thread was watched."""
    missed, outer = [], frame
    while outer is not None and outer not in running:
        missed.append(outer)
        outer = outer.f_back
    for outer in reversed(missed):
        _on_call(outer, outer.f_code)
    return running.get(frame) or (threading.get_ident(), {}, stack_walk.outermost, HIDDEN, 0.0, None)


def _on_return(frame: FrameType) -> bool:
    """Note the end of a call; False if its beginning was not noted."""
    call = running.pop(frame, None)
    if call is None:
        return False
    thread, _, _, label, began, modules = call
    if modules is not None:
        modules.leave(thread)
    if label != HIDDEN:
        _extend((label, began, _clock(), tasks.track_number() if tasks.tracks else thread) + _nothing)
    return True


if sys.version_info >= (3, 12):
    _monitoring = sys.monitoring
    _EVENTS = _monitoring.events
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
        free = [i for i in (_monitoring.PROFILER_ID, 3, 4) if _monitoring.get_tool(i) is None]
        if not free:
            _warn_taken("sys.monitoring")
            running.clear()  # no more would come
            return
        _tool = free[0]
        _monitoring.use_tool_id(_tool, "mindtorch_v2.profiler")
        for event, handler in _HANDLERS.items():
            _monitoring.register_callback(_tool, event, handler)
        _monitoring.set_events(_tool, sum(_HANDLERS))

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

    def _on_event(frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            if _active:
                _on_call(frame, frame.f_code)
            else:
                sys.setprofile(None)  # a thread of a recording that is over
        elif event == "return":
            _on_return(frame)
        elif not _active:
            sys.setprofile(None)

    def _install() -> None:
        if sys.getprofile() is not None:
            _warn_taken("sys.setprofile")
            running.clear()
            return
        if threads.profiled_by_another():
            _warn_taken("threading.setprofile", functions="functions of new threads")
        threads.trace_new(_on_event)
        quiet.start(_on_event, lambda frame: stack_walk.nearest_running(frame) is not None)
        sys.setprofile(_on_event)

    def _uninstall() -> None:
        threads.trace_new(None)
        quiet.stop()
        if sys.getprofile() is _on_event:
            sys.setprofile(None)


def _warn_taken(mechanism: str, functions: str = "functions") -> None:
    warnings.warn(
        f"with_stack=True: {mechanism} is used by another profiler, so Python {functions} are not recorded; stacks of operators are",
        stacklevel=2,
    )
