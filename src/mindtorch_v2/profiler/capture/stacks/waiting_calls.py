"""Calls of functions that wait: for time to pass, a lock, another process, a file or a socket.

They are written in C and so no Python functions, but a profile that leaves them out shows their time as that of the function around them.
Of all functions written in C, these alone are events.
"""

from __future__ import annotations

import _io
import _queue
import _socket
import _thread
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from types import BuiltinFunctionType, MethodDescriptorType

from ...model import waiting
from ...model.session import Label
from ..labels import label_number

__all__ = ["FUNCTIONS", "OWNERS", "Waits", "name_of"]

SHORTEST_S = 20e-6  # a shorter call found what it might have waited for

_TYPES = (
    *(_thread.LockType, _thread.RLock, _queue.SimpleQueue, _socket.socket, socket.socket),
    *(_io.FileIO, _io.BufferedReader, _io.TextIOWrapper),
    *([_thread._ThreadHandle] if hasattr(_thread, "_ThreadHandle") else []),  # from Python 3.13 on
    *(found for name in ("epoll", "poll", "kqueue") if isinstance(found := getattr(select, name, None), type)),
)
_OF_TYPES: dict[type, tuple[str, ...]] = {owner: waiting.METHODS[owner.__name__] for owner in _TYPES}

FUNCTIONS = frozenset(
    getattr(module, name) for module in (time, select, os) for name in waiting.FUNCTIONS[module.__name__] if hasattr(module, name)
)
OWNERS = frozenset(_OF_TYPES)  # types with methods that wait


def name_of(function: BuiltinFunctionType) -> str | None:
    """The name of the events of a function that waits; None for all others."""
    if isinstance(function, MethodDescriptorType):
        owner = function.__objclass__
    elif not isinstance(function, BuiltinFunctionType):
        return None
    elif function in FUNCTIONS:
        return f"{waiting.BUILT_IN}function {function.__name__}>"
    else:
        owner = type(function.__self__)
    if function.__name__ not in _OF_TYPES.get(owner, ()):
        return None
    return f"{waiting.BUILT_IN}method {function.__name__} of {owner.__module__}.{owner.__qualname__} object>"


class Waits(dict[int, tuple[str, float]]):
    """The calls that wait now: name and start, by thread."""

    def begin(self, name: str, now: float) -> None:
        self[threading.get_ident()] = (name, now)

    def end(self, now: float, write: Callable[[int, float, float, int], None]) -> None:
        """Write the event of the call that ends on this thread, if there is one."""
        self._end(threading.get_ident(), now, write)

    def end_all(self, now: float, write: Callable[[int, float, float, int], None]) -> None:
        """Write events of all calls up to this moment."""
        for thread in list(self):
            self._end(thread, now, write)

    def _end(self, thread: int, now: float, write: Callable[[int, float, float, int], None]) -> None:
        call = self.pop(thread, None)
        if call is not None and now - call[1] >= SHORTEST_S:
            write(label_number(Label(call[0], "python_function")), call[1], now, thread)
