"""Calls that the interpreter makes in the main thread as soon as it can: after the callback that asks for them has ended.

Python drops an exception that leaves a callback of the garbage collector, and takes a profile function away that raises. Handlers of
signals run inside of both as they do anywhere, and what they raise is the program's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

try:
    import ctypes
except ImportError:  # a Python that was built without
    ctypes = None  # type: ignore[assignment]

__all__ = ["Raise", "errors", "request_type"]


class _Called:
    """Calls a function when it is asked for its truth. What the function raises is raised where the main thread is."""

    def __init__(self, function: Callable[[], object]) -> None:
        self.function = function

    def __bool__(self) -> bool:
        self.function()
        return False


def request_type(function: Callable[[], object]) -> type[Any]:
    """A class whose instances ask for a call of the function when they die. No Python code runs for that, and so no handler of a signal."""

    class Request:
        __slots__ = ()

    if ctypes is not None:
        Request.__del__ = functools.partial(  # type: ignore[attr-defined]
            ctypes.pythonapi.Py_AddPendingCall,
            ctypes.cast(ctypes.pythonapi.PyObject_IsTrue, ctypes.c_void_p),
            ctypes.py_object(_Called(function)),
        )
    return Request


errors: list[BaseException] = []  # to be raised


def _raise() -> None:
    if errors:
        raise errors.pop()


Raise = request_type(_raise)
