"""torch.multiprocessing: the standard module, with tensors that reach other processes through shared memory.

Everything of `multiprocessing` is here under its own name. A tensor in a queue, a pipe or the arguments of a process is moved to
shared memory first: sender and receiver see each other's writes.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403

from .reductions import init_reductions
from .spawn import ProcessContext, ProcessExitedException, ProcessRaisedException, SpawnContext, spawn, start_processes

__all__ = ["get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy"]
__all__ += multiprocessing.__all__

# torch: also "file_system", named files that a daemon removes. Here the memory is anonymous, and the system removes it.
_STRATEGIES = {"file_descriptor"}
_strategy = "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose how memory is shared: by sending file descriptors, which is the one way there is."""
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {_STRATEGIES}")
    _strategy = new_strategy


def get_sharing_strategy() -> str:
    """The name of the way in which memory is shared."""
    return _strategy


def get_all_sharing_strategies() -> set[str]:
    """The ways in which memory can be shared."""
    return _STRATEGIES


init_reductions()
