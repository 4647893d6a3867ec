"""Exceptions of signals' handlers that come inside of the recorder's callbacks, where Python would drop them: raised a moment later.

A handler may run in the middle of any Python function, callbacks included. Python prints and drops what a callback of the garbage collector
raises, a finaliser, a callback of a weak reference, and the tracer of functions while a generator is freed; and it does not make the call that it
just told the tracer of, the end of a `with lock:` for one. So these callbacks keep the exception:

    except BaseException as error:
        request = kept(error)
        request = None          # the request is made here, and no Python code runs between that and the end

Handlers run in the main thread, and what is raised there later is what they raised.
"""

from __future__ import annotations

import dis
import functools
import threading
from collections.abc import Callable
from types import CodeType
from typing import Any

try:
    import ctypes
except ImportError:  # a Python that was built without
    ctypes = None  # type: ignore[assignment]

__all__ = ["IS_POSSIBLE", "begin_without_handlers", "can_wait", "guarded", "kept", "request_type"]

IS_POSSIBLE = ctypes is not None
guarded: set[CodeType] = set()  # of the callbacks from which no exception gets out
_waiting: list[BaseException] = []  # to be raised


class _Called:
    """Calls a function when it is asked for its truth. What the function raises is raised where the main thread is."""

    def __init__(self, function: Callable[[], object]) -> None:
        self.function = function

    def __bool__(self) -> bool:
        self.function()
        return False


def request_type(function: Callable[[], object]) -> type[Any]:
    """A class whose instances have the interpreter call the function in the main thread, as soon as it can after they died.

    No Python code runs for that, and so no handler of a signal.
    """
    attributes: dict[str, Any] = {"__slots__": ()}
    if ctypes is not None:
        is_true = ctypes.cast(ctypes.pythonapi.PyObject_IsTrue, ctypes.c_void_p)
        called = ctypes.py_object(_Called(function))
        attributes["__del__"] = staticmethod(functools.partial(ctypes.pythonapi.Py_AddPendingCall, is_true, called))
    return type("Request", (), attributes)


def _raise_next() -> None:
    if _waiting:
        raise _waiting.pop()


_RaiseSoon = request_type(_raise_next)


def can_wait(error: BaseException) -> bool:
    """Whether an exception can be raised later: it may be a handler's, and there are the means."""
    return IS_POSSIBLE and threading.get_ident() == threading.main_thread().ident and not isinstance(error, RecursionError)


def kept(error: BaseException) -> Any:
    """Keep an exception, and return an object at whose end Python is asked to raise it. One that cannot wait is raised."""
    if not can_wait(error):
        raise error
    _waiting.append(error)
    return _RaiseSoon()


def begin_without_handlers(function: Callable[..., Any]) -> None:
    """Have Python run no signal's handler where a function begins, which is before any `try` of it.

    RESUME is where CPython does; with the argument of an `await` that goes on (3), it leaves that to the instructions that follow.
    """
    code = function.__code__
    changed = bytearray(code.co_code)
    for instruction in dis.get_instructions(code):
        if instruction.opname == "RESUME":
            changed[instruction.offset + 1] = 3
    function.__code__ = code.replace(co_code=bytes(changed))
    guarded.add(function.__code__)
