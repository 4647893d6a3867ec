"""The threads of NumPy's BLAS: one, but for large products, which have as many as `set_num_threads` says.

OpenBLAS uses its threads for products of 65×65 matrices, which take 6 µs, and each then waits in a loop for the next one. While something else
wants the processor, a step of a small network took 7 to 24 ms instead of 1. The number belongs to the process, and setting it takes 0.2 µs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from ...._forking import new_lock
from ...._scipy import on_load
from ...._threads import get_num_threads, on_change

__all__ = ["keep_to_one_thread", "threaded"]

LARGE_PRODUCT = 2_000_000  # multiplications and additions; 126×126 matrices, 40 µs

_SETTERS = "scipy_openblas_set_num_threads64_ scipy_openblas_set_num_threads openblas_set_num_threads64_ openblas_set_num_threads"
_lock = new_lock()
_large = 0  # products that run
_told = False  # whether the program has set the number
_set: Callable[[int], object] | None = None


def _limit(**selected: Any) -> Callable[[int], object]:
    """A function that sets the number in libraries that `threadpoolctl` finds."""
    from threadpoolctl import ThreadpoolController  # costly: looks at the loaded libraries

    libraries = ThreadpoolController().select(user_api="blas", **selected)
    return lambda number: libraries.limit(limits=number)


def _setter() -> Callable[[int], object]:
    """A function that sets the number in NumPy's BLAS."""
    library = ctypes.CDLL(np.linalg._umath_linalg.__file__)  # where the functions of what it is linked with are found, too
    for name in _SETTERS.split():
        if hasattr(library, name):
            return getattr(library, name)  # type: ignore[no-any-return]
    return _limit()


def keep_to_one_thread() -> None:
    """From now on, only `threaded` functions use several."""
    global _set
    if _set is None:
        _set = _setter()
        _set(1)


def threaded(function: Callable[..., Any], products: Callable[..., int]) -> Callable[..., Any]:
    """A function whose BLAS has several threads if `products` of its arguments comes to so many that it pays."""

    def call(*arguments: Any) -> Any:
        threads = get_num_threads()
        if threads == 1 or products(*arguments) < LARGE_PRODUCT:
            return function(*arguments)
        _change(1, threads)
        try:
            return function(*arguments)
        finally:
            _change(-1, 1)

    return call


def _change(by: int, threads: int) -> None:
    """The number is set by the first of several callers, and back by the last."""
    global _large
    assert _set is not None
    with _lock:
        _large += by
        if _large == max(by, 0):
            _set(threads)


@on_change
def _limit_others() -> None:
    """Tell SciPy's BLAS, if it is loaded, which runs factorisations."""
    global _told
    _told = True
    _limit()(get_num_threads())
    if _set is not None:
        _set(1)


@on_load
def _limit_loaded() -> None:
    """Tell SciPy's BLAS what was set before it was loaded."""
    if _told:
        _limit_others()
