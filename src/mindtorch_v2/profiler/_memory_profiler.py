"""Memory timelines by torch's names, for programs that read them below `export_memory_timeline`."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, field

from .._device import device as torch_device
from .model import memory_timeline
from .model.memory_categories import Category
from .model.memory_timeline import CATEGORIES, Action, MemoryTimeline
from .model.session import Session
from .output import memory_page

__all__ = ["Action", "Category", "Key", "MemoryProfile", "MemoryProfileTimeline", "TensorKey"]

_COLORS = ("darkgreen", "goldenrod", "black", "mediumpurple", "red", "mediumblue", "royalblue", "grey")
_CATEGORY_TO_COLORS = dict(zip(CATEGORIES, _COLORS, strict=True))
_CATEGORY_TO_INDEX = {category: i for i, category in enumerate(CATEGORIES)}
_ACTION_TO_INDEX = {action: action.value for action in Action}


@dataclass(frozen=True)
class Key:
    """Memory on a device."""

    device: torch_device


@dataclass(frozen=True)
class _Storage:
    """An address, and a number that no other storage of the recording has."""

    ptr: int = field(compare=False)
    allocation_id: int

    def __repr__(self) -> str:
        return f"{self.ptr:#x} ({self.allocation_id})"


@dataclass(frozen=True)
class TensorKey(Key):
    """A storage that tensors are in, from its making to its end."""

    id: int
    storage: _Storage

    def __lt__(self, other: TensorKey) -> bool:
        return (self.id, str(self.device)) < (other.id, str(other.device))

    def __repr__(self) -> str:
        return f"id={self.id}: {self.storage!r} ({self.device})"


class CategoryDict:
    """The category of each version of a storage."""

    def __init__(self, timeline: MemoryTimeline) -> None:
        self._timeline = timeline

    def get(self, key: Key, version: int) -> Category | None:
        return self._timeline.category(key.id, version) if isinstance(key, TensorKey) else None


class MemoryProfile:
    """The history of each storage in a recording. Made from `prof.profiler.kineto_results` or from a `Session`."""

    def __init__(self, result: Session) -> None:
        session: Session = result if isinstance(result, Session) else result._session
        self._timeline = memory_timeline.timeline_of(session)
        self._categories = CategoryDict(self._timeline)

    @functools.cached_property
    def timeline(self) -> tuple[tuple[int, Action, tuple[TensorKey, int], int], ...]:
        """(nanoseconds, action, (storage, version), bytes), in order of time; -1 is the time of what was there before."""
        keys = [
            TensorKey(torch_device(storage.device), number, _Storage(storage.address, number))
            for number, storage in enumerate(self._timeline.graph.storages)
        ]
        return tuple((c.time_ns, c.action, (keys[c.storage], c.version), c.size_bytes) for c in self._timeline.changes)


class MemoryProfileTimeline:
    """Writes the timeline of a memory profile to files."""

    def __init__(self, memory_profile: MemoryProfile) -> None:
        self._profile = memory_profile
        self.categories = memory_profile._categories

    @property
    def timeline(self) -> tuple[tuple[int, Action, tuple[TensorKey, int], int], ...]:
        return self._profile.timeline

    def _of_device(self, device_str: str) -> MemoryTimeline:
        device = torch_device(device_str)
        name = "cpu" if device.type == "cpu" else f"{device.type}:{device.index or 0}"
        return self._profile._timeline.of_device(name)

    def _coalesce_timeline(self, device_str: str) -> tuple[list[int], list[list[int]]]:
        """Times in microseconds, and for each a zero and the bytes of each category in the order of `_CATEGORY_TO_INDEX`."""
        return memory_timeline.sums_by_category(self._of_device(device_str))

    def export_memory_timeline(self, path: str | os.PathLike[str], device_str: str) -> None:
        """Write `[times, sizes]` as JSON."""
        memory_timeline.write_json(self._coalesce_timeline(device_str), path)

    def export_memory_timeline_raw(self, path: str | os.PathLike[str], device_str: str) -> None:
        """Write `[time, action, bytes, category]` for each change as JSON."""
        memory_timeline.write_json(memory_timeline.raw_events(self._of_device(device_str)), path)

    def export_memory_timeline_html(
        self, path: str | os.PathLike[str], device_str: str, figsize: tuple[float, float] = (20, 12), title: str | None = None
    ) -> None:
        """Write a page that shows the timeline. `figsize` is its greatest width and height in units of 80 pixels."""
        memory_page.write(self._of_device(device_str), path, figsize=figsize, title=title)
