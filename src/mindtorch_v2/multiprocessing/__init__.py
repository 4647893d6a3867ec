"""torch.multiprocessing: the standard module, with tensors that reach other processes through shared memory.

Everything of `multiprocessing` is here under its own name. A tensor in a queue, a pipe or the arguments of a process is moved to
shared memory first: sender and receiver see each other's writes.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403

from . import reductions
from .reductions import init_reductions
from .spawn import ProcessContext, ProcessExitedException, ProcessRaisedException, SpawnContext, spawn, start_processes

__all__ = ["get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy"]
__all__ += multiprocessing.__all__


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose how memory is shared: by descriptors, which a receiver keeps and sends on, or as "file_system".

    With the latter a tensor that is received takes no descriptor, so that a process may keep more of them than it may have descriptors. In torch such memory is
    a named file; here it has no name, and a tensor that is sent on from there is copied.
    """
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {sorted(get_all_sharing_strategies())}")
    reductions.keeps_descriptors = new_strategy == "file_descriptor"


def get_sharing_strategy() -> str:
    """The name of the way in which memory is shared."""
    return "file_descriptor" if reductions.keeps_descriptors else "file_system"


def get_all_sharing_strategies() -> set[str]:
    """The ways in which memory can be shared."""
    return {"file_descriptor", "file_system"}


init_reductions()
