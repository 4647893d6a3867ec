"""Memory over time: each storage from its making to its end, with its category at each point, and the sums by category."""

from __future__ import annotations

import enum
import functools
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from ..writing.atomic_file import replacing
from ..writing.garbage import paused_collection
from .data_flow import Column, DataFlowGraph, graph_of
from .memory_categories import Categories, Category, categories_of
from .session import Session

__all__ = ["CATEGORIES", "Action", "Change", "MemoryTimeline", "raw_events", "sums_by_category", "timeline_of", "write_json"]

# In torch's order: the index of a category in files.
CATEGORIES: tuple[Category | None, ...] = (
    Category.PARAMETER,
    Category.OPTIMIZER_STATE,
    Category.INPUT,
    Category.TEMPORARY,
    Category.ACTIVATION,
    Category.GRADIENT,
    Category.AUTOGRAD_DETAIL,
    None,
)
BEFORE = -1  # the time of what was there before


class Action(enum.Enum):
    """One thing that happened to a storage."""

    PREEXISTING = enum.auto()
    CREATE = enum.auto()
    INCREMENT_VERSION = enum.auto()
    DESTROY = enum.auto()


class Change(NamedTuple):
    """Something that happened to a storage. `version` is the one before it for an increment."""

    time_ns: int  # -1 for what was there before
    action: Action
    storage: int
    version: int
    size_bytes: int


def _ordered(change: Change) -> tuple[int, int, Change]:
    return change.time_ns, change.action.value, change


@dataclass(frozen=True)
class MemoryTimeline:
    """What happened to the storages of a recording, all or those of a device, and the categories of these."""

    session: Session
    graph: DataFlowGraph
    categories: Categories
    device: str | None = None  # None for all

    def of_device(self, device: str) -> MemoryTimeline:
        """The changes of memory on a device, `cpu` or `npu:0`."""
        return replace(self, device=device)

    def numbers(self) -> Column:
        """The storages that this is about."""
        storages = self.graph.storages
        return np.arange(len(storages)) if self.device is None else storages.on(self.device)

    @functools.cached_property
    def changes(self) -> list[Change]:
        """The changes in order of time."""
        found: list[tuple[int, int, Change]] = []
        for number in self.numbers().tolist():
            storage = self.graph.storages[number]
            size, made = storage.size_bytes, storage.made_ns
            first = Action.PREEXISTING if made is None else Action.CREATE
            found.append(_ordered(Change(BEFORE if made is None else made, first, number, 0, size)))
            found += [_ordered(Change(at, Action.INCREMENT_VERSION, number, i, size)) for i, at in enumerate(storage.writes)]
            if storage.freed_ns is not None:
                found.append(_ordered(Change(storage.freed_ns, Action.DESTROY, number, len(storage.writes), size)))
        found.sort(key=itemgetter(0, 1))
        return [change for _, _, change in found]

    def category(self, storage: int, version: int) -> Category | None:
        return self.categories.get((storage, version))

    def transfers(self) -> Iterator[tuple[Change, int, Category | None]]:
        """Each change as bytes that come (positive) or go, and their category. An in-place write may move bytes between two."""
        for change in self.changes:
            category = self.category(change.storage, change.version)
            match change.action:
                case Action.PREEXISTING | Action.CREATE:
                    yield change, change.size_bytes, category
                case Action.DESTROY:
                    yield change, -change.size_bytes, category
                case Action.INCREMENT_VERSION:
                    yield change, -change.size_bytes, category
                    yield change, change.size_bytes, self.category(change.storage, change.version + 1)


def timeline_of(session: Session) -> MemoryTimeline:
    """The timeline of a recording with shapes, memory and stacks."""
    if session.flow is None or session.memory is None:
        raise ValueError(
            "record_shapes=True, profile_memory=True, with_stack=True required for memory profiling: a timeline is of tensors' storage, "
            "not of Python's heap"
        )
    with paused_collection():
        graph = graph_of(session)
        return MemoryTimeline(session, graph, categories_of(graph))


def sums_by_category(timeline: MemoryTimeline) -> tuple[list[int], list[list[int]]]:
    """Times in microseconds, and for each the bytes then live: a zero, for sums to begin with, and one number a category."""
    times: list[int] = []
    sizes: list[list[int]] = []
    index = {category: i for i, category in enumerate(CATEGORIES, start=1)}
    for change, size, category in timeline.transfers():
        time_us = change.time_ns // 1000 if change.time_ns != BEFORE else BEFORE
        if not times or time_us != times[-1]:
            times.append(time_us)
            sizes.append(sizes[-1].copy() if sizes else [0] * (1 + len(CATEGORIES)))
        sizes[-1][index[category]] += size
    if times and times[0] == BEFORE:
        times[0] = times[1] if len(times) > 1 else timeline.session.info.started_ns // 1000
    return times, sizes


def raw_events(timeline: MemoryTimeline) -> list[tuple[int, int, int, int]]:
    """Time in nanoseconds, action, bytes that come or go, and the category's index; two for an in-place write."""
    index = {category: i for i, category in enumerate(CATEGORIES)}
    return [(change.time_ns, change.action.value, size, index[category]) for change, size, category in timeline.transfers()]


def write_json(value: object, path: str | os.PathLike[str]) -> None:
    """Write a value as JSON, gzipped if the path ends with `.gz`."""
    with replacing(path, gzip_level=6 if os.fspath(path).endswith(".gz") else None) as file:
        file.write(json.dumps(value).encode())
