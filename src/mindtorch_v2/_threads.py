"""How many threads compute: those of the BLAS libraries behind NumPy and SciPy, which run products of matrices.

NumPy's other loops run on the calling thread. `threadpoolctl` finds the libraries that are loaded and sets the number in each.
"""

from __future__ import annotations

from typing import Any

from ._refusals import warn_once
from ._scipy import on_load

__all__ = ["get_num_interop_threads", "get_num_threads", "parallel_info", "set_num_interop_threads", "set_num_threads"]

_given: int | None = None


def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController  # costly: looks at the loaded libraries

    return ThreadpoolController().select(user_api="blas")


def get_num_threads() -> int:
    """The number of threads that a product of matrices may use."""
    return max((library["num_threads"] for library in _libraries().info()), default=1)


def set_num_threads(int: int, /) -> None:
    """Set the number of threads that a product of matrices may use, in NumPy's and SciPy's BLAS."""
    global _given
    _given = _checked(int, "set_num_threads")
    _limit()


@on_load  # SciPy's BLAS is loaded when it is first needed
def _limit() -> None:
    if _given is not None:
        _libraries().limit(limits=_given)


def get_num_interop_threads() -> int:
    """1: operators run one after the other, on the thread that calls them."""
    return 1


def set_num_interop_threads(int: int, /) -> None:
    """Accept a number; operators run one after the other all the same, which a warning says once."""
    if _checked(int, "set_num_interop_threads") != 1:
        warn_once("set_num_interop_threads", "set_num_interop_threads has no effect: operators run one after the other")


def _checked(number: Any, function: str) -> int:
    if type(number) is not int:
        raise RuntimeError(f"{function} expects an int, but got {type(number).__name__}")
    if number <= 0:
        raise RuntimeError(f"{function} expects a positive integer")
    if number >= 1 << 31:
        raise ValueError(f"{function}: {number} is more threads than can be counted")
    return number


def parallel_info() -> str:
    """The libraries whose threads compute, for people to read."""
    lines = [f"{x['prefix']} {x['version']}: {x['num_threads']} threads ({x['filepath']})" for x in _libraries().info()]
    return "\n".join([f"get_num_threads() : {get_num_threads()}", "get_num_interop_threads() : 1", *lines]) + "\n"
