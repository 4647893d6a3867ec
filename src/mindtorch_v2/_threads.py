"""How many threads compute: one number for products of matrices, which BLAS runs, and for kernels that are split over a pool of threads."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ._refusals import warn_once

__all__ = ["get_num_interop_threads", "get_num_threads", "on_change", "parallel_info", "set_num_interop_threads", "set_num_threads"]

_number = 0  # not known before somebody asks
_interop = 0
_on_change: list[Callable[[], None]] = []


def get_num_threads() -> int:
    """The number of threads that a kernel may use."""
    global _number
    if not _number:
        _number = _from_environment()
    return _number


def set_num_threads(int: int, /) -> None:
    """Set the number of threads that a kernel may use."""
    global _number
    number = _checked(int, "set_num_threads")
    if number != get_num_threads():
        _number = number
        for function in _on_change:
            function()


def on_change(function: Callable[[], None]) -> Callable[[], None]:
    """Have a function called after each change of the number."""
    _on_change.append(function)
    return function


def get_num_interop_threads() -> int:
    """The number set by `set_num_interop_threads`, by default that of the machine's cores; operators run on the thread that calls them."""
    return _interop or len(_cores())


def set_num_interop_threads(int: int, /) -> None:
    """Set the number that `get_num_interop_threads` returns, once. Operators run one after the other all the same, which a warning says."""
    global _interop
    number = _checked(int, "set_num_interop_threads")
    if _interop:
        raise RuntimeError(
            "Error: cannot set number of interop threads after parallel work has started or set_num_interop_threads called"
        )
    _interop = number
    if number != 1:
        warn_once("set_num_interop_threads", "set_num_interop_threads has no effect: operators run on the thread that calls them")


def _checked(number: Any, function: str) -> int:
    if type(number) is not int and not isinstance(number, np.integer):
        raise RuntimeError(f"{function} expects an int, but got {type(number).__name__}")
    if number <= 0:
        raise RuntimeError(f"{function} expects a positive integer")
    if number >= 1 << 31:
        raise ValueError(f"{function}: {number} is more threads than can be counted")
    return int(number)


def _from_environment() -> int:
    """What the variables say, at most the cores that this process may use, which are the default.

    torch: `MKL_NUM_THREADS` wins over `OMP_NUM_THREADS` unless it is empty or 0, and means one thread if it is no number. The other may be
    a list for nested levels, and is ignored if anything in it is no positive number.
    """
    available = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    cores = sum(1 for core in _cores() if core & available) or len(available)
    products = os.environ.get("MKL_NUM_THREADS", "")
    if products:
        number = int(products) if re.fullmatch("[0-9]+", products) else 1
        if number:
            return min(number, cores)
    levels = os.environ.get("OMP_NUM_THREADS", "").split(",")
    if all(re.fullmatch(r"\s*\+?[0-9]+\s*", level) and int(level) for level in levels):
        return min(int(levels[0]), cores)
    return cores


def _cores() -> set[frozenset[int]]:
    """The machine's cores, each as the numbers of the processors that share it."""
    found = set()
    for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology/thread_siblings_list"):
        spans = [span.split("-") for span in path.read_text().strip().split(",")]
        found.add(frozenset(i for span in spans for i in range(int(span[0]), int(span[-1]) + 1)))
    return found or {frozenset((i,)) for i in range(os.cpu_count() or 1)}


def parallel_info() -> str:
    """The numbers of threads, the libraries that have threads of their own, and the variables, for people to read."""
    from threadpoolctl import threadpool_info  # costly: looks at the loaded libraries

    lines = [
        f"get_num_threads() : {get_num_threads()}",
        f"get_num_interop_threads() : {get_num_interop_threads()}",
        *(f"{x['prefix']} {x['version']}: {x['num_threads']} threads ({x['filepath']})" for x in threadpool_info()),
        *(f"{name} : {os.environ.get(name, '[not set]')}" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")),
    ]
    return "\n".join(lines) + "\n"
