"""The threads of the BLAS behind NumPy and SciPy: one, but for large products, which have as many as `set_num_threads` says.

OpenBLAS uses its threads for products of 65×65 matrices, which take 6 µs, and each then waits in a loop for the next one. While something else
wants the processor, a step of a small network took 7 to 24 ms instead of 1. The number belongs to the process, and setting it takes 0.2 µs.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

from ...._forking import new_lock
from ...._scipy import on_load
from ...._threads import get_num_threads

__all__ = ["LARGE_PRODUCT", "keep_to_one_thread", "threaded"]

# Multiplications and additions: 272×272 matrices, 0.4 ms. Threads would pay from 128×128 on, by 15 µs, on a machine that does nothing else;
# where it does, each product waits for them: 24 of 2 to 20 million took a step of examples/gpt.py from 66 to 627 ms.
LARGE_PRODUCT = 20_000_000

# Extensions that are linked with a BLAS: its functions are found by way of theirs.
_LINKED = "numpy.linalg._umath_linalg scipy.linalg._fblas scipy.linalg._flapack".split()
_SETTERS = (
    "scipy_openblas_set_num_threads64_ scipy_openblas_set_num_threads openblas_set_num_threads64_ openblas_set_num_threads".split()
)
_lock = new_lock()
_large = 0  # products that run
_found: dict[str, Callable[[int], object]] = {}  # by extension: sets the number in its BLAS


@on_load  # SciPy's is loaded when it is first needed
def keep_to_one_thread() -> None:
    """From now on, only `threaded` functions use several."""
    for name in _LINKED:
        if name not in _found and name in sys.modules:
            _found[name] = setter = _setter(sys.modules[name].__file__)
            setter(1)


def _setter(path: str | None) -> Callable[[int], object]:
    """A function that sets the number in the BLAS that an extension is linked with."""
    library = ctypes.CDLL(path)
    for name in _SETTERS:
        if hasattr(library, name):
            return getattr(library, name)  # type: ignore[no-any-return]
    from threadpoolctl import ThreadpoolController  # costly: looks at the loaded libraries

    libraries = ThreadpoolController().select(user_api="blas")
    return lambda number: libraries.limit(limits=number)


def _set(number: int) -> None:
    for setter in _found.values():
        setter(number)


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
    with _lock:
        _large += by
        if _large == max(by, 0):
            _set(threads)
