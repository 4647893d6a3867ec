"""Python functions as events: `sys.monitoring` where there is one (3.12), `sys.setprofile` before.

Calls of the user's functions, and of this package's `nn` and `optim`, become `python_function` events; code of the dispatcher, the
engine and the profiler does not. With `sys.monitoring` such code is switched off at its first call and costs nothing after.
"""

from __future__ import annotations

import sys
import threading
import warnings
from types import CodeType, FrameType
from typing import Any

from ..model import places
from ..model.session import Label
from . import recorder, stack_walk, tasks, threads
from .module_calls import ModuleCalls
from .recorder import Log
from .stack_walk import Chain, internal_files, library_files, running

__all__ = ["start", "stop"]

# By the address of the code, because hashing a code object hashes its constants. The codes are kept, so that an address means one.
_labels: dict[int, int | None] = {}
_codes: list[CodeType] = []


def _label_of(code: CodeType) -> int | None:
    """The label of calls of this code; None for code that is not shown."""
    label = None
    if not stack_walk.is_internal(code):
        name = f"{places.below(code.co_filename, places.search_path())}({code.co_firstlineno}): {code.co_name}"
        label = recorder.label_number(Label(name, "python_function"))
    _codes.append(code)
    _labels[id(code)] = label
    return label


Call = tuple[int, float, Chain, FrameType]  # label, start, the chain of calls down to it, frame
open_calls: dict[int, list[Call]] = {}  # traced thread → the functions that run on it, outermost first

HIDDEN = -2  # instead of a label: the call is kept with the others, and no event is made of it
MODULE = -3  # instead of a label: the call of a module, which has a label of its own

_log: Log | None = None
_modules: ModuleCalls | None = None


def start(log: Log, modules: ModuleCalls | None) -> None:
    """Record calls from here on, those of modules by what `modules` calls them. Functions that are running begin now.

    Without `modules`, somebody else records the calls of modules.
    """
    from ...nn.modules.module import CALL_CODE

    global _log, _modules
    _log, _modules = log, modules
    _codes.append(CALL_CODE)
    _labels[id(CALL_CODE)] = HIDDEN if modules is None else MODULE
    if modules is not None:
        modules.running.clear()  # as it was when the last collecting stopped
    open_calls.clear()
    running.clear()
    _enter_running_functions(sys._getframe(1))
    _install()


def stop() -> None:
    """Record no more calls. Functions that are still running end now."""
    global _log, _modules
    _uninstall()
    log, _log, _modules = _log, None, None
    end = recorder.clock()
    for thread, calls in list(open_calls.items()):
        # other threads may be returning from functions: each list is its own thread's
        for label, began, *_ in reversed(tuple(calls)):
            if log is not None and label != HIDDEN and began <= end:
                log.write(label, began, end, thread)
    open_calls.clear()
    running.clear()
    _labels.clear()
    _codes.clear()


def _enter_running_functions(frame: FrameType | None) -> None:
    """Begin the functions around a thread's first traced call."""
    frames: list[FrameType] = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    for outer in reversed(frames):
        _on_call(outer)


def _on_call(frame: FrameType) -> bool:
    """Note a call; False if calls of this code are not shown."""
    code = frame.f_code
    label = _labels.get(id(code), -1)
    if label == -1:
        label = _label_of(code)
    if label is None:
        return False
    thread = threading.get_ident()
    calls = open_calls.get(thread)
    if calls is None:
        calls = open_calls[thread] = []
        _enter_running_functions(frame.f_back)
    if library_files[code.co_filename] and _works_for_internals(frame.f_back, calls):
        label = HIDDEN
    elif label == MODULE and _modules is not None:
        label = _modules.begin(frame.f_locals["self"], thread)
    caller = stack_walk.shown_caller(frame.f_back)
    chain = (calls[-1][2] if calls else stack_walk.outermost).enter(-1 if caller is None else caller.f_lasti, code)
    calls.append((label, recorder.clock(), chain, frame))
    running[frame] = (thread, chain)
    return True


def _works_for_internals(caller: FrameType | None, calls: list[Call]) -> bool:
    """Whether a function of a library was called by the dispatcher, a kernel or the profiler, or by another that was."""
    if caller is None:
        return False
    return internal_files[caller.f_code.co_filename] or any(c[0] == HIDDEN and c[3] is caller for c in calls[-1:])


def _on_return(code: CodeType) -> None:
    label = _labels.get(id(code))
    calls = open_calls.get(threading.get_ident())
    # a function that ran before its thread was watched returns without having been called
    if label is not None and calls and calls[-1][3].f_code is code:
        shown, began, _, frame = calls.pop()
        running.pop(frame, None)
        log = _log  # read after that: what is still in the list is ended by `stop`
        if label == MODULE and _modules is not None:
            _modules.leave(threading.get_ident())
        if log is not None and shown != HIDDEN:
            log.write(shown, began, recorder.clock(), tasks.track_number())


if sys.version_info >= (3, 12):
    _monitoring = sys.monitoring
    _EVENTS = _monitoring.events
    _tool: int | None = None

    def _on_start(code: CodeType, offset: int) -> Any:
        return None if _on_call(sys._getframe(1)) else _monitoring.DISABLE

    def _on_end(code: CodeType, offset: int, value: Any) -> Any:
        return _on_return(code) if _labels.get(id(code), -1) is not None else _monitoring.DISABLE

    def _on_unwind(code: CodeType, offset: int, error: Any) -> None:
        _on_return(code)

    def _on_throw(code: CodeType, offset: int, error: Any) -> None:
        _on_call(sys._getframe(1))

    _HANDLERS = {
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
        # most of what is reported is the profiler's own code: the way out comes first
        if internal_files[frame.f_code.co_filename]:
            return
        if event == "call":
            if _log is None:
                sys.setprofile(None)  # a thread of a recording that is over
            else:
                _on_call(frame)
        elif event == "return":
            _on_return(frame.f_code)

    def _install() -> None:
        if sys.getprofile() is not None:
            _warn_taken("sys.setprofile")
            return
        if threads.profiled_by_another():
            _warn_taken("threading.setprofile", functions="functions of new threads")
        threads.trace_new(_on_event)
        sys.setprofile(_on_event)

    def _uninstall() -> None:
        threads.trace_new(None)
        if sys.getprofile() is _on_event:
            sys.setprofile(None)


def _warn_taken(mechanism: str, functions: str = "functions") -> None:
    warnings.warn(
        f"with_stack=True: {mechanism} is used by another profiler, so Python {functions} are not recorded; stacks of operators are",
        stacklevel=2,
    )
