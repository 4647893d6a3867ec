"""The threads of a recording. Their identifiers are used again when a thread has died, so each is kept with its start."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

from .operators import recorder
from .source import Findings, Source

__all__ = ["Thread", "Threads", "known", "profiled_by_another", "trace_new"]

Trace = Callable[..., Any]  # what `sys.setprofile` takes


class Thread(NamedTuple):
    since: float
    ident: int
    native_id: int
    name: str


_known: list[tuple[Thread, weakref.ref[threading.Thread]]] = []
_before: Trace | None = None  # of another profiler, which new threads go on to call
_trace: Trace | None = None  # ours
on_new: Callable[[], None] | None = None  # called by each thread that starts


class Threads(Source):
    """Notes the threads that run, and each that starts."""

    def begin(self) -> None:
        global _before
        _known.clear()
        if threading.getprofile() is not _first_call:
            _before = threading.getprofile()
        threading.setprofile(_first_call)
        # after that, so that a thread which starts meanwhile is seen twice rather than never
        for thread in threading.enumerate():
            if thread.ident is not None:
                _note(0.0, thread)

    def end(self) -> None:
        global _before
        if threading.getprofile() is _first_call:
            threading.setprofile(_before)
        _before = None

    def take(self, findings: Findings) -> None:
        """In order of their starts, by the names that they have now."""
        findings.threads = sorted(known())
        _known.clear()

    def discard(self) -> None:
        self.end()
        _known.clear()


def known() -> list[Thread]:
    """The threads of the recording so far, by the names that they have now."""
    alive = [(thread, of()) for thread, of in list(_known)]
    return [thread if now is None else thread._replace(name=now.name) for thread, now in alive]


def trace_new(trace: Trace | None) -> None:
    """Have the calls of threads that start from now on traced by this function, unless another profiler traces them."""
    global _trace
    _trace = trace


def profiled_by_another() -> bool:
    """Whether new threads are traced by another profiler, which was there before."""
    return _before is not None


def _note(since: float, thread: threading.Thread) -> None:
    ident = thread.ident or 0
    # the running thread is asked itself, because a forked process keeps its parent's number in the object
    native_id = threading.get_native_id() if ident == threading.get_ident() else thread.native_id or ident
    # a thread is the user's, and may hold tensors: it is not kept alive
    _known.append((Thread(since, ident, native_id, thread.name), weakref.ref(thread)))


def _first_call(frame: FrameType, event: str, arg: object) -> None:
    """The callback of a new thread's first function call, and of no later one: the only moment at which Python tells of a new thread."""
    following = _before or _trace
    sys.setprofile(following)
    _note(recorder.clock(), threading.current_thread())
    if on_new is not None:
        on_new()
    if following is not None:
        following(frame, event, arg)
