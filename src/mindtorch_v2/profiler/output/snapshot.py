"""Snapshots of memory in the form that `torch.cuda.memory._snapshot()` made known: what lives, and the trace of how it came about.

Memory of the CPU is not cached: each storage is a segment of its own, got from the system and given back to it.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from ..model.session import Frame
from ..writing.atomic_file import replacing

__all__ = ["ACTIONS", "FAILED", "FREED", "KINDS", "MADE", "OPERATOR", "TAKEN", "Block", "Record", "entry_count", "of", "save"]

MADE, FREED, FAILED, TAKEN = KINDS = range(4)  # a storage, a storage, an allocation, a snapshot

# The entries of a trace that each kind of record stands for, in torch's words.
ENTRIES = {
    MADE: ("segment_alloc", "alloc"),
    FREED: ("free_requested", "free_completed", "segment_free"),
    FAILED: ("oom",),
    TAKEN: ("snapshot",),
}
ACTIONS = tuple(action for actions in ENTRIES.values() for action in actions)

OPERATOR = "<operator>"  # the file of a frame that is an operator's
LARGE_BYTES = 1 << 20  # torch: segments of more than this are called large

Frames = tuple[Frame, ...]
Entry = dict[str, Any]


class Block(NamedTuple):
    """Memory that lives."""

    size_bytes: int
    address: int
    frames: Frames = ()  # innermost first
    time_ns: int = 0  # of its making; 0 for what was there before


class Record(NamedTuple):
    """One change of memory."""

    kind: int
    time_ns: int
    size_bytes: int
    address: int  # of the memory; for a failed allocation, the bytes that the machine has left
    frames: Frames | None  # None: not asked for


def entry_count(kind: int, skip_actions: Collection[str]) -> int:
    """Return the number of entries of a trace that a record of this kind stands for."""
    return sum(action not in skip_actions for action in ENTRIES[kind])


def of(
    blocks: Sequence[Block],
    records: Sequence[Record] = (),
    *,
    entries: int = 0,
    max_entries: int = 0,
    skip_actions: Collection[str] = (),
    with_operators: bool = True,
) -> dict[str, Any]:
    """The snapshot of blocks that live and of the last records; `entries` is how many entries all there were stand for."""
    known: dict[int, list[Entry]] = {}  # a list for each stack, so that a file holds it once

    def frames_of(frames: Frames) -> list[Entry]:
        found = known.get(id(frames))
        if found is None:
            found = known[id(frames)] = [
                {"filename": frame.file, "line": frame.line, "name": frame.function}
                for frame in frames
                if with_operators or frame.file != OPERATOR
            ]
        return found

    trace = []
    for record in records:
        frames = None if record.frames is None else frames_of(record.frames)
        trace += [_entry(action, record, frames) for action in ENTRIES[record.kind] if action not in skip_actions]
    trace = trace[max(0, len(trace) - max_entries) :]
    return {
        "segments": [_segment(block, frames_of(block.frames)) for block in sorted(blocks, key=lambda block: block.address)],
        "device_traces": [trace],
        "allocator_settings": {},
        "external_annotations": [],
        "dropped_entries": entries - len(trace),
    }


def save(snapshot: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a snapshot to a file, in full or not at all."""
    with replacing(path) as file:
        pickle.dump(snapshot, file)


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


def _entry(action: str, record: Record, frames: list[Entry] | None) -> Entry:
    entry = {
        "action": action,
        "device_free" if action == "oom" else "addr": record.address,
        "size": record.size_bytes,
        "stream": 0,
        "time_us": record.time_ns // 1000,
        "pool_id": (0, 0),
    }
    if frames is not None:
        entry["frames"] = frames
    return entry
