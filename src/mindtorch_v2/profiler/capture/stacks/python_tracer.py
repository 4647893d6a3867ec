"""The tracer of Python functions: it follows the calls that run on each thread, and records each when it returns.

Calls of the user's functions, and of this package's `nn` and `optim`, become `python_function` events; code of the dispatcher, the
engine and the profiler does not. `monitoring` tells it of calls and returns, on Python 3.11 `python311` (see `python_functions`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

from ....nn.modules.module import CALL_CODE
from ...model import places
from ...model.session import Label
from .. import tasks
from ..labels import label_number
from ..operators import recorder
from ..operators.recorder import Log
from ..scopes.module_calls import ModuleCalls
from . import stack_walk
from .stack_walk import Call, Chain, running
from .waiting_calls import Waits, name_of

__all__ = [
    "begin",
    "begin_anew",
    "call_of",
    "end",
    "end_calls",
    "end_left",
    "forget",
    "is_active",
    "on_c_call",
    "on_c_return",
    "on_call",
    "on_return",
    "outwards",
    "shown_codes",
    "waits",
]

# In place of a label: code of the package, which is not shown; a call that is followed and makes no event; that of a module, which has a
# label of its own.
INTERNAL, HIDDEN, MODULE = -1, -2, -3

# By the address of the code, because hashing a code object hashes its constants: the label of its calls, whether it is a library's. The
# codes are kept, so that an address means one.
_known: dict[int, tuple[int, bool]] = {}
_codes: list[CodeType] = []

_active = False
_modules: ModuleCalls | None = None
waits = Waits()  # the calls of functions written in C that run
on_shown: Callable[[CodeType], None] | None = None  # called with the code of each function that is shown, at its first call
_clock: Callable[[], float]
_extend: Callable[[tuple[Any, ...]], None]  # of the log
_nothing: tuple[Any, ...]  # in place of what functions have not


def begin(log: Log, modules: ModuleCalls | None) -> None:
    """Follow calls from here on, those of modules by what `modules` calls them; without it, somebody else records these."""
    global _active, _modules, _clock, _extend, _nothing
    _active, _modules = True, modules
    _clock, _extend, _nothing = recorder.clock, log.records.extend, (-1, *log.nothing)
    _know(CALL_CODE, HIDDEN if modules is None else MODULE, of_library=False)
    if modules is not None:
        modules.running.clear()  # as it was when the last collecting stopped


def begin_anew(thread: int) -> None:
    """Have the calls that run on a thread begin now."""
    for frame, call in list(running.items()):
        if call[0] == thread:
            running[frame] = (*call[:4], _clock(), call[5])  # the outermost first: each begins before what it calls


def end(now: float) -> None:
    """Follow calls no more. Those that run are recorded up to now."""
    global _active, _modules
    _active, _modules = False, None
    waits.end_all(now, _write)
    end_calls(list(running), now)
    forget()


def forget() -> None:
    """Forget the calls that run, and the functions that were met."""
    running.clear()
    waits.clear()
    _known.clear()
    _codes.clear()


def end_left(thread: int, innermost: FrameType | None, at: float) -> None:
    """End the calls on a thread that have no frame any more; `innermost` is the thread's."""
    frames = set(outwards(innermost))
    calls = [(frame, call) for frame, call in list(running.items()) if call[0] == thread]
    end_calls([frame for frame, _ in calls if frame not in frames], at)
    if _modules is not None:
        _modules.keep(thread, sum(call[5] is not None for frame, call in calls if frame in frames))


def is_active() -> bool:
    """Whether calls are followed."""
    return _active


def end_calls(frames: list[FrameType | None], end: float) -> None:
    """Record calls up to this moment, the innermost first."""
    for frame in reversed(frames):
        call = running.pop(frame, None)  # None: it has just returned on its own thread
        if call is not None and call[3] != HIDDEN and call[4] <= end:
            _extend((call[3], call[4], end, call[0], *_nothing))


def on_c_call(function: Any) -> bool:
    """Note the call of a function written in C; False if it is none that waits, of which nothing is noted."""
    name = name_of(function)
    if name is None:
        return False
    waits.begin(name, _clock())
    return True


def on_c_return() -> None:
    """Note the end of a call of a function written in C, while there are `waits`."""
    waits.end(_clock(), _write)


def _write(label: int, began: float, end: float, thread: int) -> None:
    _extend((label, began, end, thread, *_nothing))


def shown_codes() -> list[CodeType]:
    """The codes of functions that were met and are shown."""
    return [code for code in _codes if not stack_walk.is_internal(code)]


def _know(code: CodeType, label: int, *, of_library: bool) -> tuple[int, bool]:
    _codes.append(code)
    known = _known[id(code)] = (label, of_library)
    return known


def _meet(frame: FrameType) -> tuple[int, bool]:
    code = frame.f_code
    if stack_walk.is_internal(code) and code.co_name not in stack_walk.SHOWN_FUNCTIONS.get(code.co_filename, ()):
        return _know(code, INTERNAL, of_library=False)
    if stack_walk.is_around_threads(code):
        return _know(code, HIDDEN, of_library=True)
    if on_shown is not None:
        on_shown(code)
    name = f"{places.below(code.co_filename, places.search_path())}({code.co_firstlineno}): {code.co_name}"
    return _know(code, label_number(Label(name, "python_function")), of_library=stack_walk.is_librarys(frame))


def on_call(frame: FrameType, code: CodeType, thread: int | None = None) -> bool:
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
        caller = call_of(back, thread)
        by_internals = between is not back
    else:
        # what a library's function calls for the dispatcher, a kernel or the profiler is theirs too; what a thread runs is not
        by_internals = caller[3] == HIDDEN and back is not None and back.f_code is not stack_walk.RUN_OF_THREAD
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


def call_of(frame: FrameType | None, thread: int | None = None) -> Call:
    """The call that runs in a frame. It begins now, with those around it, if it ran before its thread was traced."""
    missed, outer = [], frame
    while outer is not None and outer not in running:
        missed.append(outer)
        outer = outer.f_back
    for outer in reversed(missed):
        on_call(outer, outer.f_code, thread)
    return running.get(frame) or (thread or threading.get_ident(), {}, stack_walk.outermost, HIDDEN, 0.0, None)


def outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def on_return(frame: FrameType) -> bool:
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
