"""The tracer of Python functions: it follows the calls that run on each thread, and records each when it returns.

Calls of the user's functions, and of this package's `nn` and `optim`, become `python_function` events; code of the dispatcher, the
engine and the profiler does not. `monitoring` tells it of calls and returns, on Python 3.11 `python311` (see `python_functions`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CodeType, FrameType
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
    "end",
    "end_calls",
    "end_left",
    "follow",
    "follow_if_first",
    "forget",
    "is_active",
    "note_present",
    "on_c_call",
    "on_c_return",
    "on_call",
    "on_return",
    "shown_codes",
    "waits",
]

# In place of a label: code of the package, which is not shown; a call that is followed and makes no event; that of a module, which has a
# label of its own.
INTERNAL, HIDDEN, MODULE = -1, stack_walk.HIDDEN, -3


class _Functions:
    """The functions that are met between `begin` and `end`.

    A thread that is in the middle of a report when these come keeps to the one with which it began, and takes back what it noted (`_begin`): the
    numbers of labels in it mean nothing to the next recording.
    """

    __slots__ = ("_codes", "followed", "known", "modules", "outermost", "present")

    def __init__(self, modules: ModuleCalls | None) -> None:
        self.modules = modules
        self.outermost = stack_walk.outermost
        # By the address of the code, because hashing a code object hashes its constants: the label of its calls, whether it is a library's. The
        # codes are kept, so that an address means one.
        self.known: dict[int, tuple[int, bool]] = {}
        self._codes: list[CodeType] = []
        self._know(CALL_CODE, HIDDEN if modules is None else MODULE, of_library=False)
        # A thread enters its calls in `running` itself, at its first report, so that nobody else looks at frames while they change. One that
        # reports nothing until the end is in the same calls all the time.
        self.followed: set[int] = set()  # threads that entered calls
        self.present: dict[int, list[int]] = {}  # labels of the calls that other threads were in at the beginning, outermost first

    def _know(self, code: CodeType, label: int, *, of_library: bool) -> tuple[int, bool]:
        self._codes.append(code)
        known = self.known[id(code)] = (label, of_library)
        return known

    def meet(self, frame: FrameType) -> tuple[int, bool]:
        """The label of the calls of a frame's code, and whether it is a library's."""
        code = frame.f_code
        known = self.known.get(id(code))
        if known is not None:
            return known
        if not stack_walk.is_shown(code):
            return self._know(code, INTERNAL, of_library=False)
        if stack_walk.is_around_threads(code):
            return self._know(code, HIDDEN, of_library=True)
        if on_shown is not None:
            on_shown(code)
        name = f"{places.below(code.co_filename, places.search_path())}({code.co_firstlineno}): {code.co_name}"
        return self._know(code, label_number(Label(name, "python_function")), of_library=stack_walk.is_librarys(frame))

    def shown_codes(self) -> list[CodeType]:
        return [code for code in self._codes if not stack_walk.is_internal(code)]


_functions: _Functions | None = None  # while calls are followed
waits = Waits()  # the calls of functions written in C that run
on_shown: Callable[[CodeType], None] | None = None  # called with the code of each function that is shown, at its first call
began_at: float | None = None  # the start of calls that threads are in at their first report; None for the time of that report
_clock: Callable[[], float]
_extend: Callable[[tuple[Any, ...]], None]  # of the log
_nothing: tuple[Any, ...]  # in place of what functions have not


def begin(log: Log, modules: ModuleCalls | None) -> None:
    """Follow calls from here on, those of modules by what `modules` calls them; without it, somebody else records these."""
    global _functions, _clock, _extend, _nothing
    _clock, _extend, _nothing = recorder.clock, log.records.extend, (-1, *log.nothing)
    if modules is not None:
        modules.running.clear()  # as it was when the last collecting stopped
    _functions = _Functions(modules)


def begin_anew(thread: int) -> None:
    """Have the calls that run on a thread begin now."""
    for frame, call in list(running.items()):
        if call[0] == thread:
            running[frame] = (*call[:4], _clock(), call[5])  # the outermost first: each begins before what it calls


def end(now: float) -> None:
    """Follow calls no more. Those that run are recorded up to now."""
    global _functions
    ended, _functions = _functions, None
    waits.end_all(now, _write)
    calls = list(running.items())  # before `followed` is read: a thread enters a call first
    end_calls([frame for frame, _ in calls], now)
    if ended is not None and began_at is not None:
        for thread in ended.present.keys() - {call[0] for _, call in calls} - ended.followed:
            for label in reversed(ended.present[thread]):
                _write(label, began_at, now, thread)
    forget()


def forget() -> None:
    """Forget the calls that run, and the functions that were met."""
    global _functions
    _functions = None
    running.clear()
    waits.clear()


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def end_left(thread: int, innermost: FrameType | None, at: float) -> None:
    """End the calls on a thread that have no frame any more; `innermost` is the thread's."""
    frames = set(_outwards(innermost))
    calls = [(frame, call) for frame, call in list(running.items()) if call[0] == thread]
    end_calls([frame for frame, _ in calls if frame not in frames], at)
    if _functions is not None and _functions.modules is not None:
        _functions.modules.keep(thread, sum(call[5] is not None for frame, call in calls if frame in frames))


def is_active() -> bool:
    """Whether calls are followed."""
    return _functions is not None


def end_calls(frames: list[FrameType | None], end: float) -> None:
    """Record calls up to this moment, the innermost first."""
    for frame in reversed(frames):
        call = running.pop(frame, None)  # None: it has just returned on its own thread
        if call is not None and call[3] != HIDDEN and call[4] <= end:
            _extend((call[3], call[4], end, call[0], *_nothing))


def on_c_call(function: BuiltinFunctionType) -> bool:
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
    return [] if _functions is None else _functions.shown_codes()


def on_call(frame: FrameType, code: CodeType) -> bool:
    """Note a call; False if calls of this code are not shown."""
    functions, back = _functions, frame.f_back
    caller = running.get(back)
    if caller is not None and back is not None:
        chain = caller[2].callees.get((back.f_lasti, id(code)))
        if chain is not None:  # mostly: it was called from here before
            if chain.label >= 0:  # written out: a call less
                running[frame] = (caller[0], chain.numbers, chain, chain.label, _clock(), None)
                if functions is not _functions:
                    running.pop(frame, None)
            elif chain.label != INTERNAL and functions is not None:
                _begin(functions, frame, caller[0], chain, None)
            return chain.label != INTERNAL
    return functions is None or _enter(functions, frame, None)


def _enter(functions: _Functions, frame: FrameType, began: float | None) -> bool:
    """Note the call that runs in a frame, which begins now if not earlier, and those around it; False if calls of its code are not shown."""
    code, back = frame.f_code, frame.f_back
    caller = running.get(back)
    label, of_library = functions.meet(frame)
    if label == INTERNAL:
        if caller is not None and back is not None:
            caller[2].enter(back.f_lasti, code, INTERNAL, directly=True)  # so that it is known next time
        return False
    directly = caller is not None
    if caller is None:
        between, back = back, stack_walk.shown_caller(back)
        caller = _call_of(functions, back)
        by_internals = between is not back
    else:
        by_internals = _is_for_internals(caller[3], back)
    if of_library and by_internals:
        label = HIDDEN
    chain = caller[2].enter(-1 if back is None else back.f_lasti, code, label, directly=directly)
    _begin(functions, frame, caller[0], chain, began)
    if not directly:
        functions.followed.add(caller[0])
    return True


def _is_for_internals(label: int, frame: FrameType | None) -> bool:
    """Whether a call with this label calls for the dispatcher, a kernel or the profiler: it is hidden, and not what a thread runs."""
    return label == HIDDEN and frame is not None and frame.f_code is not stack_walk.RUN_OF_THREAD


def _begin(functions: _Functions, frame: FrameType, thread: int, chain: Chain, began: float | None) -> None:
    label, modules = chain.label, None
    if label == MODULE:
        modules = functions.modules
        label = HIDDEN if modules is None else modules.note(frame.f_locals["self"], thread)
    running[frame] = (thread, chain.numbers, chain, label, _clock() if began is None else began, modules)
    if functions is not _functions:  # another thread has just stopped recording, and maybe begun again
        running.pop(frame, None)
        if modules is not None:
            modules.leave(thread)


def follow(frame: FrameType | None) -> None:
    """Note the call of this thread that runs in a frame, and those around it."""
    functions = _functions
    if functions is not None:  # else another thread has just stopped recording
        _call_of(functions, frame)


def _call_of(functions: _Functions, frame: FrameType | None) -> Call:
    """The call of this thread that runs in a frame, which is noted if it is met only now.

    At a thread's first report, calls are as old as the recording; later, those are met that a signal's handler interrupts while they are reported.
    """
    thread = threading.get_ident()
    began = None if thread in functions.followed else began_at
    missed, outer = [], frame
    while outer is not None and outer not in running:
        missed.append(outer)
        outer = outer.f_back
    for outer in reversed(missed):
        if functions is not _functions:
            break  # another thread has just stopped recording: what is entered is taken back at once, and would be missed again by the next
        _enter(functions, outer, began)
    return running.get(frame) or (thread, {}, functions.outermost, HIDDEN, 0.0, None)


def follow_if_first(frame: FrameType) -> bool:
    """Note the calls that this thread is in, if it reports for the first time; whether it does."""
    functions = _functions
    if functions is None or threading.get_ident() in functions.followed:
        return False
    _call_of(functions, frame)
    return True


_ANOTHER_THREAD = -1  # on which calls of modules are noted to learn their labels


def note_present(thread: int, frames: list[FrameType]) -> None:
    """Note the calls that another thread is in, in case that it never reports any; its frames are given from the innermost outwards."""
    assert _functions is not None
    modules, labels = _functions.modules, list[int]()
    around, back, is_internal = HIDDEN, None, False  # label of the nearest call that is not internal; the frame around
    for frame in reversed(frames):
        label, of_library = _functions.meet(frame)
        if label != INTERNAL:
            if of_library and (is_internal or _is_for_internals(around, back)):
                label = HIDDEN
            elif label == MODULE:
                module = frame.f_locals.get("self")  # None if the thread has just left it
                label = HIDDEN if modules is None or module is None else modules.note(module, _ANOTHER_THREAD)
            around = label
            if label != HIDDEN:
                labels.append(label)
        back, is_internal = frame, label == INTERNAL
    if modules is not None:
        modules.running.pop(_ANOTHER_THREAD, None)
    _functions.present[thread] = labels


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
