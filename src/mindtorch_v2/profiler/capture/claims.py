"""The claim of the profiler that runs in this process: one at a time, recording or waiting for its steps.

A claim does not keep its profiler alive. One that was started and is out of reach (its notebook cell failed, an interrupt came in the middle of
`start`) ends when it is freed, or when another starts and only the traceback of an error still holds it. While the handler of a profiler runs, that profiler records nothing, and the handler may start another.
"""

from __future__ import annotations

import _thread
import gc
import inspect
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from ..._forking import new_lock
from . import capture

__all__ = ["begin_handler", "claim", "end_handler", "is_claimed_by", "release", "set_background"]


class _Claim:
    """A profiler that runs, and where the program started it. `handler` is the thread that runs its handler."""

    __slots__ = ("handler", "place", "profiler")

    def __init__(self, profiler: object, place: str) -> None:
        self.profiler = weakref.ref(profiler, _on_freed)
        self.place = place
        self.handler: int | None = None


_claims: list[_Claim] = []  # the last runs; each other one waits for its handler, which started the next
_lock = new_lock()
# A recording of a whole program, made from outside of it: what to call when the program starts a profiler, and when that has ended.
_background: tuple[Callable[[str], None], Callable[[], None]] | None = None


def set_background(make_way: Callable[[str], None] | None, go_on: Callable[[], None] | None) -> None:
    """Have the background's recording end with `make_way(place)` before a profiler starts, and begin again with `go_on()` after it."""
    global _background
    _background = None if make_way is None or go_on is None else (make_way, go_on)


def claim(profiler: object) -> None:
    """Make this the profiler of the process."""
    with _lock:
        _end_freed()
        _make_way_and_claim(profiler)


def _make_way_and_claim(profiler: object) -> None:
    makes_way = None if _claims else _background
    if makes_way is not None:
        makes_way[0](capture.caller())
    try:
        _claim(profiler)
    except BaseException:
        if makes_way is not None and not _claims:
            makes_way[1]()
        raise


def _claim(profiler: object) -> None:
    busy = _running()
    if busy:
        gc.collect()  # it may be out of reach, in a cycle with the error that ended its function
        _end_freed()
        if _claims and _is_left_behind(_claims[-1]):
            left = _claims[-1]
            _end(left)
            _warn_lost(f"the profiler started at {left.place} was not stopped by its function, which has ended")
        busy = _running()
    if busy:
        raise RuntimeError(f"a profiler is already running (started at {busy[0]}); stop it before you start another")
    if not capture.is_clean():
        capture.abandon()
    _claims.append(_Claim(profiler, capture.caller()))


def _running() -> list[str]:
    """Where the profilers were started that keep this thread from starting another."""
    waiting = [c.place for c in _claims[-1:] if c.handler != threading.get_ident()]
    return waiting if capture.active is None else [*waiting, capture.active.started_at]


def is_claimed_by(profiler: object) -> bool:
    """Whether this profiler runs in this process."""
    return _claim_of(profiler) is not None


def release(profiler: object) -> None:
    """End the claim, and whatever an exception kept from being stopped. Without a claim, nothing happens."""
    with _lock:
        ended = _claim_of(profiler)
        if ended is not None:
            _end(ended)


def begin_handler(profiler: object) -> None:
    """Let this thread start other profilers: the handler of this one is about to run."""
    running = _claim_of(profiler)
    if running is not None:
        running.handler = threading.get_ident()


def end_handler(profiler: object) -> None:
    """End what `begin_handler` began."""
    running = _claim_of(profiler)
    if running is not None:
        running.handler = None


def _claim_of(profiler: object) -> _Claim | None:
    return next((c for c in _claims if c.profiler() is profiler), None)


def _end(ended: _Claim) -> None:
    # the claim goes last: after an interrupt it is still there to be ended
    if ended is _claims[-1] and not capture.is_clean():
        capture.abandon()
    if ended in _claims:
        _claims.remove(ended)
    if not _claims and _background is not None:
        _background[1]()


def _on_freed(_: weakref.ref[Any]) -> None:
    """End a profiler that was freed while it ran. The collector may free it in the middle of our own work; then another thread ends it."""
    if not _in_the_middle_of_work(sys._getframe().f_back):
        _end_freed()
        return
    try:
        _thread.start_new_thread(_end_freed, ())
    except RuntimeError:
        pass  # the interpreter ends, and the recording with it


def _end_freed() -> None:
    with _lock:
        for lost in [c for c in _claims if c.profiler() is None]:
            _end(lost)
            _warn_lost(f"the profiler started at {lost.place} was freed without being stopped")


def _warn_lost(fact: str) -> None:
    warnings.warn(f"{fact}; what it recorded is lost", ResourceWarning, stacklevel=3)


def _is_left_behind(claim: _Claim) -> bool:
    """Whether nothing holds a profiler but functions that have ended: an error that was kept, as notebooks do, keeps their variables."""
    # first of all: what running functions hold is seen when their frames are objects
    running = {id(frame) for top in sys._current_frames().values() for frame in _and_callers(top)}
    profiler, here = claim.profiler(), id(sys._getframe())
    holders = [] if profiler is None else [h for h in gc.get_referrers(profiler) if id(h) != here]
    return bool(holders) and all(
        isinstance(h, FrameType) and id(h) not in running and not h.f_code.co_flags & _GOES_ON for h in holders
    )


def _and_callers(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


_GOES_ON = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR  # functions that wait may run again
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_DISPATCH = os.path.abspath(os.path.join(_HERE, *[os.pardir] * 2, "_dispatch")) + os.sep


def _in_the_middle_of_work(frame: FrameType | None) -> bool:
    """Whether a function that changes tables or the state of a recording runs on this thread."""
    return any(each.f_code.co_filename.startswith((_HERE, _DISPATCH)) for each in _and_callers(frame))


def _forget_in_child() -> None:
    """A forked process starts without the profilers of its parent, which go on there."""
    global _background
    _claims.clear()
    _background = None


os.register_at_fork(after_in_child=_forget_in_child)
