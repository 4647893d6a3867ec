"""Snapshots of memory in the form that `torch.cuda.memory._snapshot()` made known: what lives, and the trace of how it came about.

Memory of the CPU is not cached: each storage is a segment of its own, got from the system and given back to it.
"""

from __future__ import annotations

import functools
import os
import pickle
from collections.abc import Iterable
from typing import Any

from . import operator_frames
from .atomic_file import replacing
from .history import FAILED, FREED, MADE, TAKEN, Block, History, Record, Stack, live_blocks

__all__ = ["ACTIONS", "entry_count", "of", "save"]

# The entries of a trace that each kind of record stands for, in torch's words.
ENTRIES = {
    MADE: ("segment_alloc", "alloc"),
    FREED: ("free_requested", "free_completed", "segment_free"),
    FAILED: ("oom",),
    TAKEN: ("snapshot",),
}
ACTIONS = tuple(action for actions in ENTRIES.values() for action in actions)

LARGE_BYTES = 1 << 20  # torch: segments of more than this are called large

Entry = dict[str, Any]


def entry_count(kind: int, skipped: Iterable[str]) -> int:
    """How many entries of a trace a record of this kind stands for."""
    return sum(action not in skipped for action in ENTRIES[kind])


def of(history: History | None) -> dict[str, Any]:
    """The snapshot of now; without a history, what lives."""
    if history is None:
        return _snapshot([_segment(block, []) for block in live_blocks()], [], 0)
    blocks = history.live()
    history.note(TAKEN, sum(block.size_bytes for block in blocks))
    records, total = history.trace()
    frames = functools.cache(functools.partial(_frames, with_operators=history.settings.stacks == "all"))
    skipped = history.settings.skip_actions
    trace = [_entry(action, record, frames) for record in records for action in ENTRIES[record[0]] if action not in skipped]
    trace = trace[-history.settings.max_entries :] if history.settings.max_entries else []
    return _snapshot([_segment(block, frames(block.stack)) for block in blocks], trace, total - len(trace))


def save(snapshot: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a snapshot to a file, in full or not at all."""
    with replacing(path) as file:
        pickle.dump(snapshot, file)


def _snapshot(segments: list[Entry], trace: list[Entry], dropped: int) -> dict[str, Any]:
    return {
        "segments": sorted(segments, key=lambda segment: segment["address"]),
        "device_traces": [trace],
        "allocator_settings": {},
        "external_annotations": [],
        "dropped_entries": dropped,
    }


def _segment(block: Block, frames: list[Entry]) -> Entry:
    size = block.size_bytes
    return {
        "device": 0,
        "address": block.address,
        "total_size": size,
        "allocated_size": size,
        "active_size": size,
        "requested_size": size,
        "stream": 0,
        "segment_type": "large" if size > LARGE_BYTES else "small",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": frames,
        "blocks": [
            {
                "address": block.address,
                "size": size,
                "requested_size": size,
                "state": "active_allocated",
                "frames": frames,
            }
        ],
    }


def _entry(action: str, record: Record, frames: Any) -> Entry:
    _, time_ns, size, address, stack = record
    entry = {
        "action": action,
        "device_free" if action == "oom" else "addr": address,
        "size": size,
        "stream": 0,
        "time_us": time_ns // 1000,
        "pool_id": (0, 0),
    }
    if stack is not None:
        entry["frames"] = frames(stack)
    return entry


def _frames(stack: Stack | None, *, with_operators: bool) -> list[Entry]:
    found = [] if stack is None else operator_frames.resolve(stack, with_operators=with_operators)
    return [{"filename": frame.file, "line": frame.line, "name": frame.function} for frame in found]
