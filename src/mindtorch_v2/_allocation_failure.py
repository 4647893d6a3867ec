"""The error that is raised when memory runs out, and the callbacks that are told of it."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable

__all__ = ["allocation_error", "observe"]

Observer = Callable[[int, Exception], None]

_observer: Observer | None = None


def observe(observer: Observer | None) -> None:
    """Tell this function of every failed allocation, before it is raised: the bytes that were asked for, and the error."""
    global _observer
    _observer = observer


def allocation_error(error: MemoryError) -> Exception:
    """torch's error for NumPy's; the same one if NumPy did not raise it."""
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
