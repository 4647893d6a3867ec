"""torch.cpu.memory: the history of the memory behind tensors, with the names and the snapshots of `torch.cuda.memory`.

    torch.cpu.memory._record_memory_history(max_entries=100_000)
    train()
    torch.cpu.memory._dump_snapshot("snapshot.pickle")      # for torch's `_memory_viz.py` and its page
    torch.cpu.memory._record_memory_history(enabled=None)

While no history is recorded, nothing of this costs anything.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Sequence
from typing import Any, Literal

from .. import _allocation_failure
from ..profiler.capture.memory.free_memory import free_bytes
from ..profiler.capture.memory.history import History, Settings, live_blocks
from ..profiler.model.leaks import Leaks
from ..profiler.output import snapshot

__all__ = ["_dump_snapshot", "_record_memory_history", "_snapshot", "leaks"]

_history: History | None = None


def _record_memory_history(
    enabled: Literal["state", "all"] | None = "all",
    context: Literal["state", "alloc", "all"] | None = "all",
    stacks: Literal["python", "all"] = "all",
    max_entries: int = sys.maxsize,
    clear_history: bool = False,
    skip_actions: Sequence[str] | None = None,
    *,
    oom_snapshot: str | os.PathLike[str] | None = "oom_snapshot.pickle",
) -> None:
    """Record storages that are made and freed, with Python stacks, until `enabled=None`, which forgets them.

    enabled       "all": what lives and a trace of all that happens; "state": what lives
    context       stacks of what lives ("state"), of each allocation too ("alloc"), of each free too ("all"), or None
    stacks        "python": frames of the program; "all": of operators too
    max_entries   the trace keeps so many entries, the latest; a snapshot tells how many there were before (`dropped_entries`)
    clear_history forget the trace of before
    skip_actions  leave these out of the trace
    oom_snapshot  where a snapshot is written when an allocation fails; None: nowhere
    """
    global _history
    _check("enabled", enabled, ("all", "state", None))
    _check("context", context, ("all", "alloc", "state", None))
    _check("stacks", stacks, ("all", "python"))
    for action in skip_actions or ():
        _check("skip_actions", action, snapshot.ACTIONS)
    if not isinstance(max_entries, int) or not 0 <= max_entries <= sys.maxsize:
        raise ValueError(f"max_entries must be an int from 0 to sys.maxsize, got {max_entries!r}")
    if enabled is None:
        _stop()
        return
    settings = Settings(
        enabled=enabled,
        context=context,
        stacks=stacks,
        max_entries=max_entries,
        skip_actions=frozenset(skip_actions or ()),
        oom_snapshot=None if oom_snapshot is None else os.path.abspath(oom_snapshot),  # the program may change its directory
    )
    if _history is None:
        _history = History(settings)
        _history.start()
    else:
        _history.change(settings)
        if clear_history:
            _history.clear()
    _allocation_failure.observe(_on_failure)


def _snapshot() -> dict[str, Any]:
    """Return the live storages, and the trace if one is recorded, as `torch.cuda.memory._snapshot()` gives them."""
    return snapshot.of(live_blocks()) if _history is None else _history.snapshot()


def _dump_snapshot(filename: str | os.PathLike[str] = "dump_snapshot.pickle") -> None:
    """Write a snapshot to a file that torch's tools for memory read."""
    snapshot.save(_snapshot(), filename)


def leaks(group_by_stack_n: int | None = None, *, collect: bool = False) -> Leaks:
    """Storages that were made since recording began and are alive now, by operator and stack.

    `group_by_stack_n` takes so many frames into account, the innermost (None: all). `collect` runs the garbage collector before.
    """
    if _history is None:
        raise RuntimeError("no history of memory is recorded; call torch.cpu.memory._record_memory_history() before what may leak")
    if collect:
        gc.collect()
    return Leaks.grouped(_history.survivors(group_by_stack_n))


def _check(name: str, value: Any, known: Sequence[str | None]) -> None:
    if isinstance(value, bool) or value not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}")


def _stop() -> None:
    global _history
    _allocation_failure.observe(None)
    if _history is not None:
        _history.stop()
        _history = None


def _on_failure(size_bytes: int, error: Exception) -> None:
    """Note a failed allocation and write the snapshot; the error that is on its way says where."""
    history = _history
    if history is None:
        return
    try:
        history.note(snapshot.FAILED, size_bytes, free_bytes(), sys._getframe(1))
        path = history.settings.oom_snapshot
        if path is not None:
            snapshot.save(history.snapshot(), path)
            error.add_note(f"A snapshot of the memory was written to {path}")
    except Exception as failure:  # whatever it is, a full disk or no memory left: what the program must see is its own error
        error.add_note(f"No snapshot of the memory could be written: {type(failure).__name__}: {failure}")


# A forked process begins without the history of its parent, which goes on there. What storages die of when the interpreter goes
# down is no history.
os.register_at_fork(after_in_child=_stop)
atexit.register(_stop)
