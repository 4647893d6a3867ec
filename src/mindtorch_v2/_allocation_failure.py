"""The error that is raised when memory runs out, and the callbacks that are told of it."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable

__all__ = ["allocation_error", "give_back", "observe", "reserve"]

Observer = Callable[[int, Exception], None]

_observer: Observer | None = None


def observe(observer: Observer | None) -> None:
    """Tell this function of every failed allocation, before it is raised: the bytes that were asked for, and the error."""
    global _observer
    _observer = observer


# What is given back when an allocation fails. Without a few bytes for it, CPython passes an exception on to no one, and tries again for ever:
# it makes a number for the place in the function that raised.
reserve: list[object] = []
give_back = reserve.clear  # a function in C, which takes no memory


def allocation_error(error: MemoryError) -> Exception:
    """torch's error for NumPy's; the same one if NumPy did not raise it."""
    give_back()
    match error.args:
        case (tuple() as shape, dtype):
            size_bytes = math.prod(shape) * dtype.itemsize
        case _:
            return error
    failure = RuntimeError(
        f"DefaultCPUAllocator: can't allocate memory: you tried to allocate {size_bytes} bytes. "
        f"Error code {errno.ENOMEM} ({os.strerror(errno.ENOMEM)})"
    )
    failure.__cause__ = error
    if _observer is not None:
        _observer(size_bytes, failure)
    return failure
