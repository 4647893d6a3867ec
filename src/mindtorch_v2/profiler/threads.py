"""Which threads there were: their identifiers are used again when a thread has died, so that each is kept with its start."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["Thread", "begin", "end", "on_start"]


class Thread(NamedTuple):
    since: float
    ident: int
    native_id: int
    name: str


_clock: Callable[[], float]
_known: list[Thread] = []


def begin(clock: Callable[[], float]) -> None:
    """Note the threads that run, and each that starts from now on."""
    global _clock
    _clock = clock
    _known[:] = [Thread(0.0, t.ident, t.native_id or t.ident, t.name) for t in threading.enumerate() if t.ident is not None]
    if threading.getprofile() is None:
        threading.setprofile(_first_call)


def end() -> list[Thread]:
    """The threads of the recording, in order of their starts."""
    if threading.getprofile() is _first_call:
        threading.setprofile(None)  # type: ignore[arg-type]
    return sorted(_known)


def on_start() -> None:
    """Note the thread that runs, which has just started."""
    thread = threading.current_thread()
    _known.append(Thread(_clock(), threading.get_ident(), threading.get_native_id(), thread.name))


def _first_call(frame: Any, event: str, arg: Any) -> None:
    """What a new thread's first function call sets off, and nothing after: the one moment at which Python tells of a new thread."""
    sys.setprofile(None)
    on_start()
